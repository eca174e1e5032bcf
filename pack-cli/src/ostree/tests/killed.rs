//! Writing into a repository, killed at each of its system calls.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::{Repo, committed, copy, init, names_in, ostree};

/// A program that [`a_write_may_be_killed_at_any_call`] kills.
#[test]
#[ignore = "the child of the test below"]
fn one_copy() {
    let open = |name| Repo::open(Path::new(&std::env::var_os(name).expect(name))).expect("it opens");
    let (from, to) = (open("FROM"), open("TO"));
    copy(&from, &to, &from.resolve("test/main").expect("a ref")).expect("it is copied");
}

#[test]
fn a_write_may_be_killed_at_any_call() {
    const CALLS: &str = "openat,write,renameat2,renameat,mkdirat,unlinkat,utimensat,syncfs,fsync,fdatasync,symlinkat";
    let small = |root: &Path| {
        std::fs::create_dir_all(root.join("sub")).expect("a directory");
        std::fs::write(root.join("foo"), "foo\n").expect("a file");
        symlink("foo", root.join("sub/link")).expect("a link");
    };
    for mode in ["bare-user-only", "archive-z2"] {
        let folder = TempDir::new().expect("a folder");
        let source = committed(folder.path(), mode, small);
        let mut kills = 0;
        loop {
            let path = init(folder.path(), &format!("to-{kills}"), mode);
            let myself = std::env::current_exe().expect("it has a path");
            let child = |program: &mut Command| {
                let args = ["--exact", "ostree::tests::killed::one_copy", "--ignored", "--test-threads=1"];
                program.args(args).env("FROM", &source).env("TO", &path).output().expect("strace is installed")
            };
            let inject = format!("inject={CALLS}:signal=KILL:when={}", kills + 1);
            let mut strace = Command::new("strace");
            strace.args(["-f", "-o", "/dev/null", "-e", &format!("trace={CALLS}"), "-e", &inject]).arg(&myself);
            let is_done = child(&mut strace).status.success();
            let fsck =
                || ostree(&path, &["fsck"]).unwrap_or_else(|error| panic!("{mode}, call {}: {error}", kills + 1));
            if path.join("refs/heads/test/main").exists() {
                fsck();
            }
            assert!(child(&mut Command::new(&myself)).status.success(), "{mode}, call {}", kills + 1);
            fsck();
            for (place, kept) in [("tmp", vec!["cache"]), ("state", vec![])] {
                assert_eq!(names_in(&path.join(place)), kept, "{mode}, call {}", kills + 1);
            }
            if is_done {
                break;
            }
            kills += 1;
        }
        assert!(kills > 30, "{kills}");
    }
}
