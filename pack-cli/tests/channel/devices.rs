//! What devices take of a channel, and what they refuse.

use crate::{has, new_desk, pack, publish};

const TAKE: &str = "unpack channel target --update --delete --trust signers";

#[test]
fn the_cheapest_way_is_taken() {
    let desk = new_desk();
    publish(&desk, 1..=1, "--deltas last:1");
    desk.good(TAKE);
    assert_eq!(has(&desk, "target"), "version 1");
    publish(&desk, 2..=2, "--deltas last:1");
    let said = desk.good(TAKE);
    assert!(said.contains("target: updated from channel/os-2-from-1.sealift"), "{said}");
    desk.says(TAKE, "target: unchanged, holds os version 2, the newest of channel");
    let json = desk.json(&format!("{TAKE} --json"));
    assert_eq!((&json["unchanged"], &json["version"]), (&true.into(), &2.into()));
    // Two deltas in one run; a new target takes the full bundle.
    publish(&desk, 3..=4, "--deltas last:1");
    let plan = desk.good(&format!("{TAKE} --dry-run"));
    assert!(plan.contains("would take 2 bundles, one after the other"), "{plan}");
    assert_eq!(has(&desk, "target"), "version 2");
    desk.write("then.sh", "#!/bin/sh\necho taken >> log\n");
    desk.set_mode("then.sh", 0o755);
    let said = desk.good(&format!("{TAKE} --then ./then.sh"));
    for step in ["updated from channel/os-3-from-2.sealift", "updated from channel/os-4-from-3.sealift"] {
        assert!(said.contains(step), "{step} is not in: {said}");
    }
    assert_eq!(has(&desk, "target"), "version 4");
    assert_eq!(desk.text("log").lines().count(), 1);
    let said = desk.good("unpack channel new --trust signers");
    assert!(said.contains("new: unpacked from channel/os-4.sealift"), "{said}");
    desk.assert_same("target", "new");
}

#[test]
fn a_damaged_delta_leads_to_another_way() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    desk.good(TAKE);
    publish(&desk, 2..=3, "--deltas last:1");
    let mut bytes = desk.read("channel/os-3-from-2.sealift");
    *bytes.last_mut().unwrap() ^= 1;
    desk.write("channel/os-3-from-2.sealift", bytes);
    let said = desk.good(TAKE);
    assert!(said.contains("passed over channel/os-3-from-2.sealift"), "{said}");
    assert_eq!(has(&desk, "target"), "version 3");
    // Nothing leads to version 4 then: version 3 stays.
    publish(&desk, 4..=4, "");
    desk.write("channel/os-4.sealift", desk.read("channel/os-1.sealift"));
    let said = desk.good(TAKE);
    assert!(said.contains("is not the bundle that the channel's list names"), "{said}");
    assert!(said.contains("holds os version 3"), "{said}");
}

#[test]
fn an_old_list_is_refused() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    let old = desk.read("channel/channel.sealift-list");
    publish(&desk, 2..=2, "");
    desk.good(TAKE);
    desk.write("channel/channel.sealift-list", old);
    desk.refused(TAKE, 3, "which this device has taken");
    desk.good(&format!("{TAKE} --allow-downgrade"));
    // Another device has not seen the newer list.
    desk.good("unpack channel other --trust signers --state elsewhere");
    assert_eq!(has(&desk, "other"), "version 1");
    desk.good("trust reset os");
    desk.good(TAKE);
}

#[test]
fn a_list_is_refused_when_it_has_expired() {
    let desk = new_desk();
    publish(&desk, 1..=1, "--expires-in 3");
    desk.refused(&format!("{TAKE} --time 2099-01-01"), 3, "expired");
    assert!(!desk.path("target").exists());
    desk.good(TAKE);
}

#[test]
fn a_list_needs_signatures_as_bundles_do() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    desk.refused(&format!("{TAKE} --threshold os=2"), 3, "signature");
    desk.good("key generate -o stranger -q");
    let theirs = format!("os namespaces=\"sealift\" {}", desk.text("stranger.pub"));
    desk.write("others", &theirs);
    desk.refused("unpack channel target --trust others", 3, "signature");
    // A key may be allowed to sign lists alone.
    std::fs::remove_file(desk.path("channel/channel.sealift-list")).unwrap();
    desk.good("publish os-1.sealift channel --key stranger");
    desk.refused(TAKE, 3, "signature");
    let ours = desk.text("signers");
    desk.write("both", format!("{}{}", ours, theirs.replace("\"sealift\"", "\"sealift-channel\"")));
    desk.good("unpack channel target --trust both");
    let mut bytes = desk.read("channel/channel.sealift-list");
    bytes[50] ^= 1;
    desk.write("channel/channel.sealift-list", bytes);
    desk.refused("unpack channel target --update --trust both", 1, "channel/channel.sealift-list");
}

#[test]
fn a_target_of_another_name_is_left_alone() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    desk.write("signers", desk.text("signers").replace("os ", "os,app "));
    desk.good("pack os -o app.sealift --name app --bundle-version 1 --key release -q");
    desk.good("unpack app.sealift target --trust signers");
    desk.refused(TAKE, 3, "app");
}

#[test]
fn archives_take_the_full_bundle() {
    let desk = new_desk();
    publish(&desk, 1..=3, "--deltas last:1");
    desk.good("unpack channel tar:os.tar --trust signers");
    assert!(desk.path("os.tar").exists());
    pack(&desk, 3, "");
}
