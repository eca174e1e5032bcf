//! A target and its device remember what they took, also where the run that took it did not come to its end.

use std::process::Command;

use crate::desk::{Desk, said};

/// Versions 1 and 2, signed by a key that `signers` names.
fn signed() -> Desk {
    let desk = Desk::new();
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(desk.path("release"));
    assert!(keygen.status().unwrap().success());
    let key = std::fs::read_to_string(desk.path("release.pub")).unwrap();
    desk.write("signers", format!("os namespaces=\"sealift\" {key}"));
    for version in ["1", "2"] {
        desk.write("tree/etc/issue", version);
        let bundle = format!("{version}.sealift");
        let pack = ["pack", "tree", "-o", &bundle, "--name", "os", "--bundle-version", version, "--key", "release"];
        desk.run(&pack);
    }
    desk
}

/// Runs the line with the device's trust and memory, and returns its exit status and what it said.
fn run(desk: &Desk, line: &str) -> (Option<i32>, String) {
    let line = format!("{line} --trust signers --state state");
    let done = desk.command(&line.split(' ').collect::<Vec<_>>()).output().unwrap();
    (done.status.code(), said(&done))
}

#[test]
fn what_clean_finished_is_not_undone_by_an_older_bundle() {
    let desk = signed();
    assert_eq!(run(&desk, "unpack 1.sealift target").0, Some(0));
    desk.unpack(2, "whole");
    desk.leave_update("target", "whole");
    desk.run(&["clean", "target"]);
    let (status, said) = run(&desk, "unpack 1.sealift target --update");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("is older than version 2"), "{said}");
    desk.assert_same("target", "tree");
    assert_eq!(run(&desk, "unpack 1.sealift target --update --allow-downgrade").0, Some(0));
    assert_eq!(run(&desk, "unpack 1.sealift target --update").0, Some(0));
}

#[test]
fn the_same_command_ends_well_where_the_tree_has_its_name() {
    let desk = signed();
    // As where it is killed when all is done but to remember it.
    desk.unpack(2, "target");
    let (status, said) = run(&desk, "unpack 2.sealift target");
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("target: complete already") && said.contains("3 kept"), "{said}");
    let (status, said) = run(&desk, "unpack 1.sealift other");
    assert_eq!(status, Some(1), "it remembers: {said}");

    for other in ["1.sealift target --allow-downgrade", "2.sealift target --path etc"] {
        let (status, said) = run(&desk, &format!("unpack {other}"));
        assert_eq!(status, Some(2), "{said}");
    }
}
