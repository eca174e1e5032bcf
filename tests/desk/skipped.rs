//! Reports tests that cannot run here, completely or in part, and lets tests run a program as another user.
//!
//! The output of a passing test is hidden, so a message on standard error would be lost. `cargo xtask ci` names a file in `SEALIFT_SKIPPED`,
//! prints its contents at the end, and fails on any reason that it does not expect on the machine.

use std::env;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;

/// Reports that the calling test does not check everything, and why.
///
/// # Panics
///
/// Panics if the file named by `SEALIFT_SKIPPED` cannot be written: the report would be lost.
pub fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    let Some(file) = env::var_os("SEALIFT_SKIPPED").filter(|file| !file.is_empty()) else { return };
    let line = line(&test_program(), thread::current().name().unwrap_or("a thread"), why);
    // A single append: tests of several programs write concurrently.
    let written =
        OpenOptions::new().append(true).create(true).open(&file).and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "cannot write {}: {written:?}", file.display());
}

/// Whether these programs are installed; otherwise reports the test as skipped.
#[must_use]
pub fn has(programs: &[&str]) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let missing = programs.iter().find(|program| !env::split_paths(&path).any(|folder| folder.join(program).exists()));
    if let Some(missing) = missing {
        skipped(&format!("needs {missing}"));
    }
    missing.is_none()
}

/// Returns a path by which every user can run a program: its own, or that of a copy in `folder` if it lies below a directory that others cannot
/// enter, such as root's home.
///
/// # Panics
///
/// Panics if the copy cannot be written.
#[must_use]
pub(crate) fn for_every_user(program: &str, folder: &Path) -> PathBuf {
    let is_open = |dir: &Path| dir.metadata().is_ok_and(|of| of.permissions().mode() & 0o001 != 0);
    if Path::new(program).ancestors().skip(1).all(is_open) {
        return program.into();
    }
    let copy = folder.join("for-every-user");
    if !copy.exists() {
        // By another process: what another thread of this one starts meanwhile would hold the copy open for writing, and it could not be run.
        let copied = Command::new("cp").arg(program).arg(&copy).status();
        assert!(copied.as_ref().is_ok_and(ExitStatus::success), "cannot copy {program}: {copied:?}");
    }
    copy
}

/// Returns the program's name without the hash that cargo appends.
fn test_program() -> String {
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

    use std::fs;

    use super::*;

    /// Started by the other test.
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
            child.args(["--exact", "skipped::tests::skips", "--ignored"]).env("SEALIFT_SKIPPED", &file);
            assert!(child.output().expect("it starts").status.success());
        }
        let lines = fs::read_to_string(&file).expect("the child wrote it");
        fs::remove_file(&file).expect("it is ours");
        assert_eq!(lines, "sealift_desk::skipped::tests::skips\tneeds a tab and two lines\n".repeat(2));
    }

    #[test]
    fn a_program_below_a_closed_directory_is_copied() {
        let folder = env::temp_dir().join(format!("sealift-closed.{}", std::process::id()));
        fs::create_dir(&folder).expect("nobody else has this name");
        let program = folder.join("program");
        fs::write(&program, "echo").expect("it is ours");
        let run = |mode| {
            fs::set_permissions(&folder, fs::Permissions::from_mode(mode)).expect("it is ours");
            for_every_user(program.to_str().expect("it is text"), &folder)
        };
        let found = [run(0o755), run(0o700)];
        let copied = fs::read(&found[1]).expect("it was copied");
        fs::remove_dir_all(&folder).expect("it is ours");
        assert_eq!(found, [program, folder.join("for-every-user")]);
        assert_eq!(copied, b"echo");
    }

    #[test]
    fn what_cannot_be_written_is_no_silence() {
        let mut child = Command::new(env::current_exe().expect("this program is there"));
        child.args(["--exact", "skipped::tests::skips", "--ignored"]).env("SEALIFT_SKIPPED", "/proc/none/of/this");
        assert!(!child.output().expect("it starts").status.success());
    }
}
