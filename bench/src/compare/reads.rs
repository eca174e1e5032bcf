//! The reads from the bundle that extracting one small file takes.

use std::fs;

use anyhow::{Context, Result};

use super::contenders::{CAT_COLD, PACK_TO_DISK};
use super::job::Job;
use super::places::Places;
use super::report::Report;

pub(crate) fn add(report: &mut Report, places: &Places) -> Result<()> {
    if !places.path("DISK/tree.sealift").exists() {
        Job::new(PACK_TO_DISK.line, places).run()?;
    }
    let calls = "read,readv,pread64,preadv,preadv2,mmap";
    let line = format!("strace -f -y -s 0 -e trace={calls} -o SCRATCH/strace {}", CAT_COLD.line);
    Job::new(&line, places).run()?;
    let trace = fs::read_to_string(places.path("SCRATCH/strace")).context("cannot read the trace")?;
    let reads: Vec<_> = trace.lines().filter_map(|line| read_of(line, "tree.sealift>")).collect();
    let mut text = format!(
        "`{line}`: {} reads of the bundle.\n\n| call | arguments | result |\n| --- | --- | --: |\n",
        reads.len()
    );
    for Read { call, arguments, result } in reads {
        text.push_str(&format!("| {call} | {arguments} | {result} |\n"));
    }
    report.section("Reads for one small file", &text);
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
struct Read<'a> {
    call: &'a str,
    arguments: &'a str,
    result: &'a str,
}

/// Returns the read in a line of strace's output, if it is one from that file.
fn read_of<'a>(line: &'a str, file: &str) -> Option<Read<'a>> {
    let (before, after) = line.split_once(file)?;
    let call = before.split_once('(')?.0.rsplit(' ').next()?;
    let (arguments, result) = after.rsplit_once(" = ")?;
    let arguments = arguments.trim_start_matches(", \"\"...").trim_start_matches(", ").trim_end().trim_end_matches(')');
    Some(Read { call, arguments, result })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_of_the_file_is_recognised() {
        let line = r#"71 pread64(3</mnt/tree.sealift>, ""..., 4096, 8192) = 4096"#;
        let expected = Read { call: "pread64", arguments: "4096, 8192", result: "4096" };
        assert_eq!(read_of(line, "tree.sealift>"), Some(expected));
    }

    #[test]
    fn a_read_of_another_file_is_not() {
        assert_eq!(read_of(r#"71 read(3</etc/passwd>, ""..., 4096) = 512"#, "tree.sealift>"), None);
    }
}
