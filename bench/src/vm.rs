//! `cargo xtask vm`: tests that need a kernel with fs-verity. Debian's own kernel runs in QEMU, by emulation, which works on any machine. The guest
//! is tests/vm, and its disks are new each time.

mod debian;
mod disks;
mod guest;
mod machine;

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use xtask::packages::{self, Chore};
use xtask::shell::target_dir;

use crate::random::Random;
use debian::Tools;
use disks::{Disks, LARGE, SMALL};
use machine::{Ended, Machine};

/// A boot takes three seconds, and the longest suite two minutes; on a machine under load it has taken more than fifteen.
const LIMIT: Duration = Duration::from_mins(60);

/// The number of power cuts, and the minimum time that sealing takes.
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
    let machine = Machine::new(&tools, &guest::image(&tools, &work)?, &work, LIMIT);
    holds(&machine, "many", &Disks::new(&work, &LARGE)?)
}

fn ensure() -> Result<Tools> {
    packages::ensure(Chore::Vm)?;
    debian::ensure()
}

/// The size of a guest with room for a whole system.
pub(crate) const TIMED: &[&str] = &["-m", "2048", "-smp", "2"];
/// The same with one processor, which runs a thousand million instructions per second of the guest's clock, whatever the load of this machine. Only
/// the time that the guest waits is real time.
pub(crate) const COUNTED: &[&str] = &["-m", "2048", "-icount", "shift=0"];

/// A guest whose initramfs contains what a measure needs.
pub(crate) struct Guest {
    tools: Tools,
    work: PathBuf,
    image: PathBuf,
}

impl Guest {
    /// Creates its initramfs in a folder: drivers, programs, and other files, each with its name in the guest.
    pub(crate) fn new(
        work: PathBuf,
        drivers: &[&str],
        programs: &[(PathBuf, &str)],
        files: &[(&str, Vec<u8>)],
    ) -> Result<Self> {
        let tools = ensure()?;
        let image = guest::image_of((&tools, &work), drivers, programs, files)?;
        Ok(Self { tools, work, image })
    }

    /// Boots it with these QEMU options for its size, these words on the kernel's command line, and these disks, given as options of -drive. Returns
    /// the guest's output up to the first line that ends with `last`.
    pub(crate) fn boot(
        &self,
        size: &'static [&'static str],
        words: &str,
        disks: &[String],
        last: &str,
    ) -> Result<Vec<String>> {
        let mut machine = Machine::new(&self.tools, &self.image, &self.work, LIMIT);
        machine.size = size;
        let mut said = Vec::new();
        let ended = machine.boot(words, disks, |line| {
            said.push(line.to_owned());
            line.ends_with(last)
        });
        ensure!(
            matches!(ended, Ok(Ended::Killed)),
            "{}: {ended:?}, what the kernel said is in {}",
            said.join("\n"),
            machine.log().display()
        );
        Ok(said)
    }
}

/// Cuts the power while files are sealed, at several moments, and checks that the next boot completes the run.
fn power_cuts(machine: &Machine<'_>, disks: &Disks) -> Result<()> {
    let mut random = Random::new()?;
    for _ in 0..CUTS {
        let moment = random.moment(SEALING);
        let ended = machine.boot("suite=cut", &disks.drives(), |line| {
            println!("{line}");
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
    let failed = match machine.boot(&format!("suite={suite}"), &disks.drives(), |line| {
        println!("{line}");
        false
    })? {
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
