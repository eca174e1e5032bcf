//! The second reader over all vectors.

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

/// A Python with the modules that the second reader needs: the one of SEALIFT_PYTHON, the system's, or an environment below the target
/// folder, which is made once.
fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("SEALIFT_PYTHON") {
        return python.into();
    }
    let system = PathBuf::from("python3");
    if can_import(&system) {
        return system;
    }
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python");
    let python = environment.join("bin/python");
    if !can_import(&python) {
        let requirements = here().join("reference/requirements.txt");

        let lines = format!(
            "python3 -m venv '{0}' && '{0}/bin/pip' install --quiet -r '{1}'",
            environment.display(),
            requirements.display()
        );
        let done = Command::new("sh").args(["-c", &lines]).status().is_ok_and(|status| status.success());
        assert!(done, "the second reader needs two Python modules; run: {lines}");
    }
    python
}

#[test]
fn the_second_reader_agrees() {
    let vectors = std::fs::read_dir(folder()).expect("the folder is there");
    let vectors = vectors.map(|file| file.expect("it can be listed").path());
    let mut vectors: Vec<PathBuf> = vectors.filter(|path| path.extension().is_some_and(|end| end == "vec")).collect();
    vectors.sort();
    let mut command = Command::new(python());
    let output = command.arg(here().join("reference/vectors.py")).args(&vectors).output();
    let output = output.expect("Python runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.ends_with(&format!("{0} of {0} vectors agree\n", vectors.len())), "{said}");
}
