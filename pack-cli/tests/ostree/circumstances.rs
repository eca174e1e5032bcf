//! Unusual states of a repository and of the process when a bundle is unpacked.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::process::{Command, Stdio};

use sealift_desk::{Mounted, as_root, can_chown, noise, out, skipped, text};

use crate::repos::{MODES, Repos, full_tree, plain_tree, write};

const ROOT: &[&str] = &["--owner-uid=0", "--owner-gid=0"];

/// Creates a repository of small files, and its bundle.
fn small() -> Repos {
    let desk = Repos::new();
    for number in 0..50 {
        let folder = desk.path(&format!("tree/d{}", number % 5));
        fs::create_dir_all(&folder).expect("a folder");
        write(&folder.join(number.to_string()), 0o644, &noise(number, number * 300));
    }
    desk.init("source", "archive");
    desk.commit("source", "os", "./tree", ROOT);
    desk.run("pack --force ostree:source -o os.sealift");
    desk
}

/// Neither the umask nor the group of a directory affects what is created.
#[test]
fn masks_and_groups() {
    let desk = Repos::new();
    let tree = if can_chown() { full_tree } else { plain_tree };
    plain_tree(&desk.path("plain"));
    tree(&desk.path("full"));
    desk.init("source", "archive");
    desk.commit("source", "plain", "./plain", ROOT);
    desk.commit("source", "full", "./full", if can_chown() { &[] } else { ROOT });
    for reference in ["plain", "full"] {
        desk.run(&format!("pack --force ostree:source --ref {reference} -o {reference}.sealift"));
    }
    for mode in MODES.iter().filter(|mode| **mode != "bare" || can_chown()) {
        let reference = if *mode == "bare-user-only" { "plain" } else { "full" };
        for mask in ["077", "000"] {
            let target = format!("{mode}-{mask}");
            desk.init(&target, mode);
            let tmp = desk.path(&target).join("tmp");
            if can_chown() {
                chown(&tmp, None, Some(5)).expect("root may");
                fs::set_permissions(&tmp, fs::Permissions::from_mode(0o2755)).expect("root may");
            }
            let unpack = format!("unpack {reference}.sealift ostree:{target} --allow-unsigned --quiet");
            out(&mut desk.shell(&format!("umask {mask}; sealift {unpack}")));
            desk.fsck(&target);
            assert_eq!(desk.listed(&target, reference), desk.listed("source", reference), "{target}");
            for end in [".commit", ".dirtree", ".filez"] {
                if end != ".filez" || *mode == "archive" {
                    let found = fs::metadata(desk.largest(&target, end)).expect("it is there").permissions();
                    assert_eq!(found.mode() & 0o7777, 0o644, "{target} {end}");
                }
            }
        }
    }
}

/// Files of a bare repository have the access lists that were signed, and no others, whatever a folder passes on.
#[test]
fn access_lists_are_not_inherited() {
    let desk = small();
    for mode in MODES.iter().filter(|mode| **mode != "bare" || can_chown()) {
        desk.init(mode, mode);
        for folder in ["", "objects", "tmp"] {
            let folder = desk.path(mode).join(folder);
            let done = Command::new("setfacl").args(["-d", "-m", "u:33:rwx"]).arg(folder).status();
            if !done.is_ok_and(|status| status.success()) {
                return skipped("needs setfacl, and a file system with ACLs");
            }
        }
        desk.import("os.sealift", mode);
        desk.fsck(mode);
        for end in [".commit", ".dirtree", if *mode == "archive" { ".filez" } else { ".file" }] {
            let listed = Command::new("getfacl").arg("-cn").arg(desk.largest(mode, end)).output().expect("it runs");
            assert!(!text(&listed.stdout).contains("user:33"), "{mode} {end}: {}", text(&listed.stdout));
        }
    }
}

/// The rest of an unfinished pull is completed, and the commit is no longer partial.
#[test]
fn partial_commits() {
    let desk = small();
    desk.init_with("target", "archive", "os.sealift");
    let whole = desk.files("target");
    let commit = desk.ostree("target", &["rev-parse", "os"]).trim().to_owned();
    let mark = desk.path(&format!("target/state/{commit}.commitpartial"));
    for gone in [".filez", ".dirtree", ".dirmeta"] {
        fs::remove_file(desk.largest("target", gone)).expect("it is there");
        fs::write(&mark, "").expect("there is room");
        let taken = desk.import("os.sealift", "target");
        assert_eq!(taken["files"].as_u64(), Some(u64::from(gone == ".filez")), "{gone}");
        assert_eq!(desk.files("target"), whole, "{gone}");
        desk.fsck("target");
    }
}

#[test]
fn no_room() {
    let desk = small();
    for (key, value) in [("core.min-free-space-percent", "99"), ("core.min-free-space-size", "1000000TB")] {
        desk.init("target", "archive");
        desk.ostree("target", &["config", "set", key, value]);
        let before = desk.snapshot("target");
        let said = desk.refused("unpack os.sealift ostree:target --allow-unsigned");
        assert!(said.contains("target") && said.contains("that the repository's configuration reserves"), "{said}");
        desk.is_as(&before, "target", key);
        fs::remove_dir_all(desk.path("target")).expect("it can be removed");
    }
}

/// Inodes are counted like bytes, before anything is written.
#[test]
fn no_inodes() {
    let Some(desk) = as_root("a small file system", small) else { return };
    let mounted = Mounted::new(desk.path("target"), "tmpfs", "nr_inodes=40,mode=755");
    desk.init("target", "archive");
    let before = desk.snapshot("target");
    let said = desk.refused("unpack os.sealift ostree:target --allow-unsigned");
    desk.is_as(&before, "target", "unpack");
    let tried = desk.refused("unpack os.sealift ostree:target --allow-unsigned --dry-run");
    drop(mounted);
    for said in [said, tried] {
        assert!(said.contains("inodes") && said.contains("target"), "{said}");
    }
}

#[test]
fn several_at_once() {
    let desk = small();
    desk.init("target", "bare-user-only");
    for _ in 0..6 {
        let line = "unpack os.sealift ostree:target --allow-unsigned --quiet";
        let start = || desk.command(line).stderr(Stdio::null()).spawn();
        let running: Vec<_> = (0..4).map(|_| start().expect("sealift runs")).collect();
        for mut child in running {
            assert!(child.wait().expect("it ends").success());
        }
        desk.fsck("target");
        assert_eq!(desk.listed("target", "os"), desk.listed("source", "os"));
        assert!(desk.files("target").iter().all(|name| !name.to_string_lossy().contains("staging")));
        desk.ostree("target", &["refs", "--delete", "os"]);
        desk.ostree("target", &["prune", "--refs-only"]);
    }
}

/// From a pipe, in which nothing can be read again, and with the summary of the source.
#[test]
fn a_pipe_and_a_summary() {
    let desk = small();
    desk.ostree("source", &["summary", "--update"]);
    desk.run("pack --force ostree:source -o os.sealift");
    desk.init("target", "archive");
    let open = || File::open(desk.path("os.sealift")).expect("a bundle");
    let run = |input: Stdio| {
        let mut command = desk.command("unpack - ostree:target --allow-unsigned --quiet");
        let status = command.stdin(input).stderr(Stdio::null()).status();
        assert!(status.expect("sealift runs").success());
    };
    let mut cat = Command::new("cat").stdin(open()).stdout(Stdio::piped()).spawn().expect("cat runs");
    run(cat.stdout.take().expect("a pipe").into());
    assert!(cat.wait().expect("it ends").success());
    desk.fsck("target");
    assert_eq!(desk.listed("target", "os"), desk.listed("source", "os"));
    let before = desk.snapshot("target");
    run(open().into());
    desk.is_as(&before, "target", "a second run");
}
