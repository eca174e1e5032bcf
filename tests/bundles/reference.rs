//! Runs the second reader over all vectors.

use std::path::{Path, PathBuf};
use std::process::Command;

use sealift_tests::vector::folder;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn can_import(python: &Path) -> bool {
    let tried = Command::new(python).args(["-c", "import blake3, zstandard"]).output();
    tried.is_ok_and(|output| output.status.success())
}

/// Returns a Python with the modules that the second reader needs: from SEALIFT_PYTHON, the system's, or the one that `cargo xtask ci readers`
/// creates. Tests download nothing.
fn python() -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let made = cache.map(|cache| cache.join("sealift/python/bin/python"));
    let given = std::env::var_os("SEALIFT_PYTHON").map(PathBuf::from);
    [given, Some("python3".into()), made].into_iter().flatten().find(|python| can_import(python))
}

#[test]
fn the_second_reader_agrees() {
    let vectors = std::fs::read_dir(folder()).expect("the folder is there");
    let vectors = vectors.map(|file| file.expect("it can be listed").path());
    let mut vectors: Vec<PathBuf> = vectors.filter(|path| path.extension().is_some_and(|end| end == "vec")).collect();
    vectors.sort();
    let Some(python) = python() else {
        return sealift_skipped::skipped("needs the second reader's Python modules: cargo xtask ci readers");
    };
    let output = Command::new(python).arg(here().join("reference/vectors.py")).args(&vectors).output();
    let output = output.expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with(&format!("{0} of {0} vectors agree\n", vectors.len())), "{said}");
}
