//! Runs the second reader over all vectors, and the reader in JavaScript over those of the format's core.

use std::path::{Path, PathBuf};
use std::process::Command;

use sealift_tests::vector::{folder, names};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn can_import(python: &Path) -> bool {
    let tried = Command::new(python).args(["-c", "import blake3, zstandard"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// Returns a Python with the modules that the second reader needs: from SEALIFT_PYTHON, the system's, or the one that `cargo xtask ci readers`
/// creates. Tests download nothing.
pub(crate) fn python() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let made = cache.map(|cache| cache.join("sealift/python/bin/python"));
    let given = std::env::var_os("SEALIFT_PYTHON").map(PathBuf::from);
    [given, Some("python3".into()), made].into_iter().flatten().find(|python| can_import(python))
}

fn vectors() -> Vec<PathBuf> {
    names().iter().map(|name| folder().join(format!("{name}.vec"))).collect()
}

#[test]
fn the_second_reader_agrees() {
    let vectors = vectors();
    let Some(python) = python() else {
        return sealift_skipped::skipped("needs the second reader's Python modules: cargo xtask ci readers");
    };
    let output = Command::new(python).arg(here().join("reference/vectors.py")).args(&vectors).output();
    let output = output.expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with(&format!("{0} of {0} vectors agree\n", vectors.len())), "{said}");
}

/// It leaves out what concerns deltas, OSTree, images, requests and trust.
#[test]
fn the_reader_in_javascript_agrees() {
    let (reader, vectors) = (here().join("reference"), vectors());
    let imports = "import 'fzstd'; import '@noble/hashes/sha2.js'";
    let tried = Command::new("node").args(["--input-type=module", "--eval", imports]).current_dir(&reader).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        return sealift_skipped::skipped(
            "needs Node and the packages of the reader in JavaScript: cargo xtask ci readers",
        );
    }
    let output = Command::new("node").arg(reader.join("vectors.mjs")).args(&vectors).output().expect("Node runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let sum = said.lines().last().unwrap_or_default().replace(',', "");
    let numbers: Vec<usize> = sum.split(' ').filter_map(|word| word.parse().ok()).collect();
    let [agree, ran, left_out] = numbers[..] else { panic!("{said}") };
    assert!(agree == ran && ran + left_out == vectors.len(), "{said}");
    // Of the core there are about two hundred.
    assert!(ran >= 200, "{said}");
}
