//! The reads of a mount become a profile.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use rustix::process::Signal;
use sealift_desk::{Desk, NOBODY, noise};

use crate::mounted::{can_mount, can_mount_as_user, desk, mount, mount_as_user, pack, refused};

/// Creates files of which the last in path order is read first.
fn several() -> Desk {
    let desk = desk();
    for name in ["a", "b", "dir/c", "dir/d", "unread"] {
        desk.write(&format!("tree/{name}"), name);
    }
    desk.write("tree/large", noise(1, 8 << 20));
    desk.write("tree/whole", noise(2, 2 << 20));
    fs::hard_link(desk.path("tree/b"), desk.path("tree/linked")).unwrap();
    pack(&desk, "os.sealift", 7, "tree");
    desk
}

/// Returns the profile, whose lines may have ranges.
fn profile(desk: &Desk) -> String {
    String::from_utf8(desk.read("start.order")).unwrap()
}

#[test]
fn the_first_reads_in_order_and_the_ranges_of_large_files() {
    let Some(desk) = can_mount().then(several) else { return };
    let mounted = mount(&desk, "os.sealift --record start.order");
    for name in ["dir/c", "linked", "a", "whole", "dir/c"] {
        assert!(desk.read(&format!("mnt/{name}")) == desk.read(&format!("tree/{name}")));
    }
    fs::metadata(desk.path("mnt/unread")).unwrap();
    fs::read_dir(desk.path("mnt")).unwrap().for_each(|entry| drop(entry.unwrap()));
    let large = File::open(desk.path("mnt/large")).unwrap();
    large.read_exact_at(&mut [0; 10], 5 << 20).unwrap();
    drop(large);
    mounted.signal(Signal::TERM);
    let (_, said) = mounted.ends_well();
    assert!(said.contains("start.order: 5 files, 1 range"), "{said}");
    let text = profile(&desk);
    let rest = text.strip_prefix("# sealift order 1\ndir/c\nb\na\nwhole\nlarge\t").unwrap_or_else(|| panic!("{text}"));
    let (first, last) = rest.trim_end().split_once('-').unwrap();
    let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
    // The kernel reads ahead, but not much.
    assert!(first <= 5 << 20 && (5 << 20) + 10 <= last && last - first < 1 << 20, "{text}");
    // `pack` stores these ranges first.
    pack(&desk, "next.sealift", 8, "tree --order start.order");
    let (status, exported) = desk.run("order export next.sealift");
    assert!(status == Some(0) && exported.starts_with("# sealift order 1\ndir/c\nb\nlinked\na\nwhole\n"), "{exported}");
}

#[test]
fn a_mount_that_is_in_use_keeps_what_was_read() {
    let Some(desk) = can_mount().then(several) else { return };
    let mounted = mount(&desk, "os.sealift --record start.order --json");
    let file = File::open(desk.path("mnt/a")).unwrap();
    file.read_exact_at(&mut [0], 0).unwrap();
    mounted.signal(Signal::INT);
    // As `timeout` does.
    mounted.signal(Signal::TERM);
    let (out, said) = mounted.ends_well();
    assert_eq!((profile(&desk).as_str(), said.as_str()), ("# sealift order 1\na\n", ""));
    let line: serde_json::Value = serde_json::from_str(out.lines().nth(1).unwrap()).unwrap();
    assert_eq!((&line["files"], &line["ranges"]), (&1.into(), &0.into()));
    refused(&desk, "mount os.sealift mnt --trust signers --record start.order", 2, "start.order already exists");
    refused(&desk, "mount os.sealift mnt --trust signers --record none/start.order", 2, "none/start.order");
    drop(mount(&desk, "os.sealift --record start.order --force"));
}

/// Recording needs neither root and fanotify, nor a tracer.
#[test]
fn a_user_records_what_a_program_reads() {
    let Some(desk) = can_mount_as_user().then(several) else { return };
    fs::create_dir(desk.path("own")).unwrap();
    std::os::unix::fs::chown(desk.path("own"), Some(NOBODY), Some(NOBODY)).unwrap();
    let mounted = mount_as_user(&desk, "os.sealift --record own/start.order");
    let script = "cat mnt/dir/d mnt/b > /dev/null; (cat mnt/a; cat mnt/b) > /dev/null";
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(desk.path(".")).uid(NOBODY).gid(NOBODY);
    assert!(command.status().unwrap().success());
    mounted.signal(Signal::TERM);
    mounted.ends_well();
    assert_eq!(desk.read("own/start.order"), b"# sealift order 1\ndir/d\nb\na\n");
}
