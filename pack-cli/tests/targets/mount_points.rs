//! Mount points and subvolumes as targets: a slot, a disk of its own.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

use sealift_desk::{Mounted, as_root, is_root, noise, said, skipped, told};

use crate::installed::Installed;
use crate::layered::btrfs;
use crate::versions;

/// Returns what `audit` says, and its status.
fn audit(desk: &Installed, target: &str) -> (Option<i32>, String) {
    desk.run(&format!("audit {target} --allow-unsigned"))
}

/// Checks that the mount point has the tree and nothing else but what belongs there.
fn assert_filled(desk: &Installed, slot: &str) {
    let (code, said) = audit(desk, slot);
    assert_eq!(code, Some(0), "{said}");
    let mut expected = desk.names("tree");
    expected.extend([".sealift", "lost+found"].map(str::to_owned));
    expected.sort();
    assert_eq!(desk.names(slot), expected);
    assert_eq!(desk.names(&format!("{slot}/.sealift")), ["state"]);
    assert_eq!(fs::read(desk.path(slot).join("lost+found/found")).unwrap(), b"mine");
    let (new, tree) = (fs::metadata(desk.path(slot)).unwrap(), fs::metadata(desk.path("tree")).unwrap());
    assert_eq!((new.mode(), new.mtime_nsec()), (tree.mode(), tree.mtime_nsec()));
}

fn run(command: &mut Command) {
    assert!(command.stdout(Stdio::null()).status().unwrap().success(), "{command:?}");
}

fn make_slot(desk: &Installed) -> Mounted {
    let slot = Mounted::new(desk.path("slot"), "tmpfs", "mode=755");
    fs::create_dir(desk.path("slot/lost+found")).unwrap();
    desk.write("slot/lost+found/found", "mine");
    slot
}

#[test]
fn a_slot_is_filled_and_updated_in_place() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    desk.pack(7);
    let _slot = make_slot(&desk);
    let dry = desk.good("unpack 7.sealift slot --allow-unsigned --dry-run");
    assert!(dry.contains("would be unpacked") && desk.names("slot") == ["lost+found"], "{dry}");
    desk.says("unpack 7.sealift slot --allow-unsigned", "slot: unpacked from 7.sealift");
    assert_filled(&desk, "slot");
    fs::remove_dir_all(desk.path("tree/lib")).unwrap();
    desk.write("tree/etc/issue", "second\n");
    fs::write(desk.path("slot/mine"), "extra").unwrap();
    desk.pack(8);
    desk.good("unpack 8.sealift slot --allow-unsigned --update --delete");
    assert_filled(&desk, "slot");
    desk.says("status slot", "version 8");
    // Packing the slot packs the tree.
    desk.good("pack slot --exclude /lost+found/ -o slot.sealift --name os --bundle-version 8");
    desk.good("diff 8.sealift slot.sealift --exit-code");
    assert!(!desk.names("").iter().any(|name| name.contains("slot.sealift-") || name.starts_with(".slot")));
}

#[test]
fn what_is_in_a_mount_point_is_not_taken_over() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    desk.pack(7);
    let _slot = make_slot(&desk);
    desk.write("slot/mine", "mine\n");
    for option in ["", "--update"] {
        desk.refused(&format!("unpack 7.sealift slot --allow-unsigned {option}"), 2, "");
        assert_eq!(desk.names("slot"), ["lost+found", "mine"]);
    }
    desk.says("unpack 7.sealift slot --allow-unsigned --update --adopt --yes", "took over");
    // A bundle that has a name of ours.
    fs::create_dir(desk.path("tree/.sealift")).unwrap();
    desk.pack(8);
    let done = desk.command("unpack 8.sealift slot --allow-unsigned --update").output().unwrap();
    assert!(done.status.code() == Some(2) && said(&done).contains("slot/.sealift"), "{}", said(&done));
}

#[test]
fn a_slot_that_was_being_filled_is_filled_or_left() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    for number in 0..60 {
        fs::create_dir_all(desk.path(&format!("tree/d{}", number % 6))).unwrap();
        desk.write(&format!("tree/d{}/f{number}", number % 6), noise(number, 2000));
    }
    desk.install(7, "whole");
    let mut was_half = 0;
    for at in (1..).step_by(9) {
        let _slot = make_slot(&desk);
        let inject = format!("inject=renameat,renameat2,unlinkat,mkdirat:signal=KILL:when={at}");
        let options = ["-e", "trace=renameat,renameat2,unlinkat,mkdirat", "-e", &inject];
        let Some(mut strace) = desk.strace(&options, "unpack 7.sealift slot --allow-unsigned -j1") else { return };
        if told(&mut strace).0 == Some(0) {
            assert!(at > 60 && was_half > 0, "{at}");
            return;
        }
        was_half += u32::from(desk.path("slot/.sealift/partial/journal").exists());
        if at % 2 == 0 {
            desk.good("clean slot");
            if desk.names("slot") == ["lost+found"] {
                continue; // it was left
            }
        } else {
            desk.good("unpack 7.sealift slot --allow-unsigned");
        }
        assert_filled(&desk, "slot");
    }
}

#[test]
fn a_subvolume_is_filled_in_place() {
    let has_btrfs = Command::new("mkfs.btrfs").arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_root() || !has_btrfs {
        return skipped("needs root, and mkfs.btrfs: mounts");
    }
    let desk = Installed::new();
    desk.pack(7);
    let _disk = btrfs(&desk, &[]);
    run(Command::new("btrfs").args(["subvolume", "create"]).arg(desk.path("disk/slot")));
    fs::create_dir(desk.path("disk/slot/lost+found")).unwrap();
    desk.write("disk/slot/lost+found/found", "mine");
    desk.unpack(7, "disk/slot");
    assert_filled(&desk, "disk/slot");
}

/// Mounts what is at `slot` at `mnt`, where another slot was before.
fn mount_at(desk: &Installed, slot: &str) -> Mounted {
    fs::create_dir_all(desk.path("mnt")).unwrap();
    run(Command::new("mount").arg("--bind").args([desk.path(slot), desk.path("mnt")]));
    Mounted::at(desk.path("mnt"))
}

/// Two slots take turns at one path: the one that never held the newer version has not gone back.
#[test]
fn slots_that_take_turns_have_not_gone_back() {
    let Some(desk) = as_root("mounts", versions::signed) else { return };
    let ends = |line: &str, status: i32| {
        let (ended, said) = versions::run(&desk, line);
        assert_eq!(ended, Some(status), "{line}: {said}");
        said
    };
    // Slots themselves, and directories on other disks.
    for target in ["mnt", "mnt/os"] {
        let (_one, _two) =
            (Mounted::new(desk.path("one"), "tmpfs", "mode=755"), Mounted::new(desk.path("two"), "tmpfs", "mode=755"));
        for (slot, bundle) in [("one", "1.sealift"), ("two", "2.sealift")] {
            let _mounted = mount_at(&desk, slot);
            // What a slot has of others is not what was installed on another one.
            if target == "mnt" {
                desk.write("mnt/mine", "mine");
                let said = ends(&format!("unpack {bundle} mnt --update"), 2);
                assert!(!said.contains("this device installed"), "{said}");
                fs::remove_file(desk.path("mnt/mine")).unwrap();
            }
            ends(&format!("unpack {bundle} {target} --allow-downgrade"), 0);
        }
        let _mounted = mount_at(&desk, "one");
        assert!(ends(&format!("audit {target}"), 0).contains("sound, os version 1"));
        for line in [format!("status {target}"), "status".to_owned()] {
            let said = ends(&line, 0);
            assert!(said.contains("os version 1\n") && !said.contains("gone back"), "{said}");
        }
        assert!(!ends(&format!("unpack 2.sealift {target} --update --dry-run"), 0).contains("gone back"));
        if target == "mnt" {
            // A snapshot that takes the place of the newer state is the same slot.
            run(Command::new("cp").args(["-a", "mnt/.sealift/state", "state-of-1"]).current_dir(desk.path("")));
            run(Command::new("cp").args(["-a", "mnt/etc", "etc"]).current_dir(desk.path("")));
            ends("unpack 2.sealift mnt --update", 0);
            run(Command::new("sh").current_dir(desk.path("")).args([
                "-c",
                "rm -r mnt/.sealift/state mnt/etc && cp -a state-of-1 mnt/.sealift/state && cp -a etc mnt",
            ]));
            assert!(ends("audit mnt", 1).contains("it has gone back"));
        }
    }
}
