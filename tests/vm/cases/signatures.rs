//! Built-in signatures: the kernel verifies that a certificate's key signed the file.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use sealift_verify::fsverity;

use crate::disk::Disk;

const REQUIRE: &str = "/proc/sys/fs/verity/require_signatures";

/// Adds a certificate to the kernel's keyring, as our messages advise.
pub(crate) fn trust(certificate: &str) {
    let certificate = File::open(certificate).expect("a certificate");
    let done = Command::new("/bin/keyctl")
        .args(["padd", "asymmetric", "", "%keyring:.fs-verity"])
        .stdin(certificate)
        .stdout(Stdio::null())
        .status();
    assert!(done.expect("keyctl starts").success(), "keyctl padd");
}

/// Removes all certificates from the kernel's keyring.
pub(crate) fn clear_trust() {
    let done = Command::new("/bin/keyctl").args(["clear", "%keyring:.fs-verity"]).status();
    assert!(done.expect("keyctl starts").success(), "keyctl clear");
}

pub(crate) fn signatures(desk: &Disk) {
    let mut copies = 0;
    let mut copy = || {
        copies += 1;
        let name = format!("signed-{copies}");
        fs::copy("/data/signed", desk.path(&name)).expect("a copy");
        name
    };
    // The machine has one keyring: certificates remain for the cases of the next file system.
    if desk.kind() == "ext4" {
        desk.bad(&format!("seal --signature /data/good.sig {}", copy()), 2, "keyctl padd asymmetric");
        trust("/data/good.der");
        trust("/data/ec.der");
    }
    for signature in ["good", "ec"] {
        let name = copy();
        desk.good(&format!("seal --signature /data/{signature}.sig {name}"));
        let file = File::open(desk.path(&name)).expect("it is there");
        match fsverity::signature(&file).expect("the kernel says") {
            Some(found) => assert_eq!(found, fs::read(format!("/data/{signature}.sig")).expect("a signature")),
            None => assert_eq!(desk.kind(), "btrfs"),
        }
    }
    desk.bad(&format!("seal --signature /data/foreign.sig {}", copy()), 2, "no certificate in the kernel's keyring");
    desk.bad(&format!("seal --signature /data/other.sig {}", copy()), 2, "for other content, or damaged");
    desk.bad(&format!("seal --signature /data/junk.sig {}", copy()), 2, "not a PKCS#7 message");
    let (one, two) = (copy(), copy());
    desk.bad(&format!("seal --signature /data/good.sig {one} {two}"), 2, "is for a single file");
    desk.bad(&format!("measure {one}"), 1, "not sealed");

    desk.good(&format!("seal {one}"));
    fs::write(REQUIRE, "1").expect("signatures are required");
    desk.bad(&format!("seal {two}"), 2, "fs.verity.require_signatures");
    desk.good(&format!("seal --signature /data/good.sig {two}"));
    // Files sealed without a signature can no longer be opened, once they are read from the disk again.
    desk.change_disk(|_| {});
    let refused = File::open(desk.path(&one)).map(drop);
    fs::write(REQUIRE, "0").expect("signatures are not required");
    assert!(refused.is_err(), "an unsigned file was opened");
    File::open(desk.path(&one)).expect("it is opened again");
}
