//! What nbdkit does not serve, with the reason.

use crate::desk::{Desk, has, noise};

#[test]
fn a_bundle_is_judged_before_it_is_served() {
    if !has(&["nbdkit", "nbdinfo"]) {
        return;
    }
    let desk = Desk::new();
    desk.write("disk.img", noise(1, 10_000));
    desk.pack("disk.img", "os.sealift");
    desk.refused(&["os.sealift", "trust=nobody"], "os.sealift: \"os\" needs the signature of 1 trusted key and has 0");
    desk.refused(&["os.sealift", "trust=none"], "none: ");
    desk.refused(
        &["os.sealift", "trust=signers", "threshold=2"],
        "os.sealift: \"os\" needs the signature of 2 trusted keys and has 1",
    );
    desk.refused(&["os.sealift", "trust=signers", "revoked=release.pub"], "is revoked");
    let waived = ["os.sealift", "trust=nobody", "allow-unsigned=true"];
    let size = "nbdinfo --size \"$uri\"";
    let done = desk.nbdkit(&["--unix", "-", "--run", size], &waived).output().unwrap();
    let said = crate::desk::said(&done);
    assert!(done.status.success() && said.contains("warning: os.sealift: UNSIGNED: "), "{said}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "10000\n");
}

#[test]
fn what_cannot_be_served_is_told() {
    if !has(&["nbdkit"]) {
        return;
    }
    let desk = Desk::new();
    desk.write("tree/a", "a");
    desk.write("tree/b", "b");
    desk.write("tree/c", "a");
    desk.pack("tree", "os.sealift");
    let served = |more: &'static str| ["os.sealift", "trust=signers", more];
    desk.refused(&["trust=signers"], "give the bundle");
    desk.refused(&["none.sealift", "trust=signers"], "none.sealift: ");
    desk.refused(&["tree/a", "trust=signers"], "a: ");
    desk.refused(&["os.sealift", "trust=signers"], "the bundle has 2 different files: choose one, as in path=main:a");
    desk.refused(&served("path=d"), "os.sealift: the bundle has no file d");
    desk.refused(&served("path=/"), "os.sealift: / is not a regular file");
    desk.refused(&served("chunks=3"), "unknown parameter chunks");
    desk.refused(&served("jobs=0"), "jobs: give a number from 1 to 1024");
    desk.refused(&served("cache=much"), "cache: give a size");
    desk.refused(&served("allow-unsigned=perhaps"), "allow-unsigned: give true or false");
    desk.refused(&served("time=later"), "time: ");
    desk.refused(&["os.sealift", "os.sealift", "path=a", "trust=signers"], "is a full bundle, which has no base");
}
