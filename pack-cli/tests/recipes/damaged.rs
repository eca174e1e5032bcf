//! Bundles with recipes that are damaged, or are killed while they are unpacked.

use std::time::Duration;

use sealift_desk::kill_after;

use crate::desk::{Images, POLICY};

#[test]
fn damage_anywhere_is_found() {
    let Some(images) = Images::new() else { return };
    let whole = images.read("1.sealift");
    for place in (0..40).map(|part| part * (whole.len() / 40) + 17) {
        let mut bytes = whole.clone();
        bytes[place] ^= 4;
        images.write("bad.sealift", &bytes);
        let policy = "--trust signers --state state";
        for line in ["verify --deep bad.sealift", "unpack bad.sealift out", "cat bad.sealift os.squashfs"] {
            let (status, said) = images.run(&format!("{line} {policy}"));
            assert!(matches!(status, Some(1 | 3)), "byte {place}, {line}: {status:?} {said}");
        }
        assert!(!images.path("out").exists(), "byte {place}");
    }
}

#[test]
fn a_killed_run_is_finished_by_the_next() {
    let Some(images) = Images::new() else { return };
    for tenths in 1..12 {
        let line = format!("unpack 1.sealift tree {POLICY}");
        kill_after(Duration::from_millis(tenths * 20), &mut images.command(&line));
        let again =
            if images.path("tree").exists() { "unpack 1.sealift tree --update" } else { "unpack 1.sealift tree" };
        images.does(again);
        images.has_image("tree/os.squashfs", 1);
        images.does("audit tree");
        std::fs::remove_dir_all(images.path("tree")).unwrap();
        images.run(&format!("clean tree {POLICY}"));
        images.run("trust reset os --state state");
    }
}
