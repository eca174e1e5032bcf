//! Targets that were modified since they were last updated.

use std::fs;
use std::os::unix::fs::{chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use sealift::Progress;
use sealift::{InstallOptions, TreeOptions};
use sealift_desk::{is_root, said, skipped};

use crate::installed::Installed;

/// Something that takes the place of a file: its description, and how to create it.
type StandIn = (&'static str, fn(&Path));

fn stand_ins() -> [StandIn; 3] {
    [
        ("a link", |path| symlink("/nonexistent", path).unwrap()),
        ("a socket", |path| drop(UnixListener::bind(path).unwrap())),
        ("a directory", |path| fs::create_dir(path).unwrap()),
    ]
}

/// Creates a target with version 7; version 8 changes the mode of one file, and the content of another.
pub(crate) fn updatable() -> Installed {
    let desk = Installed::new();
    desk.install(7, "target");
    desk.set_mode("tree/lib/lib.so", 0o755);
    desk.write("tree/etc/issue", "second\n");
    desk.pack(8);
    desk
}

#[test]
fn what_stands_in_place_of_a_file_makes_way() {
    for (what, make) in stand_ins() {
        let desk = updatable();
        fs::remove_file(desk.path("target/lib/lib.so")).unwrap();
        make(&desk.path("target/lib/lib.so"));
        desk.replace(8, "target").unwrap_or_else(|error| panic!("{what}: {error}"));
        desk.assert_same("target", "tree");
    }
}

#[test]
fn what_stands_in_place_of_a_file_does_not_stop_an_update_that_was_killed() {
    for (what, make) in stand_ins() {
        for name in ["lib/lib.so", "etc/motd"] {
            let desk = updatable();
            desk.unpack(8, "whole");
            desk.leave_update("target", "whole");
            fs::remove_file(desk.path("target").join(name)).unwrap();
            make(&desk.path("target").join(name));
            let stats = desk.replace(8, "target").unwrap_or_else(|error| panic!("{what} at {name}: {error}"));
            assert!(stats.was_hashed, "{what} at {name}");
            desk.assert_same("target", "tree");
            assert!(!desk.replace(8, "target").unwrap().was_hashed, "{what} at {name}");
        }
    }
}

#[test]
fn cleaning_ends_an_update_onto_a_changed_target_and_says_so() {
    let desk = updatable();
    desk.unpack(8, "whole");
    desk.leave_update("target", "whole");
    fs::remove_file(desk.path("target/etc/motd")).unwrap();
    symlink("/nonexistent", desk.path("target/etc/motd")).unwrap();
    let done = desk.command("clean target").output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    assert!(said(&done).contains("unpacking either bundle with --update"), "{}", said(&done));
    assert_eq!(fs::read(desk.path("target/etc/issue")).unwrap(), b"second\n", "the rest is done");
    desk.good("clean target");
    desk.replace(8, "target").unwrap();
    desk.assert_same("target", "tree");
}

#[test]
fn a_closed_file_is_updated_by_its_owner() {
    let desk = Installed::new();
    desk.make_home();
    desk.write("tree/closed", "for nobody\n");
    desk.set_mode("tree/closed", 0);
    desk.pack(7);
    desk.set_mode("tree/closed", 0o400);
    desk.set_mode("tree/lib/lib.so", 0);
    desk.write("tree/etc/issue", "second\n");
    desk.set_mode("tree/etc/issue", 0);
    desk.pack(8);
    let run = |line: &str| {
        let done = desk.run_as_user(line);
        assert!(done.status.success(), "{line}: {}", said(&done));
    };
    run("unpack 7.sealift home/target --allow-unsigned");
    run("unpack 8.sealift home/target --allow-unsigned --update --delete");
    run("audit home/target --allow-unsigned --ignore privileged --path etc/motd");
    if is_root() {
        desk.assert_same("home/target", "tree");
    } else {
        skipped("needs root: reads what is closed");
    }

    run("unpack 7.sealift home/other --allow-unsigned");
    desk.leave_update("home/other", "home/target");
    run("unpack 8.sealift home/other --allow-unsigned --update --delete");
    if is_root() {
        desk.assert_same("home/other", "tree");
    } else {
        skipped("needs root: reads what is closed");
    }
}

#[test]
fn what_is_missing_is_made_again_without_deleting() {
    let desk = updatable();
    desk.write("target/mine", "stays\n");
    fs::remove_file(desk.path("target/etc/motd")).unwrap();
    let stats = desk.update(8, "target").unwrap();
    assert_eq!((stats.changed_files, stats.was_hashed), (1, false));
    fs::remove_file(desk.path("target/mine")).unwrap();
    fs::remove_dir_all(desk.path("target/lib")).unwrap();
    let stats = desk.update(8, "target").unwrap();
    assert_eq!((stats.changed_files, stats.was_hashed), (1, false));
    assert_eq!(fs::read(desk.path("target/lib/lib.so")).unwrap(), fs::read(desk.path("tree/lib/lib.so")).unwrap());
    let stats = desk.update(8, "target").unwrap();
    assert_eq!((stats.changed_files, stats.hashed_files), (0, 0), "now it is known again");
}

#[test]
fn what_stands_in_place_of_a_file_that_the_bundle_does_not_change_makes_way() {
    for (what, make) in stand_ins() {
        let desk = updatable();
        fs::remove_file(desk.path("target/etc/motd")).unwrap();
        make(&desk.path("target/etc/motd"));
        desk.update(8, "target").unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(fs::read(desk.path("target/etc/motd")).unwrap(), b"hello\n", "{what}");
    }
}

#[test]
fn a_part_of_a_bundle_is_looked_at_as_a_part() {
    let desk = updatable();
    for (part, other) in [("etc", "mine"), ("etc/motd", "etc/mine")] {
        let target = part.replace('/', "-");
        let options = |update| InstallOptions {
            tree: TreeOptions { prefix: part.into(), update, ..TreeOptions::default() },
            ..InstallOptions::default()
        };
        desk.take(7, &target, &options(false), &Progress::default()).unwrap();
        desk.write(&format!("{target}/{other}"), "stays\n");
        let changed = || desk.take(8, &target, &options(true), &Progress::default()).unwrap().changed_files;
        assert_eq!(changed(), 0, "{part}");
        fs::remove_file(desk.path(&target).join("etc/motd")).unwrap();
        assert_eq!(changed(), 1, "{part}");
        assert!(desk.path(&target).join("etc/motd").exists(), "{part}");
        assert!(desk.path(&target).join(other).exists(), "{part}");
    }
}

/// Replaces the content of a file, but keeps its size and time.
fn falsify(path: &Path) {
    let metadata = fs::metadata(path).unwrap();
    fs::write(path, vec![b'x'; usize::try_from(metadata.len()).unwrap()]).unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.set_modified(metadata.modified().unwrap()).unwrap();
}

#[test]
fn times_are_believed_only_where_that_is_asked_for() {
    for (keeps_state, rehash) in [(false, false), (true, true)] {
        for assume_mtime in [true, false] {
            let desk = updatable();
            falsify(&desk.path("target/etc/motd"));
            if !keeps_state {
                fs::remove_dir_all(desk.path(".target.sealift-state")).unwrap();
            }
            let adopt = !keeps_state;
            let tree = TreeOptions { update: true, assume_mtime, ..TreeOptions::default() };
            let options = InstallOptions { rehash, adopt, tree, ..InstallOptions::default() };
            let stats = desk.take(8, "target", &options, &Progress::default()).unwrap();
            assert!(stats.was_hashed);
            assert_eq!(stats.hashed_files, if assume_mtime { 1 } else { 3 });
            let motd = fs::read(desk.path("target/etc/motd")).unwrap();
            assert_eq!(motd, if assume_mtime { b"xxxxxx" } else { b"hello\n" });
            assert_eq!(fs::read(desk.path("target/etc/issue")).unwrap(), b"second\n");
        }
    }
}

#[test]
fn what_another_user_owns_is_found_before_anything_is_changed() {
    if !is_root() {
        return skipped("needs root: gives files away");
    }
    // A directory that gets a new file, one whose time changes, a file whose time changes.
    for name in ["etc", "lib", "etc/motd"] {
        let desk = Installed::new();
        desk.make_home();
        desk.pack(7);
        let update = "unpack 8.sealift home/target --allow-unsigned --update --delete";
        let done = desk.run_as_user("unpack 7.sealift home/target --allow-unsigned");
        assert!(done.status.success(), "{}", said(&done));
        desk.write("tree/etc/issue", "second\n");
        for file in ["lib", "etc/motd"] {
            let touched = Command::new("touch").args(["-d", "2001-02-03"]).arg(desk.path("tree").join(file)).status();
            assert!(touched.unwrap().success());
        }
        desk.pack(8);
        chown(desk.path("home/target").join(name), Some(0), None).unwrap();
        for line in [update, &format!("{update} --dry-run")] {
            let done = desk.run_as_user(line);
            let text = said(&done);
            assert_eq!(done.status.code(), Some(2), "{name}: {text}");
            assert!(text.contains(&format!("target/{name} belongs to user 0")), "{name}: {text}");
            assert!(!text.contains("partly updated"), "{name}: {text}");
            assert_eq!(fs::read(desk.path("home/target/etc/issue")).unwrap(), b"first\n", "{name}");
            assert!(!desk.path("home/.target.sealift-partial").exists(), "{name}");
        }
        chown(desk.path("home/target").join(name), Some(65534), None).unwrap();
        let done = desk.run_as_user(update);
        assert!(done.status.success(), "{name}: {}", said(&done));
    }
}

#[test]
fn cleaning_gives_up_an_update_that_cannot_be_completed() {
    if !is_root() {
        return skipped("needs root: attributes of chattr(1)");
    }
    // Nothing was moved yet, or something was.
    for (fixed, code, end) in [("etc", 0, "discarded an unfinished run"), ("lib", 1, "target has files of two bundles")]
    {
        let desk = Installed::new();
        desk.install(7, "target");
        desk.write("tree/etc/issue", "second\n");
        desk.write("tree/lib/lib.so", "another");
        desk.install(8, "whole");
        desk.leave_update("target", "whole");
        // It deletes nothing, so that nothing is looked at beforehand.
        let journal = desk.path(".target.sealift-partial/journal");
        fs::write(&journal, fs::read_to_string(&journal).unwrap().replace("delete", "keep")).unwrap();
        let before = fs::read(desk.path("target/etc/issue")).unwrap();
        let chattr = |sign| Command::new("chattr").arg(sign).arg(desk.path("target").join(fixed)).status().unwrap();
        if !chattr("+i").success() {
            return skipped("needs a folder for temporary files whose file system has attributes of chattr(1)");
        }
        let stuck = desk.command("unpack 8.sealift target --allow-unsigned --update").output().unwrap();
        let done = desk.command("clean target").output().unwrap();
        chattr("-i");
        assert_eq!(stuck.status.code(), Some(2), "{}", said(&stuck));
        assert!(said(&stuck).contains("sealift clean target"), "{}", said(&stuck));
        assert_eq!(done.status.code(), Some(code), "{fixed}: {}", said(&done));
        assert!(said(&done).contains(end), "{fixed}: {}", said(&done));
        assert!(!desk.path(".target.sealift-partial").exists());
        assert_eq!(fs::read(desk.path("target/etc/issue")).unwrap() == before, code == 0, "{fixed}");
        desk.refused("audit target --allow-unsigned", code, "");
        desk.replace(8, "target").unwrap();
        desk.assert_same("target", "tree");
    }
}

/// The administrator changed a file while an interrupted update waited to be finished: its time stays that of the change.
#[test]
fn what_finishes_an_update_leaves_the_time_of_what_was_changed_since() {
    let desk = Installed::new();
    desk.install(7, "target");
    desk.write("tree/etc/motd", "hello again\n");
    desk.install(8, "whole");
    desk.leave_update("target", "whole");
    desk.write("target/etc/issue", "changed by hand\n");
    let time = |name: &str| fs::metadata(desk.path(name)).unwrap().modified().unwrap();
    let before = time("target/etc/issue");
    desk.good("clean target");
    assert_eq!(time("target/etc/issue"), before);
    assert_eq!(time("target/etc/motd"), time("whole/etc/motd"));
}
