//! Errors that running again does not resolve, and that a dry run finds beforehand.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Output;

use rustix::fs::{XattrFlags, lsetxattr};
use rustix::io::Errno;
use sealift::Error;
use sealift::unpack::may_go_on;
use sealift_desk::{Mounted, as_root, is_root, noise, said, skipped};

use crate::installed::Installed;

#[test]
fn a_tree_whose_root_is_closed_is_unpacked_without_root() {
    for mode in [0o555, 0o444, 0o333, 0o222, 0o111, 0] {
        let desk = Installed::new();
        desk.make_home();
        desk.set_mode("tree/etc", 0o555);
        desk.set_mode("tree", mode);
        if !is_root() && mode & 0o500 != 0o500 {
            skipped("needs root: packs what its owner may not read");
            continue;
        }
        desk.pack(7);
        let done = desk.run_as_user("unpack 7.sealift home/target --allow-unsigned");
        assert!(done.status.success(), "{mode:o}: {}", said(&done));
        if is_root() {
            desk.assert_same("home/target", "tree");
        }
        let (new, tree) = (fs::metadata(desk.path("home/target")).unwrap(), fs::metadata(desk.path("tree")).unwrap());
        assert_eq!((new.mode(), new.mtime()), (tree.mode(), tree.mtime()));
        for name in ["tree", "tree/etc", "home/target", "home/target/etc"] {
            desk.set_mode(name, 0o755); // so that it can be removed
        }
    }
}

#[test]
fn an_attribute_that_the_file_system_has_not_is_left_out() {
    let desk = Installed::new();
    if !is_root() || lsetxattr(desk.path("tree/etc/motd"), "user.note", b"x", XattrFlags::empty()).is_err() {
        return skipped("needs root, and extended attributes");
    }
    desk.pack(7);
    let _mounted = Mounted::new(desk.path("plain"), "ramfs", "");
    let done = desk.command("unpack 7.sealift plain/target --allow-unsigned").output().unwrap();
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains("1 extended attribute: not set (ramfs does not store them)"), "{}", said(&done));
    desk.good("audit plain/target --allow-unsigned");
}

#[test]
fn only_what_may_get_further_is_to_be_repeated() {
    let desk = Installed::new();
    fs::create_dir(desk.path(".target.sealift-partial")).unwrap();
    let target = desk.path("target");
    let failed = |errno: Errno| Error::Io { doing: "create", path: Path::new("x").to_owned(), source: errno.into() };
    for lasting in [Errno::MLINK, Errno::NOTSUP, Errno::ACCESS, Errno::NAMETOOLONG, Errno::ROFS] {
        assert!(!may_go_on(&target, &failed(lasting)), "{lasting}");
    }
    for passing in [Errno::IO, Errno::NOMEM, Errno::MFILE, Errno::NODEV, Errno::INTR, Errno::NOSPC] {
        assert!(may_go_on(&target, &failed(passing)), "{passing}");
        assert!(!may_go_on(&desk.path("other"), &failed(passing)), "nothing is there to go on from");
    }
    // A run that has begun to change the target is always resumed.
    desk.write(".target.sealift-partial/journal", "keep\n");
    assert!(may_go_on(&target, &failed(Errno::ACCESS)));
    // But if another run is doing that, there is nothing to resume, and nothing to discard.
    assert!(!may_go_on(&target, &Error::Busy { path: target.clone() }));
}

#[test]
fn a_dry_run_ends_as_the_run_would() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    desk.pack(7);
    desk.write("tree/large", noise(3, 5_000_000));
    desk.pack(8);
    let _mounted = Mounted::new(desk.path("small"), "tmpfs", "size=2m");
    desk.unpack(7, "small/target");
    for line in
        ["unpack 8.sealift small/new --allow-unsigned", "unpack 8.sealift small/target --allow-unsigned --update"]
    {
        let message = desk.refused(&format!("{line} --dry-run"), 2, "not enough disk space");
        assert_eq!(desk.run(line), (Some(2), message));
    }
    assert!(!desk.path("small/new").exists());
    assert_eq!(fs::metadata(desk.path("small/target")).unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_dry_run_finds_that_nothing_can_be_written() {
    let desk = Installed::new();
    desk.pack(7);
    desk.make_home();
    fs::create_dir(desk.path("home/closed")).unwrap();
    desk.unpack(7, "home/closed/target");
    desk.write("tree/etc/motd", "changed\n");
    desk.pack(8);
    let whole =
        |folder: &str| ["new", "target --update"].map(|to| format!("unpack 8.sealift {folder}/{to} --allow-unsigned"));
    let refused = |folder: &str, run: &dyn Fn(&str) -> Output| {
        for line in whole(folder) {
            let dry = run(&format!("{line} --dry-run"));
            assert_eq!((dry.status.code(), run(&line).status.code()), (Some(2), Some(2)), "{line}: {}", said(&dry));
            assert!(said(&dry).contains(&format!("cannot write to {folder}")), "{line}: {}", said(&dry));
        }
    };
    // A user cannot write to it.
    desk.set_mode("home/closed", 0o555);
    refused("home/closed", &|line| desk.run_as_user(line));
    desk.set_mode("home/closed", 0o755);
    let Some(mounted) = as_root("mounts", || Mounted::new(desk.path("still"), "tmpfs", "")) else { return };
    // In a process of its own: files that are open for writing here are also open in processes that other tests start, until these call exec.
    desk.good("unpack 7.sealift still/target --allow-unsigned");
    rustix::mount::mount_remount(mounted.path(), rustix::mount::MountFlags::RDONLY, c"").unwrap();
    refused("still", &|line| desk.command(line).output().unwrap());
}
