//! How a test says that it, or a part of it, cannot run here.
//!
//! What a passing test prints is not shown, so that a word on standard error is lost. `cargo xtask ci` names a file in `SEALIFT_SKIPPED`,
//! prints at its end what stands there, and fails where a reason is not one that it expects of a machine.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::thread;

/// Says that the test which calls this does not look at all that it could, and why.
///
/// # Panics
///
/// When the file that `SEALIFT_SKIPPED` names cannot be written: nobody would learn of it.
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    let Some(file) = env::var_os("SEALIFT_SKIPPED").filter(|file| !file.is_empty()) else { return };
    let line = line(&program(), thread::current().name().unwrap_or("a thread"), why);
    // One write at the end of the file: tests of several programs write at once.
    let written =
        OpenOptions::new().append(true).create(true).open(&file).and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "cannot write {}: {written:?}", file.display());
}

/// The program's name without the hash that cargo appends.
fn program() -> String {
    let path = env::current_exe().unwrap_or_default();
    let name = path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    name.rsplit_once('-').map_or(name.clone(), |(start, _)| start.to_owned())
}

fn line(program: &str, test: &str, why: &str) -> String {
    format!("{program}::{test}\t{}\n", why.replace(['\t', '\n'], " "))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What the other test starts.
    #[test]
    #[ignore = "says that it was skipped"]
    fn skips() {
        skipped("needs a tab\tand two\nlines");
    }

    #[test]
    fn a_reason_is_appended_with_its_test() {
        let file = env::temp_dir().join(format!("sealift-skipped.{}", std::process::id()));
        for _ in 0..2 {
            let mut child = Command::new(env::current_exe().expect("this program is there"));
            child.args(["--exact", "tests::skips", "--ignored"]).env("SEALIFT_SKIPPED", &file);
            assert!(child.output().expect("it starts").status.success());
        }
        let lines = std::fs::read_to_string(&file).expect("the child wrote it");
        std::fs::remove_file(&file).expect("it is ours");
        assert_eq!(lines, "sealift_skipped::tests::skips\tneeds a tab and two lines\n".repeat(2));
    }

    #[test]
    fn what_cannot_be_written_is_no_silence() {
        let mut child = Command::new(env::current_exe().expect("this program is there"));
        child.args(["--exact", "tests::skips", "--ignored"]).env("SEALIFT_SKIPPED", "/proc/none/of/this");
        assert!(!child.output().expect("it starts").status.success());
    }
}
