//! `cargo xtask vm`: tests that need a kernel with fs-verity. Debian's own kernel runs in QEMU, by emulation, which works on any machine. The guest
//! is tests/vm, and its disks are new each time.

mod debian;
mod disks;
mod guest;
mod machine;

use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::packages::{self, Chore};
use crate::random::Random;
use crate::shell::target_dir;
use debian::Tools;
use disks::{Disks, LARGE, SMALL};
use machine::{Ended, Machine};

/// A boot takes three seconds, and the longest suite a minute or two, on a machine under load.
const LIMIT: Duration = Duration::from_mins(8);
/// For the suite with many files.
const LONG: Duration = Duration::from_mins(40);

/// The number of power cuts, and the least time that sealing takes.
const CUTS: usize = 2;
const SEALING: Duration = Duration::from_millis(800);

pub(crate) fn main(mut args: lexopt::Parser) -> Result<()> {
    match args.next()? {
        None => run(),
        Some(other) => Err(other.unexpected().into()),
    }
}

/// Runs every suite except [`many`].
pub(crate) fn run() -> Result<()> {
    let (tools, work) = (ensure()?, target_dir()?.join("vm"));
    let start = Instant::now();
    let machine = Machine::new(&tools, &guest::image(&tools, &work)?, &work, LIMIT);
    println!("vm: built in {:.1} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    holds(&machine, "cases", &Disks::new(&work, &SMALL)?)?;
    power_cuts(&machine, &Disks::new(&work, &SMALL)?)?;
    println!("vm: every suite holds, {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Seals a hundred thousand files, and audits them.
pub(crate) fn many() -> Result<()> {
    let (tools, work) = (ensure()?, target_dir()?.join("vm"));
    let machine = Machine::new(&tools, &guest::image(&tools, &work)?, &work, LONG);
    holds(&machine, "many", &Disks::new(&work, &LARGE)?)
}

fn ensure() -> Result<Tools> {
    packages::ensure(Chore::Vm)?;
    debian::ensure()
}

/// Cuts the power while files are sealed, at several moments, and checks that the next boot completes the run.
fn power_cuts(machine: &Machine<'_>, disks: &Disks) -> Result<()> {
    let mut random = Random::new()?;
    for _ in 0..CUTS {
        let moment = random.moment(SEALING);
        let ended = machine.boot("cut", disks, |line| {
            let is_sealing = line == "vm: sealing";
            if is_sealing {
                sleep(moment);
            }
            is_sealing
        })?;
        ensure!(matches!(ended, Ended::Killed), "all was sealed before the power went");
        println!("vm: the power went after {moment:.1?} of sealing");
        holds(machine, "resume", disks)?;
    }
    Ok(())
}

/// Runs a suite to its end.
fn holds(machine: &Machine<'_>, suite: &str, disks: &Disks) -> Result<()> {
    let failed = match machine.boot(suite, disks, |_| false)? {
        Ended::Over { failed } => failed,
        Ended::Killed => 0,
    };
    ensure!(
        failed == 0,
        "{failed} cases of the suite {suite} fail; what the kernel said is in {}",
        machine.log().display()
    );
    Ok(())
}
