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
    // A dry run says how many requests there are in all, of which it sends the first.
    let dry = desk.json(&format!("unpack {address} target --trust signers --dry-run --json"));
    desk.says(&format!("unpack {address} target --trust signers --dry-run"), "would be read, by ");
    nginx.sent("/os.sealift");
    desk.good(&format!("unpack {address} target --trust signers"));
    let (requests, bytes) = nginx.sent("/os.sealift");
    assert!(requests <= 8, "{requests} requests");
    assert_eq!(dry["requests"], requests, "{dry}");
    // Nothing is asked for twice.
    assert!(bytes < u64::try_from(len).unwrap() + (32 << 10), "{bytes} bytes of {len}");
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
    // One request after the other uses one connection.
    assert_eq!(nginx.connections(), 1);
    // What was judged before the first step is installed without asking for it again.
    assert_eq!(nginx.sent("/channel/os-3-from-2.sealift").0, 1);
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

/// Writes a tree of small files in directories, as packages have them.
fn packages(desk: &Desk) {
    for package in 0..40_u64 {
        for file in 0..40_u64 {
            desk.write(&format!("os/{package:02}/{file:02}"), noise(1 + package * 40 + file, 6000));
        }
    }
}

#[test]
fn of_a_full_bundle_only_missing_chunks_are_fetched() {
    const PACK: &str = "--composefs --chunk-size 64KiB --name os --key release -q";
    let desk = new_desk();
    packages(&desk);
    desk.good(&format!("pack os -o os-1.sealift --bundle-version 1 {PACK}"));
    let nginx = Nginx::of(&desk);
    let targets = ["target", "composefs:store"];
    for target in targets {
        desk.good(&format!("unpack os-1.sealift {target} --trust signers"));
    }
    // A tenth of the files, in a tenth of the directories.
    for package in ["07", "19", "20", "33"] {
        for file in 0..40_u64 {
            desk.write(&format!("os/{package}/{file:02}"), noise(9000 + file, 6000 + package.len()));
        }
    }
    desk.good(&format!("pack os -o os-2.sealift --bundle-version 2 {PACK}"));
    let whole = u64::try_from(desk.read("os-2.sealift").len()).unwrap();
    nginx.sent("/os-2.sealift");
    for target in targets {
        let update = if target == "target" { "--update" } else { "" };
        let take = format!("unpack {} {target} {update} --trust signers", nginx.at("os-2.sealift"));
        let plan = desk.json(&format!("{take} --dry-run --json"));
        let (_, bytes) = nginx.sent("/os-2.sealift");
        assert!(bytes <= 1 << 20, "{target}: {bytes} bytes for a plan");
        let planned = plan["read_bytes"].as_u64().or_else(|| plan["stored_bytes"].as_u64()).unwrap();
        assert!(planned > 0 && planned < whole / 5, "{target}: {planned} of {whole}");
        desk.good(&take);
        let (requests, bytes) = nginx.sent("/os-2.sealift");
        assert_eq!(plan["requests"], requests, "{target}");
        assert!(bytes < whole / 4 && requests <= 8, "{target}: {bytes} bytes of {whole} in {requests} requests");
    }
    desk.assert_same("os", "target");
}

#[test]
fn a_repository_fetches_only_missing_chunks() {
    if !sealift_desk::has(&["ostree"]) {
        return;
    }
    let desk = new_desk();
    packages(&desk);
    let ostree = |line: &str| {
        let (status, said) = sealift_desk::told(&mut desk.shell(&format!("ostree {line}")));
        assert_eq!(status, Some(0), "{line}: {said}");
    };
    ostree("--repo=source init --mode=bare-user");
    ostree("--repo=there init --mode=bare-user");
    let nginx = Nginx::of(&desk);
    for version in 1..=2 {
        if version == 2 {
            for file in 0..40_u64 {
                desk.write(&format!("os/19/{file:02}"), noise(9000 + file, 6000));
            }
        }
        ostree("--repo=source commit -b os --tree=dir=os --no-xattrs");
        let pack = "--chunk-size 64KiB --name os --key release --force -q";
        desk.good(&format!("pack ostree:source --ref os -o os.sealift --bundle-version {version} {pack}"));
        nginx.sent("/os.sealift");
        desk.good(&format!("unpack {} ostree:there --trust signers", nginx.at("os.sealift")));
    }
    let (requests, bytes) = nginx.sent("/os.sealift");
    let whole = u64::try_from(desk.read("os.sealift").len()).unwrap();
    assert!(bytes < whole / 4 && requests <= 8, "{bytes} bytes of {whole} in {requests} requests");
    ostree("--repo=there fsck");
}

#[test]
fn a_certificate_is_checked_against_known_authorities() {
    let desk = new_desk();
    large(&desk, 1 << 20);
    let make = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=ca -keyout ca.key -out ca.pem -addext basicConstraints=critical,CA:true 2>&1 && \
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=host -keyout host.key -out host.csr 2>&1 && \
        printf 'subjectAltName=IP:127.0.0.1' > ext && \
        openssl x509 -req -in host.csr -CA ca.pem -CAkey ca.key -CAcreateserial -extfile ext -out host.pem 2>&1";
    let (status, said) = sealift_desk::told(&mut desk.shell(make));
    assert_eq!(status, Some(0), "{said}");
    let nginx = Nginx::by_https(&desk, "host.pem", "host.key");
    let address = nginx.at("os.sealift").replace("http://", "https://");
    let with = |line: &str, file: &str| {
        let mut command = desk.command(line);
        command.env("SSL_CERT_FILE", desk.path(file));
        sealift_desk::told(&mut command)
    };
    desk.write("none.pem", "");
    let (status, said) = with(&format!("info {address}"), "none.pem");
    assert!(status == Some(2) && said.contains("SSL_CERT_FILE can name a file"), "{status:?} {said}");
    let (status, said) = with(&format!("unpack {address} target --trust signers"), "ca.pem");
    assert_eq!(status, Some(0), "{said}");
    desk.assert_same("os", "target");
    // The certificate is of an address, not of this name.
    let (status, said) = with(&format!("info {}", address.replace("127.0.0.1", "localhost")), "ca.pem");
    assert!(status == Some(2) && said.contains("TLS"), "{status:?} {said}");
    let (status, said) = with(&format!("info {address}"), "missing.pem");
    assert!(status == Some(2) && said.contains("missing.pem"), "{status:?} {said}");
}

#[test]
fn a_server_that_trickles_is_left_in_time() {
    let desk = new_desk();
    let address = lying(large(&desk, 1 << 20), Lie::Trickle);
    let start = std::time::Instant::now();
    let (status, said) = desk.run(&format!("unpack {address} target --trust signers"));
    assert!(status == Some(2) && said.contains("next to nothing"), "{status:?} {said}");
    assert!(start.elapsed() < std::time::Duration::from_secs(60), "{:?}", start.elapsed());
    assert!(!desk.path("target").exists());
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

/// The dry run of each kind of target says how many requests there are.
#[test]
fn the_requests_of_a_dry_run_are_those_of_the_run() {
    let desk = new_desk();
    large(&desk, 12 << 20);
    let nginx = Nginx::of(&desk);
    let address = nginx.at("os.sealift");
    for target in ["target", "tar:out.tar", "target --update"] {
        let line = format!("unpack {address} {target} --trust signers");
        let dry = desk.json(&format!("{line} --dry-run --json"));
        nginx.sent("/os.sealift");
        desk.good(&line);
        assert_eq!(dry["requests"], nginx.sent("/os.sealift").0, "{target}: {dry}");
    }
    let dry = desk.json("unpack os.sealift other --trust signers --dry-run --json");
    assert!(dry.get("requests").is_none(), "{dry}");
}

#[test]
fn names_of_a_file_are_taken_from_addresses() {
    let desk = new_desk();
    publish(&desk, 1..=2, "--deltas last:1");
    desk.write("apps/hello", "hello");
    desk.good("pack apps -o apps.sealift --name apps --bundle-version 4 --key release -q");
    desk.write("signers", format!("* namespaces=\"sealift\" {}", desk.text("release.pub")));
    let nginx = Nginx::of(&desk);
    let root = desk.path("");
    let root = root.to_str().unwrap().trim_end_matches('/');
    desk.write("targets", format!("os {root}/srv/os --update --delete\napps {root}/srv/apps --update\n"));
    desk.set_mode("targets", 0o644);
    std::fs::create_dir(desk.path("srv")).unwrap();
    let (channel, apps) = (nginx.at("channel/"), nginx.at("apps.sealift"));
    let take = format!("unpack {channel} {apps} --into targets --trust signers");
    desk.says(&take, "targets: 2 of 2 lines done");
    assert_eq!((has(&desk, "srv/os"), desk.text("srv/apps/hello")), ("version 2".into(), "hello".into()));
    // A bundle that lies beside a list is that bundle.
    let take = format!("unpack {} {apps} --into targets --trust signers --dry-run", nginx.at("channel/os-2.sealift"));
    desk.says(&take, "targets: 2 of 2 lines would be done");
    // Addresses of one channel are mirrors.
    publish(&desk, 3..=3, "--deltas last:1");
    let take = format!("unpack {channel} {} --into targets --trust signers", nginx.at("whole/../channel/"));
    desk.says(&take, "targets: 1 of 2 lines done");
    assert_eq!(has(&desk, "srv/os"), "version 3");
    desk.refused(&format!("unpack {} --into targets --trust signers", nginx.at("none/")), 2, "is no channel");
}
