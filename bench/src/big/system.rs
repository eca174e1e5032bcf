//! A whole Debian system: packed, unpacked, changed by its own package manager, and the copy updated to match.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use xtask::shell::{output, run as run_command};

use super::findings::Findings;
use super::ground::{Ground, difference, names};
use crate::debian::{SUITE, apt, connect, kept};

/// Each package changes the tree in its own way: a capability, set-id files, many small files, and removed names.
const CHANGES: [&[&str]; 3] =
    [&["dist-upgrade"], &["install", "less", "cron", "iputils-ping", "python3-minimal"], &["purge", "cron", "tzdata"]];

const AUDIT: &str = "sealift audit work/target TRUST";

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("system")?;
    let root = ground.path("root");
    run_command(Command::new("cp").args(["-a", "--reflink=auto"]).arg(kept(SUITE, &[], |_| Ok(()))?).arg(&root))?;
    fs::create_dir(ground.path("work"))?;
    connect(&root)?;
    apt(&root, &["install", "iputils-ping"])?;
    add_specials(&root)?;

    let mut findings = Findings::default();
    pack(&ground, 0)?;
    ground.run("sealift unpack root-0.sealift work/target TRUST --quiet")?;
    compare(&ground, "unpacked", &mut findings)?;
    for (number, change) in (1..).zip(CHANGES) {
        apt(&root, change)?;
        pack(&ground, number)?;
        let previous = number - 1;
        let said = ground.printed_by(&format!("sealift diff root-{previous}.sealift root-{number}.sealift"))?;
        let summary =
            ground.printed_by(&format!("sealift unpack root-{number}.sealift work/target --update --delete TRUST"))?;
        println!("   apt-get {}: {}", change.join(" "), said.lines().last().unwrap_or_default());
        summary.lines().skip(2).for_each(|line| println!("     {}", line.trim()));
        compare(&ground, change[0], &mut findings)?;
    }
    findings.finish()?;
    ground.remove()
}

/// Adds what a system may contain and a fresh one lacks.
fn add_specials(root: &Path) -> Result<()> {
    let srv = root.join("srv");
    fs::write(srv.join("listed"), "a file with an ACL\n")?;
    fs::create_dir(srv.join("shared"))?;
    for args in [&["-m", "u:4711:rw"][..], &["-m", "g:4712:r"]] {
        run_command(Command::new("setfacl").args(args).arg(srv.join("listed")))?;
    }
    run_command(Command::new("setfacl").args(["-d", "-m", "u:4711:rwx"]).arg(srv.join("shared")))?;
    run_command(Command::new("setfattr").args(["-n", "user.note", "-v", "kept"]).arg(srv.join("shared")))?;
    fs::hard_link(srv.join("listed"), root.join("var/listed-too"))?;
    mknodat(CWD, srv.join("block"), FileType::BlockDevice, Mode::from_raw_mode(0o660), makedev(7, 300))?;
    mknodat(CWD, srv.join("char"), FileType::CharacterDevice, Mode::from_raw_mode(0o606), makedev(1, 3))?;
    mknodat(CWD, srv.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o600), 0)?;
    mknodat(CWD, srv.join("socket"), FileType::Socket, Mode::from_raw_mode(0o700), 0)?;
    let capable = output(Command::new("getfattr").args(["-n", "security.capability"]).arg(root.join("bin/ping")))?;
    ensure!(capable.contains("security.capability"), "ping has no capability: the test would say nothing of them");
    Ok(())
}

fn pack(ground: &Ground, version: u32) -> Result<()> {
    ground.run(&format!(
        "sealift pack --force root -o root-{version}.sealift --name debian --bundle-version {version} --key key --quiet"
    ))
}

fn compare(ground: &Ground, after: &str, findings: &mut Findings) -> Result<()> {
    if let Some(found) = difference(&ground.path("root"), &ground.path("work/target"))? {
        findings.add(&format!("{after}: rsync finds {found}"))?;
    }
    if let Err(error) = ground.run(AUDIT) {
        findings.add(&format!("{after}: {error:#}"))?;
    }
    let left = names(&ground.path("work"))?;
    if left != [".target.sealift-state", "state", "target"] {
        findings.add(&format!("{after}: beside the target is {}", left.join(" ")))?;
    }
    Ok(())
}
