//! File systems that rename less than others: overlayfs, which refuses it for directories of a lower layer, and bindfs, which knows no flag of
//! renameat2(2).

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::PathBuf;
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use sealift::unpack::UnpackStats;
use sealift_skipped::skipped;

use crate::desk::{Desk, NOBODY, is_root, said};

/// A mounted file system, unmounted on drop.
pub(crate) struct Mounted(PathBuf);

impl Mounted {
    /// Takes over what is mounted at a path.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn tmpfs(desk: &Desk, name: &str) -> Self {
        let path = desk.path(name);
        fs::create_dir_all(&path).unwrap();
        mount("tmpfs", &path, "tmpfs", MountFlags::empty(), c"mode=755").unwrap();
        Self(path)
    }

    /// Mounts a new btrfs at `disk`.
    pub(crate) fn btrfs(desk: &Desk, options: &[&str]) -> Self {
        fs::File::create_new(desk.path("image")).unwrap().set_len(256 << 20).unwrap();
        let run = |command: &mut Command| assert!(command.output().unwrap().status.success(), "{command:?}");
        run(Command::new("mkfs.btrfs").arg("-q").args(options).arg(desk.path("image")));
        fs::create_dir(desk.path("disk")).unwrap();
        run(Command::new("mount").args(["-o", "loop"]).args([desk.path("image"), desk.path("disk")]));
        Self(desk.path("disk"))
    }

    /// Mounts at `merged` an overlay over `disk/lower`, whose changes go to a new directory beside it.
    fn overlay(desk: &Desk) -> Self {
        let path = |name: &str| desk.path(name).display().to_string();
        for name in ["disk/upper", "disk/work", "merged"] {
            let _ = fs::remove_dir_all(desk.path(name));
            fs::create_dir(desk.path(name)).unwrap();
        }
        let (lower, upper, work) = (path("disk/lower"), path("disk/upper"), path("disk/work"));
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let options = std::ffi::CString::new(options).unwrap();
        mount("overlay", desk.path("merged"), "overlay", MountFlags::empty(), &*options).unwrap();
        Self(desk.path("merged"))
    }

    /// Mounts `real` at `mirror`.
    fn bindfs(desk: &Desk, options: &[&str]) -> Self {
        for name in ["real", "mirror"] {
            fs::create_dir_all(desk.path(name)).unwrap();
        }
        let done =
            Command::new("bindfs").args(options).args([desk.path("real"), desk.path("mirror")]).status().unwrap();
        assert!(done.success(), "bindfs");
        Self(desk.path("mirror"))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Changes the tree: a file becomes another, a directory with others is gone, one becomes a link, and one is new.
fn change(desk: &Desk) {
    desk.write("tree/etc/issue", "second\n");
    fs::remove_dir_all(desk.path("tree/gone")).unwrap();
    fs::remove_dir_all(desk.path("tree/turned")).unwrap();
    symlink("etc", desk.path("tree/turned")).unwrap();
    fs::create_dir(desk.path("tree/new")).unwrap();
    desk.write("tree/new/file", "new\n");
}

fn desk_with_directories() -> Desk {
    let desk = Desk::new();
    for name in ["gone", "turned"] {
        fs::create_dir_all(desk.path("tree").join(name).join(["deep"; 70].join("/"))).unwrap();
        desk.write(&format!("tree/{name}/file"), name);
    }
    desk.pack(7);
    desk
}

fn assert_done(desk: &Desk, stats: &UnpackStats, target: &str) {
    assert!(stats.is_update && !stats.was_complete);
    desk.assert_same(target, "tree");
    let again = desk.replace(8, target).unwrap();
    assert!(again.was_complete && !again.was_hashed, "the record was replaced as well");
    let (folder, name) = target.rsplit_once('/').unwrap();
    assert!(!desk.path(folder).join(format!(".{name}.sealift-partial")).exists());
}

#[test]
fn a_tree_of_a_lower_layer_is_updated() {
    if !is_root() {
        return skipped("needs root: mounts");
    }
    let desk = desk_with_directories();
    let _disk = Mounted::tmpfs(&desk, "disk");
    fs::create_dir(desk.path("disk/lower")).unwrap();
    desk.unpack(7, "disk/lower/os");
    desk.unpack(7, "disk/lower/half");
    change(&desk);
    desk.pack(8);
    desk.unpack(8, "whole");
    // What a killed run left there as well.
    desk.leave_update("disk/lower/half", "whole");
    let _merged = Mounted::overlay(&desk);
    assert_done(&desk, &desk.replace(8, "merged/os").unwrap(), "merged/os");
    desk.run(&["clean", "merged/half"]);
    assert!(!desk.path("merged/half/gone").exists(), "it was completed");
    desk.replace(8, "merged/half").unwrap();
    desk.assert_same("merged/half", "tree");
}

/// Without root, a read-only directory has to be opened before it turns out that it cannot be moved.
#[test]
fn a_closed_directory_of_a_lower_layer_is_removed_by_its_owner() {
    if !is_root() {
        return skipped("needs root: mounts");
    }
    let desk = Desk::new();
    fs::create_dir(desk.path("tree/closed")).unwrap();
    desk.write("tree/closed/file", "closed");
    desk.set_mode("tree/closed", 0o555);
    desk.pack(7);
    desk.make_home();
    let _disk = Mounted::tmpfs(&desk, "disk");
    fs::create_dir(desk.path("disk/lower")).unwrap();
    let own = |name: &str| chown(desk.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    own("disk/lower");
    let run = |line: &str| {
        let done = desk.run_as_user(line);
        assert!(done.status.success(), "{line}: {}", said(&done));
    };
    run("unpack 7.sealift disk/lower/os --allow-unsigned");
    fs::remove_dir_all(desk.path("tree/closed")).unwrap();
    desk.pack(8);
    let _merged = Mounted::overlay(&desk);
    own("merged");
    run("unpack 8.sealift merged/os --allow-unsigned --update --delete");
    run("audit merged/os --allow-unsigned");
    assert!(!desk.path("merged/os/closed").exists());
}

#[test]
fn a_tree_is_updated_where_renames_have_no_flags() {
    if !is_root() {
        return skipped("needs root: mounts");
    }
    let desk = desk_with_directories();
    let _mirror = Mounted::bindfs(&desk, &[]);
    desk.unpack(7, "mirror/os");
    change(&desk);
    desk.pack(8);
    assert_done(&desk, &desk.replace(8, "mirror/os").unwrap(), "mirror/os");
}

#[test]
fn a_file_system_with_one_mode_for_everything_is_a_target() {
    if !is_root() {
        return skipped("needs root: mounts");
    }
    let desk = Desk::new();
    desk.pack(7);
    let fixed = ["--perms=0777", "--chmod-ignore", "--chown-ignore"];
    let mirror = Mounted::bindfs(&desk, &fixed);
    // A dry run says what is lost, and leaves nothing.
    let line = ["unpack", "7.sealift", "mirror/os", "--allow-unsigned"];
    let lost = |done: std::process::Output| -> Vec<String> {
        said(&done)
            .lines()
            .filter(|line| line.contains("FUSE"))
            .map(|line| line.replace("would not be", "not"))
            .collect()
    };
    let before = fs::metadata(desk.path("real")).unwrap().modified().unwrap();
    let foreseen = lost(desk.run(&[&line[..], &["--dry-run"]].concat()));
    assert_eq!(fs::metadata(desk.path("real")).unwrap().modified().unwrap(), before);
    assert_eq!(fs::read_dir(desk.path("real")).unwrap().count(), 0);
    assert!(!foreseen.is_empty());
    assert_eq!(foreseen, lost(desk.run(&line)));
    desk.write("tree/etc/issue", "second\n");
    desk.pack(8);
    desk.update(8, "mirror/os").unwrap();
    let names = |folder: &str| fs::read_dir(desk.path(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names("mirror").count(), 2, "the tree and its record");
    // The same modes, where they are real, are another user's way in.
    drop(mirror);
    desk.set_mode("real/.os.sealift-state", 0o777);
    let _mirror = Mounted::bindfs(&desk, &[]);
    let error = desk.update(8, "mirror/os").expect_err("it is writable").to_string();
    assert!(error.contains("is writable by other users (mode 0777)"), "{error}");
    assert_eq!(fs::metadata(desk.path("real/.os.sealift-state")).unwrap().permissions().mode() & 0o777, 0o777);
}

/// Without this feature, btrfs gives a file some dozens of long names in one directory.
#[test]
fn duplicates_beyond_what_a_file_system_links_are_files_of_their_own() {
    let has_btrfs = Command::new("mkfs.btrfs").arg("--version").output().is_ok();
    if !is_root() || !has_btrfs {
        return skipped("needs root, and mkfs.btrfs: mounts");
    }
    let desk = Desk::new();
    for number in 0..200 {
        let name = format!("tree/{number}-{}", "x".repeat(200));
        desk.write(&name, "the same\n");
        let touched = Command::new("touch").args(["-d", "2001-02-03"]).arg(desk.path(&name)).status().unwrap();
        assert!(touched.success());
    }
    desk.pack(7);
    let _disk = Mounted::btrfs(&desk, &["-O", "^extref"]);
    desk.run(&["unpack", "7.sealift", "disk/os", "--allow-unsigned", "--hardlink-duplicates"]);
    desk.assert_same("disk/os", "tree");
    let all = || fs::read_dir(desk.path("disk/os")).unwrap().map(|entry| entry.unwrap().metadata().unwrap());
    let inodes =
        || all().filter(fs::Metadata::is_file).map(|file| file.ino()).collect::<std::collections::BTreeSet<_>>();
    assert!((2..20).contains(&inodes().len()), "{}", inodes().len());
    let audit = ["audit", "disk/os", "--allow-unsigned"];
    desk.run(&audit);
    desk.write("tree/etc/issue", "second\n");
    desk.pack(8);
    // The record keeps that they may be linked.
    desk.run(&["unpack", "8.sealift", "disk/os", "--allow-unsigned", "--update"]);
    desk.run(&audit);
    // A link between files that differ in the bundle is a difference, as ever.
    fs::remove_file(desk.path("disk/os/etc/motd")).unwrap();
    fs::hard_link(desk.path("disk/os/etc/issue"), desk.path("disk/os/etc/motd")).unwrap();
    assert_eq!(desk.command(&audit).output().unwrap().status.code(), Some(1));
}

/// A file system that renames no directory at all; other calls that rename are for files.
#[test]
fn a_new_tree_is_made_where_no_directory_is_renamed() {
    let desk = desk_with_directories();
    let run = |line: &str| {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-o", "/dev/null", "-e", "trace=renameat2", "-e", "inject=renameat2:error=EXDEV"]);
        strace.arg(env!("CARGO_BIN_EXE_sealift")).args(line.split(' ')).current_dir(desk.path(""));
        strace.env("SEALIFT_STATE", desk.path("state")).env("XDG_CONFIG_HOME", "/nonexistent");
        let done = strace.output().unwrap();
        assert!(done.status.success(), "{line}: {}", said(&done));
        said(&done)
    };
    if Command::new("strace").arg("-V").output().is_err() {
        return skipped("needs strace: makes system calls fail");
    }
    let said = run("unpack 7.sealift os --allow-unsigned");
    assert!(said.contains("os: unpacked from 7.sealift"), "{said}");
    desk.assert_same("os", "tree");
    run("audit os --allow-unsigned");
    change(&desk);
    desk.pack(8);
    run("unpack 8.sealift os --allow-unsigned --update --delete");
    desk.assert_same("os", "tree");
    run("audit os --allow-unsigned");
    let names = fs::read_dir(desk.path("")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let ours: Vec<String> = names.filter(|name| name.starts_with('.')).collect();
    assert_eq!(ours, [".os.sealift-state"]);
}
