//! Unpacking to sealed files.

use std::fs::{self, File};
use std::path::Path;

use sealift_desk::noise;
use sealift_tests::bundle::{Bundle, Packing};
use sealift_tests::ostree::commit;
use sealift_tests::tree::{Node, dir, file, symlink};
use sealift_verify::fsverity;

use crate::disk::Disk;

/// A tree below `/tmp`, and the bundles of its versions.
pub(crate) struct Publisher<'a>(&'a Disk);

impl<'a> Publisher<'a> {
    pub(crate) fn new(desk: &'a Disk) -> Self {
        let publisher = Self(desk);
        let _ = fs::remove_dir_all("/tmp/tree"); // left by the previous case
        let _ = fs::remove_dir_all("/tmp/state");
        publisher.write("usr/bin/hello", b"#!/bin/sh\necho hello\n");
        publisher.write("usr/lib/large", &noise(7, 700_000));
        publisher.write("usr/lib/small", &noise(8, 10_000));
        publisher.write("etc/os-release", b"ID=example\n");
        publisher.write("etc/empty", b"");
        fs::hard_link("/tmp/tree/usr/lib/small", "/tmp/tree/usr/lib/linked").expect("a link");
        std::os::unix::fs::symlink("small", "/tmp/tree/usr/lib/symlink").expect("a link");
        fs::set_permissions("/tmp/tree/etc/os-release", std::os::unix::fs::PermissionsExt::from_mode(0o444))
            .expect("its mode");
        publisher
    }

    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = Path::new("/tmp/tree").join(path);
        fs::create_dir_all(path.parent().expect("it has one")).expect("directories");
        let _ = fs::remove_file(&path);
        fs::write(path, content).expect("a file");
    }

    /// Packs the tree, and returns the path of the bundle.
    pub(crate) fn pack(&self, version: u64) -> String {
        let bundle = format!("/tmp/{version}.sealift");
        let options = "--name os --level 1 --quiet";
        self.0.good(&format!("pack --force /tmp/tree -o {bundle} --bundle-version {version} {options}"));
        bundle
    }
}

/// Options that accept unsigned bundles.
pub(crate) const ANYBODY: &str = "--allow-unsigned --state /tmp/state";

fn index(target: &Path) -> std::path::PathBuf {
    let name = target.file_name().expect("it has one").to_string_lossy();
    target.with_file_name(format!(".{name}.sealift-state")).join("index")
}

/// Checks that all files below a folder are sealed, or none.
pub(crate) fn assert_sealed(folder: &Path, is_sealed: bool) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let metadata = path.symlink_metadata().expect("it is there");
        if metadata.is_dir() {
            assert_sealed(&path, is_sealed);
        } else if metadata.is_file() {
            let measured = fsverity::measure(File::open(&path).expect("it can be opened"));
            assert_eq!(measured.is_ok(), is_sealed, "{}", path.display());
        }
    }
}

pub(crate) fn directories(desk: &Disk) {
    let publisher = Publisher::new(desk);
    let first = publisher.pack(1);
    let said = desk.good(&format!("unpack {first} os --seal require {ANYBODY}"));
    assert!(said.contains("5 files sealed"), "{said}");
    let target = desk.path("os");
    assert_sealed(&target, true);
    let index = index(&target);
    let measured = desk.good(&format!("measure {}", index.display()));
    let info = desk.good(&format!("info {first} --json"));
    let (digest, _) = measured.strip_prefix("sha256:").and_then(|text| text.split_once(' ')).expect("a digest");
    assert!(info.contains(digest), "the index is sealed, and its digest is the content's: {measured} {info}");

    // An update seals new files, and relies on its record of the others.
    publisher.write("etc/os-release", b"ID=example\nVERSION_ID=2\n");
    fs::remove_file("/tmp/tree/etc/empty").expect("removed");
    publisher.write("usr/bin/moved", &noise(8, 10_000));
    let second = publisher.pack(2);
    let said = desk.good(&format!("unpack {second} os --update --delete {ANYBODY}"));
    assert!(said.contains("2 files sealed") && !said.contains("hashed"), "{said}");
    assert_sealed(&target, true);
    let sound = desk.good(&format!("audit os {ANYBODY}"));
    assert!(sound.contains("asking the kernel"), "{sound}");
    // There is nothing to do, and nothing is done.
    let said = desk.good(&format!("unpack {second} os --update --delete --seal require {ANYBODY}"));
    assert!(said.contains("0 files sealed"), "{said}");

    // New files are not sealed if that is requested, and not reported as sealed.
    publisher.write("etc/os-release", b"ID=example\nVERSION_ID=3\n");
    let third = publisher.pack(3);
    desk.good(&format!("unpack {third} os --update --delete --seal off {ANYBODY}"));
    desk.bad("measure os/etc/os-release", 1, "not sealed");
    let sound = desk.good(&format!("audit os {ANYBODY}"));
    assert!(!sound.contains("asking the kernel"), "{sound}");
}

/// Existing files are sealed for the first time, after hashing.
pub(crate) fn later(desk: &Disk) {
    let publisher = Publisher::new(desk);
    let first = publisher.pack(1);
    desk.good(&format!("unpack {first} later {ANYBODY}"));
    assert_sealed(&desk.path("later"), false);
    // Edits a file without changing its size.
    fs::write(desk.path("later/usr/bin/hello"), b"#!/bin/sh\necho HELLO\n").expect("it is not sealed");
    let said = desk.good(&format!("unpack {first} later --update --seal try {ANYBODY}"));
    assert!(said.contains("hashed 5 files before sealing"), "{said}");
    assert_sealed(&desk.path("later"), true);
    assert_eq!(fs::read(desk.path("later/usr/bin/hello")).expect("a file"), b"#!/bin/sh\necho hello\n");
    assert!(desk.good(&format!("audit later {ANYBODY}")).contains("asking the kernel"));
}

/// Unpacks a part of a bundle: its digests cannot be compared with the index, so an audit reads the files.
pub(crate) fn parts(desk: &Disk) {
    let publisher = Publisher::new(desk);
    let first = publisher.pack(1);
    desk.good(&format!("unpack {first} part --path etc --seal require {ANYBODY}"));
    assert_sealed(&desk.path("part"), true);
    desk.good(&format!("audit part {ANYBODY}"));
    let file = desk.path("part/etc/os-release");
    let content = fs::read(&file).expect("a file");
    fs::remove_file(&file).expect("removed");
    fs::write(&file, content).expect("written again");
    desk.bad(&format!("audit part --ignore mtime --ignore mode {ANYBODY}"), 1, "U  etc/os-release");
}

/// Without fs-verity, nothing is written, or nothing is sealed.
pub(crate) fn required(desk: &Disk) {
    let first = Publisher::new(desk).pack(1);
    let said = |line: &str| desk.good(&format!("unpack {first} {line} {ANYBODY}"));
    desk.bad(
        &format!("unpack {first} /tmp/none --seal require {ANYBODY}"),
        2,
        "/tmp: its file system does not support fs-verity",
    );
    desk.bad(&format!("unpack {first} /tmp/none --dry-run --seal require {ANYBODY}"), 2, "does not support fs-verity");
    for name in ["/tmp/none", "/tmp/.none.sealift-partial", "/tmp/.none.sealift-state"] {
        assert!(!Path::new(name).exists(), "{name}");
    }
    assert!(said("/tmp/none --seal try").contains("not sealed"));
    assert!(!said("/tmp/none --update").contains("sealed"));
    fs::remove_dir_all("/tmp/none").expect("removed");
    fs::remove_dir_all("/tmp/.none.sealift-state").expect("removed");
}

fn small() -> Node {
    dir([("a", file("one\n")), ("b", file("two\n")), ("link", symlink("a"))])
}

/// An index with a wrong digest over its files' digests, while everything else is right.
pub(crate) fn wrong_digest(desk: &Disk) {
    let mut bundle = Bundle::new(&[("main", small())], Packing::default());
    bundle.index.verity[0] ^= 1;
    fs::write("/tmp/wrong.sealift", bundle.encode()).expect("a file");
    let why = "its digest of the objects' fs-verity digests does not match the kernel's digests";
    desk.bad(&format!("unpack /tmp/wrong.sealift wrong --seal require {ANYBODY}"), 1, why);
    assert!(!desk.path("wrong").exists() && !desk.path(".wrong.sealift-partial").exists());
}

/// Unpacks to an OSTree repository, which has a separate stage for objects.
pub(crate) fn repositories(desk: &Disk) {
    for mode in ["bare-user-only", "archive-z2"] {
        let repo = desk.path(mode);
        for folder in ["objects", "refs/heads", "refs/remotes", "tmp", "state", "extensions"] {
            fs::create_dir_all(repo.join(folder)).expect("a folder");
        }
        fs::write(repo.join("config"), format!("[core]\nrepo_version=1\nmode={mode}\n")).expect("a file");
        let first = Bundle::with_commits(&[], &[("main", vec![commit(small())])], Packing::default());
        fs::write("/tmp/commit.sealift", first.encode()).expect("a file");
        let said = desk.good(&format!("unpack /tmp/commit.sealift ostree:{mode} --seal require {ANYBODY} --json"));
        assert!(said.contains(r#""sealed":true"#), "{said}");
        assert_sealed(&repo.join("objects"), true);
        assert_sealed(&repo.join("extensions"), true);

        let other = dir([("a", file("one\n")), ("c", file("three\n"))]);
        let mut second = Bundle::with_commits(&[], &[("main", vec![commit(other)])], Packing::default());
        second.identity.version = 2;
        fs::write("/tmp/commit.sealift", second.encode()).expect("a file");
        desk.good(&format!("unpack /tmp/commit.sealift ostree:{mode} {ANYBODY}"));
        assert_sealed(&repo.join("objects"), true);
    }
}

pub(crate) fn hot_set(desk: &Disk) {
    const HOT: u64 = 30;
    let publisher = Publisher::new(desk);
    let write = |file: u64, seed: u64| publisher.write(&format!("hot/{file:02}"), &noise(seed, 6_000));
    (0..HOT).for_each(|file| write(file, 100 + file));
    let names: String = (0..HOT).map(|file| format!("hot/{file:02}\n")).collect();
    fs::write("/tmp/order", names).expect("a profile");
    desk.good("pack --force /tmp/tree -o /tmp/1.sealift --name os --bundle-version 1 --order /tmp/order --quiet");
    desk.good(&format!("unpack /tmp/1.sealift hot --seal require {ANYBODY}"));
    // As a disk with a moving head; btrfs, which has no device of its own, counts as flash.
    fs::write("/sys/block/vda/queue/rotational", "1").expect("a disk");
    (0..HOT).step_by(5).for_each(|file| write(file, 200 + file));
    let pack = "pack --force /tmp/tree -o /tmp/2.sealift --name os --bundle-version 2 --base /tmp/1.sealift --quiet";
    desk.good(&format!("{pack} {ANYBODY}"));
    let said = desk.good(&format!("unpack /tmp/2.sealift hot --update {ANYBODY} --json"));
    let moved = if desk.kind() == "ext4" { HOT - HOT / 5 } else { 0 };
    assert!(said.contains(&format!("\"gathered_files\":{moved},")), "{said}");
    assert_sealed(&desk.path("hot"), true);
    desk.good(&format!("audit hot {ANYBODY}"));
}
