//! The second reader and ours agree on a bundle of more than a gigabyte: names, metadata, and every byte of content.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use sha2::{Digest as _, Sha256};

use super::findings::Findings;
use super::ground::Ground;
use crate::compare::tree;
use crate::shell::run as run_command;
use crate::tools;

const GIB: u64 = 1 << 30;
const SHA256: &str = ",\"sha256\":\"";

pub(crate) fn run() -> Result<()> {
    tools::ensure_python()?;
    let ground = Ground::new("listing")?;
    let kernel = tree::unpack_kernel(&ground.path(""))?;
    let extent = tree::extent(&kernel)?;
    ensure!(extent.bytes > GIB, "{} holds no gigabyte", kernel.display());
    let name = kernel.file_name().and_then(|name| name.to_str()).context("a folder with a name")?;
    ground.run(&format!("sealift pack --force {name} -o kernel.sealift --bundle-version 1 --quiet"))?;
    // Both take minutes at most, and the second reader one core.
    let reader = std::env::current_dir()?.join("tests/reference/sealift.py");
    let mut command = Command::new(tools::python()?);
    command.arg(reader).arg("list").arg(ground.path("kernel.sealift")).arg("--content").stdin(Stdio::null());
    run_command(command.stdout(File::create(ground.path("theirs"))?))?;
    fs::write(ground.path("ours"), ground.printed_by("sealift ls --json kernel.sealift")?)?;

    let (ours, theirs) = (fs::read_to_string(ground.path("ours"))?, fs::read_to_string(ground.path("theirs"))?);
    let (mut ours, mut theirs): (Vec<_>, Vec<_>) = (ours.lines().collect(), theirs.lines().collect());
    // Each reader has its order.
    ours.sort_unstable();
    theirs.sort_unstable();
    let mut findings = Findings::default();
    if ours.len() != theirs.len() {
        findings.add(&format!("ours lists {} entries, the second reader {}", ours.len(), theirs.len()))?;
    }
    let mut files = 0;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        let (line, sha256) = split(theirs);
        if *ours != line {
            findings.add(&format!("ours: {ours}, the second reader: {theirs}"))?;
        }
        let Some(sha256) = sha256 else { continue };
        files += 1;
        let path = path_in(&line).with_context(|| format!("no path in {line}"))?;
        if hash(&kernel.join(&path))? != sha256 {
            findings.add(&format!("{path}: the second reader has another content"))?;
        }
    }
    if files != extent.files {
        findings.add(&format!("the tree has {} files, the listing {files}", extent.files))?;
    }
    println!("   {} entries, {files} files, {} bytes", theirs.len(), extent.bytes);
    findings.finish()?;
    ground.remove()
}

/// A line without its hash, as our listing has it, and the hash.
fn split(line: &str) -> (String, Option<&str>) {
    match line.split_once(SHA256) {
        Some((before, after)) => (format!("{before}}}"), after.strip_suffix("\"}")),
        None => (line.to_owned(), None),
    }
}

/// The path of a line; the kernel has no name that is escaped.
fn path_in(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("\"path\":\"")?;
    let (path, _) = rest.split_once("\",\"type\":")?;
    (!path.contains(['%', '\\'])).then(|| path.to_owned())
}

fn hash(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line = r#"{"ref":"main","path":"a/b","type":"file","inode":3,"sha256":"00ff"}"#;
        let (rest, sha256) = split(line);
        assert_eq!(rest, r#"{"ref":"main","path":"a/b","type":"file","inode":3}"#);
        assert_eq!(sha256, Some("00ff"));
        assert_eq!(path_in(&rest).as_deref(), Some("a/b"));
    }
}
