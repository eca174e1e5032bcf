//! Compares the readers on a million mutated bundles: `differential PYTHON FOLDER`. The bundles on which they differ are written into the folder. The
//! environment may set SEED, COUNT, FIRST (the number of the first mutation) and PROCESSES.

use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sealift_tests::differential::{Outcome, run};

/// The number of bundles between two lines of progress.
const STEP: u64 = 20_000;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(python), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err(std::io::Error::other("differential PYTHON FOLDER"));
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    let (seed, count, first) = (number("SEED", now.into()), number("COUNT", 1_000_000), number("FIRST", 0));
    println!("   SEED={seed}");
    let (start, mut all, end) = (Instant::now(), Outcome::default(), first + count);
    for from in (first..end).step_by(usize::try_from(STEP).expect("it is small")) {
        let outcome = run(&python, seed, from..end.min(from + STEP), number("PROCESSES", 2))?;
        for split in &outcome.splits {
            let path = split.keep(&folder)?;
            println!("   does not hold: {}: ours {}, theirs {}", path.display(), split.ours, split.theirs);
        }
        all.add(outcome);
        let read: u64 = all.verdicts.values().sum();
        println!("   {read} bundles, {:.0} s, {} splits", start.elapsed().as_secs_f64(), all.splits.len());
        if all.splits.len() >= 100 {
            break;
        }
    }
    println!("   {:?}", all.verdicts);
    if all.splits.is_empty() { Ok(()) } else { Err(std::io::Error::other("the readers differ")) }
}
