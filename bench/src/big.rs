//! `cargo xtask big`: checks that take more than a few minutes: killed runs, failing disks, hostile neighbours, a whole system, sizes far beyond the
//! usual, and the release files.

mod differential;
mod disks;
mod faults;
mod findings;
mod folding;
mod fresh;
mod ground;
mod kills;
mod links;
mod listing;
mod mutants;
mod repositories;
mod scale;
mod slots;
mod snapshot;
mod survivors;
mod system;
mod trees;
mod trial;
mod verbs;

use std::process::Command;

use anyhow::{Result, ensure};
use xtask::packages::{self, Chore};
use xtask::shell::run;
use xtask::steps::{self, Action, Step};

use crate::dist;
use crate::vm;

use Action::{Call, Lines};

#[rustfmt::skip] // a table
const STEPS: &[Step] = &[
    Step { name: "kills", action: Call("pack, unpack and update, killed at hundreds of moments and run again", kills::run) },
    Step { name: "faults", action: Call("pack, unpack and update, while each system call fails once", faults::run) },
    Step { name: "disks", action: Call("file systems that fill up meanwhile, or lose their power", disks::run) },
    Step { name: "repo-kills", action: Call("unpack into OSTree repositories and pack of one, killed and run again", repositories::kills::run) },
    Step { name: "repo-faults", action: Call("unpack into OSTree repositories, while each system call fails once", repositories::faults::run) },
    Step { name: "repo-disks", action: Call("unpack into OSTree repositories on disks that fill up or lose their power", repositories::disks::run) },
    Step { name: "repo-prunes", action: Call("unpack into OSTree repositories that somebody prunes meanwhile", repositories::prunes::run) },
    Step { name: "repo-damage", action: Call("pack of OSTree repositories with any damage", repositories::damage::run) },
    Step { name: "folding", action: Call("a file system that takes names for the same which differ in case", folding::run) },
    Step { name: "slots", action: Call("images written to a slot, killed at hundreds of moments and run again", slots::run) },
    Step { name: "links", action: Call("links and fifos that somebody plants or swaps meanwhile", links::run) },
    Step { name: "system", action: Call("a Debian is packed, unpacked, changed by apt, and updated", system::run) },
    Step { name: "fresh", action: Call("the README's two commands on systems that have nothing else", fresh::all) },
    Step { name: "scale", action: Call("a million files, 20 GB of holes, 10,000 directories deep", scale::run) },
    Step { name: "sealed", action: Call("a hundred thousand sealed files are audited, on a kernel with fs-verity", vm::many) },
    Step { name: "dist", action: Call("static programs and packages, made twice, installed and purged", dist::run) },
    Step { name: "plain", action: Lines(&[
        "cargo test --locked --workspace --exclude xtask --exclude sealift-bench --test cli",
        "cargo install --debug --locked --quiet --path pack-cli --root ${CARGO_TARGET_DIR:-target}/installed",
    ]) },
    Step { name: "listing", action: Call("the second reader lists a gigabyte as sealift ls does", listing::run) },
    Step { name: "survivors", action: Call("rejections of the second reader that no vector notices", survivors::run) },
    Step { name: "mutants", action: Call("changed lines of format and verify are noticed by their tests or by vectors", mutants::run) },
    Step { name: "differential", action: Call("the readers agree on a million mutated bundles", differential::run) },
];

/// Runs the steps named in the arguments, or all of them. `fresh` has options of its own.
pub(crate) fn main(args: lexopt::Parser) -> Result<()> {
    let mut rest = args.clone();
    if matches!(rest.next()?, Some(lexopt::Arg::Value(name)) if name == "fresh") {
        prepare()?;
        return fresh::main(rest);
    }
    let Some(chosen) = steps::choose(Chore::Big, STEPS, args)? else { return Ok(()) };
    prepare()?;
    if let [_] = chosen[..] {
        return steps::run(Chore::Big, &chosen);
    }
    // Each step runs in a process of its own: the peak memory of a child includes what this process used before (getrusage(2), ru_maxrss).
    chosen.iter().try_for_each(|step| run(Command::new("cargo").args(["xtask", "big", step.name])))
}

/// Owners, devices and mounts need root.
fn prepare() -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "big runs as root, on a machine that may be thrown away");
    packages::ensure(Chore::Big)
}
