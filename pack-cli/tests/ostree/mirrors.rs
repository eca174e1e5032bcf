//! A mirror of all refs has the summary of its source.

use std::fs;

use crate::repos::{Repos, write};

/// Creates an archive with two refs and a summary, packed whole.
fn source() -> Repos {
    let desk = Repos::new();
    for (reference, text) in [("a", "one\n"), ("b/c", "two\n")] {
        let tree = desk.path("trees").join(reference);
        fs::create_dir_all(&tree).expect("a folder");
        write(&tree.join("file"), 0o644, text.as_bytes());
    }
    desk.init("source", "archive");
    desk.commit("source", "a", "trees/a", &["--add-metadata-string=version=1.0"]);
    desk.commit("source", "b/c", "trees/b/c", &[]);
    desk.ostree("source", &["summary", "--update"]);
    fs::write(desk.path("source/summary.sig"), "of a signer").expect("a file");
    desk.run("pack --force ostree:source -o all.sealift");
    desk
}

#[test]
fn a_mirror_is_what_pull_makes() {
    let desk = source();
    desk.init("pulled", "archive");
    let url = format!("file://{}", desk.path("source").display());
    desk.ostree("pulled", &["remote", "add", "--no-gpg-verify", "os", &url]);
    desk.ostree("pulled", &["pull", "--mirror", "os"]);
    desk.init("target", "archive");
    let said = desk.run("unpack all.sealift ostree:target --mirror --allow-unsigned");
    assert!(said.contains("the summary is the one from the source"), "{said}");
    for name in ["summary", "summary.sig"] {
        let read = |repo: &str| fs::read(desk.path(repo).join(name)).expect("it is there");
        assert_eq!(read("target"), read("source"), "{name}");
        assert_eq!(read("target"), read("pulled"), "{name}");
    }
    assert_eq!(desk.ostree("target", &["refs"]), desk.ostree("pulled", &["refs"]));
    desk.fsck("target");
    let before = desk.snapshot("target");
    desk.run("unpack all.sealift ostree:target --mirror --allow-unsigned");
    desk.is_as(&before, "target", "a second run");
    // An older signature does not stay with a newer summary.
    fs::remove_file(desk.path("source/summary.sig")).expect("it is there");
    desk.run("pack --force ostree:source -o unsigned.sealift");
    desk.run("unpack unsigned.sealift ostree:target --mirror --allow-unsigned");
    assert!(!desk.path("target/summary.sig").exists());
}

/// A summary that names missing commits, or another mode, would mislead clients.
#[test]
fn a_summary_of_more_than_that_stays_away() {
    let desk = source();
    desk.run("pack --force ostree:source --ref a -o one.sealift");
    let cases = [
        ("one", "archive", "one.sealift --mirror"),
        ("one-asked-for", "archive", "all.sealift --mirror --ref a"),
        ("another-mode", "bare-user", "all.sealift --mirror"),
        ("no-mirror", "archive", "all.sealift"),
        ("nothing-done", "archive", "all.sealift --mirror --dry-run"),
    ];
    for (target, mode, line) in cases {
        desk.init(target, mode);
        let (bundle, more) = line.split_once(' ').unwrap_or((line, ""));
        desk.run(&format!("unpack {bundle} ostree:{target} {more} --allow-unsigned"));
        assert!(!desk.path(target).join("summary").exists(), "{target}");
    }
}
