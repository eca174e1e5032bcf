//! The guest of `cargo xtask vm`: the only program that its kernel starts, as process 1. It runs the suite that the kernel's command line
//! names, says on the second serial port what came of it, and turns the machine off.
//!
//! A case is a function that panics where something does not hold, as a test does. It finds its file system mounted at [`Desk::root`], and
//! nothing of other cases there that it would trip over.

mod cases;
mod desk;
mod machine;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use desk::Desk;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next().as_deref(), std::process::id()) {
        // A child of a case: it keeps what it inherited open for a while.
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

/// Runs a suite, and returns how many of its cases failed.
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

/// What a case is run on, its name, and itself.
type Case = (Desk, &'static str, Check);
type Check = fn(&Desk);
