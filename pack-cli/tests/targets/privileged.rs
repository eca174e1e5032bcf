//! Privileges are given only to new inodes, whose content was checked.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

use rustix::fs::{XattrFlags, lgetxattr, lsetxattr};
use sealift_desk::{as_root, noise, said, skipped};

use crate::installed::Installed;

/// The first owner of the tool.
const USER: u32 = 1000;
const TOOL: &str = "target/d/tool";

/// Creates a target with version 1, in which a tool belongs to the user, and version 2, which gives it to root with mode 4755. `None` without root.
fn raised() -> Option<Installed> {
    let desk = as_root("gives files away", Installed::new)?;
    fs::create_dir(desk.path("tree/d")).unwrap();
    desk.write("tree/d/tool", noise(9, 30_000));
    chown(desk.path("tree/d/tool"), Some(USER), Some(USER)).unwrap();
    chown(desk.path("tree/d"), Some(USER), Some(USER)).unwrap();
    desk.set_mode("tree/d/tool", 0o755);
    desk.pack(1);
    chown(desk.path("tree/d/tool"), Some(0), Some(0)).unwrap();
    desk.set_mode("tree/d/tool", 0o4755);
    desk.pack(2);
    desk.unpack(1, "target");
    Some(desk)
}

/// Checks that the tool is that of version 2.
fn assert_right(desk: &Installed) {
    let stat = fs::metadata(desk.path(TOOL)).unwrap();
    assert_eq!(stat.mode() & 0o7777, 0o4755);
    assert_eq!((stat.uid(), stat.gid(), stat.nlink()), (0, 0, 1));
    assert!(fs::read(desk.path(TOOL)).unwrap() == noise(9, 30_000), "its content is the bundle's");
}

fn stand_in(desk: &Installed) {
    fs::remove_file(desk.path(TOOL)).unwrap();
    fs::copy("/bin/sh", desk.path(TOOL)).unwrap();
    chown(desk.path(TOOL), Some(USER), Some(USER)).unwrap();
}

/// Puts a hard link to a file of root in the tool's place. Returns the state of that file.
fn link_outside(desk: &Installed) -> (u32, u32, i64) {
    desk.write("outside", "root's own\n");
    desk.set_mode("outside", 0o600);
    let stat = fs::metadata(desk.path("outside")).unwrap();
    fs::remove_file(desk.path(TOOL)).unwrap();
    fs::hard_link(desk.path("outside"), desk.path(TOOL)).unwrap();
    (stat.mode(), stat.uid(), stat.mtime())
}

fn assert_outside(desk: &Installed, was: (u32, u32, i64)) {
    let stat = fs::metadata(desk.path("outside")).unwrap();
    assert_eq!((stat.mode(), stat.uid(), stat.mtime()), was);
    assert_eq!(fs::read_to_string(desk.path("outside")).unwrap(), "root's own\n");
}

#[test]
fn another_program_in_the_place_of_a_file_is_not_made_root_s() {
    let Some(desk) = raised() else { return };
    stand_in(&desk);
    let held = fs::metadata(desk.path(TOOL)).unwrap().ino();
    desk.update(2, "target").unwrap();
    assert_right(&desk);
    assert_ne!(fs::metadata(desk.path(TOOL)).unwrap().ino(), held);
}

#[test]
fn a_hard_link_in_the_place_of_a_file_leads_to_no_change_outside() {
    let Some(desk) = raised() else { return };
    let was = link_outside(&desk);
    desk.update(2, "target").unwrap();
    assert_right(&desk);
    assert_outside(&desk, was);
}

#[test]
fn who_holds_the_old_file_open_does_not_write_to_the_new() {
    let Some(desk) = raised() else { return };
    let mut held = fs::OpenOptions::new().write(true).open(desk.path(TOOL)).unwrap();
    let stats = desk.update(2, "target").unwrap();
    assert_eq!((stats.files, stats.copied_files, stats.metadata_files), (1, 1, 0), "it is copied, not taken over");
    held.write_all(b"#!/bin/sh\n").unwrap();
    assert_right(&desk);
}

#[test]
fn an_update_that_was_killed_raises_nothing_that_it_did_not_stage() {
    let Some(desk) = raised() else { return };
    for is_link in [false, true] {
        desk.unpack(1, "target");
        desk.unpack(2, "whole");
        desk.leave_update("target", "whole");
        let was = is_link.then(|| link_outside(&desk));
        if !is_link {
            stand_in(&desk);
        }
        desk.good("clean target");
        let stat = fs::metadata(desk.path(TOOL)).unwrap();
        assert_eq!((stat.mode() & 0o6000, stat.uid()), (0, if is_link { 0 } else { USER }));
        if let Some(was) = was {
            assert_eq!(fs::metadata(desk.path("outside")).unwrap().mode(), was.0);
        }
        for gone in ["target", "whole"] {
            fs::remove_dir_all(desk.path(gone)).unwrap();
        }
    }
}

#[test]
fn capabilities_come_on_new_files_and_go_with_the_old() {
    const NAME: &str = "security.capability";
    let Some(desk) = raised() else { return };
    // Version 2 of the attribute: cap_net_raw, effective.
    let value = [[1, 0, 0, 2], [0, 32, 0, 0], [0; 4], [0; 4], [0; 4]].concat();
    if let Err(error) = lsetxattr(desk.path("tree/d/tool"), NAME, &value, XattrFlags::empty()) {
        return skipped(&format!("needs a file system with capabilities ({error})"));
    }
    desk.set_mode("tree/d/tool", 0o755);
    chown(desk.path("tree/d/tool"), Some(USER), Some(USER)).unwrap();
    lsetxattr(desk.path("tree/d/tool"), NAME, &value, XattrFlags::empty()).unwrap();
    desk.pack(3);
    let mut held = fs::OpenOptions::new().write(true).open(desk.path(TOOL)).unwrap();
    desk.update(3, "target").unwrap();
    let mut read = vec![0; 64];
    assert_eq!(lgetxattr(desk.path(TOOL), NAME, &mut read), Ok(value.len()));
    held.write_all(b"#!/bin/sh\n").unwrap();
    assert!(fs::read(desk.path(TOOL)).unwrap() == noise(9, 30_000));
    let mode = fs::metadata(desk.path(TOOL)).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

/// The kernel would drop the upper bits, and 4104:0 would be the disk 8:0.
#[test]
fn a_device_number_that_does_not_fit_is_refused() {
    let Some(desk) = as_root("creates devices", Installed::new) else { return };
    for (major, minor, fits) in [(4104, 0, false), (1, 0x10_0003, false), (1, 3, true)] {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Char);
        header.set_size(0);
        header.set_mode(0o600);
        header.set_device_major(major).unwrap();
        header.set_device_minor(minor).unwrap();
        let mut archive = tar::Builder::new(Vec::new());
        archive.append_data(&mut header, "dev/node", &[][..]).unwrap();
        desk.write("dev.tar", archive.into_inner().unwrap());
        desk.good("pack tar:dev.tar -o dev.sealift --force --name dev --bundle-version 1");
        let done = desk.command("unpack dev.sealift new --allow-unsigned").output().unwrap();
        assert_eq!(done.status.success(), fits, "{major}:{minor}: {}", said(&done));
        assert_eq!(desk.path("new/dev/node").exists(), fits, "{major}:{minor}");
        assert!(fits || said(&done).contains("cannot create new/dev/node: Invalid argument"), "{}", said(&done));
    }
}
