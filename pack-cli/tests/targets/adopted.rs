//! A directory that Sealift did not create is taken over only with `--adopt`.

use std::cell::Cell;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use sealift::unpack::{Census, Consent, unpack_asking};
use sealift::{Error, Input, Progress};
use sealift::{InstallOptions, TreeOptions};
use sealift_desk::{out, program, said};

use crate::installed::{Installed, anyones};

/// Creates a user's photos, and a file with a name that the bundle has.
fn home() -> Installed {
    let desk = Installed::new();
    desk.pack(7);
    fs::create_dir_all(desk.path("home/photos/2019/empty")).unwrap();
    for number in 0..20 {
        desk.write(&format!("home/photos/2019/{number:02}.jpg"), format!("photo {number}"));
    }
    symlink("2019", desk.path("home/photos/best")).unwrap();
    fs::create_dir(desk.path("home/etc")).unwrap();
    desk.write("home/etc/motd", "mine\n");
    desk
}

/// Returns all names below a directory.
fn names(dir: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            }
            names.push(entry.path());
        }
    }
    names.sort_unstable();
    names
}

#[test]
fn without_being_told_nothing_of_it_is_touched() {
    let desk = home();
    let before = names(&desk.path(""));
    for more in ["", "--delete", "--delete --dry-run", "--rehash"] {
        let line = format!("unpack 7.sealift home --update --allow-unsigned {more}");
        let said = desk.refused(&line, 2, "home was not unpacked by sealift");
        assert!(said.contains("to take it over, use --adopt"), "{said}");
        let after: Vec<PathBuf> = names(&desk.path("")).into_iter().filter(|name| !is_state(&desk, name)).collect();
        assert_eq!(after, before, "{more:?}");
    }
    assert_eq!(fs::read(desk.path("home/etc/motd")).unwrap(), b"mine\n");
    assert!(matches!(desk.update(7, "home"), Err(Error::NotOurs { .. })));
}

fn is_state(desk: &Installed, name: &Path) -> bool {
    name.starts_with(desk.path("state"))
}

#[test]
fn a_dry_run_lists_all_that_would_go() {
    let desk = home();
    let line = "unpack 7.sealift home --update --delete --adopt --allow-unsigned --dry-run";
    let told = desk.good(line);
    for number in 0..20 {
        assert!(told.contains(&format!("would delete photos/2019/{number:02}.jpg\n")), "{told}");
    }
    assert!(told.contains("would delete photos/2019/empty/\n"), "{told}");
    assert!(told.contains("would delete 20 files, 3 directories and 1 symlink\n"), "{told}");
    assert!(told.contains("would replace 1 file\n"), "{told}");
    assert_eq!(fs::read(desk.path("home/etc/motd")).unwrap(), b"mine\n");
    assert!(desk.path("home/photos/2019/07.jpg").exists());
}

#[test]
fn where_it_is_told_it_is_a_target_from_then_on() {
    let desk = home();
    let line = "unpack 7.sealift home --update --delete --adopt --yes --allow-unsigned";
    let told = desk.says(line, "took over: replaced 1 file\n");
    assert!(told.contains("  deleted 20 files, 3 directories and 1 symlink\n"), "{told}");
    // The message names the first paths; `-v` lists all of them.
    let first = "home was not unpacked by sealift; taking it over replaces 1 file and deletes 20 files, 3 directories and 1 symlink: photos/";
    assert!(told.contains(first) && told.contains(", ...\n"), "{told}");
    assert!(!told.contains("07.jpg"), "{told}");
    desk.assert_same("home", "tree");
    let stats = desk.update(7, "home").unwrap();
    assert_eq!((stats.was_complete, stats.was_adopted, stats.hashed_files), (true, false, 0));
}

#[test]
fn it_is_compared_once() {
    let desk = home();
    // Files that the bundle has too are hashed.
    fs::copy(desk.path("tree/etc/motd"), desk.path("home/etc/motd")).unwrap();
    let line = "unpack 7.sealift home --update --delete --adopt --yes --allow-unsigned";
    let done = desk.command(line).env("SEALIFT_LOG", "debug").output().unwrap();
    let told = said(&done);
    assert!(done.status.success() && told.contains("took over"), "{told}");
    for once in ["comparing the files of the target", "phase=\"hashing\"", "was not unpacked by sealift"] {
        assert_eq!(told.matches(once).count(), 1, "{once}: {told}");
    }
    desk.assert_same("home", "tree");
}

#[test]
fn a_caller_may_refuse_when_it_is_told_what_would_go() {
    let desk = home();
    let before = names(&desk.path(""));
    let options = InstallOptions {
        adopt: true,
        tree: TreeOptions { update: true, delete: true, ..TreeOptions::default() },
        ..InstallOptions::default()
    };
    let asking = |consent: &Consent<'_>| {
        let input = Input::open(&desk.path("7.sealift")).unwrap();
        unpack_asking(anyones(input).unwrap(), &desk.path("home"), &options, &Progress::default(), consent)
    };
    let told = Cell::new(0);
    let refused = asking(&|stats| {
        told.set(told.get() + 1);
        assert!(stats.was_adopted && stats.replaced.files == 1 && stats.deleted.files == 20, "{stats:?}");
        assert!(stats.deletions.contains(&PathBuf::from("photos/2019/07.jpg")));
        // No part of the new tree is there yet, and no other run can begin.
        assert_eq!(names(&desk.path("")), before);
        let other = desk.command("unpack 7.sealift home --update --adopt --yes --allow-unsigned");
        assert_eq!({ other }.output().unwrap().status.code(), Some(2));
        Err(Error::Usage("no".into()))
    });
    assert!(matches!(refused, Err(Error::Usage(why)) if why == "no"));
    assert_eq!((names(&desk.path("")), told.get()), (before, 1));
    // A file that appears while the caller decides counts as a later change, which the next update finds.
    asking(&|_| {
        desk.write("home/etc/hosts", "came meanwhile\n");
        Ok(())
    })
    .unwrap();
    // From then on, there is no question.
    asking(&|_| panic!("it is a target")).unwrap();
    desk.assert_same("home", "tree");
}

#[test]
fn from_a_pipe_it_is_said_first_as_well() {
    let desk = home();
    let bundle = fs::File::open(desk.path("7.sealift")).unwrap();
    let line = "unpack /dev/stdin home --update --delete --adopt --yes --allow-unsigned";
    let (read, write) = std::io::pipe().unwrap();
    let copy = std::thread::spawn(move || std::io::copy(&mut &bundle, &mut &write));
    let done = desk.command(line).stdin(read).output().unwrap();
    drop(copy.join().unwrap());
    let told = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{told}");
    assert!(told.contains("taking it over replaces 1 file and deletes 20 files, 3 directories"), "{told}");
    desk.assert_same("home", "tree");
}

#[test]
fn without_delete_the_rest_stays() {
    let desk = home();
    let tree = TreeOptions { update: true, ..TreeOptions::default() };
    let options = InstallOptions { adopt: true, tree, ..InstallOptions::default() };
    let stats = desk.take(7, "home", &options, &Progress::default()).unwrap();
    assert!(stats.was_adopted);
    assert_eq!((stats.deleted, stats.replaced), (Census::default(), Census { files: 1, ..Census::default() }));
    assert!(desk.path("home/photos/2019/07.jpg").exists());
    assert_eq!(fs::read(desk.path("home/etc/motd")).unwrap(), b"hello\n");
}

#[test]
fn a_record_of_another_directory_makes_none_ours() {
    let desk = home();
    desk.unpack(7, "target");
    fs::remove_dir_all(desk.path("target")).unwrap();
    fs::rename(desk.path("home"), desk.path("target")).unwrap();
    assert!(matches!(desk.replace(7, "target"), Err(Error::NotOurs { .. })));
    assert!(desk.path("target/photos/2019/07.jpg").exists());
}

#[test]
fn what_a_backup_brought_back_is_taken_over_as_it_is() {
    let desk = home();
    desk.unpack(7, "target");
    // As restored from a backup, with its record. The originals stay, so that no inode number is used again.
    for name in ["target", ".target.sealift-state"] {
        let saved = desk.path(&format!("saved{name}"));
        fs::rename(desk.path(name), &saved).unwrap();
        assert!(Command::new("cp").arg("-a").args([saved, desk.path(name)]).status().unwrap().success());
    }
    let line = "unpack 7.sealift target --update --allow-unsigned";
    let done = desk.command(line).output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    let told = said(&done).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains(
            "target is not the directory that sealift unpacked: it was copied, moved or restored from a backup"
        ),
        "{told}"
    );
    assert!(told.contains("To update it anyway, use --adopt"), "{told}");
    // Everything is unchanged, and is kept.
    let told = desk.good(&format!("{line} --adopt --delete --yes"));
    assert!(told.contains("replaced nothing") || told.contains("3 files unchanged"), "{told}");
    desk.assert_same("target", "tree");
    desk.says(line, "already unpacked");
}

#[test]
fn deletions_of_an_update_are_counted_and_listed() {
    let desk = home();
    desk.unpack(7, "target");
    fs::rename(desk.path("home/photos"), desk.path("target/photos")).unwrap();
    // A directory with files takes the place of a file.
    fs::remove_file(desk.path("target/etc/issue")).unwrap();
    fs::create_dir(desk.path("target/etc/issue")).unwrap();
    desk.write("target/etc/issue/inner", "in the way");
    let tree = TreeOptions { update: true, delete: true, list_deletions: true, ..TreeOptions::default() };
    let options = InstallOptions { tree, ..InstallOptions::default() };
    let dry = desk.take(7, "target", &InstallOptions { dry_run: true, ..options.clone() }, &Progress::default());
    let stats = desk.take(7, "target", &options, &Progress::default()).unwrap();
    assert_eq!(stats.deleted, Census { files: 21, directories: 4, symlinks: 1, others: 0 });
    assert_eq!(stats.deletions.len(), 26);
    assert!(stats.deletions.contains(&PathBuf::from("etc/issue/inner")));
    assert_eq!(dry.unwrap().deletions, stats.deletions);
    desk.assert_same("target", "tree");

    let json = desk.good("unpack 7.sealift target --update --allow-unsigned --json");
    assert!(json.contains(r#""deleted":{"files":0,"directories":0"#), "{json}");
    let json = json.lines().find(|line| line.starts_with('{')).expect("--json prints an object");
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let looked_at = (json["was_complete"].as_bool(), json["was_hashed"].as_bool(), json["checked_files"].as_u64());
    assert_eq!(looked_at, (Some(true), Some(false), Some(3)), "{json}");
}

/// What a target keeps is tried beside it, where others may have put anything under the names that a run uses.
#[test]
fn what_others_put_beside_a_target_is_left_alone() {
    let desk = Installed::new();
    fs::hard_link(desk.path("tree/etc/motd"), desk.path("tree/etc/second")).unwrap();
    symlink("motd", desk.path("tree/etc/link")).unwrap();
    desk.pack(7);
    fs::create_dir(desk.path("target")).unwrap();
    desk.write("target/mine", "mine");
    let script = "mkfifo .sealift-$$.trial; for what in kind link device; do echo mine > .sealift-$$.$what; done; \
        exec \"$0\" unpack 7.sealift target --update --adopt --yes --allow-unsigned";
    let mut shell = Command::new("timeout");
    shell.args(["60", "sh", "-c", script, &program()]).current_dir(desk.path(""));
    out(shell.env("SEALIFT_STATE", desk.path("state")));
    let left: Vec<_> = desk.names("").into_iter().filter(|name| name.starts_with(".sealift-")).collect();
    let ends: Vec<&str> = left.iter().map(|name| name.rsplit('.').next().unwrap()).collect();
    assert_eq!(ends, ["device", "kind", "link", "trial"]);
}
