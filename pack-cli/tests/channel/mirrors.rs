//! Several addresses of one bundle, or of one channel.

use std::time::{Duration, Instant};

use sealift_desk::{Desk, noise};

use crate::server::{Lie, Nginx, lying};
use crate::{has, new_desk, publish};

/// Packs a bundle of 12 MiB in a new folder.
fn large() -> Desk {
    let desk = new_desk();
    desk.write("os/large", noise(1, 12 << 20));
    desk.write("os/hello", "hello");
    desk.good("pack os -o os.sealift --name os --bundle-version 1 --key release -q --chunk-size 256KiB");
    desk
}

/// Makes another server with the same files.
fn mirror(desk: &Desk, files: &str) -> (Desk, Nginx) {
    let other = Desk::new();
    let copied = std::process::Command::new("cp").arg("-a").arg(desk.path(files)).arg(other.path("")).status();
    assert!(copied.unwrap().success());
    let nginx = Nginx::of(&other);
    (other, nginx)
}

#[test]
fn mirrors_share_what_is_read() {
    let desk = large();
    let len = u64::try_from(desk.read("os.sealift").len()).unwrap();
    let one = Nginx::of(&desk);
    let (_folder, other) = mirror(&desk, "os.sealift");
    let [a, b] = [&one, &other].map(|nginx| nginx.at("os.sealift"));
    let said = desk.good(&format!("unpack {a} {b} target --trust signers"));
    assert!(!said.contains("left"), "{said}");
    desk.assert_same("os", "target");
    let [one, other] = [&one, &other].map(|nginx| nginx.sent("/os.sealift").1);
    assert!(one > len / 5 && other > len / 5 && one + other < len * 12 / 10, "{one} and {other} of {len}");
}

#[test]
fn a_mirror_that_fails_is_left() {
    let desk = large();
    let bytes = desk.read("os.sealift");
    let nginx = Nginx::of(&desk);
    let good = nginx.at("os.sealift");
    for (lie, why) in [
        (Lie::OtherRange, "other bytes"),
        (Lie::NoRange, "Content-Range"),
        (Lie::OtherLength, "and the bundle"),
        (Lie::Whole, "only as a whole"),
        (Lie::OtherHost, "redirects to another host"),
        (Lie::Around, "again and again"),
        (Lie::Short, "the connection was cut"),
        (Lie::OtherBytes, "other bytes than those that were signed"),
    ] {
        for is_first in [true, false] {
            let bad = lying(bytes.clone(), lie);
            let places = if is_first { format!("{bad} {good}") } else { format!("{good} {bad}") };
            let said = desk.good(&format!("unpack {places} target --trust signers"));
            desk.assert_same("os", "target");
            // One sentence about it. The last byte is in the share of the second.
            let is_asked = lie != Lie::OtherBytes || !is_first;
            let about = said.lines().filter(|line| line.contains(&bad) && line.contains("sealift: ")).count();
            assert!(about == usize::from(is_asked) && said.contains(why) == is_asked, "{lie:?}: {said}");
            std::fs::remove_dir_all(desk.path("target")).unwrap();
            desk.good("clean target");
        }
    }
    // All of them.
    let bad = [Lie::OtherRange, Lie::NoRange].map(|lie| lying(bytes.clone(), lie));
    let (status, said) = desk.run(&format!("unpack {} {} target --trust signers", bad[0], bad[1]));
    assert_eq!(status, Some(2), "{said}");
    // Another bundle is none of its mirrors.
    desk.write("os/hello", "hello again");
    desk.good("pack os -o other.sealift --name os --bundle-version 2 --key release -q");
    let said = desk.good(&format!("unpack {good} {} target --trust signers", nginx.at("other.sealift")));
    assert!(said.contains("other.sealift") && desk.text("target/hello") == "hello again", "{said}");
}

#[test]
fn a_mirror_that_hangs_is_left_in_time() {
    let desk = large();
    let bad = lying(desk.read("os.sealift"), Lie::Silent);
    let nginx = Nginx::of(&desk);
    let start = Instant::now();
    let said = desk.good(&format!("unpack {bad} {} target --trust signers", nginx.at("os.sealift")));
    assert!(said.contains("was left: the server sent nothing for too long"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(90), "{:?}", start.elapsed());
    desk.assert_same("os", "target");
}

#[test]
fn a_channel_has_mirrors() {
    let desk = new_desk();
    publish(&desk, 1..=1, "--deltas last:1");
    let (old_folder, old) = mirror(&desk, "channel");
    publish(&desk, 2..=3, "--deltas last:1");
    let (part_folder, part) = mirror(&desk, "channel");
    // This one has the list, and not all files.
    for file in ["os-3.sealift", "os-3-from-2.sealift"] {
        std::fs::remove_file(part_folder.path(&format!("channel/{file}"))).unwrap();
    }
    let nginx = Nginx::of(&desk);
    let [old, part, whole] = [&old, &part, &nginx].map(|nginx| nginx.at("channel/"));
    let take = |places: &str, target: &str| {
        desk.good(&format!("unpack {places} {target} --update --delete --trust signers --state {target}.state"))
    };
    for (number, places) in [
        format!("{old} {part} {whole}"),
        format!("{part} {whole} {old}"),
        format!("http://127.0.0.1:9/os/ {whole} {}", nginx.at("os/")),
    ]
    .iter()
    .enumerate()
    {
        let target = format!("target-{number}");
        let said = take(places, &target);
        assert_eq!(has(&desk, &target), "version 3", "{said}");
        if number == 2 {
            assert!(said.contains("http://127.0.0.1:9/os/ was left"), "{said}");
            assert!(said.contains("no channel"), "{said}");
        } else {
            assert!(said.contains("was left: the server answered 404"), "{said}");
        }
        let said = take(places, &target);
        assert!(said.contains("unchanged, holds os version 3"), "{said}");
    }
    desk.refused("unpack http://127.0.0.1:9/os/ http://127.0.0.1:9/x/ new --trust signers", 2, "127.0.0.1:9");
    // A list that this device would not accept is left, too.
    let mut list = old_folder.read("channel/channel.sealift-list");
    list[60] ^= 1;
    old_folder.write("channel/channel.sealift-list", &list);
    let said = take(&format!("{old} {whole}"), "target");
    assert!(said.contains("was left") && has(&desk, "target") == "version 3", "{said}");
}

#[test]
fn reading_verbs_take_mirrors() {
    let desk = large();
    let good = Nginx::of(&desk);
    let good = good.at("os.sealift");
    let bad = lying(desk.read("os.sealift"), Lie::Short);
    for places in [format!("{bad} {good}"), format!("{good} {bad}")] {
        assert_eq!(desk.out(&format!("cat {places} hello --trust signers")), "hello");
        let said = desk.good(&format!("verify {places} --deep --trust signers"));
        assert!(said.contains(": sound, os version 1") && said.contains("the connection was cut"), "{said}");
    }
    // A mirror that is not there has the name of the others.
    let none = "http://127.0.0.1:9/os.sealift";
    assert_eq!(desk.out(&format!("cat {none} {good} hello --trust signers")), "hello");
    // Another bundle is none.
    desk.good("pack os -o app.sealift --name app --bundle-version 1 --key release -q");
    desk.refused(&format!("cat {good} {} hello --trust signers", good.replace("os.sealift", "app.sealift")), 2, "");
    desk.refused(&format!("verify {good} http://127.0.0.1:9/app.sealift --trust signers"), 2, "127.0.0.1:9");
}

#[test]
fn reading_verbs_take_mirrors_of_a_channel() {
    let desk = new_desk();
    publish(&desk, 1..=1, "");
    let (_folder, old) = mirror(&desk, "channel");
    publish(&desk, 2..=2, "");
    let new = Nginx::of(&desk);
    let places = format!("{} {} http://127.0.0.1:9/channel/", old.at("channel/"), new.at("channel/"));
    let said = desk.good(&format!("cat {places} version --trust signers"));
    assert!(said.contains("version 2") && said.contains("http://127.0.0.1:9/channel/ was left"), "{said}");
    desk.says(&format!("verify {places} --trust signers"), ": sound, os version 2");
}
