//! Killed at any moment, a run leaves a repository that is sound, and the same command completes it and leaves nothing else.

use std::fs;
use std::process::Stdio;
use std::time::Instant;

use crate::desk::{Desk, copy, is_root, noise, write};

/// In each of three modes: a hundred in all.
const KILLS: u32 = 34;

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
    if is_root() {
        kill("bare");
    }
}

fn kill(mode: &str) {
    let desk = Desk::new();
    let make = |number: usize, seed: usize| {
        let folder = desk.path(&format!("tree/d{}", number % 7));
        fs::create_dir_all(&folder).expect("a folder");
        write(&folder.join(format!("f{number}")), 0o644, &noise(seed, number * 40));
    };
    (0..120).for_each(|number| make(number, number));
    desk.init("source", "archive");
    let commit = || desk.commit("source", "os", "./tree", &["--owner-uid=0", "--owner-gid=0"]);
    let old = commit();
    desk.run("pack ostree:source -o old.sealift");
    (0..120).step_by(2).for_each(|number| make(number, number + 1000));
    write(&desk.path("tree/large"), 0o600, &noise(5, 5 << 20));
    let new = commit();
    desk.run("pack ostree:source -o new.sealift");

    desk.init("begun", mode);
    desk.import("old.sealift", "begun");
    copy(&desk.path("begun"), &desk.path("whole"));
    let line = "unpack new.sealift ostree:target --allow-unsigned --quiet";
    let start = Instant::now();
    desk.run(&line.replace("target", "whole"));
    let duration = start.elapsed();
    let whole = desk.names("whole");
    let mut seen = [0, 0];
    for number in 0..KILLS {
        copy(&desk.path("begun"), &desk.path("target"));
        let mut child = desk.command(line).stderr(Stdio::null()).spawn().expect("sealift runs");
        std::thread::sleep(duration.mul_f64(f64::from(number) / f64::from(KILLS)));
        child.kill().expect("it is our child");
        child.wait().expect("it ends");

        desk.fsck("target");
        let tip = desk.ostree("target", &["rev-parse", "os"]).trim().to_owned();
        assert!(tip == old || tip == new, "{number}: {tip}");
        seen[usize::from(tip == new)] += 1;
        assert_eq!(desk.listed("target", &tip), desk.listed("source", &tip), "{number}");

        desk.run(line);
        desk.fsck("target");
        assert_eq!(desk.ostree("target", &["rev-parse", "os"]).trim(), new);
        assert_eq!(desk.names("target"), whole, "{number}: nothing else is left");
        fs::remove_dir_all(desk.path("target")).expect("it can be removed");
    }
    println!("killed with the old commit {} times, with the new one {} times", seen[0], seen[1]);
}
