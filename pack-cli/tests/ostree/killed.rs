//! If a run is killed at any moment, the repository is sound, and the same command completes the import and leaves nothing else.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use sealift_desk::{can_chown, kill_after, noise};

use crate::repos::{Repos, copy, write};

/// For each of three bundles in each of three modes: a hundred in all.
const KILLS: u32 = 12;

#[test]
fn archive() {
    kill("archive");
}

#[test]
fn bare_user() {
    kill("bare-user");
}

#[test]
fn bare() {
    if can_chown() {
        kill("bare");
    }
}

fn kill(mode: &str) {
    let desk = Repos::in_memory();
    let make = |number: usize, seed: usize| {
        let folder = desk.path(&format!("tree/d{}", number % 7));
        fs::create_dir_all(&folder).expect("a folder");
        write(&folder.join(format!("f{number}")), 0o644, &noise(seed, number * 40));
    };
    (0..120).for_each(|number| make(number, number));
    desk.init("source", "archive");
    let commit = || desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    let old = commit();
    desk.run("pack --force ostree:source -o old.sealift --name os --bundle-version 1");
    (0..120).step_by(2).for_each(|number| make(number, number + 1000));
    // The delta does not carry the content of these files.
    for number in (0..120).filter(|number| number % 6 == 3) {
        let path = desk.path(&format!("tree/d{}/f{number}", number % 7));
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("it is ours");
    }
    write(&desk.path("tree/large"), 0o600, &noise(5, 5 << 20));
    let new = commit();
    let pack = "pack --force ostree:source --name os --bundle-version 2 --allow-unsigned -o";
    desk.run(&format!("{pack} new.sealift"));
    desk.run(&format!("{pack} delta.sealift --base old.sealift"));

    desk.init_with("begun", mode, "old.sealift");
    for (bundle, keeps) in [("new", true), ("delta", true), ("delta", false)] {
        if !keeps {
            fs::remove_dir_all(desk.path("begun/extensions/sealift")).expect("it is kept");
        }
        kill_one(&desk, bundle, (&old, &new));
    }
}

/// Kills the unpacking of a bundle of the commit `new` into copies of a repository that has `old`.
fn kill_one(desk: &Repos, bundle: &str, (old, new): (&str, &str)) {
    copy(&desk.path("begun"), &desk.path("whole"));
    let line = &format!("unpack {bundle}.sealift ostree:target --allow-unsigned --quiet");
    let start = Instant::now();
    desk.run(&line.replace("target", "whole"));
    let duration = start.elapsed();
    let whole = desk.files("whole");
    let trees = [old, new].map(|commit| desk.listed("source", commit));
    let mut seen = [0, 0];
    for number in 0..KILLS {
        copy(&desk.path("begun"), &desk.path("target"));
        kill_after(duration.mul_f64(f64::from(number) / f64::from(KILLS)), &mut desk.command(line));

        desk.fsck("target");
        let tip = desk.ostree("target", &["rev-parse", "os"]).trim().to_owned();
        assert!(tip == old || tip == new, "{number}: {tip}");
        let which = usize::from(tip == new);
        seen[which] += 1;
        assert_eq!(desk.listed("target", &tip), trees[which], "{number}");

        desk.run(line);
        desk.fsck("target");
        assert_eq!(desk.ostree("target", &["rev-parse", "os"]).trim(), new);
        assert_eq!(desk.files("target"), whole, "{number}: nothing else is left");
        fs::remove_dir_all(desk.path("target")).expect("it can be removed");
    }
    fs::remove_dir_all(desk.path("whole")).expect("it can be removed");
    println!("{bundle}: killed with the old commit {} times, with the new one {} times", seen[0], seen[1]);
}
