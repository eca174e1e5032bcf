//! The disk space that `info` states for unpacking, and the actual space.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use sealift_desk::{noise, skipped};

use crate::installed::Installed;

/// Returns whether the desk is on a file system for which bundles state the space.
fn is_as_stated(desk: &Installed) -> bool {
    const EXT4: i64 = 0xef53;
    let found = rustix::fs::statfs(desk.path("").as_path()).unwrap();
    #[allow(clippy::useless_conversion, reason = "the types are the machine's")]
    let (kind, block) = (i64::try_from(found.f_type), i64::try_from(found.f_bsize));
    (kind, block) == (Ok(EXT4), Ok(4096))
}

fn disk_use(desk: &Installed, target: &str) -> u64 {
    let done = Command::new("du").args(["-s", "--block-size=1"]).arg(desk.path(target)).output().unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    said.split('\t').next().unwrap().parse().unwrap()
}

fn stated(desk: &Installed, bundle: &str) -> u64 {
    desk.json(&format!("info {bundle} --json"))["cost"]["disk_bytes"].as_u64().unwrap()
}

/// Checks that they are within 5 %.
fn assert_near(stated: u64, found: u64, what: &str) {
    assert!(stated.abs_diff(found) * 20 <= found, "{what}: {stated} bytes are stated, {found} are taken");
}

/// Creates many names in one directory, and in many.
fn tiny(desk: &Installed) {
    for folder in 0..200 {
        fs::create_dir(desk.path(&format!("tree/{folder}"))).unwrap();
        (0..5).for_each(|file| desk.write(&format!("tree/{folder}/{file}"), format!("{folder} {file}")));
    }
    (0..2000).for_each(|file| desk.write(&format!("tree/etc/a-file-{file}"), "tiny"));
}

fn large(desk: &Installed) {
    for (seed, len) in [(2, 5_000_000), (3, 3_000_001)] {
        desk.write(&format!("tree/{seed}"), noise(seed, len));
    }
}

/// Creates links, holes, empty files and attributes: most of its space is not for content.
fn odd(desk: &Installed) {
    for number in 0..300_usize {
        desk.write(&format!("tree/etc/empty-{number}"), "");
        fs::hard_link(desk.path("tree/lib/lib.so"), desk.path(&format!("tree/lib/hard-{number}"))).unwrap();
        symlink("x".repeat(number / 3 + 10), desk.path(&format!("tree/lib/soft-{number}"))).unwrap();
        fs::create_dir(desk.path(&format!("tree/lib/dir-{number}"))).unwrap();
        desk.write(&format!("tree/lib/dir-{number}/signed"), noise(7, 3000));
        let path = desk.path(&format!("tree/lib/dir-{number}/signed"));
        rustix::fs::setxattr(&path, "user.note", &noise(8, number), rustix::fs::XattrFlags::empty()).unwrap();
    }
    for runs in [1, 4, 5, 400] {
        let run = [&noise(9, 4096)[..], &[0; 20 * 4096]].concat();
        desk.write(&format!("tree/etc/holes-{runs}"), run.repeat(runs));
    }
}

fn assert_takes_what_is_stated(what: &str, make: impl FnOnce(&Installed)) {
    let desk = Installed::new();
    if !is_as_stated(&desk) {
        return skipped("needs ext4 with blocks of 4096 bytes in the folder for temporary files");
    }
    make(&desk);
    desk.pack(7);
    let dry = desk.json("unpack 7.sealift target --allow-unsigned --dry-run --json");
    desk.good("unpack 7.sealift target --allow-unsigned");
    let taken = disk_use(&desk, "target");
    assert_near(stated(&desk, "7.sealift"), taken, what);
    // A run, and its trial, ask the file system at hand.
    assert_near(dry["disk_bytes"].as_u64().unwrap(), taken, what);
}

#[test]
fn a_tree_takes_what_is_stated() {
    assert_takes_what_is_stated("tiny", tiny);
    assert_takes_what_is_stated("large", large);
    assert_takes_what_is_stated("odd", odd);
}

#[test]
fn a_delta_states_what_it_adds() {
    let desk = Installed::new();
    if !is_as_stated(&desk) {
        return skipped("needs ext4 with blocks of 4096 bytes in the folder for temporary files");
    }
    tiny(&desk);
    desk.pack(7);
    for file in 0..100 {
        desk.write(&format!("tree/{file}/new"), noise(file, 20_000));
    }
    desk.pack(8);
    desk.good("pack tree -o delta.sealift --allow-unsigned --base 7.sealift --name os --bundle-version 8");
    desk.good("unpack 7.sealift target --allow-unsigned");
    let before = disk_use(&desk, "target");
    desk.good("unpack delta.sealift target --allow-unsigned");
    assert_near(stated(&desk, "delta.sealift"), disk_use(&desk, "target") - before, "delta");
}
