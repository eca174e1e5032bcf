//! The record beside a target, if it is damaged, or belongs to an update that did not end.

use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, mkdirat, openat};
use sealift::unpack::unpack;
use sealift::{Durability, InstallOptions, TreeOptions};
use sealift::{Input, Limits, Progress};
use sealift_desk::{program, said, told};

use crate::installed::{Installed, anyone, anyones};
use crate::unlike::updatable;

#[test]
fn a_damaged_record_is_no_consent() {
    for part in ["head", "index", "record"] {
        for content in [&b""[..], b"torn"] {
            let desk = updatable();
            desk.write(&format!(".target.sealift-state/{part}"), content);
            desk.write("target/mine", "precious");
            let line = "unpack 8.sealift target --update --delete --allow-unsigned";
            for more in ["", "--dry-run", "--rehash", "--adopt"] {
                // Without a terminal, even the option alone is no consent to deletions.
                let (status, said) = told(&mut desk.shell(&format!("setsid -w {} {line} {more}", program())));
                assert_eq!(status, Some(2), "{part} {more:?}: {said}");
                assert!(said.contains("has a damaged install record"), "{part} {more:?}: {said}");
            }
            assert!(desk.path("target/mine").exists());
            let said = desk.good(&format!("{line} --adopt --yes"));
            assert!(said.contains("hashed its ") && said.contains("took over"), "{part}: {said}");
            desk.assert_same("target", "tree");
            // It has a record again.
            desk.good(line);
        }
    }
}

#[test]
fn an_audit_says_that_an_update_is_unfinished() {
    let desk = updatable();
    desk.unpack(8, "whole");
    let audit = || said(&desk.command("audit target --allow-unsigned").output().unwrap());
    assert!(!audit().contains("was interrupted"), "{}", audit());
    desk.leave_update("target", "whole");
    assert!(audit().contains("an update of target was interrupted"), "{}", audit());
}

#[test]
fn an_update_that_came_between_counts() {
    let desk = Arc::new(Installed::new());
    desk.pack(1);
    desk.write("tree/etc/motd", "second\n");
    desk.pack(2);
    desk.write("tree/etc/motd", "hello\n");
    desk.write("tree/etc/issue", "third\n");
    desk.pack(3);
    desk.unpack(1, "target");
    let tree = TreeOptions { update: true, durability: Durability::None, ..TreeOptions::default() };
    let options = InstallOptions { jobs: 2, tree, ..InstallOptions::default() };
    // The record is read while the index of the bundle is read. Another program installs version 2 meanwhile: files that versions 1 and 3 share are
    // then gone from the target.
    let other = Arc::clone(&desk);
    let input = desk.trapped(3, desk.len_behind_head(3), move || {
        sleep(Duration::from_millis(300));
        other.update(2, "target").unwrap();
    });
    unpack(anyones(input).unwrap(), &desk.path("target"), &options, &Progress::default()).unwrap();
    desk.assert_same("target", "tree");
}

/// A limit that was raised to install a bundle need not be raised to inspect the installed tree.
#[test]
fn a_record_is_read_whatever_limits_let_its_bundle_in() {
    const DEPTH: u32 = 4200;
    let desk = Installed::new();
    let mut at = rustix::fs::open(desk.path("tree"), OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    for _ in 0..DEPTH {
        mkdirat(&at, "d", Mode::RWXU).unwrap();
        at = openat(&at, "d", OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    let limit = format!("depth={}", DEPTH + 10);
    desk.good(&format!("pack tree -o 1.sealift --name os --bundle-version 1 --limit {limit}"));
    let take = |depth, update| {
        let input = Input::open(&desk.path("1.sealift")).unwrap();
        let tree = TreeOptions { update, durability: Durability::None, ..TreeOptions::default() };
        let options = InstallOptions { jobs: 2, tree, ..InstallOptions::default() };
        let limits = Limits { depth, ..Limits::default() };
        unpack(anyone().admit(input, limits)?, &desk.path("target"), &options, &Progress::default())
    };
    assert!(take(Limits::default().depth, false).is_err_and(|error| error.to_string().contains("depth")));
    take(DEPTH + 10, false).unwrap();
    let again = take(DEPTH + 10, true).unwrap();
    assert!(again.was_complete && again.hashed_files == 0, "{again:?}");
}
