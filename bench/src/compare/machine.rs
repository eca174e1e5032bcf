//! Describes the machine and the versions behind the figures.

use std::fs;
use std::process::Command;

use anyhow::Result;
use xtask::shell::output;

use super::places::Places;
use super::report::grouped;
use crate::tree::Extent;

/// Returns the page's introduction.
pub(crate) fn describe(places: &Places, extent: &Extent, command: &str, runs: usize) -> Result<String> {
    let today = first_line(Command::new("date").args(["-u", "+%Y-%m-%d"]));
    let kernel = first_line(Command::new("uname").args(["-srm"]));
    // Other load on the machine increases every figure, ours and the peers'.
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("unknown");
    let (scratch, disk) = (places.file_system("SCRATCH")?, places.file_system("DISK")?);
    let mut text = format!(
        "Written by `{command}` on {today}. One run, the contenders in turn; seconds are of the median of {runs}, \
         peak memory is the highest. Memory is summed over the processes of a pipeline and counts mapped file pages.\n\n\
         - tree: {}, {} files, {} bytes\n\
         - machine: {}, {} cores, {}, {kernel}, load when it began {load}\n\
         - SCRATCH lies on {scratch}, DISK on {disk}\n",
        places.tree.file_name().unwrap_or_default().display(),
        grouped(extent.files),
        grouped(extent.bytes),
        proc_field("/proc/cpuinfo", "model name"),
        places.cores,
        memory(),
    );
    for program in ["sealift", "tar", "zstd", "b3sum", "cp"] {
        let version = first_line(Command::new(places.path(program)).arg("--version"));
        text.push_str(&format!("- {program}: {}\n", version.trim_matches(['*', ' '])));
    }

    let squashfs = first_line(Command::new("mksquashfs").arg("-version"));
    text.push_str(&format!("- mksquashfs, unsquashfs: {squashfs}\n"));
    Ok(text)
}

fn first_line(command: &mut Command) -> String {
    let text = output(command).unwrap_or_else(|_| "unknown".to_owned());
    text.lines().next().unwrap_or_default().to_owned()
}

fn memory() -> String {
    let kilobytes = proc_field("/proc/meminfo", "MemTotal");
    let number = kilobytes.trim_end_matches(" kB").parse::<u64>();
    number.map_or(kilobytes, |number| format!("{} MiB memory", grouped(number / 1024)))
}

fn proc_field(file: &str, name: &str) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(name));
    line.and_then(|line| line.split_once(':'))
        .map_or_else(|| "unknown".to_owned(), |(_, value)| value.trim().to_owned())
}
