//! Directories get rights like files: only those that a run made, or that the record names. A user who owns a directory of the tree can put any
//! other one under the name of a directory in it, such as one that only root may enter. And what new files inherit is removed.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::Command;

use sealift::unpack::{UnpackStats, unpack};
use sealift::{Durability, Error, InstallOptions, Progress, TreeOptions};
use sealift_desk::{as_root, is_root, noise, program, said, skipped};

use crate::installed::{Installed, anyones};

const USER: u32 = 1000;

/// Creates versions 1, 2 and 3 of a tree with a user's directory `home`, which holds the user's `pub`; version 3 also has `home/new` and
/// `home/new/deep`. `target` holds version 1. `None` without root.
fn desk() -> Option<Installed> {
    let desk = as_root("gives files away", Installed::new)?;
    fs::create_dir_all(desk.path("tree/home/pub")).unwrap();
    desk.write("tree/home/pub/x", noise(3, 5000));
    give(&desk, &["tree/home", "tree/home/pub", "tree/home/pub/x"]);
    desk.set_mode("tree/home/pub", 0o775);
    desk.pack(1);
    desk.write("tree/etc/motd", "hello again\n");
    desk.pack(2);
    fs::create_dir_all(desk.path("tree/home/new/deep")).unwrap();
    desk.write("tree/home/new/deep/y", noise(4, 5000));
    give(&desk, &["tree/home/new", "tree/home/new/deep", "tree/home/new/deep/y"]);
    desk.pack(3);
    desk.unpack(1, "target");
    Some(desk)
}

fn give(desk: &Installed, names: &[&str]) {
    names.iter().for_each(|name| chown(desk.path(name), Some(USER), Some(USER)).unwrap());
}

/// Puts a directory that only root may enter under this name in the target.
fn put_secret(desk: &Installed, name: &str, content: &[&str]) {
    let place = desk.path("target/home").join(name);
    let _ = fs::rename(&place, desk.path("target/home/old"));
    fs::create_dir(&place).unwrap();
    for name in content {
        fs::write(place.join(name), "root's own\n").unwrap();
    }
    fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).unwrap();
}

/// Returns owner, mode and inode.
fn rights(path: PathBuf) -> (u32, u32, u64) {
    let found = fs::metadata(path).unwrap();
    (found.uid(), found.mode() & 0o7777, found.ino())
}

fn options(delete: bool, rehash: bool, dry_run: bool) -> InstallOptions {
    let tree = TreeOptions { update: true, delete, ..TreeOptions::default() };
    InstallOptions { rehash, dry_run, tree, ..InstallOptions::default() }
}

#[track_caller]
fn assert_refused(done: Result<UnpackStats, Error>, path: PathBuf) {
    match done {
        Err(Error::OtherDirectory { path: named, owner: 0, mode: 0o700 }) => assert_eq!(named, path),
        other => panic!("{other:?}"),
    }
}

#[test]
fn another_directory_in_the_place_of_one_is_refused_by_name() {
    for (version, rehash, dry_run) in
        [(1, false, false), (2, false, false), (1, true, false), (2, true, false), (2, false, true), (3, true, true)]
    {
        let Some(desk) = desk() else { return };
        put_secret(&desk, "pub", &["s"]);
        let was = rights(desk.path("target/home/pub"));
        let done = desk.take(version, "target", &options(false, rehash, dry_run), &Progress::default());
        assert_refused(done, desk.path("target/home/pub"));
        assert_eq!(rights(desk.path("target/home/pub")), was);
        assert_eq!(fs::read(desk.path("target/etc/motd")).unwrap(), b"hello\n", "nothing is changed");
        assert!(!desk.path(".target.sealift-partial").exists());
    }
}

#[test]
fn it_is_replaced_where_all_else_is_deleted_and_where_it_holds_nothing_else() {
    for (content, delete) in [(&["s"][..], true), (&[], false), (&["x"], false)] {
        for rehash in [false, true] {
            let Some(desk) = desk() else { return };
            put_secret(&desk, "pub", content);
            let was = rights(desk.path("target/home/pub"));
            desk.take(2, "target", &options(delete, rehash, false), &Progress::default()).unwrap();
            let (owner, mode, inode) = rights(desk.path("target/home/pub"));
            assert_eq!((owner, mode), (USER, 0o775));
            assert_ne!(inode, was.2, "it was made anew");
            assert_eq!(fs::read(desk.path("target/home/pub/x")).unwrap(), noise(3, 5000));
            assert!(!desk.path("target/home/pub/s").exists());
            desk.good("audit target --allow-unsigned --allow-extra");
        }
    }
}

#[test]
fn another_directory_with_the_rights_of_the_installed_one_gets_no_others() {
    let Some(desk) = desk() else { return };
    desk.set_mode("tree/home/pub", 0o777);
    desk.pack(4);
    let (place, old) = (desk.path("target/home/pub"), desk.path("target/home/old"));
    fs::rename(&place, &old).unwrap();
    let copied = Command::new("cp").arg("-a").arg(&old).arg(&place).status().unwrap();
    assert!(copied.success());
    let was = rights(place.clone());
    assert_eq!((was.0, was.1), (USER, 0o775));
    desk.take(4, "target", &options(false, false, false), &Progress::default()).unwrap();
    let (owner, mode, inode) = rights(place);
    assert_eq!((owner, mode), (USER, 0o777));
    assert_ne!(inode, was.2, "it was made anew");
}

#[test]
fn the_recorded_directory_gets_its_rights_back_with_what_it_holds() {
    let Some(desk) = desk() else { return };
    for delete in [true, false] {
        // What is known of a directory outlives an update that changed something in it.
        desk.take(3, "target", &options(delete, false, false), &Progress::default()).unwrap();
        desk.write("target/home/new/mine", "the user's\n");
        for name in ["pub", "new"] {
            desk.set_mode(&format!("target/home/{name}"), 0o700);
        }
        let was = ["pub", "new"].map(|name| rights(desk.path("target/home").join(name)).2);
        desk.update(3, "target").unwrap();
        let found = ["pub", "new"].map(|name| rights(desk.path("target/home").join(name)));
        assert_eq!(found.map(|(_, _, inode)| inode), was);
        assert_eq!(found.map(|(owner, mode, _)| (owner, mode)), [(USER, 0o775), (USER, 0o755)]);
        assert!(desk.path("target/home/new/mine").exists());
    }
}

#[test]
fn a_directory_that_waits_in_the_place_of_a_new_one_gets_no_other_rights() {
    let Some(desk) = desk() else { return };
    put_secret(&desk, "new", &["s"]);
    assert_refused(desk.update(3, "target"), desk.path("target/home/new"));
    assert_eq!(rights(desk.path("target/home/new")).1, 0o700);
    // One that needs none stays, with what is in it.
    desk.set_mode("target/home/new", 0o755);
    give(&desk, &["target/home/new"]);
    desk.update(3, "target").unwrap();
    assert!(desk.path("target/home/new/s").exists());
    assert_eq!(fs::read(desk.path("target/home/new/deep/y")).unwrap(), noise(4, 5000));
    assert_eq!(rights(desk.path("target/home/new/deep")).0, USER);
}

#[test]
fn an_adopted_directory_of_a_user_is_made_anew() {
    let Some(desk) = desk() else { return };
    let adopt = |desk: &Installed| {
        let options = InstallOptions { adopt: true, ..options(false, false, false) };
        desk.take(2, "target", &options, &Progress::default())
    };
    fs::remove_dir_all(desk.path(".target.sealift-state")).unwrap();
    put_secret(&desk, "pub", &["s"]);
    assert_refused(adopt(&desk), desk.path("target/home/pub"));
    fs::remove_file(desk.path("target/home/pub/s")).unwrap();
    // Whom `etc` belongs to only root decides, and whatever else it holds stays.
    desk.set_mode("target/etc", 0o700);
    desk.write("target/etc/more", "stays\n");
    adopt(&desk).unwrap();
    assert_eq!(rights(desk.path("target/home/pub")).0, USER);
    assert_eq!(rights(desk.path("target/etc")).1, 0o755);
    assert!(desk.path("target/etc/more").exists());
}

#[test]
fn a_directory_that_is_exchanged_during_an_update_keeps_its_rights() {
    let Some(desk) = desk() else { return };
    desk.set_mode("tree/home/pub", 0o777);
    desk.write("tree/etc/motd", noise(5, 100_000));
    desk.pack(4);
    fs::create_dir(desk.path("secret")).unwrap();
    desk.write("secret/s", "root's own\n");
    desk.set_mode("secret", 0o700);
    let (secret, home) = (desk.path("secret"), desk.path("target/home"));
    let input = desk.trapped(4, 1, move || {
        fs::rename(home.join("pub"), home.join("old")).unwrap();
        fs::rename(secret, home.join("pub")).unwrap();
    });
    let tree = TreeOptions { update: true, durability: Durability::None, ..TreeOptions::default() };
    let options = InstallOptions { tree, ..InstallOptions::default() };
    let done = unpack(anyones(input).unwrap(), &desk.path("target"), &options, &Progress::default());
    assert_refused(done, desk.path("target/home/pub"));
    assert_eq!(rights(desk.path("target/home/pub")).1, 0o700);
}

#[test]
fn a_killed_update_is_completed_without_giving_anything_away() {
    let Some(desk) = desk() else { return };
    desk.unpack(3, "whole");
    desk.leave_update("target", "whole");
    put_secret(&desk, "pub", &["s"]);
    put_secret(&desk, "new", &["s"]);
    // The mark says that all else is deleted.
    let done = desk.command("clean target").output().unwrap();
    for name in ["pub", "new"] {
        let place = desk.path("target/home").join(name);
        let is_secret = place.join("s").exists();
        let is_private = fs::metadata(&place).is_ok_and(|found| found.mode() & 0o077 == 0 && found.uid() == 0);
        assert!(!is_secret || is_private, "{name}: {}", said(&done));
    }
    desk.replace(3, "target").unwrap();
    desk.assert_same("target", "tree");
}

/// Gives the directory above all targets a default ACL, by which user 33 may do everything, and the set-group-ID bit. Returns whether it has them.
fn inherits(desk: &Installed) -> bool {
    let done = Command::new("setfacl").args(["-d", "-m", "u:33:rwx"]).arg(desk.path("")).status();
    if !done.is_ok_and(|status| status.success()) {
        skipped("needs setfacl, and a file system with ACLs");
        return false;
    }
    if is_root() {
        chown(desk.path(""), None, Some(33)).unwrap();
    }
    desk.set_mode("", 0o2755);
    true
}

/// Returns what `getfacl` prints of everything in a directory.
fn lists(desk: &Installed, of: &str) -> String {
    let done = Command::new("getfacl").args(["-R", "-n", "."]).current_dir(desk.path(of)).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn nothing_is_inherited_from_the_directory_above() {
    let desk = Installed::new();
    desk.set_mode("tree/etc/motd", 0o640);
    desk.pack(1);
    fs::create_dir(desk.path("tree/etc/new.d")).unwrap();
    desk.write("tree/etc/new.d/file", "new\n");
    desk.write("tree/etc/motd", "hello again\n");
    desk.pack(2);
    let expected = lists(&desk, "tree");
    if !inherits(&desk) {
        return;
    }
    desk.unpack(2, "whole");
    assert_eq!(lists(&desk, "whole"), expected);
    desk.unpack(1, "target");
    desk.update(2, "target").unwrap();
    assert_eq!(lists(&desk, "target"), expected);
    for target in ["whole", "target"] {
        desk.good(&format!("audit {target} --allow-unsigned"));
    }
}

#[test]
fn an_access_list_that_was_not_signed_is_a_difference() {
    let desk = Installed::new();
    fs::create_dir(desk.path("tree/var")).unwrap();
    desk.pack(1);
    let expected = lists(&desk, "tree");
    desk.unpack(1, "target");
    for list in
        [["-m", "u:33:rwx", "target/etc/motd"], ["-m", "d:u:33:rwx", "target/var"], ["-m", "u:33:rwx", "target"]]
    {
        let done = Command::new("setfacl").args(list).current_dir(desk.path("")).status();
        if !done.is_ok_and(|status| status.success()) {
            return skipped("needs setfacl, and a file system with ACLs");
        }
        desk.refused("audit target --allow-unsigned", 1, "");
        desk.update(1, "target").unwrap();
        assert_eq!(lists(&desk, "target"), expected, "{list:?}");
        desk.good("audit target --allow-unsigned");
    }
}

/// A directory of another user takes CAP_DAC_OVERRIDE to change, also for user 0: without it, nothing is begun that cannot end.
#[test]
fn what_cannot_be_written_to_is_named_before_anything_moves() {
    let Some(desk) = desk() else { return };
    let has_setpriv = Command::new("setpriv").arg("--version").output().is_ok();
    if !has_setpriv {
        return skipped("needs setpriv: drops capabilities");
    }
    desk.write("tree/home/pub/x", noise(5, 5000));
    desk.write("tree/etc/motd", "hello once more\n");
    give(&desk, &["tree/home/pub/x"]);
    desk.pack(4);
    desk.set_mode("target/home/pub", 0o755);
    desk.set_mode("tree/home/pub", 0o755);
    let without = |line: &str| {
        let mut setpriv = Command::new("setpriv");
        let drop = ["--inh-caps=-dac_override", "--bounding-set=-dac_override", &program()];
        setpriv.args(drop).args(line.split(' ')).current_dir(desk.path("")).env("SEALIFT_STATE", desk.path("state"));
        let done = setpriv.output().unwrap();
        (done.status.code(), said(&done))
    };
    for line in ["--dry-run", "--delete", ""] {
        let (status, said) = without(format!("unpack 4.sealift target --allow-unsigned --update {line}").trim());
        assert!(status == Some(2) && said.contains("target/home is not writable for this process"), "{said}");
        assert_eq!(fs::read(desk.path("target/etc/motd")).unwrap(), b"hello\n");
        assert!(!desk.path(".target.sealift-partial/journal").exists());
    }
    desk.good("unpack 4.sealift target --allow-unsigned --update");
}
