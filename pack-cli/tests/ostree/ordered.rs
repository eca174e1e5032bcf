//! An order of access in bundles of commits: the pieces of their files stay in order.

use std::fs;
use std::process::Command;

use sealift::{Input, Limits};
use sealift_desk::{noise, text};

use crate::repos::{Repos, write};

const ROOT: &[&str] = &["--owner-uid=0", "--owner-gid=0"];
const SMALL: &str = "--chunk-size 64KiB --delta-memory 256KiB";

/// Creates a commit with a file of eight pieces, of which the profile names the third, and another file.
fn ordered() -> (Repos, Vec<u8>) {
    let desk = Repos::new();
    desk.init("source", "archive");
    fs::create_dir(desk.path("tree")).expect("a new folder");
    let content = noise(1, 500_000);
    write(&desk.path("tree/large"), 0o644, &content);
    write(&desk.path("tree/small"), 0o644, b"small");
    write(&desk.path("tree/unread"), 0o644, &noise(2, 70_000));
    fs::write(desk.path("order"), "# sealift order 1\nsmall\nlarge\t150000-150001\n").expect("there is room");
    desk.commit("source", "os", "./tree", ROOT);
    desk.run(&format!("pack ostree:source -o 1.sealift --name os --bundle-version 1 --order order {SMALL}"));
    (desk, content)
}

/// In a commit, everything before a range of a file is stored before it: OSTree hashes the file from its start.
#[test]
fn a_file_is_early_from_its_start_to_the_last_range() {
    let (desk, _) = ordered();
    assert_eq!(desk.run("order export 1.sealift"), "# sealift order 1\nsmall\nlarge\t0-196607\n");
    let bundle =
        Input::open(&desk.path("1.sealift")).expect("it is there").open_bundle(Limits::default()).expect("it is sound");
    let chunks: Vec<_> = bundle.layout.pieces.iter().filter_map(|piece| piece.chunk).collect();
    assert!(chunks.is_sorted(), "{chunks:?}");
    desk.run("verify 1.sealift --deep --allow-unsigned");
    desk.init_with("target", "archive", "1.sealift");
    desk.fsck("target");
}

#[test]
fn a_delta_keeps_the_order_too() {
    let (desk, mut content) = ordered();
    content.iter_mut().step_by(60_000).for_each(|byte| *byte ^= 1);
    write(&desk.path("tree/large"), 0o644, &content);
    write(&desk.path("tree/unread"), 0o644, &noise(3, 70_000));
    desk.commit("source", "os", "./tree", ROOT);
    desk.init_with("target", "archive", "1.sealift");
    let said = desk.run(&format!(
        "pack ostree:source -o d.sealift --name os --bundle-version 2 --base 1.sealift --allow-unsigned {SMALL}"
    ));
    assert!(said.contains("found 2 of 2 paths in the order of the base"), "{said}");
    desk.import("d.sealift", "target");
    desk.fsck("target");
    // From then on, the repository has the order.
    let kept = "# sealift order 1\nsmall\nlarge\t0-196607\n";
    assert_eq!(desk.run("order export ostree:target"), kept);
    let said = desk.run(&format!("pack ostree:source -o 2.sealift --name os --order-from ostree:target {SMALL}"));
    assert!(said.contains("found 2 of 2 paths in the order of ostree:target"), "{said}");
    assert_eq!(desk.run("order export 2.sealift"), kept);
    // In addition, the order of another bundle; positions are by path, as in a merged profile.
    fs::write(desk.path("order"), "unread\nsmall\n").expect("there is room");
    desk.commit("source", "app", "./tree", ROOT);
    desk.run("pack ostree:source --ref app -o app.sealift --name app --order order");
    desk.import("app.sealift", "target");
    assert_eq!(desk.run("order export ostree:target"), "# sealift order 1\nunread\nsmall\nlarge\t0-196607\n");
    for (target, why) in [("source", "has no order"), ("nowhere", "no such directory"), ("tree", "repository")] {
        let said = desk.refused(&format!("order export ostree:{target}"));
        assert!(said.contains(why) && !said.contains("ostree init"), "{said}");
    }
}

#[test]
fn a_tree_whose_pieces_lie_apart_becomes_an_archive() {
    let (desk, content) = ordered();
    desk.run(&format!("pack tree -o t.sealift --name t --order order --zone end {SMALL}"));
    assert_eq!(desk.run("order export t.sealift"), "# sealift order 1\nsmall\nlarge\t131072-196607\n");
    desk.run("unpack t.sealift tar:t.tar --allow-unsigned");
    let large =
        Command::new("tar").args(["-xOf", "t.tar", "./large"]).current_dir(desk.path("")).output().expect("it runs");
    assert!(large.stdout == content, "{}", text(&large.stderr));
    let said = desk.refused("pack ostree:source -o e.sealift --order order --zone end");
    assert!(said.contains("OSTree commits"), "{said}");
}
