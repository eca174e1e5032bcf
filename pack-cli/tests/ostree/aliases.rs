//! Aliases of refs: links, which are read, replaced, and never written through.

use std::fs;
use std::os::unix::fs::symlink;

use sealift_desk::noise;

use crate::repos::{Repos, write};

/// Creates two repositories with the same commit as `os`, and a bundle of another commit as `alias`.
fn desk() -> (Repos, String) {
    let desk = Repos::new();
    fs::create_dir(desk.path("tree")).expect("a folder");
    write(&desk.path("tree/file"), 0o644, &noise(1, 1000));
    desk.init("source", "archive");
    let all = ["--owner-uid=0", "--owner-gid=0"];
    desk.commit("source", "os", "./tree", &all);
    for target in ["target", "judge"] {
        desk.init(target, "archive");
        desk.ostree(target, &["pull-local", "source", "os"]);
    }
    write(&desk.path("tree/file"), 0o644, &noise(2, 1000));
    let next = desk.commit("source", "alias", "./tree", &all);
    desk.run("pack --force ostree:source --ref alias -o alias.sealift");
    (desk, next)
}

#[test]
fn they_are_replaced_as_by_libostree() {
    let (desk, next) = desk();
    let first = desk.ostree("source", &["rev-parse", "os"]).trim().to_owned();
    let kinds = |repo: &str| {
        let kind = |name: &str| {
            let stat = fs::symlink_metadata(desk.path(repo).join("refs/heads").join(name));
            stat.map(|stat| stat.is_symlink()).ok()
        };
        (kind("alias"), kind("os"), desk.ostree(repo, &["rev-parse", "alias", "os"]))
    };
    let both = |make: &dyn Fn(&str)| {
        for repo in ["target", "judge"] {
            let _ = fs::remove_file(desk.path(repo).join("refs/heads/alias"));
            make(repo);
        }
        desk.import("alias.sealift", "target");
        desk.ostree("judge", &["pull-local", "source", "alias"]);
        assert_eq!(kinds("target"), kinds("judge"));
        desk.fsck("target");
    };
    both(&|repo| drop(desk.ostree(repo, &["refs", "--alias", "--create=alias", "os"])));
    assert_eq!(kinds("target"), (Some(false), Some(false), format!("{next}\n{first}\n")));
    both(&|repo| symlink("nowhere", desk.path(repo).join("refs/heads/alias")).expect("a link"));
    // An alias that already names the commit stays.
    both(&|repo| {
        desk.ostree(repo, &["refs", "--create=deep/er", &next]);
        desk.ostree(repo, &["refs", "--alias", "--create=alias", "deep/er"]);
    });
    assert_eq!(kinds("target").0, Some(true));
}

#[test]
fn links_elsewhere_are_not_followed() {
    let (desk, next) = desk();
    let link = desk.path("target/refs/heads/alias");
    fs::write(desk.path("outside"), format!("{next}\n")).expect("there is room");
    let outside = desk.path("outside").display().to_string();
    for target in ["../../../outside", &outside, "../heads/../../../outside", "alias", "../remotes/x", "."] {
        symlink(target, &link).expect("a link");
        let before = desk.snapshot("target");
        let said = desk.refused("unpack alias.sealift ostree:target --allow-unsigned");
        assert!(
            said.contains("its ref \"alias\" is, or is below, target/refs/heads/alias")
                && said.contains("a symbolic link that does not point to a ref"),
            "{said}"
        );
        desk.is_as(&before, "target", target);
        assert_eq!(fs::read_to_string(desk.path("outside")).expect("it is there"), format!("{next}\n"));
        fs::remove_file(&link).expect("it is ours");
    }
    desk.import("alias.sealift", "target");
}

#[test]
fn they_are_packed() {
    let (desk, next) = desk();
    desk.ostree("source", &["refs", "--alias", "--create=group/second", "alias"]);
    desk.ostree("source", &["refs", "--alias", "--create=third", "group/second"]);
    for name in ["group/second", "third"] {
        desk.run(&format!("pack --force alias=ostree:source --ref {name} -o other.sealift"));
        desk.init_with("fresh", "archive", "other.sealift");
        assert_eq!(desk.ostree("fresh", &["rev-parse", "alias"]).trim(), next);
        fs::remove_dir_all(desk.path("fresh")).expect("it can be removed");
    }
}
