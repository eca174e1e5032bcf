//! The summary of a repository travels beside its commits: bundles with and without it have the same contents, so that one delta serves every device
//! that holds the commits, wherever they came from.

use std::fs;

use sealift_desk::noise;
use serde_json::Value;

use crate::repos::{Repos, write};

const ROOT: &[&str] = &["--owner-uid=0", "--owner-gid=0"];
const COLLECTION: &str = "--collection-id=org.example.Os";

/// Creates a repository with a commit of `os`, and no summary.
fn desk() -> Repos {
    let desk = Repos::new();
    fs::create_dir(desk.path("tree")).expect("a folder");
    repository(&desk, "source", &[]);
    commit(&desk, "source", 1);
    desk
}

fn repository(desk: &Repos, name: &str, more: &[&str]) {
    desk.ostree(name, &[&["init", "--mode=archive"], more].concat());
    desk.ostree(name, &["config", "set", "core.fsync", "false"]);
}

/// Commits the next version of `os`, and returns its checksum.
fn commit(desk: &Repos, repo: &str, version: usize) -> String {
    write(&desk.path("tree/same"), 0o644, &noise(9, 50_000));
    write(&desk.path("tree/file"), 0o644, &noise(version, 1_000));
    desk.commit(repo, "os", "./tree", ROOT)
}

fn pack(desk: &Repos, version: usize, more: &str) {
    desk.run(&format!("pack ostree:source --ref os --name os --bundle-version {version} --allow-unsigned {more}"));
}

fn info(desk: &Repos, bundle: &str) -> Value {
    let output = desk.command(&format!("info {bundle} --json")).output().expect("sealift runs");
    serde_json::from_slice(&output.stdout).expect("it is JSON")
}

fn tip(desk: &Repos, repo: &str, reference: &str) -> String {
    desk.ostree(repo, &["rev-parse", reference]).trim().to_owned()
}

#[test]
fn a_summary_does_not_change_the_contents() {
    let desk = desk();
    let mut digests = Vec::new();
    for (number, state) in ["none", "a summary", "another summary", "a signature"].into_iter().enumerate() {
        if state == "a signature" {
            fs::write(desk.path("source/summary.sig"), state).expect("there is room");
        } else if number > 0 {
            let metadata = format!("--add-metadata=number=uint32 {number}");
            desk.ostree("source", &["summary", "--update", &metadata]);
        }
        desk.run(&format!("pack ostree:source -o {number}.sealift --name os --bundle-version {}", number + 1));
        digests.push(info(&desk, &format!("{number}.sealift"))["identity"]["index_digest"].clone());
        // It is there all the same.
        let mirror = format!("mirror-{number}");
        desk.init(&mirror, "archive");
        desk.run(&format!("unpack {number}.sealift ostree:{mirror} --mirror --allow-unsigned --state {mirror}-state"));
        for name in ["summary", "summary.sig"] {
            let read = |repo: &str| fs::read(desk.path(repo).join(name)).ok();
            assert!(read(&mirror) == read("source"), "{state}: {name}");
        }
    }
    assert!(digests[0].is_string() && digests.iter().all(|digest| *digest == digests[0]), "{digests:?}");
    // Therefore there is nothing new in it for a device.
    let said = desk.run(
        "pack ostree:source -o none.sealift --name os --bundle-version 5 --base 0.sealift --allow-unsigned --json",
    );
    let said: Value = serde_json::from_str(&said).expect("it is JSON");
    assert_eq!(said["unchanged"], true);
    assert!(!desk.path("none.sealift").exists());
}

/// The device got its commits from Sealift or from OSTree, and the delta comes alone or in a folder.
#[test]
fn one_delta_for_all_devices() {
    let desk = desk();
    desk.ostree("source", &["summary", "--update"]);
    pack(&desk, 1, "-o 1.sealift");
    let one = tip(&desk, "source", "os");
    for how in ["sealift", "ostree"] {
        for form in ["alone", "folder", "mirror"] {
            let repo = format!("{how}-{form}");
            desk.init(&repo, "bare-user-only");
            match (how, form) {
                ("sealift", "mirror") => {
                    desk.run(&format!("unpack 1.sealift ostree:{repo} --mirror --allow-unsigned --state {repo}-state"));
                }
                ("sealift", _) => {
                    desk.run(&format!("unpack 1.sealift ostree:{repo} --allow-unsigned --state {repo}-state"));
                }
                _ => drop(desk.ostree(&repo, &["pull-local", "source", "os"])),
            }
            assert_eq!(tip(&desk, &repo, "os"), one, "{repo}");
        }
    }
    let two = commit(&desk, "source", 2);
    desk.ostree("source", &["summary", "--update"]);
    fs::create_dir(desk.path("stick")).expect("a folder");
    pack(&desk, 2, "-o stick/os-2.sealift");
    pack(&desk, 2, "-o stick/delta.sealift --base 1.sealift");
    pack(&desk, 2, &format!("-o of-commit.sealift --base ostree:source:{one}"));
    let base = |bundle: &str| info(&desk, bundle)["delta"]["bases"][0]["index_digest"].clone();
    assert!(base("of-commit.sealift").is_string() && base("of-commit.sealift") == base("stick/delta.sealift"));
    for how in ["sealift", "ostree"] {
        for (form, bundle) in [("alone", "stick/delta.sealift"), ("folder", "stick"), ("mirror", "stick --mirror")] {
            let repo = format!("{how}-{form}");
            let (bundle, more) = bundle.split_once(' ').unwrap_or((bundle, ""));
            let line = format!("unpack {bundle} ostree:{repo} --allow-unsigned --state {repo}-state {more}");
            let said = desk.run(&line);
            assert!(said.contains("imported stick/delta.sealift"), "{line}: {said}");
            assert_eq!(tip(&desk, &repo, "os"), two, "{repo}");
            desk.fsck(&repo);
        }
    }
}

/// A mirror that a delta updates has the new summary with its signature.
#[test]
fn a_delta_brings_the_summary_to_a_mirror() {
    let desk = desk();
    desk.init("mirror", "archive");
    for version in 1..=2 {
        if version > 1 {
            commit(&desk, "source", version);
        }
        desk.ostree("source", &["summary", "--update"]);
        fs::write(desk.path("source/summary.sig"), format!("signature {version}")).expect("there is room");
        let base = if version > 1 { "--base 1.sealift" } else { "" };
        pack(&desk, version, &format!("-o {version}.sealift {base}"));
        let said = desk.run(&format!("unpack {version}.sealift ostree:mirror --mirror --allow-unsigned"));
        assert!(said.contains("the summary is the one from the source"), "{said}");
        for name in ["summary", "summary.sig"] {
            let read = |repo: &str| fs::read(desk.path(repo).join(name)).expect("it is there");
            assert_eq!(read("mirror"), read("source"), "{name} of version {version}");
        }
    }
    desk.fsck("mirror");
}

/// A medium that Sealift wrote is updated by a delta, alone or in a folder, and OSTree reads it.
#[test]
fn a_medium_takes_a_delta() {
    let desk = Repos::new();
    fs::create_dir(desk.path("tree")).expect("a folder");
    repository(&desk, "source", &[COLLECTION]);
    commit(&desk, "source", 1);
    desk.ostree("source", &["summary", "--update"]);
    pack(&desk, 1, "-o 1.sealift");
    let one = tip(&desk, "source", "os");
    let two = commit(&desk, "source", 2);
    desk.ostree("source", &["summary", "--update"]);
    fs::create_dir(desk.path("bundles")).expect("a folder");
    pack(&desk, 2, "-o bundles/full.sealift");
    pack(&desk, 2, "-o bundles/delta.sealift --base 1.sealift");
    pack(&desk, 2, &format!("-o of-commit.sealift --base ostree:source:{one}"));
    for (number, bundle) in ["bundles/delta.sealift", "of-commit.sealift", "bundles"].into_iter().enumerate() {
        let (medium, state) = (format!("medium-{number}"), format!("state-{number}"));
        fs::create_dir(desk.path(&medium)).expect("a folder");
        desk.run(&format!("unpack 1.sealift --usb {medium} --allow-unsigned --state {state}"));
        let said = desk.run(&format!("unpack {bundle} --usb {medium} --allow-unsigned --state {state}"));
        assert!(said.contains("delta.sealift") || said.contains("of-commit.sealift"), "{said}");
        let repo = format!("{medium}/.ostree/repo");
        desk.fsck(&repo);
        let device = format!("device-{number}");
        desk.init(&device, "bare-user-only");
        let url = format!("file://{}", desk.path(&repo).display());
        desk.ostree(&device, &["remote", "add", "--no-gpg-verify", COLLECTION, "os", &url]);
        desk.ostree(&device, &["pull", "os", &two]);
        desk.fsck(&device);
        assert_eq!(desk.listed(&device, &two), desk.listed("source", &two));
        assert_eq!(desk.ostree(&repo, &["refs", "-c", "--list"]).trim(), "(org.example.Os, os)");
        assert!(desk.ostree(&repo, &["summary", "--view"]).contains(&two), "the medium's summary names the commit");
    }
}

/// Files that the repositories do not have alike are about one of them alone.
#[test]
fn several_repositories_have_their_common_files() {
    let desk = desk();
    for name in ["apps", "copy"] {
        repository(&desk, name, &[]);
    }
    desk.commit("apps", "app", "./tree", ROOT);
    let packed = |sources: &str, bundle: &str| {
        let line = format!("pack {sources} -o {bundle} --name all --bundle-version 1");
        let output = desk.command(&line).output().expect("sealift runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{line}: {said}");
        let warns = said.contains("the repositories have different summaries: the bundle carries none");
        let mirror = format!("mirror-of-{bundle}");
        desk.init(&mirror, "archive");
        let taken = desk.import_with(bundle, &mirror, &format!("--mirror --state {mirror}-state"));
        (warns, taken["has_summary"].as_bool().expect("a bool"))
    };
    let both = "ostree:source:os ostree:apps:app";
    assert_eq!(packed(both, "neither"), (false, false));
    desk.ostree("source", &["summary", "--update"]);
    assert_eq!(packed(both, "one"), (true, false));
    desk.ostree("apps", &["summary", "--update"]);
    assert_eq!(packed(both, "both"), (true, false));
    // A repository and its copy, from which each ref comes.
    desk.ostree("source", &["pull-local", "apps"]);
    desk.ostree("source", &["summary", "--update"]);
    desk.ostree("copy", &["pull-local", "source"]);
    fs::copy(desk.path("source/summary"), desk.path("copy/summary")).expect("there is room");
    assert_eq!(packed("ostree:source:os ostree:copy:app", "alike"), (false, true));
}

#[test]
fn a_checksum_needs_the_name_of_a_ref() {
    let desk = desk();
    let commit = tip(&desk, "source", "os");
    for source in [format!("ostree:source:{commit}"), format!("ostree:source --ref {commit}")] {
        for more in ["", "--dry-run"] {
            let said = desk.refused(&format!("pack {source} -o x.sealift --name os --bundle-version 1 {more}"));
            assert!(said.contains(&format!("{commit} is a commit and not a ref")), "{said}");
            assert!(said.contains("NAME=ostree:REPO:CHECKSUM"), "{said}");
            assert!(!desk.path("x.sealift").exists());
        }
    }
    desk.run(&format!("pack os=ostree:source:{commit} -o x.sealift --name os --bundle-version 1"));
    desk.init_with("target", "archive", "x.sealift");
    assert_eq!(tip(&desk, "target", "os"), commit);
}
