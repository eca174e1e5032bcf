//! Bytes that changed or are missing.

use std::fs;
use std::iter::once;

use super::{body, damage, protected, repaired};

#[test]
fn sectors_that_changed_are_made_again() {
    let desk = protected(10, &["r"]);
    let body = body(&desk);
    // One byte in each of 4 % of the sectors, and some in the first and the last.
    let bytes = (body.start..body.end).step_by(25 * 2048).map(|at| at..at + 1);
    damage(&desk, bytes.chain([body.start..body.start + 3000, body.end - 3000..body.end]));
    desk.refused("verify bad.sealift --trust signers", 1, "");
    let report = repaired(&desk, "--recovery r");
    assert_eq!(report["unreadable_bytes"], 0, "{report}");
    desk.good("verify repaired.sealift --trust signers");
    // A burst as long as the report says, wherever it begins.
    let made = desk.json("recovery good.sealift -o again --percent 10 --json");
    let burst = usize::try_from(made["burst_bytes"].as_u64().unwrap()).unwrap();
    assert!(burst * 100 > body.len() * 6, "{made}");
    for start in [body.start, body.start + 777_777, body.end - burst] {
        damage(&desk, once(start..start + burst));
        repaired(&desk, "--recovery r");
    }
}

#[test]
fn equal_bundles_have_equal_recovery() {
    let desk = protected(5, &["r"]);
    for jobs in [1, 2] {
        desk.good(&format!("recovery good.sealift -o again --force --jobs {jobs}"));
        assert!(desk.read("again") == desk.read("r"), "{jobs}");
    }
}

#[test]
fn a_damaged_head_or_layout_comes_from_the_recovery_file() {
    let desk = protected(5, &["r"]);
    let body = body(&desk);
    damage(&desk, [100..body.start, body.end - 5000..body.end]);
    let report = repaired(&desk, "--recovery r");
    assert_eq!(report["head_replaced"], true, "{report}");
    // Signatures that came later are kept, even if they took more room.
    fs::copy(desk.path("good.sealift"), desk.path("bad.sealift")).unwrap();
    desk.make_ssh_key("other", &["-t", "ed25519"]);
    for key in 0..30 {
        desk.make_ssh_key(&format!("key-{key}"), &["-t", "ed25519"]);
        desk.good(&format!("sign bad.sealift --key key-{key} -q"));
    }
    let signed = desk.read("bad.sealift");
    assert!(signed.len() > body.end, "the area did not grow");
    let mut bytes = signed.clone();
    let at = bytes.len() - 300_000;
    bytes[at..at + 100_000].fill(0);
    desk.write("bad.sealift", bytes);
    let report = desk.json("repair bad.sealift --recovery r -o repaired.sealift --force --json");
    assert!(desk.read("repaired.sealift") == signed, "{report}");
}

#[test]
fn a_cut_bundle_is_completed() {
    let desk = protected(10, &["r"]);
    let bytes = desk.read("good.sealift");
    desk.write("bad.sealift", &bytes[..bytes.len() - 200_000]);
    let report = repaired(&desk, "--recovery r");
    let (all, unreadable) = (report["repaired_bytes"].as_u64().unwrap(), report["unreadable_bytes"].as_u64().unwrap());
    assert!((200_000..210_000).contains(&all) && all == unreadable, "{report}");
}

#[test]
fn recovery_files_may_be_damaged_or_lost_too() {
    let desk = protected(20, &["r1", "r2", "r3"]);
    let body = body(&desk);
    damage(&desk, (body.start..body.end - 2048).step_by(40 * 2048).map(|at| at..at + 1));
    // One is lost: another one has the same checksums.
    repaired(&desk, "--recovery r3 --recovery r1");
    // Two are lost, and with them the checksums of a third of the columns: whole chunks count as damaged there.
    let (status, said) = desk.run("repair bad.sealift --recovery r1 -o repaired.sealift --force");
    assert!(status == Some(1) && said.contains("lack"), "every chunk is damaged: {said}");
    for at in [500_000, 1_000_000, 1_500_000, 3_000_000] {
        damage(&desk, once(body.start + at..body.start + at + 1));
        repaired(&desk, "--recovery r2");
    }
    // Damaged parity and damaged checksums.
    for at in [body.start + 8192, body.start + 200_000] {
        let mut bytes = desk.read("r2");
        bytes[at..at + 4096].fill(0x55);
        desk.write("r2-bad", bytes);
        repaired(&desk, "--recovery r1 --recovery r2-bad --recovery r3");
    }
    // One that is no recovery file any more is left out.
    desk.write("junk", vec![7; 5000]);
    let said = desk.good("repair bad.sealift --recovery junk --recovery r1 --recovery r2 -o repaired.sealift --force");
    assert!(said.contains("warning: did without junk: "), "{said}");
}
