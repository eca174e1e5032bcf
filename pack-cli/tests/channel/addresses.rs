//! Bundles and channels at addresses.

use sealift_desk::{Desk, noise};

use crate::server::{Lie, Nginx, lying};
use crate::{has, new_desk, pack, publish};

/// A bundle with a large file and a small one.
fn large(desk: &Desk, len: usize) -> Vec<u8> {
    desk.write("os/large", noise(1, len));
    desk.write("os/hello", "hello");
    desk.good("pack os -o os.sealift --name os --bundle-version 1 --key release -q");
    desk.read("os.sealift")
}

#[test]
fn one_bundle_is_read_by_ranges() {
    let desk = new_desk();
    let len = large(&desk, 12 << 20).len();
    let nginx = Nginx::of(&desk);
    let address = nginx.at("os.sealift");
    desk.says(&format!("info {address}"), "os");
    desk.says(&format!("ls {address}"), "hello");
    nginx.sent("/os.sealift");
    assert_eq!(desk.out(&format!("cat {address} hello --trust signers")), "hello");
    let (requests, bytes) = nginx.sent("/os.sealift");
    assert!(requests <= 6 && bytes < 4 << 20, "{requests} requests, {bytes} bytes");
    desk.good(&format!("verify {address} --deep --trust signers"));
    nginx.sent("/os.sealift");
    desk.good(&format!("unpack {address} target --trust signers"));
    let (requests, bytes) = nginx.sent("/os.sealift");
    assert!(requests <= 8, "{requests} requests");
    assert!(bytes < u64::try_from(len).unwrap() * 11 / 10, "{bytes} bytes of {len}");
    desk.assert_same("os", "target");
    // Of an update, only what is missing is read.
    desk.write("os/hello", "hello again");
    desk.good("pack os -o os.sealift --force --name os --bundle-version 2 --key release -q");
    desk.good(&format!("unpack {address} target --update --trust signers"));
    let (_, bytes) = nginx.sent("/os.sealift");
    assert!(bytes < 1 << 20, "{bytes} bytes");
    desk.assert_same("os", "target");
    desk.refused(&format!("info {}", nginx.at("none.sealift")), 2, "404");
    desk.refused("info http://127.0.0.1:9/os.sealift", 2, "127.0.0.1:9");
}

#[test]
fn a_channel_is_taken_by_http_as_from_a_directory() {
    let desk = new_desk();
    publish(&desk, 1..=1, "--deltas last:1");
    let nginx = Nginx::of(&desk);
    let take = format!("unpack {} target --update --delete --trust signers", nginx.at("channel/"));
    desk.good(&take);
    publish(&desk, 2..=3, "--deltas last:1");
    nginx.sent("/channel/os-3-from-2.sealift");
    let said = desk.good(&take);
    assert!(said.contains("target: updated from http://127.0.0.1"), "{said}");
    assert_eq!(has(&desk, "target"), "version 3");
    assert!(!said.contains("os-3.sealift"), "{said}");
    desk.says(&take, "unchanged, holds os version 3");
    // A server without ranges sends each file as a whole.
    pack(&desk, 4, "");
    desk.good("publish os-4.sealift channel --key release");
    desk.good(&format!("unpack {} target --update --delete --trust signers", nginx.at("whole/")));
    assert_eq!(has(&desk, "target"), "version 4");
    desk.refused(&format!("unpack {} new --trust signers", nginx.at("os/")), 2, "no channel");
}

#[test]
fn secrets_in_addresses_are_not_shown() {
    let desk = new_desk();
    large(&desk, 1 << 20);
    let nginx = Nginx::of(&desk);
    let address = nginx.at("os.sealift?token=secret").replace("http://", "http://me:secret@");
    for line in [
        format!("info {address} --json"),
        format!("verify {address} --trust signers -vv"),
        format!("unpack {address} target --trust signers --json -vv"),
        format!("info {}", address.replace("os.sealift", "none.sealift")),
        format!("info {} --json", address.replace("127.0.0.1", "nowhere.invalid")),
        format!("unpack {} x --trust signers", address.replace("os.sealift", "os/")),
    ] {
        let (_, said) = desk.run(&line);
        assert!(!said.contains("secret"), "{line}: {said}");
    }
    let log = desk.text("nginx.log");
    assert!(log.contains("GET /os.sealift 206") && log.contains("token=secret"), "{log}");
}

#[test]
fn a_server_that_lies_is_found_out() {
    let desk = new_desk();
    let bytes = large(&desk, 3 << 20);
    for (lie, status, why) in [
        (Lie::OtherRange, 2, "other bytes"),
        (Lie::NoRange, 2, "Content-Range"),
        (Lie::OtherLength, 2, "changed meanwhile"),
        (Lie::Changed, 2, "changed meanwhile"),
        (Lie::Whole, 2, "stopped sending ranges"),
        (Lie::OtherHost, 2, "redirects to another host, localhost:9"),
        (Lie::OtherScheme, 2, "redirects to https"),
        (Lie::Around, 2, "again and again"),
        (Lie::Short, 2, "the connection was cut"),
        (Lie::OtherBytes, 1, "chunk"),
    ] {
        let address = lying(bytes.clone(), lie);
        let (got, said) = desk.run(&format!("unpack {address} target --trust signers"));
        assert!(got == Some(status) && said.contains(why), "{lie:?}: {got:?} {said}");
        assert!(!desk.path("target").exists(), "{lie:?}");
        desk.run("clean target");
    }
}

#[test]
fn a_line_that_is_cut_goes_on_where_it_was() {
    let desk = new_desk();
    let bytes = large(&desk, 3 << 20);
    for lie in [Lie::Cut(300_000), Lie::Busy, Lie::Moved] {
        let address = lying(bytes.clone(), lie);
        desk.good(&format!("unpack {address} target --trust signers"));
        desk.assert_same("os", "target");
        std::fs::remove_dir_all(desk.path("target")).unwrap();
        desk.good("clean target");
    }
    let address = lying(bytes, Lie::Cut(100));
    let (status, said) = desk.run(&format!("info {address}"));
    assert_eq!(status, Some(2), "{said}");
}
