//! Runs the second reader and the description of the structures on all vectors, and the reader in JavaScript on those of the core.

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

/// Returns a Python that has the modules which the second reader needs: the one that SEALIFT_PYTHON names, the system's, or the one that `cargo xtask
/// ci readers` creates. Tests download nothing.
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

/// Runs a script of the second reader on all vectors, and returns what it prints; `None` if its Python modules are missing.
fn run(script: &str) -> Option<String> {
    let Some(python) = python() else {
        sealift_desk::skipped("needs the second reader's Python modules: cargo xtask ci readers");
        return None;
    };
    let output = Command::new(python).arg(here().join("reference").join(script)).args(vectors()).output();
    let output = output.expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    Some(said)
}

#[test]
fn the_second_reader_agrees() {
    let Some(said) = run("vectors.py") else { return };
    assert!(said.ends_with(&format!("{0} of {0} vectors agree\n", vectors().len())), "{said}");
}

/// The description can parse the accepted vectors, and all others that are not malformed.
#[test]
fn the_structures_are_as_described() {
    let Some(said) = run("structures.py") else { return };
    assert!(said.ends_with(&format!(" of {} vectors are as described\n", vectors().len())), "{said}");
}

/// Returns the number of lines in these files of the readers.
fn lines(files: &[&str]) -> usize {
    let read = |file| std::fs::read_to_string(here().join("reference").join(file)).expect("it is there");
    files.iter().map(|file| read(file).lines().count()).sum()
}

/// The core must stay small, both to read about and to implement.
#[test]
fn the_core_is_small() {
    let core = std::fs::read_to_string(folder().join("../core.md")).expect("it is there");
    let words = core.split_whitespace().count();
    assert!(words < 3_600, "core.md has {words} words");
    // These files also contain what the core's structures have for other parts.
    let python = lines(&["sealift.py", "index.py", "encoding.py", "hashes.py"]);
    assert!(python <= 1_000, "the second reader has {python} lines for the core");
    let javascript = lines(&["sealift.mjs"]);
    assert!(javascript <= 540, "the reader in JavaScript has {javascript} lines");
}

/// This reader leaves out deltas, OSTree, images, requests and trust.
#[test]
fn the_reader_in_javascript_agrees() {
    let (reader, vectors) = (here().join("reference"), vectors());
    let imports = "import 'fzstd'; import '@noble/hashes/sha2.js'";
    let tried = Command::new("node").args(["--input-type=module", "--eval", imports]).current_dir(&reader).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        return sealift_desk::skipped(
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
    // There are about two hundred vectors for the core.
    assert!(ran >= 200, "{said}");
}
