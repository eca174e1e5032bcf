//! Reading verbs: a full bundle with the deltas that lead from it to a version, and channels.

use std::path::Path;
use std::process::Command;

use sealift_desk::{Desk, skipped};

use crate::server::Nginx;
use crate::{new_desk, pack, publish};

/// Makes a full bundle of version 1, deltas from each version to the next, and a full bundle of the last.
fn chain(desk: &Desk, last: u32) {
    for version in 1..=last {
        pack(desk, version, "");
        std::fs::rename(desk.path(&format!("os-{version}.sealift")), desk.path(&format!("full-{version}.sealift")))
            .unwrap();
        if version > 1 {
            pack(desk, version, &format!("--base full-{}.sealift", version - 1));
            std::fs::rename(desk.path(&format!("os-{version}.sealift")), desk.path(&format!("d{version}.sealift")))
                .unwrap();
        }
    }
}

const ANY_ORDER: [&str; 3] = [
    "full-1.sealift d2.sealift d3.sealift d4.sealift",
    "d4.sealift d2.sealift full-1.sealift d3.sealift",
    "d3.sealift d4.sealift d2.sealift full-1.sealift",
];

#[test]
fn a_chain_is_read_as_its_newest_version() {
    let desk = new_desk();
    chain(&desk, 4);
    for chain in ANY_ORDER {
        assert_eq!(desk.out(&format!("ls --json {chain}")), desk.out("ls --json full-4.sealift"));
        assert_eq!(desk.out(&format!("ls {chain} version")), "version\n");
        assert_eq!(desk.out(&format!("cat {chain} version --trust signers")), "version 4");
        assert_eq!(desk.out(&format!("cat {chain} large --trust signers")), desk.text("os/large"));
        let info = desk.out(&format!("info {chain} --json --trust signers"));
        assert!(info.contains("\"version\":4"), "{info}");
        let sound = desk.good(&format!("verify {chain} --deep --trust signers"));
        assert_eq!(sound.matches(": sound,").count(), 4, "{sound}");
        assert_eq!(sound.matches("the content of 2 objects").count(), 4, "{sound}");
    }
    // What only a chain shows: the content of a delta over another.
    let said = desk.good("verify d4.sealift --deep --trust signers");
    assert!(said.contains("unpacking checks its objects against os version 3"), "{said}");
    let entries = |line: &str| desk.json(line)["entries"].clone();
    assert_eq!(
        entries("diff --json full-1.sealift d3.sealift d2.sealift d4.sealift"),
        entries("diff --json full-1.sealift full-4.sealift"),
    );
    desk.says("diff full-2.sealift d4.sealift d3.sealift", "1 changed");
    // --base takes them, too.
    assert_eq!(desk.out("cat d4.sealift version --base d3.sealift --base full-2.sealift --trust signers"), "version 4");
}

#[test]
fn channels_are_compared() {
    let desk = new_desk();
    publish(&desk, 1..=3, "--deltas last:1");
    let nginx = Nginx::of(&desk);
    let entries = |line: &str| desk.json(&format!("diff --json {line} --trust signers"))["entries"].clone();
    let expected = entries("os-1.sealift os-3.sealift");
    for place in ["channel".to_owned(), nginx.at("channel/"), nginx.at("whole/")] {
        assert_eq!(entries(&format!("os-1.sealift {place}")), expected, "{place}");
        desk.good(&format!("diff {place} os-3.sealift --exit-code --trust signers"));
        desk.good(&format!("diff os {place} --exit-code --trust signers"));
    }
    desk.good("key generate -o stranger -q");
    desk.write("strangers", format!("os namespaces=\"sealift\" {}", desk.text("stranger.pub")));
    desk.refused("diff os-1.sealift channel --trust strangers", 3, "channel/");
    // Without a full bundle of the newest version, its chain is read.
    std::fs::remove_file(desk.path("channel/os-3.sealift")).unwrap();
    desk.refused("diff os-1.sealift channel --trust signers", 2, "os-3.sealift");
}

/// Each delta is opened once, however many copies of it there are.
#[test]
fn copies_of_links_take_no_time() {
    let desk = new_desk();
    chain(&desk, 7);
    let mut bases = String::from("--base full-1.sealift");
    for (version, copy) in (2..7).flat_map(|version| (0..4).map(move |copy| (version, copy))) {
        let name = format!("copy-{copy}-of-{version}.sealift");
        std::fs::copy(desk.path(&format!("d{version}.sealift")), desk.path(&name)).unwrap();
        bases.push_str(&format!(" --base {name}"));
    }
    let line = format!("cat d7.sealift version {bases} --trust signers");
    assert_eq!(desk.out(&line), "version 7");
    let log = desk.path("opened");
    let Some(mut run) = desk.strace(&["-o", log.to_str().unwrap(), "-e", "trace=open,openat,openat2"], &line) else {
        return;
    };
    assert!(run.output().unwrap().status.success());
    let log = desk.text("opened");
    let opened = log.lines().filter(|call| call.contains("copy-")).count();
    assert!(opened < 20 * 4, "{opened} times");
}

#[test]
fn a_missing_link_is_named() {
    let desk = new_desk();
    chain(&desk, 4);
    for line in [
        "ls full-1.sealift d2.sealift d4.sealift",
        "cat d4.sealift d2.sealift full-1.sealift version --trust signers",
        "info full-1.sealift d2.sealift d4.sealift --trust signers",
        "diff full-1.sealift d2.sealift d4.sealift",
        "mount full-1.sealift d2.sealift d4.sealift os --trust signers",
    ] {
        desk.refused(line, 4, "d4.sealift: a link is missing: it needs os version 3");
    }
    // Each is sound for itself.
    desk.good("verify full-1.sealift d2.sealift d4.sealift --deep --trust signers");
    desk.refused("ls d2.sealift full-1.sealift full-3.sealift", 2, "neither leads to the other");
    desk.refused("cat d4.sealift version --base d3.sealift --trust signers", 4, "it needs os version 2");
    desk.refused(
        "cat d4.sealift version --base d3.sealift --base full-2.sealift --base full-1.sealift --trust signers",
        4,
        "full-1.sealift",
    );
    desk.refused("ls full-1.sealift nothing.sealift d2.sealift", 2, "nothing.sealift: no bundle is there");
    // A path in the bundle that is also the name of a delta here.
    desk.write("tree/d2.sealift", "x");
    desk.good("pack tree -o tree.sealift --name tree --bundle-version 1 --key release -q");
    assert_eq!(desk.out("ls tree.sealift /d2.sealift"), "d2.sealift\n");
}

#[test]
fn a_chain_with_a_damaged_link_fails() {
    let desk = new_desk();
    chain(&desk, 3);
    let mut bytes = desk.read("d2.sealift");
    *bytes.last_mut().unwrap() ^= 1;
    desk.write("d2.sealift", &bytes);
    desk.refused("verify --deep full-1.sealift d2.sealift d3.sealift --trust signers", 1, "d2.sealift");
    // The list needs no content.
    desk.good("ls full-1.sealift d2.sealift d3.sealift");
}

#[test]
fn a_chain_and_a_channel_are_mounted() {
    if !Path::new("/dev/fuse").exists() {
        return skipped("there is no /dev/fuse");
    }
    let desk = new_desk();
    chain(&desk, 3);
    std::fs::create_dir(desk.path("mnt")).unwrap();
    publish(&desk, 4..=4, "");
    for source in ["d3.sealift full-1.sealift d2.sealift", "channel"] {
        let mut mount = desk.command(&format!("mount {source} mnt --trust signers")).spawn().unwrap();
        sealift_desk::wait("it is mounted", || desk.path("mnt/version").exists());
        let version = desk.text("mnt/version");
        assert_eq!(version, if source == "channel" { "version 4" } else { "version 3" });
        assert_eq!(desk.text("mnt/large"), desk.text("os/large"));
        assert!(Command::new("umount").arg(desk.path("mnt")).status().unwrap().success());
        assert!(mount.wait().unwrap().success());
    }
}

#[test]
fn the_newest_version_of_a_channel_is_read() {
    let desk = new_desk();
    publish(&desk, 1..=3, "--deltas last:1");
    let nginx = Nginx::of(&desk);
    for place in ["channel".to_owned(), nginx.at("channel/"), nginx.at("whole/")] {
        assert_eq!(desk.out(&format!("ls {place} --trust signers")), "large\nversion\n");
        assert_eq!(desk.out(&format!("ls {place} version --trust signers")), "version\n");
        assert_eq!(desk.out(&format!("cat {place} version --trust signers")), "version 3");
        desk.says(&format!("verify {place} --trust signers"), "os-3.sealift: sound, os version 3");
        let info = desk.good(&format!("info {place} --trust signers"));
        for part in ["channel, TRUSTED", "os-3-from-2.sealift", "from version 2", "Expires", "Newest        version 3"]
        {
            assert!(info.contains(part), "{part}: {info}");
        }
        let json = desk.out(&format!("info {place} --json --trust signers"));
        assert!(json.contains("\"channel\":{\"name\":\"os\",\"version\":3"), "{json}");
    }
    // Without trust, nothing is taken from the list, and what to do is said.
    let untrusting = "--trust empty --state elsewhere";
    desk.write("empty", "");
    for line in ["ls channel", "cat channel version", "verify channel"] {
        let said = desk.refused(&format!("{line} {untrusting}"), 3, "channel.sealift-list");
        assert!(said.contains("allowed signers") || said.contains("namespaces="), "{said}");
    }
    let said = desk.good(&format!("info channel {untrusting}"));
    assert!(said.contains("channel, UNTRUSTED") && said.contains("Refused"), "{said}");
    desk.good(&format!("ls channel {untrusting} --allow-unsigned"));
    desk.refused("ls channel --trust signers --time 2099-01-01", 3, "expired");
    desk.refused(&format!("ls {} --trust signers", nginx.at("os/")), 2, "no channel");
    desk.refused("verify channel os-1.sealift --trust signers", 2, "a channel is verified alone");
    // Another bundle under the name of a listed one.
    std::fs::copy(desk.path("os-2.sealift"), desk.path("channel/os-3.sealift")).unwrap();
    desk.refused("ls channel --trust signers", 2, "is not the bundle that the channel's list names");
    // A list that was changed.
    let mut list = desk.read("channel/channel.sealift-list");
    list[60] ^= 1;
    desk.write("channel/channel.sealift-list", &list);
    for line in ["ls channel", "info channel", "cat channel version"] {
        desk.refused(&format!("{line} --trust signers"), 1, "channel.sealift-list");
    }
}

#[test]
fn a_channel_without_the_full_bundle_is_read_as_a_chain() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    for version in 2..=3 {
        pack(&desk, version, &format!("--base os-{}.sealift", version - 1));
        std::fs::rename(desk.path(&format!("os-{version}.sealift")), desk.path(&format!("d{version}.sealift")))
            .unwrap();
        pack(&desk, version, "");
        desk.good(&format!("publish d{version}.sealift channel --key release"));
    }
    assert_eq!(desk.out("cat channel version --trust signers"), "version 3");
    desk.says("verify channel --deep --trust signers", "the content of 2 objects");
}
