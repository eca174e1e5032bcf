//! Volumes on several media, of which one is there at a time.

use std::fs;
use std::process::Stdio;

use sealift_desk::{outcome, told};

use crate::desk::{POLICY, Volumes};

/// The command that changes the medium in `drive`, and keeps a log of what was wanted.
const CHANGE: &str = "--next-volume=echo $SEALIFT_VOLUME of ${SEALIFT_VOLUMES-unknown}: $SEALIFT_LABEL >> log; \
                      rm -f $SEALIFT_PLACE/*; cp parts/os-7.00$SEALIFT_VOLUME-of-* $SEALIFT_PLACE/";

/// A desk with the volumes of the bundle in `parts`, and an empty `drive`.
fn split() -> Volumes {
    let desk = Volumes::new();
    desk.good("split os.sealift --size 256KiB -o parts");
    fs::create_dir(desk.path("drive")).unwrap();
    desk
}

#[test]
fn the_volumes_are_read_once_in_order() {
    let desk = split();
    let count = desk.volumes("parts").len();
    for line in ["unpack drive target", "verify --deep drive", "unpack drive target --update"] {
        fs::write(desk.path("log"), "").unwrap();
        let (status, said) = told(desk.command(&format!("{line} {POLICY}")).arg(CHANGE));
        assert_eq!(status, Some(0), "{line}: {said}");
        let wanted: Vec<String> = (2..=count)
            .map(|number| format!("{number} of {count}: os version 7, volume {number} of {count}"))
            .collect();
        let log = desk.text("log");
        let log: Vec<&str> = log.lines().collect();
        assert!(
            log.ends_with(&wanted.iter().map(String::as_str).collect::<Vec<_>>()) || line.contains("update"),
            "{line}: {log:?}"
        );
    }
    desk.assert_same("tree", "target");
}

#[test]
fn media_with_several_volumes_are_changed_less_often() {
    let desk = split();
    for name in &desk.volumes("parts")[..2] {
        fs::copy(desk.path(&format!("parts/{name}")), desk.path(&format!("drive/{name}"))).unwrap();
    }
    let (status, said) = told(desk.command(&format!("unpack drive target {POLICY}")).arg(CHANGE));
    assert_eq!(status, Some(0), "{said}");
    assert!(desk.text("log").starts_with("3 of"), "{}", desk.text("log"));
    desk.assert_same("tree", "target");
}

#[test]
fn without_a_command_each_volume_is_asked_for() {
    let desk = split();
    let names = desk.volumes("parts");
    fs::copy(desk.path(&format!("parts/{}", names[0])), desk.path(&format!("drive/{}", names[0]))).unwrap();
    // setsid(1): there is no terminal. Each line on standard input is an answer; the media are all there by then.
    let mut command = desk.command_of("setsid");
    command.args(["--wait", &sealift_desk::program(), "verify", "drive", "--next-volume", "--json"]);
    command.args(POLICY.split(' ')).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    for name in &names[1..] {
        fs::copy(desk.path(&format!("parts/{name}")), desk.path(&format!("drive/{name}"))).unwrap();
    }
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), "\n".repeat(names.len()).as_bytes()).unwrap();
    let (status, said) = outcome(&child.wait_with_output().unwrap());
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn what_is_not_there_ends_the_run() {
    let desk = split();
    let names = desk.volumes("parts");
    let first = desk.path(&format!("drive/{}", names[0]));
    fs::copy(desk.path(&format!("parts/{}", names[0])), first).unwrap();
    let run = |next: &str, why: &str| {
        let (status, said) =
            told(desk.command(&format!("unpack drive target {POLICY}")).arg(next).stdin(Stdio::null()));
        assert!(status == Some(2) && said.contains(why), "{next}: {status:?}: {said}");
        assert!(!desk.path("target").exists());
    };
    run("--next-volume=true", "drive does not have os version 7, volume 2 of");
    run("--next-volume=exit 3", "os version 7, volume 2 of");
    // Another bundle's volume 2 is not taken.
    desk.good("pack tree -o other.sealift --name os --bundle-version 8 --key release --chunk-size 64KiB");
    desk.good("split other.sealift --size 256KiB -o other");
    run("--next-volume=cp other/os-8.002-* drive/", "drive does not have os version 7, volume 2 of");
    desk.refused(&format!("unpack drive parts target --next-volume {POLICY}"), 2, "--next-volume reads one bundle");
}
