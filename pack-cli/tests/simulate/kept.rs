//! An order is kept: each version is packed by the order of the previous one.

use std::fs;

use sealift_desk::{Desk, noise};

use crate::scattered::orders;

const FILES: u64 = 3000;
/// One file in ten is read first.
const EVERY: u64 = 10;
const UPDATES: u64 = 10;

fn name(file: u64) -> String {
    format!("dir{:02}/file{file:04}", file % 37)
}

fn write(desk: &Desk, file: u64, version: u64) {
    let len = 2_000 + usize::try_from(file * 7919 % 8_000).unwrap();
    desk.write(&format!("tree/{}", name(file)), noise(file << 8 | version, len));
}

/// Returns the files that change in a version: one in twenty, both of those that are read first and of the others.
fn changed(version: u64) -> impl Iterator<Item = u64> {
    let chance = move |file: u64| blake3::hash(&[file.to_le_bytes(), version.to_le_bytes()].concat()).as_bytes()[0];
    (0..FILES).filter(move |file| chance(*file) < 13)
}

#[test]
fn after_ten_updates_a_start_takes_as_long_as_from_a_fresh_layout() {
    let desk = Desk::new();
    (0..FILES).for_each(|file| write(&desk, file, 0));
    let mut hot: Vec<u64> = (0..FILES).step_by(usize::try_from(EVERY).unwrap()).collect();
    hot.sort_by_key(|file| blake3::hash(&file.to_le_bytes()).to_hex());
    let lines: Vec<String> = hot.iter().map(|file| name(*file)).collect();
    desk.write("profile", lines.join("\n"));
    let pack = |version: u64, bundle: &str, options: &str| {
        desk.good(&format!("pack tree -o {bundle} --name os --bundle-version {version} --owner 0:0 {options}"));
    };
    let taken = "--allow-unsigned --state state";
    pack(1, "1.sealift", "--chunk-size 128KiB --order profile");
    desk.good(&format!("unpack 1.sealift target {taken}"));
    for version in 2..=UPDATES + 1 {
        let before = format!("{}.sealift", version - 1);
        assert!(changed(version).any(|file| file % EVERY == 0) && changed(version).any(|file| file % EVERY > 0));
        changed(version).for_each(|file| write(&desk, file, version));
        pack(version, "delta.sealift", &format!("--base {before} --allow-unsigned --force"));
        pack(version, &format!("{version}.sealift"), &format!("--chunk-size 128KiB --order-from {before}"));
        desk.good(&format!("unpack delta.sealift target --update {taken}"));
    }
    let last = UPDATES + 1;
    desk.good(&format!("audit target {last}.sealift --ignore owner,mtime {taken}"));
    pack(last, "fresh.sealift", "--chunk-size 128KiB --order profile");
    // Without the order, for comparison.
    pack(last, "lost.sealift", "--chunk-size 128KiB");
    for device in ["dvd", "hdd"] {
        let [kept, fresh, lost] = [format!("{last}"), "fresh".to_owned(), "lost".to_owned()].map(|bundle| {
            let [own, ..] = orders(&desk, &format!("{bundle}.sealift --profile profile --device {device}"));
            own
        });
        assert!(kept.seconds <= fresh.seconds * 1.5, "{device}: {} {}", kept.seconds, fresh.seconds);
        assert!(kept.seeks <= fresh.seeks + 2, "{device}: {} {}", kept.seeks, fresh.seeks);
        assert!(lost.seconds > fresh.seconds * 2.0, "{device}: {} {}", lost.seconds, fresh.seconds);
    }
    assert_eq!(fs::read(desk.path("fresh.sealift")).unwrap().len(), fs::read(desk.path("11.sealift")).unwrap().len());
}
