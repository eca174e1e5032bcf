//! What nbdkit does not serve, with the reason.

use sealift_desk::{has, noise, said};

use crate::served::{desk, nbdkit, pack, refused};

#[test]
fn a_bundle_is_judged_before_it_is_served() {
    let Some(desk) = has(&["nbdkit", "nbdinfo"]).then(desk) else { return };
    desk.write("disk.img", noise(1, 10_000));
    pack(&desk, "disk.img", "os.sealift");
    refused(
        &desk,
        &["os.sealift", "trust=nobody"],
        "os.sealift: \"os\" needs the signature of 1 trusted key and has 0",
    );
    refused(&desk, &["os.sealift", "trust=none"], "none: ");
    refused(
        &desk,
        &["os.sealift", "trust=signers", "threshold=2"],
        "os.sealift: \"os\" needs the signature of 2 trusted keys and has 1",
    );
    refused(&desk, &["os.sealift", "trust=signers", "revoked=release.pub"], "is revoked");
    let waived = ["os.sealift", "trust=nobody", "allow-unsigned=true"];
    let size = "nbdinfo --size \"$uri\"";
    let done = nbdkit(&desk, &["--unix", "-", "--run", size], &waived).output().unwrap();
    let said = said(&done);
    assert!(done.status.success() && said.contains("warning: os.sealift: UNSIGNED: "), "{said}");
    assert_eq!(String::from_utf8_lossy(&done.stdout), "10000\n");
}

#[test]
fn what_cannot_be_served_is_told() {
    let Some(desk) = has(&["nbdkit"]).then(desk) else { return };
    desk.write("tree/a", "a");
    desk.write("tree/b", "b");
    desk.write("tree/c", "a");
    pack(&desk, "tree", "os.sealift");
    let served = |more: &'static str| ["os.sealift", "trust=signers", more];
    refused(&desk, &["trust=signers"], "give the bundle");
    refused(&desk, &["none.sealift", "trust=signers"], "none.sealift: ");
    refused(&desk, &["tree/a", "trust=signers"], "a: ");
    refused(&desk, &["os.sealift", "trust=signers"], "the bundle has 2 different files: choose one, as in path=main:a");
    refused(&desk, &served("path=d"), "os.sealift: the bundle has no file d");
    refused(&desk, &served("path=/"), "os.sealift: / is not a regular file");
    refused(&desk, &served("chunks=3"), "unknown parameter chunks");
    refused(&desk, &served("jobs=0"), "jobs: give a number from 1 to 1024");
    refused(&desk, &served("cache=much"), "cache: give a size");
    refused(&desk, &served("allow-unsigned=perhaps"), "allow-unsigned: give true or false");
    refused(&desk, &served("time=later"), "time: ");
    refused(&desk, &["os.sealift", "os.sealift", "path=a", "trust=signers"], "is a full bundle, which has no base");
}
