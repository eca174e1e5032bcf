//! What a run needs is not deleted, though it lies in the target: the state, the administrator's files, the bundle.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Command, Output};

use sealift_desk::said;

use crate::installed::Installed;

/// Creates signed versions 1 and 2, and the file of their signer.
fn desk() -> Installed {
    let desk = Installed::new();
    let done = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(desk.path("key")).status();
    assert!(done.unwrap().success());
    let public = fs::read_to_string(desk.path("key.pub")).unwrap();
    desk.write("allowed", format!("os namespaces=\"sealift\" {public}"));
    for version in ["1", "2"] {
        desk.write("tree/etc/motd", version);
        let bundle = format!("{version}.sealift");
        desk.good(&format!("pack tree -o {bundle} --name os --bundle-version {version} --key key -q"));
    }
    desk
}

fn unpack(desk: &Installed, bundle: &str, trust: &str, more: &[&str]) -> Output {
    desk.command(&format!("unpack {bundle} target --trust {trust}")).args(more).output().unwrap()
}

#[test]
fn a_deletion_of_what_the_run_needs_is_refused_before_anything_changes() {
    let desk = desk();
    let good = |done: Output| assert!(done.status.success(), "{}", said(&done));
    good(unpack(&desk, "1.sealift", "allowed", &["--state", "state"]));
    let delete = ["--update", "--delete"];
    // The state, which a directory holds; the signers; a link to them; and the bundle.
    fs::create_dir(desk.path("target/var")).unwrap();
    fs::rename(desk.path("state"), desk.path("target/var/state")).unwrap();
    fs::copy(desk.path("allowed"), desk.path("target/etc/signers")).unwrap();
    symlink("../allowed", desk.path("target/link")).unwrap();
    fs::copy(desk.path("2.sealift"), desk.path("target/lib/2.sealift")).unwrap();
    for (bundle, trust, state, needed, shown) in [
        ("2.sealift", "allowed", "target/var/state", "target/var", "target/var/state"),
        ("2.sealift", "target/etc/signers", "other", "target/etc/signers", "target/etc/signers"),
        ("2.sealift", "target/link", "other", "target/link", "target/link"),
        ("target/lib/2.sealift", "allowed", "other", "target/lib/2.sealift", "target/lib/2.sealift"),
    ] {
        for dry_run in [&[][..], &["--dry-run"]] {
            let done = unpack(&desk, bundle, trust, &[&delete[..], &["--state", state], dry_run].concat());
            assert_eq!(done.status.code(), Some(2), "{needed}: {}", said(&done));
            let words = said(&done).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&format!("{needed} would be deleted, and {shown} is in use")), "{words}");
            assert_eq!(fs::read(desk.path("target/etc/motd")).unwrap(), b"1", "{needed}");
            assert!(desk.path(needed).exists(), "{needed}");
        }
    }
    // Without deleting, they do no harm.
    good(unpack(&desk, "target/lib/2.sealift", "target/link", &["--update", "--state", "target/var/state"]));
    assert_eq!(fs::read(desk.path("target/etc/motd")).unwrap(), b"2");
    good(unpack(&desk, "2.sealift", "allowed", &[&delete[..], &["--state", "other"]].concat()));
    assert!(!desk.path("target/var").exists());
}

/// An update was interrupted while it deleted, and what the next run needs was put into the target since.
#[test]
fn what_finishes_an_update_leaves_what_the_run_needs() {
    for verb in ["unpack", "clean"] {
        let desk = desk();
        let good = |done: Output| assert!(done.status.success(), "{}", said(&done));
        good(unpack(&desk, "1.sealift", "allowed", &["--state", "state"]));
        good(desk.command("unpack 2.sealift whole --trust allowed").output().unwrap());
        desk.leave_update("target", "whole");
        fs::create_dir(desk.path("target/root")).unwrap();
        fs::copy(desk.path("2.sealift"), desk.path("target/root/2.sealift")).unwrap();
        fs::rename(desk.path("state"), desk.path("target/state")).unwrap();
        desk.write("target/extra", "extra");
        let kept = ["target/root/2.sealift", "target/state/floors"];
        if verb == "unpack" {
            good(unpack(&desk, "target/root/2.sealift", "allowed", &["--update", "--state", "target/state"]));
            assert!(desk.path(kept[0]).exists());
        } else {
            good(desk.command("clean target --state target/state").output().unwrap());
        }
        assert!(desk.path(kept[1]).exists() && !desk.path("target/extra").exists(), "{verb}");
        assert_eq!(fs::read(desk.path("target/etc/motd")).unwrap(), b"2");
    }
}
