//! A run continues if there is just enough space for what it still lacks.

use std::fs;

use sealift::unpack::unpack;
use sealift::{Error, Input, Progress};
use sealift::{InstallOptions, TreeOptions};
use sealift_desk::{Mounted, as_root, is_root, noise, skipped};

use crate::installed::{Installed, anyones};

/// Creates version 7, which is small, and version 8, which has 41 MB more, in many files or in one.
fn growing(files: u64) -> Installed {
    let desk = Installed::new();
    desk.pack(7);
    for file in 0..files {
        desk.write(&format!("tree/{file}"), noise(file, 41_000_000 / usize::try_from(files).unwrap()));
    }
    desk.pack(8);
    desk
}

/// Unpacks a part of version 8, behind which its bundle is cut.
fn interrupt(desk: &Installed, options: &InstallOptions) {
    let cut = desk.read("8.sealift")[..30_000_000].to_vec();
    let input = anyones(Input::pipe("pipe", Box::new(std::io::Cursor::new(cut)))).unwrap();
    unpack(input, &desk.path("small/target"), options, &Progress::default()).expect_err("the bundle is cut");
}

#[test]
fn what_is_there_already_needs_no_room() {
    if !is_root() {
        return skipped("needs root: a small file system");
    }
    for (files, update) in [(40, false), (1, false), (40, true), (1, true)] {
        let desk = growing(files);
        let _small = Mounted::new(desk.path("small"), "tmpfs", "size=60m");
        if update {
            desk.unpack(7, "small/target");
        }
        let tree = TreeOptions { update, ..TreeOptions::default() };
        let options = InstallOptions { jobs: 1, tree, ..InstallOptions::default() };
        interrupt(&desk, &options);
        desk.take(8, "small/target", &options, &Progress::default())
            .unwrap_or_else(|error| panic!("{files} files, update {update}: {error}"));
        desk.assert_same("small/target", "tree");
    }
}

#[test]
fn too_little_room_leaves_what_was_made_before() {
    let Some(desk) = as_root("a small file system", || growing(40)) else { return };
    let _small = Mounted::new(desk.path("small"), "tmpfs", "size=60m");
    interrupt(&desk, &InstallOptions::default());
    desk.write("small/other", vec![1; 25_000_000]);
    let error = desk.take(8, "small/target", &InstallOptions::default(), &Progress::default());
    assert!(matches!(error, Err(Error::NoSpace { .. })), "{error:?}");
    fs::remove_file(desk.path("small/other")).unwrap();
    let stats = desk.take(8, "small/target", &InstallOptions::default(), &Progress::default()).unwrap();
    assert!(stats.resumed_files > 0);
}

/// A file system without blocks has no limit: neither for the target nor for the state.
#[test]
fn a_file_system_without_blocks_is_not_full() {
    let Some(desk) = as_root("a small file system", crate::versions::signed) else { return };
    let _small = Mounted::new(desk.path("small"), "ramfs", "");
    for more in ["", " --update"] {
        let bundle = if more.is_empty() { 1 } else { 2 };
        let line = format!("unpack {bundle}.sealift small/target --trust signers --state small/state{more}");
        for more in [" --dry-run", ""] {
            desk.good(&format!("{line}{more}"));
        }
    }
}

/// What an interrupted run left counts in a dry run as it does in the run.
#[test]
fn a_dry_run_and_the_run_agree() {
    let Some(desk) = as_root("a small file system", || growing(40)) else { return };
    let _small = Mounted::new(desk.path("small"), "tmpfs", "size=60m");
    interrupt(&desk, &InstallOptions::default());
    let line = "unpack 8.sealift small/target --allow-unsigned";
    for (other, status) in [(Some(25_000_000), 2), (None, 0)] {
        match other {
            Some(len) => desk.write("small/other", vec![1; len]),
            None => fs::remove_file(desk.path("small/other")).unwrap(),
        }
        for more in [" --dry-run", ""] {
            let (ended, said) = desk.run(&format!("{line}{more}"));
            assert_eq!(ended, Some(status), "{more}: {said}");
            assert_eq!(said.contains("not enough disk space at"), status == 2, "{said}");
        }
    }
}
