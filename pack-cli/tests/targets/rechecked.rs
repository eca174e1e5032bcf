//! A target is compared with its record by size, times and inode numbers, and repaired.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

use sealift::Progress;
use sealift::unpack::UnpackStats;
use sealift::{InstallOptions, TreeOptions};
use sealift_desk::{as_root, noise};

use crate::installed::Installed;

/// A change to a target, and its description.
type Tampering = (&'static str, fn(&Installed));

/// Creates a target with all kinds of entries, as in its bundle.
fn installed() -> Installed {
    let desk = Installed::new();
    fs::create_dir_all(desk.path("tree/usr/bin")).unwrap();
    desk.write("tree/usr/bin/tool", noise(5, 3_000));
    desk.set_mode("tree/usr/bin/tool", 0o755);
    symlink("tool", desk.path("tree/usr/bin/alias")).unwrap();
    fs::hard_link(desk.path("tree/usr/bin/tool"), desk.path("tree/usr/bin/other")).unwrap();
    desk.write("tree/large", noise(6, 3_000_000));
    desk.install(7, "target");
    desk
}

fn update(desk: &Installed, options: &InstallOptions) -> UnpackStats {
    let options = InstallOptions { tree: TreeOptions { update: true, ..options.tree.clone() }, ..options.clone() };
    desk.take(7, "target", &options, &Progress::default()).unwrap()
}

/// Checks the message of an update that has nothing to do.
fn assert_clean(desk: &Installed) {
    let stats = update(desk, &InstallOptions::default());
    assert!(stats.was_complete);
    assert_eq!((stats.files, stats.hashed_files, stats.changed_files, stats.checked_files), (0, 0, 0, 7));
}

/// Runs `change`, and restores the modification time of the file.
fn without_a_trace(desk: &Installed, name: &str, change: impl FnOnce()) {
    let modified = fs::metadata(desk.path(name)).unwrap().modified().unwrap();
    change();
    fs::File::open(desk.path(name)).unwrap().set_modified(modified).unwrap();
}

#[test]
fn what_is_complete_is_looked_at_and_not_read() {
    let desk = installed();
    assert_clean(&desk);
    // Unpacking again without --update does the same.
    let done = desk.good("unpack 7.sealift target --allow-unsigned");
    let said = done;
    assert!(said.contains("target: already unpacked"), "{said}");
    assert!(said.contains("checked 7 files by size and time\n"), "{said}");
}

#[test]
fn what_was_just_made_is_not_read() {
    for hardlink_duplicates in [false, true] {
        let desk = installed();
        // Files with equal content and metadata, one small and one large.
        for name in ["etc/motd", "large"] {
            let (from, to) = (desk.path("tree").join(name), desk.path("tree").join(format!("{name}-2")));
            fs::copy(&from, &to).unwrap();
            let modified = fs::metadata(&from).unwrap().modified().unwrap();
            fs::File::open(&to).unwrap().set_modified(modified).unwrap();
        }
        desk.write("tree/empty", "");
        desk.set_mode("tree/large-2", 0o4511);
        desk.set_mode("tree/large", 0o4511);
        desk.pack(8);
        let tree = TreeOptions { hardlink_duplicates, ..TreeOptions::default() };
        let options = InstallOptions { tree, ..InstallOptions::default() };
        for (to, is_new) in [("new", true), ("target", false)] {
            let first = match is_new {
                true => desk.take(8, to, &options, &Progress::default()).unwrap(),
                false => desk.update(8, to).unwrap(),
            };
            assert!(first.files > 0, "{to}: {first:?}");
            // The record is written again only if some file, directory or link had to be compared more closely.
            let record = || fs::read(desk.path(&format!(".{to}.sealift-state/stats"))).unwrap();
            let recorded = record();
            let stats = desk.update(8, to).unwrap();
            assert!(stats.was_complete, "{to}: {stats:?}");
            assert_eq!((stats.hashed_files, stats.checked_files), (0, 10), "{to}, {hardlink_duplicates}");
            assert!(record() == recorded, "{to}, {hardlink_duplicates}");
        }
        let links = || fs::metadata(desk.path("new/etc/motd")).unwrap().nlink();
        assert_eq!(links(), if hardlink_duplicates { 2 } else { 1 });
        // A file that stays loses its other name.
        desk.write("tree/etc/motd-2", "changed\n");
        desk.pack(9);
        assert_eq!(desk.update(9, "new").unwrap().files, 1);
        assert_eq!(links(), 1);
        assert_eq!(desk.update(9, "new").unwrap().hashed_files, 0, "{hardlink_duplicates}");
    }
}

#[test]
fn what_came_into_a_directory_is_found_when_a_file_in_it_is_replaced() {
    for has_come in [false, true] {
        let desk = installed();
        desk.write("tree/etc/motd", "second\n");
        desk.write("tree/etc/new", "new\n");
        fs::remove_file(desk.path("tree/lib/lib.so")).unwrap();
        fs::create_dir(desk.path("tree/lib/lib.so")).unwrap();
        desk.write("tree/lib/lib.so/inside", "inside\n");
        desk.pack(8);
        if has_come {
            without_a_trace(&desk, "target/etc", || desk.write("target/etc/came", "came\n"));
        }
        let dry = desk.dry_replace(8, "target").unwrap();
        let stats = desk.replace(8, "target").unwrap();
        assert_eq!((stats.files, stats.replaced.files, stats.deleted.files), (3, 2, u64::from(has_come)), "{stats:?}");
        assert_eq!((dry.replaced, dry.deleted), (stats.replaced, stats.deleted));
        desk.assert_same("target", "tree");
    }
}

#[test]
fn what_lies_beside_a_deep_directory_is_found_on_the_way_back() {
    const DEPTH: usize = 30;
    let desk = Installed::new();
    // On the way back from the deepest directory: one level at a time, and then many at once.
    let levels: Vec<String> = (0..DEPTH).map(|level| format!("tree/deep{}", "/d".repeat(level))).collect();
    for level in &levels {
        fs::create_dir_all(desk.path(level).join("e")).unwrap();
        desk.write(&format!("{level}/e/file"), "first\n");
    }
    fs::create_dir_all(desk.path("tree/far").join("d/".repeat(DEPTH))).unwrap();
    fs::create_dir(desk.path("tree/last")).unwrap();
    desk.write("tree/last/file", "first\n");
    desk.install(7, "target");
    for level in &levels {
        desk.write(&format!("{level}/e/file"), "second\n");
    }
    desk.write("tree/last/file", "second\n");
    desk.pack(8);
    let stats = desk.update(8, "target").unwrap();
    assert_eq!((stats.files, stats.hashed_files, stats.changed_files), (31, 0, 0));
    desk.assert_same("target", "tree");
    let stats = desk.update(8, "target").unwrap();
    assert!(stats.was_complete && stats.hashed_files == 0, "{stats:?}");
}

#[test]
fn each_change_is_found_and_repaired() {
    let changes: [Tampering; 9] = [
        ("content of the same size and time", |desk| {
            without_a_trace(desk, "target/etc/motd", || desk.write("target/etc/motd", "jello\n"));
        }),
        ("another file of the same time in its place", |desk| {
            without_a_trace(desk, "target/etc/motd", || {
                fs::rename(desk.path("target/etc/issue"), desk.path("target/etc/motd")).unwrap();
            });
        }),
        ("a file that is missing", |desk| fs::remove_file(desk.path("target/etc/motd")).unwrap()),
        ("a mode", |desk| desk.set_mode("target/lib/lib.so", 0o4755)),
        ("a directory's mode", |desk| desk.set_mode("target/lib", 0o777)),
        ("a link that leads elsewhere", |desk| {
            fs::remove_file(desk.path("target/usr/bin/alias")).unwrap();
            symlink("/bin/sh", desk.path("target/usr/bin/alias")).unwrap();
        }),
        ("a link in the place of a file", |desk| {
            fs::remove_file(desk.path("target/large")).unwrap();
            symlink("lib/lib.so", desk.path("target/large")).unwrap();
        }),
        ("a hard link that is a file of its own", |desk| {
            fs::remove_file(desk.path("target/usr/bin/other")).unwrap();
            fs::copy(desk.path("target/usr/bin/tool"), desk.path("target/usr/bin/other")).unwrap();
        }),
        ("a directory that is missing", |desk| fs::remove_dir_all(desk.path("target/usr")).unwrap()),
    ];
    for (what, change) in changes {
        let desk = installed();
        change(&desk);
        let dry = update(&desk, &InstallOptions { dry_run: true, ..InstallOptions::default() });
        let stats = update(&desk, &InstallOptions::default());
        assert!(!stats.was_complete && !stats.was_hashed, "{what}: {stats:?}");
        assert_eq!((dry.files, dry.changed_files), (stats.files, stats.changed_files), "{what}");
        desk.assert_same("target", "tree");
        let (a, b) = ("target/usr/bin/tool", "target/usr/bin/other");
        assert_eq!(fs::metadata(desk.path(a)).unwrap().ino(), fs::metadata(desk.path(b)).unwrap().ino(), "{what}");
        assert_clean(&desk);

        // The command that created the target does the same.
        change(&desk);
        desk.good("unpack 7.sealift target --allow-unsigned");
        desk.assert_same("target", "tree");
        assert_clean(&desk);
    }
}

#[test]
fn what_was_only_touched_is_read_once() {
    let desk = installed();
    without_a_trace(&desk, "target/large", || desk.set_mode("target/large", 0o600));
    let mode = fs::metadata(desk.path("tree/large")).unwrap().permissions().mode();
    desk.set_mode("target/large", mode);
    let stats = update(&desk, &InstallOptions::default());
    assert!(stats.was_complete);
    assert_eq!((stats.hashed_files, stats.changed_files, stats.files), (1, 0, 0));
    assert_clean(&desk);

    // A file in which only the time differs gets it back.
    fs::File::open(desk.path("target/large")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    let stats = update(&desk, &InstallOptions::default());
    assert_eq!((stats.hashed_files, stats.changed_files, stats.files, stats.metadata_files), (1, 1, 0, 1));
    desk.assert_same("target", "tree");
    assert_clean(&desk);
}

#[test]
fn owners_and_attributes_are_repaired_on_new_files() {
    let Some(desk) = as_root("gives files away", installed) else { return };
    let before = fs::metadata(desk.path("target/large")).unwrap();
    chown(desk.path("target/large"), Some(1000), Some(1000)).unwrap();
    let stats = update(&desk, &InstallOptions::default());
    assert_eq!((stats.files, stats.copied_files, stats.changed_files), (1, 1, 1));
    let after = fs::metadata(desk.path("target/large")).unwrap();
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_ne!(after.ino(), before.ino());
    assert_clean(&desk);
    rustix::fs::lsetxattr(desk.path("target/large"), "user.mine", b"x", rustix::fs::XattrFlags::empty()).unwrap();
    assert_eq!(update(&desk, &InstallOptions::default()).files, 1);
    assert_clean(&desk);
}

#[test]
fn a_record_without_stats_or_with_damaged_ones_is_read() {
    let stats_of = |desk: &Installed| desk.path(".target.sealift-state/stats");
    for damage in [
        |path: &std::path::Path| fs::remove_file(path).unwrap(),
        |path: &std::path::Path| fs::write(path, "").unwrap(),
        |path: &std::path::Path| {
            let mut bytes = fs::read(path).unwrap();
            bytes[100] ^= 1;
            fs::write(path, bytes).unwrap();
        },
    ] {
        let desk = installed();
        damage(&stats_of(&desk));
        desk.write("target/etc/motd", "edited\n");
        desk.says("unpack 7.sealift target --update --allow-unsigned", "no usable install record: hashed all");
        desk.assert_same("target", "tree");
        assert_clean(&desk);
        damage(&stats_of(&desk));
        let stats = update(&desk, &InstallOptions::default());
        assert!(stats.was_complete && stats.was_hashed);
        assert_clean(&desk);
    }
}

#[test]
fn a_record_that_is_trusted_is_not_compared() {
    let desk = installed();
    desk.write("target/etc/motd", "edited\n");
    let trusting = InstallOptions { no_check: true, ..InstallOptions::default() };
    let stats = update(&desk, &trusting);
    assert_eq!((stats.checked_files, stats.hashed_files, stats.changed_files), (0, 0, 0));
    assert_eq!(fs::read(desk.path("target/etc/motd")).unwrap(), b"edited\n");
    let line = "unpack 7.sealift target --update --allow-unsigned --no-check";
    desk.says(line, "existing files were not checked (--no-check)");
    // An update to another bundle does not make it known as a side effect.
    desk.write("tree/etc/issue", "second\n");
    desk.pack(8);
    desk.take(
        8,
        "target",
        &InstallOptions { tree: TreeOptions { update: true, ..trusting.tree }, ..trusting },
        &Progress::default(),
    )
    .unwrap();
    assert_eq!(fs::read(desk.path("target/etc/motd")).unwrap(), b"edited\n");
    let stats = desk.update(8, "target").unwrap();
    assert_eq!((stats.hashed_files, stats.changed_files), (0, 1), "its size tells");
    desk.assert_same("target", "tree");
}

#[test]
fn all_is_read_where_that_is_asked_for() {
    let desk = installed();
    let stats = update(&desk, &InstallOptions { rehash: true, ..InstallOptions::default() });
    assert!(stats.was_hashed && stats.hashed_files == 5, "{stats:?}");
    assert_clean(&desk);
}

#[test]
fn an_update_repairs_what_it_does_not_change() {
    let desk = installed();
    desk.write("tree/etc/issue", "second\n");
    desk.pack(8);
    without_a_trace(&desk, "target/etc/motd", || desk.write("target/etc/motd", "jello\n"));
    let stats = desk.update(8, "target").unwrap();
    assert_eq!((stats.files, stats.changed_files, stats.kept_files), (2, 1, 3));
    desk.assert_same("target", "tree");
    let stats = desk.update(8, "target").unwrap();
    assert_eq!((stats.hashed_files, stats.changed_files), (0, 0));
}

#[test]
fn names_elsewhere_keep_what_they_have() {
    let desk = installed();
    // A copy by hard links, as some backups make it.
    fs::hard_link(desk.path("target/large"), desk.path("backup")).unwrap();
    let was = fs::metadata(desk.path("backup")).unwrap();
    fs::File::open(desk.path("tree/large")).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
    desk.pack(8);
    desk.update(8, "target").unwrap();
    desk.assert_same("target", "tree");
    let is = fs::metadata(desk.path("backup")).unwrap();
    assert_eq!((is.ino(), is.mtime()), (was.ino(), was.mtime()));
}

#[test]
fn names_that_are_not_the_bundles_are_removed_whenever_they_came() {
    let desk = Installed::new();
    fs::create_dir_all(desk.path("tree/usr/share")).unwrap();
    desk.write("tree/usr/share/old", "old\n");
    desk.write("tree/usr/share/stays", "stays\n");
    desk.pack(1);
    fs::remove_file(desk.path("tree/usr/share/old")).unwrap();
    let clock = fs::metadata(desk.path("tree/lib")).unwrap().modified().unwrap();
    fs::File::open(desk.path("tree/usr/share")).unwrap().set_modified(clock).unwrap();
    desk.pack(2);
    desk.unpack(1, "target");

    // A name that the new bundle lacks, in a directory that did not change.
    assert_eq!(desk.replace(2, "target").unwrap().deleted.files, 1);
    desk.assert_same("target", "tree");

    // A name that was added, with no trace but a change time.
    without_a_trace(&desk, "target/usr/share", || desk.write("target/usr/share/came", "came\n"));
    assert_eq!(desk.replace(2, "target").unwrap().deleted.files, 1);
    desk.assert_same("target", "tree");

    // A name that was added, and that an update without --delete kept.
    desk.write("target/etc/came", "came\n");
    assert_eq!(desk.update(2, "target").unwrap().deleted.files, 0);
    assert_eq!(desk.update(2, "target").unwrap().deleted.files, 0);
    assert_eq!(desk.replace(2, "target").unwrap().deleted.files, 1);
    desk.assert_same("target", "tree");
    assert!(desk.replace(2, "target").unwrap().was_complete);
}
