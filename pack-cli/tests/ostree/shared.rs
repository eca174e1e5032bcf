//! A commit is a tree like any other: it shares contents with directories, and is listed, read, compared and unpacked.

use std::fs;
use std::process::Command;

use sealift_desk::text;

use crate::repos::{Repos, plain_tree};

/// Creates a repository, and a bundle of its commit and of the directory that was committed.
fn desk() -> Repos {
    let desk = Repos::new();
    plain_tree(&desk.path("tree"));
    desk.init("source", "archive");
    desk.commit("source", "os/main", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    desk.run("pack --force ostree:source dir=tree -o both.sealift");
    desk.run("pack --force ostree:source -o os.sealift");
    desk
}

#[test]
fn objects_are_carried_once() {
    let desk = desk();
    let len = |name: &str| fs::metadata(desk.path(name)).expect("a bundle").len();
    let (both, alone) = (len("both.sealift"), len("os.sealift"));
    assert!(both < alone + 2000, "{both} bytes, and {alone} without the directory");
    desk.init("target", "bare-user");
    let taken = desk.import("both.sealift", "target");
    assert_eq!(taken["refs"].as_array().map(Vec::len), Some(1), "a directory is no commit: {taken}");
    desk.fsck("target");
    assert_eq!(desk.listed("target", "os/main"), desk.listed("source", "os/main"));
}

#[test]
fn it_unpacks_as_it_checks_out() {
    let desk = desk();
    desk.ostree("source", &["checkout", "-U", "os/main", "checkout"]);
    for (reference, directory, tree) in [("os/main", "from-commit", "checkout"), ("dir", "from-directory", "tree")] {
        desk.run(&format!("unpack both.sealift {directory} --ref {reference} --allow-unsigned"));
        let mut rsync = Command::new("rsync");
        rsync.args(["-rlpnic", "--delete"]).arg(desk.path(tree).join("")).arg(desk.path(directory));
        let output = rsync.output().expect("rsync is installed");
        assert_eq!((text(&output.stdout).as_str(), output.status.success()), ("", true), "{reference}");
    }
    // A new commit of the unpacked tree is the same: only times are lost.
    let again = desk.commit("source", "again", "./from-commit", &["--owner-uid=0", "--owner-gid=0"]);
    assert_eq!(desk.ostree("source", &["diff", "os/main", &again]), "");
    let root = |commit: &str| desk.listed("source", commit);
    assert_eq!(root("os/main"), root(&again));
}

#[test]
fn it_is_listed_and_read() {
    let desk = desk();
    let sorted = |text: &str| {
        let names = text.split_terminator('\0').map(|path| path.trim_start_matches("os/main:").trim_matches('/'));
        let mut names: Vec<_> = names.filter(|path| !matches!(*path, "" | ".")).map(str::to_owned).collect();
        names.sort();
        names
    };
    let found = desk.run("ls both.sealift os/main: -0");
    assert_eq!(sorted(&found), sorted(&desk.ostree("source", &["ls", "-R", "--nul-filenames-only", "os/main"])));
    for path in ["usr/share/large", "usr/share/void", "usr/share/n\u{e4}me", "none", "usr/bin/run"] {
        let read = |reference: &str| {
            let line = format!("cat both.sealift {reference}:{path} --allow-unsigned");
            let output = desk.command(&line).output().expect("sealift runs");
            assert!(output.status.success(), "{line}: {}", text(&output.stderr));
            output.stdout
        };
        let tree = fs::read(desk.path("tree").join(path)).expect("it is there");
        assert!(read("os/main") == tree && read("dir") == tree, "{path}");
    }
}

#[test]
fn it_is_compared() {
    let desk = desk();
    let diff = |line: &str| {
        let output = desk.command(line).output().expect("sealift runs");
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let line = "diff os.sealift both.sealift --ref os/main --exit-code";
    assert_eq!(diff(line).0, Some(0), "{}", diff(line).1);
    fs::write(desk.path("tree/usr/share/equal"), "another\n").expect("there is room");
    fs::remove_file(desk.path("tree/link")).expect("it is there");
    desk.commit("source", "os/main", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    desk.run("pack --force ostree:source -o next.sealift");
    let (code, said) = diff("diff os.sealift next.sealift --exit-code");
    assert_eq!(code, Some(1), "{said}");
    let expected = desk.ostree("source", &["diff", "os/main^", "os/main"]);
    assert!(expected.contains("usr/share/equal") && expected.contains("/link"), "{expected}");
    for path in ["usr/share/equal", "link"] {
        assert!(said.lines().any(|line| line.contains(path)), "{said}");
    }
    assert!(!said.contains("usr/share/again"), "{said}");
}
