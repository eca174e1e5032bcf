//! The guest of `cargo xtask vm`: the only program that its kernel starts, as process 1. It runs the suite named on the kernel's
//! command line, reports the results on the second serial port, and powers the machine off.
//!
//! A case is a function that panics on failure, like a test. It finds its file system mounted at [`Disk::root`], without
//! conflicting leftovers of other cases.

mod cases;
mod disk;
mod machine;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use disk::Disk;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), std::process::id()) {
        // A child process of a case: it holds its inherited descriptors open for a while.
        (Some("hold"), _) => {
            let millis = arguments.next().and_then(|millis| millis.parse().ok());
            std::thread::sleep(Duration::from_millis(millis.unwrap_or(0)));
            ExitCode::SUCCESS
        }
        (_, 1) => {
            machine::start();
            let failed = run(&std::env::var("suite").unwrap_or_default());
            println!("vm: over, {failed} failed");
            machine::turn_off()
        }
        _ => {
            eprintln!("this is the first process of a virtual machine: cargo xtask vm");
            ExitCode::from(2)
        }
    }
}

/// Runs a suite, and returns the number of failed cases.
fn run(suite: &str) -> usize {
    let mut failed = 0;
    for (desk, name, case) in cases::of(suite) {
        let start = Instant::now();
        let held = catch_unwind(AssertUnwindSafe(|| case(&desk))).is_ok();
        failed += usize::from(!held);
        let (word, seconds) = (if held { "holds" } else { "FAILS" }, start.elapsed().as_secs_f64());
        println!("vm: {word}  {:<5}  {name}  {seconds:.1} s", desk.kind());
    }
    failed
}

/// The file system of a case, its name, and its function.
type Case = (Disk, &'static str, Check);
type Check = fn(&Disk);
