//! A directory that Sealift did not make is taken over only where that is asked for.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use sealift::unpack::{Census, UnpackOptions};
use sealift::{Error, Progress};

use crate::desk::{Desk, said};

/// Somebody's photos, and a file of the bundle's name.
fn home() -> Desk {
    let desk = Desk::new();
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

/// All names below a directory.
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
    for more in [&[][..], &["--delete"], &["--delete", "--dry-run"], &["--rehash"]] {
        let line = [&["unpack", "7.sealift", "home", "--update", "--allow-unsigned"], more].concat();
        let done = desk.command(&line).output().unwrap();
        assert_eq!(done.status.code(), Some(2), "{more:?}: {}", said(&done));
        assert!(said(&done).contains("home was not unpacked by sealift"), "{}", said(&done));
        assert!(said(&done).contains("--adopt takes it over"), "{}", said(&done));
        let after: Vec<PathBuf> = names(&desk.path("")).into_iter().filter(|name| !is_state(&desk, name)).collect();
        assert_eq!(after, before, "{more:?}");
    }
    assert_eq!(fs::read(desk.path("home/etc/motd")).unwrap(), b"mine\n");
    assert!(matches!(desk.update(7, "home"), Err(Error::NotOurs { .. })));
}

fn is_state(desk: &Desk, name: &Path) -> bool {
    name.starts_with(desk.path("state"))
}

#[test]
fn a_dry_run_lists_all_that_would_go() {
    let desk = home();
    let line = ["unpack", "7.sealift", "home", "--update", "--delete", "--adopt", "--allow-unsigned", "--dry-run"];
    let told = said(&desk.run(&line));
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
    let line = ["unpack", "7.sealift", "home", "--update", "--delete", "--adopt", "--allow-unsigned"];
    let told = said(&desk.run(&line));
    assert!(told.contains("took over: replaced 1 file\n"), "{told}");
    assert!(told.contains("  deleted 20 files, 3 directories and 1 symlink\n"), "{told}");
    // It says so first, with the first names; all of them are for -v.
    let first = "home was not unpacked by sealift; taking it over replaces 1 file and deletes 20 files, 3 directories and 1 symlink: photos/";
    assert!(told.contains(first) && told.contains(", ...\n"), "{told}");
    assert!(!told.contains("07.jpg"), "{told}");
    desk.assert_same("home", "tree");
    let stats = desk.update(7, "home").unwrap();
    assert_eq!((stats.was_complete, stats.was_adopted, stats.hashed_files), (true, false, 0));
}

#[test]
fn from_a_pipe_none_is_taken_over() {
    let desk = home();
    let before = names(&desk.path("home"));
    let bundle = fs::File::open(desk.path("7.sealift")).unwrap();
    let line = ["unpack", "/dev/stdin", "home", "--update", "--delete", "--adopt", "--allow-unsigned"];
    let (read, write) = std::io::pipe().unwrap();
    let copy = std::thread::spawn(move || std::io::copy(&mut &bundle, &mut &write));
    let done = desk.command(&line).stdin(read).output().unwrap();
    drop(copy.join().unwrap());
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    assert!(said(&done).contains("give a file, not a pipe"), "{}", said(&done));
    assert_eq!(names(&desk.path("home")), before);
}

#[test]
fn without_delete_the_rest_stays() {
    let desk = home();
    let options = UnpackOptions { update: true, adopt: true, ..UnpackOptions::default() };
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
    // As a backup has it, with its record. What it was stays, so that no number of an inode comes again.
    for name in ["target", ".target.sealift-state"] {
        let saved = desk.path(&format!("saved{name}"));
        fs::rename(desk.path(name), &saved).unwrap();
        assert!(Command::new("cp").arg("-a").args([saved, desk.path(name)]).status().unwrap().success());
    }
    let line = ["unpack", "7.sealift", "target", "--update", "--allow-unsigned"];
    let done = desk.command(&line).output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    let told = said(&done).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("target is not the directory that sealift unpacked: it was restored from a backup, copied"),
        "{told}"
    );
    assert!(told.contains("If it is what you mean to update: --adopt takes it over"), "{told}");
    // All of it is as it was, and is kept.
    let told = said(&desk.run(&[&line[..], &["--adopt", "--delete"]].concat()));
    assert!(told.contains("replaced nothing") || told.contains("3 files unchanged"), "{told}");
    desk.assert_same("target", "tree");
    let told = said(&desk.run(&line));
    assert!(told.contains("already complete"), "{told}");
}

#[test]
fn deletions_of_an_update_are_counted_and_listed() {
    let desk = home();
    desk.unpack(7, "target");
    fs::rename(desk.path("home/photos"), desk.path("target/photos")).unwrap();
    // A directory with files stands where a file is to be.
    fs::remove_file(desk.path("target/etc/issue")).unwrap();
    fs::create_dir(desk.path("target/etc/issue")).unwrap();
    desk.write("target/etc/issue/inner", "in the way");
    let options = UnpackOptions { update: true, delete: true, list_deletions: true, ..UnpackOptions::default() };
    let dry = desk.take(7, "target", &UnpackOptions { dry_run: true, ..options.clone() }, &Progress::default());
    let stats = desk.take(7, "target", &options, &Progress::default()).unwrap();
    assert_eq!(stats.deleted, Census { files: 21, directories: 4, symlinks: 1, others: 0 });
    assert_eq!(stats.deletions.len(), 26);
    assert!(stats.deletions.contains(&PathBuf::from("etc/issue/inner")));
    assert_eq!(dry.unwrap().deletions, stats.deletions);
    desk.assert_same("target", "tree");

    let json = said(&desk.run(&["unpack", "7.sealift", "target", "--update", "--allow-unsigned", "--json"]));
    assert!(json.contains(r#""deleted_files":0,"deleted_directories":0"#), "{json}");
    assert!(json.contains(r#""was_complete":true"#) && json.contains(r#""checked":"stat""#), "{json}");
}
