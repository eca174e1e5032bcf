//! What is kept beside a target, where it is damaged, or tells of an update that did not end.

use crate::desk::said;
use crate::unlike::updatable;

#[test]
fn a_damaged_state_is_as_good_as_none() {
    for part in ["head", "index", "part"] {
        for content in [&b""[..], b"torn"] {
            let desk = updatable();
            desk.write(&format!(".target.sealift-state/{part}"), content);
            let done = desk.run(&["unpack", "8.sealift", "target", "--update", "--delete", "--allow-unsigned"]);
            assert!(said(&done).contains("hashed, since nothing that was kept"), "{part}: {}", said(&done));
            assert_eq!(said(&done).contains("is damaged"), part == "head", "{part}: {}", said(&done));
            desk.assert_same("target", "tree");
        }
    }
}

#[test]
fn an_audit_says_that_an_update_is_unfinished() {
    let desk = updatable();
    desk.unpack(8, "whole");
    let audit = || said(&desk.command(&["audit", "target", "--allow-unsigned"]).output().unwrap());
    assert!(!audit().contains("did not end"), "{}", audit());
    desk.leave_update("target", "whole");
    assert!(audit().contains("an update of target did not end"), "{}", audit());
}
