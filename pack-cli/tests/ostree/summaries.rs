//! A repository that has a summary has a correct one after an import: the bytes that `ostree summary --update` writes; and clients of Flatpak find
//! the new commits.

use std::fs;
use std::process::Command;

use sealift_desk::{noise, text};

use crate::repos::{Repos, write};

const KEY: &[u8] = b"ostree.summary.last-modified\0";

/// Returns a summary without the time when it was written.
fn timeless(mut summary: Vec<u8>) -> Vec<u8> {
    let at = summary.windows(KEY.len()).position(|window| window == KEY).expect("it says when it was written");
    let at = (at + KEY.len()).next_multiple_of(8);
    summary[at..at + 8].fill(0);
    summary
}

fn desk() -> Repos {
    let desk = Repos::new();
    fs::create_dir(desk.path("tree")).expect("a folder");
    desk.init("source", "archive");
    desk.init("target", "archive");
    for version in 1..=2_usize {
        write(&desk.path("tree/file"), 0o644, &noise(version, 5_000));
        let more = format!("--add-metadata-string=version={version}.0");
        for name in ["os/stable", "os/next"] {
            desk.commit("source", name, "./tree", &["--owner-uid=0", "--owner-gid=0", &more]);
        }
        desk.run(&format!("pack ostree:source -o os-{version}.sealift --name os --bundle-version {version}"));
    }
    desk
}

#[test]
fn it_is_what_ostree_writes() {
    let desk = desk();
    assert_eq!(desk.import("os-1.sealift", "target")["summary_updated"], false);
    assert!(!desk.path("target/summary").exists(), "where there is none, none is made");
    desk.ostree("target", &["summary", "--update"]);
    assert_eq!(desk.import("os-1.sealift", "target")["summary_updated"], false, "it lists them");
    fs::write(desk.path("target/summary.sig"), "a signature").expect("there is room");
    let output = desk.command("unpack os-2.sealift ostree:target --allow-unsigned").output().expect("sealift runs");
    assert!(
        output.status.success() && text(&output.stdout).contains("updated the summary"),
        "{}",
        text(&output.stdout)
    );
    assert!(
        text(&output.stderr).contains("ostree summary --update --gpg-sign=KEY --repo=target"),
        "{}",
        text(&output.stderr)
    );
    assert!(!desk.path("target/summary.sig").exists(), "it was one of other bytes");
    let ours = fs::read(desk.path("target/summary")).expect("there is one");
    desk.ostree("target", &["summary", "--update"]);
    let theirs = fs::read(desk.path("target/summary")).expect("there is one");
    assert!(timeless(ours) == timeless(theirs), "the summaries differ");
    // A summary that a killed run left, or that cannot be parsed.
    let sound = fs::read(desk.path("target/summary")).expect("there is one");
    desk.run("unpack os-1.sealift ostree:target --allow-unsigned --allow-downgrade");
    let old = fs::read(desk.path("target/summary")).expect("there is one");
    assert!(timeless(old.clone()) != timeless(sound.clone()));
    for left in [&sound[..], b"", b"nonsense"] {
        fs::write(desk.path("target/summary"), left).expect("there is room");
        assert_eq!(desk.import_with("os-1.sealift", "target", "--allow-downgrade")["summary_updated"], true);
        assert!(timeless(fs::read(desk.path("target/summary")).expect("there is one")) == timeless(old.clone()));
    }
}

/// `flatpak update` finds the new version in the repository.
#[test]
fn flatpak_finds_what_came() {
    let desk = Repos::new();
    let flatpak = |line: &str| {
        let mut command = Command::new("flatpak");
        command.args(line.split(' ')).current_dir(desk.path(".")).env("HOME", desk.path("home"));
        command.env("XDG_DATA_HOME", desk.path("data")).env("FLATPAK_SYSTEM_DIR", desk.path("system"));
        let output = command.output().expect("flatpak is installed: apt install flatpak");
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    for folder in ["app/files/bin", "app/export", "rt/usr/bin", "rt/files", "home", "data"] {
        fs::create_dir_all(desk.path(folder)).expect("a folder");
    }
    let arch = flatpak("--default-arch").trim().to_owned();
    let parts = format!("runtime=org.test.Platform/{arch}/1\nsdk=org.test.Sdk/{arch}/1\n");
    fs::write(desk.path("rt/metadata"), format!("[Runtime]\nname=org.test.Platform\n{parts}")).expect("there is room");
    fs::write(desk.path("app/metadata"), format!("[Application]\nname=org.test.App\n{parts}")).expect("there is room");
    flatpak("build-export --runtime --files=usr from rt 1");
    for version in 1..=3 {
        fs::write(desk.path("app/files/bin/app"), version.to_string()).expect("there is room");
        flatpak("build-export from app stable");
        desk.run(&format!("pack ostree:from -o {version}.sealift --name apps --bundle-version {version}"));
    }
    desk.init_with("repo", "archive", "1.sealift");
    flatpak("build-update-repo repo");
    flatpak("--user remote-add --no-gpg-verify local repo");
    flatpak("--user install -y --noninteractive local org.test.App");
    let installed = || flatpak("--user info --show-commit org.test.App").trim().to_owned();
    let tip = || desk.ostree("repo", &["rev-parse", &format!("app/org.test.App/{arch}/stable")]).trim().to_owned();
    assert_eq!(installed(), tip());
    for version in 2..=3 {
        let line = format!("unpack {version}.sealift ostree:repo --allow-unsigned");
        let output = desk.command(&line).output().expect("sealift runs");
        assert!(output.status.success(), "{}", text(&output.stderr));
        let is_said = text(&output.stderr).contains("flatpak build-update-repo repo");
        assert_eq!(is_said, version == 2, "{}", text(&output.stderr));
        assert!(!desk.path("repo/summary.idx").exists(), "it would hide the summary");
        assert_ne!(installed(), tip());
        flatpak("--user update -y --noninteractive");
        assert_eq!(installed(), tip(), "version {version}");
    }
    flatpak("build-update-repo repo");
    flatpak("--user update -y --noninteractive");
    assert_eq!(installed(), tip());
}
