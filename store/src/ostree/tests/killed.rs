//! Writes to a repository, with a kill at each system call, or with one call failing.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use sealift_desk::folder_in_memory;

use super::{Repo, committed, copy, init, names_in, ostree};

/// The program that [`a_write_may_be_killed_at_any_call`] kills.
#[test]
#[ignore = "the child of the test below"]
fn one_copy() {
    let open = |name| Repo::open(Path::new(&std::env::var_os(name).expect(name))).expect("it opens");
    let (from, to) = (open("FROM"), open("TO"));
    copy(&from, &to, &from.resolve("test/main").expect("a ref")).expect("it is copied");
}

/// Starts that program, under strace if there are options. Returns whether it succeeded.
fn copies(from: &Path, to: &Path, options: &[&str]) -> bool {
    let myself = std::env::current_exe().expect("it has a path");
    let mut program = match options {
        [] => Command::new(&myself),
        options => {
            let mut strace = Command::new("strace");
            strace.arg("-f").args(options).arg(&myself);
            strace
        }
    };
    program.args(["--exact", "ostree::tests::killed::one_copy", "--ignored", "--test-threads=1"]);
    program.env("FROM", from).env("TO", to).output().expect("strace is installed").status.success()
}

/// Does the same, with an injected effect on some calls.
fn copies_although(from: &Path, to: &Path, calls: &str, what: &str) -> bool {
    let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:{what}"));
    copies(from, to, &["-o", "/dev/null", "-e", &trace, "-e", &inject])
}

fn small_tree(root: &Path) {
    std::fs::create_dir_all(root.join("sub")).expect("a directory");
    std::fs::write(root.join("foo"), "foo\n").expect("a file");
    symlink("foo", root.join("sub/link")).expect("a link");
}

/// Checks that the repository is consistent and has nothing of a failed run.
fn check(path: &Path, what: &str) {
    ostree(path, &["fsck"]).unwrap_or_else(|error| panic!("{what}: {error}"));
    for (place, kept) in [("tmp", vec!["cache"]), ("state", vec![])] {
        assert_eq!(names_in(&path.join(place)), kept, "{what}");
    }
}

#[test]
fn a_write_may_be_killed_at_any_call() {
    const CALLS: &str =
        "openat,openat2,write,renameat2,renameat,mkdirat,unlinkat,utimensat,syncfs,fsync,fdatasync,symlinkat";
    for mode in ["bare-user-only", "archive-z2"] {
        let folder = folder_in_memory();
        let source = committed(folder.path(), mode, small_tree);
        let mut kills = 0;
        loop {
            let path = init(folder.path(), &format!("to-{kills}"), mode);
            let what = format!("{mode}, call {}", kills + 1);
            let is_done = copies_although(&source, &path, CALLS, &format!("signal=KILL:when={}", kills + 1));
            if path.join("refs/heads/test/main").exists() {
                ostree(&path, &["fsck"]).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            assert!(copies(&source, &path, &[]), "{what}");
            check(&path, &what);
            if is_done {
                break;
            }
            kills += 1;
        }
        assert!(kills > 20, "{kills}");
    }
}

/// What a run cannot remove, the next one does.
#[test]
fn removing_may_fail() {
    let folder = folder_in_memory();
    let source = committed(folder.path(), "archive-z2", small_tree);
    for when in 1..=8 {
        let path = init(folder.path(), &format!("to-{when}"), "archive-z2");
        copies_although(&source, &path, "unlinkat", &format!("error=EIO:when={when}"));
        assert!(copies(&source, &path, &[]), "{when}");
        check(&path, &format!("unlinkat {when}"));
    }
}

/// After a power loss, the directory may exist without its lock.
#[test]
fn a_stage_may_lack_its_lock() {
    let folder = folder_in_memory();
    let source = committed(folder.path(), "archive-z2", small_tree);
    let path = init(folder.path(), "to", "archive-z2");
    let stage = path.join("tmp/staging-00000000-0000-0000-0000-000000000000-sealift-0123456789ab");
    std::fs::create_dir(&stage).expect("a new directory");
    std::fs::write(stage.join("summary"), "").expect("a new file");
    assert!(copies(&source, &path, &[]));
    check(&path, "without a lock");
}

/// A ref always names a complete commit, even after a power loss.
#[test]
fn a_mark_is_gone_for_good() {
    let folder = folder_in_memory();
    let source = committed(folder.path(), "archive-z2", small_tree);
    let path = init(folder.path(), "to", "archive-z2");
    let calls = folder.path().join("calls");
    let options = ["-y", "-o", calls.to_str().expect("it is UTF-8"), "-e", "trace=unlinkat,fsync,renameat"];
    assert!(copies(&source, &path, &options));
    let calls = std::fs::read_to_string(calls).expect("strace wrote it");
    let mut after = calls.lines().skip_while(|line| !line.contains(".commitpartial"));
    let next = after.nth(1).expect("it goes on");
    assert!(next.contains("fsync(") && next.contains("/state>"), "{calls}");
}
