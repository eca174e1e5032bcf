//! What `publish` writes, and what it refuses.

use crate::planned::pack_unlike;
use crate::{new_desk, pack, publish};

const LIST: &str = "channel/channel.sealift-list";

#[test]
fn what_is_there_already_is_unchanged() {
    let desk = new_desk();
    publish(&desk, 1..=2, "--deltas last:3");
    let (list, names) = (desk.read(LIST), desk.names("channel"));
    assert!(names.contains(&"os-2-from-1.sealift".to_owned()), "{names:?}");
    assert_eq!(desk.read("channel/os-2.sealift"), desk.read("os-2.sealift"));
    let again = desk.good("publish os-1.sealift os-2.sealift channel --key release --deltas last:3");
    assert!(again.contains("channel: unchanged, os up to version 2"), "{again}");
    let json = desk.json("publish os-2.sealift channel --key release --json");
    assert_eq!((&json["unchanged"], &json["version"], &json["files"]), (&true.into(), &2.into(), &3.into()));
    assert_eq!((desk.read(LIST), desk.names("channel")), (list.clone(), names));
    // Without a bundle, the list is signed again.
    let sequence = json["sequence"].as_u64().unwrap();
    let json = desk.json("publish channel --key release --json");
    assert!(json["sequence"].as_u64().unwrap() > sequence && json["unchanged"] == false, "{json}");
    assert_ne!(desk.read(LIST), list);
}

#[test]
fn a_list_with_less_than_half_of_its_time_is_signed_again() {
    let desk = new_desk();
    pack(&desk, 1, "");
    desk.good("publish os-1.sealift channel --key release --expires-in 10");
    desk.says("publish os-1.sealift channel --key release", "channel: published");
    desk.says("publish os-1.sealift channel --key release", "channel: unchanged");
}

#[test]
fn a_rule_says_what_stays() {
    let desk = new_desk();
    publish(&desk, 1..=5, "--deltas last:2 --keep last:3");
    let mut names = desk.names("channel");
    names.retain(|name| name.starts_with("os-"));
    let wanted = [
        "os-3.sealift",
        "os-4-from-3.sealift",
        "os-4.sealift",
        "os-5-from-3.sealift",
        "os-5-from-4.sealift",
        "os-5.sealift",
    ];
    assert_eq!(names, wanted);
}

#[test]
fn deltas_of_commits_are_packed_from_the_repository() {
    if !sealift_desk::has(&["ostree"]) {
        return sealift_desk::skipped("needs ostree: makes commits");
    }
    let desk = new_desk();
    let ostree = |arguments: &[&str]| sealift_desk::out(desk.command_of("ostree").args(arguments));
    ostree(&["init", "--repo=repo", "--mode=archive"]);
    for version in 1..=2 {
        desk.write("os/version", format!("version {version}"));
        ostree(&[
            "commit",
            "--repo=repo",
            "--branch=os",
            "--tree=dir=os",
            "--owner-uid=0",
            "--owner-gid=0",
            "--no-xattrs",
        ]);
        let pack = "--name os --key release -q";
        desk.good(&format!("pack ostree:repo -o os-{version}.sealift --bundle-version {version} {pack}"));
    }
    let said = desk.good("publish os-1.sealift os-2.sealift channel --key release --deltas last:3");
    assert!(said.contains("no delta os-2.sealift has OSTree commits"), "{said}");
    let json = desk.json("publish os-2.sealift channel --key release --deltas last:3 --json");
    assert_eq!((&json["files"], &json["commits"]), (&2.into(), &serde_json::json!(["os-2.sealift"])));
}

#[test]
fn a_delta_that_is_not_smaller_is_dropped() {
    let desk = new_desk();
    pack_unlike(&desk, 1..=2);
    let publish = "publish os-1.sealift os-2.sealift channel --key release --deltas last:3";
    let said = desk.good(publish);
    assert!(said.contains("no delta os-2-from-1.sealift"), "{said}");
    assert!(desk.names("channel").iter().all(|name| !name.contains("from")), "{:?}", desk.names("channel"));
    // It is not made again.
    let said = desk.good(publish);
    assert!(said.contains("unchanged") && !said.contains("from"), "{said}");
}

#[test]
fn what_no_device_would_take_is_refused() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    let list = desk.read(LIST);
    pack(&desk, 2, "");
    desk.good("pack os -o app.sealift --name app --bundle-version 2 --key release -q");
    desk.refused("publish app.sealift channel --key release", 3, "app");
    desk.good("pack os -o unsigned.sealift --name os --bundle-version 3 -q");
    desk.refused("publish unsigned.sealift channel --key release", 2, "is not signed");
    let mut bytes = desk.read("os-2.sealift");
    *bytes.last_mut().unwrap() ^= 1;
    desk.write("damaged.sealift", bytes);
    desk.refused("publish damaged.sealift channel --key release", 1, "damaged.sealift");
    desk.good("key generate -o stranger -q");
    desk.refused("publish os-2.sealift channel --key stranger", 2, "was signed by other keys");
    desk.refused("publish empty --key release", 2, "is not a channel yet");
    desk.refused("publish os-2.sealift channel --key release --keep hourly:3", 2, "last:7");
    assert_eq!(desk.read(LIST), list);
}
