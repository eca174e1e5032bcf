//! Compares the second reader with ours on a bundle of more than a gigabyte: names, metadata, and every byte of content.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use xtask::shell::run as run_command;
use xtask::tools;

use super::findings::Findings;
use super::ground::Ground;
use crate::tree;

const GIB: u64 = 1 << 30;

pub(crate) fn run() -> Result<()> {
    tools::ensure_python()?;
    let ground = Ground::new("listing")?;
    let kernel = tree::unpack_kernel(&ground.path(""))?;
    let extent = tree::extent(&kernel)?;
    ensure!(extent.bytes > GIB, "{} holds no gigabyte", kernel.display());
    let name = kernel.file_name().and_then(|name| name.to_str()).context("a folder with a name")?;
    ground.run(&format!("sealift pack --force {name} -o kernel.sealift --bundle-version 1 --quiet"))?;
    // Both take minutes at most, and the second reader uses one core.
    let reader = std::env::current_dir()?.join("tests/reference/sealift.py");
    let mut command = Command::new(tools::python()?);
    command.arg(reader).arg("list").arg(ground.path("kernel.sealift")).arg("--content").stdin(Stdio::null());
    run_command(command.stdout(File::create(ground.path("theirs"))?))?;
    fs::write(ground.path("ours"), ground.printed_by("sealift ls --json kernel.sealift")?)?;

    let (ours, mut theirs) = (entries(&ground.path("ours"))?, entries(&ground.path("theirs"))?);
    // Only the second reader lists a hash of a file's content.
    let hashes: Vec<_> = theirs.iter_mut().map(|(_, entry)| entry.as_object_mut()?.remove("sha256")).collect();
    let (mut findings, mut files) = (Findings::default(), 0);
    if ours != theirs {
        let differs = ours.iter().zip(&theirs).find(|(ours, theirs)| ours != theirs);
        findings.add(&format!("ours has {} entries, the second reader {}: {differs:?}", ours.len(), theirs.len()))?;
    }
    for (((_, path), _), hash) in ours.iter().zip(&hashes).filter(|(_, hash)| hash.is_some()) {
        files += 1;
        // No name in the kernel source needs escaping.
        if hash.as_ref().and_then(Value::as_str) != Some(&sha256(&kernel.join(path))?) {
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

/// Returns the entries of a listing by ref and path, since each reader has its own order.
fn entries(listing: &Path) -> Result<BTreeMap<(String, String), Value>> {
    let entry = |line: &str| {
        let entry: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
        Ok(((text("ref"), text("path")), entry))
    };
    fs::read_to_string(listing)?.lines().map(entry).collect()
}

fn sha256(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}
