//! Compares the readers on mutated bundles: `differential PYTHON`, with SEED, COUNT and PROCESSES from the environment.

use std::path::Path;
use std::time::Instant;

use sealift_tests::differential::run;

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

fn main() -> std::io::Result<()> {
    let python = std::env::args_os().nth(1).expect("differential PYTHON");
    let (seed, count, first) = (number("SEED", 1), number("COUNT", 10_000), number("FIRST", 0));
    let start = Instant::now();
    let outcome = run(Path::new(&python), seed, first..first + count, number("PROCESSES", 2))?;
    let seconds = start.elapsed().as_secs_f64();
    let read: u64 = outcome.verdicts.values().sum();
    println!("{read} bundles, {seconds:.1} s: {:?}", outcome.verdicts);
    for split in &outcome.splits {
        let path = split.keep(Path::new("target/splits"))?;
        let error = sealift_tests::reader::open(&split.input.bytes, &[usize::MAX]).err();
        println!("SEED={seed}, {}: ours {} ({error:?}), theirs {}", path.display(), split.ours, split.theirs);
    }
    if outcome.splits.is_empty() { Ok(()) } else { Err(std::io::Error::other("the readers differ")) }
}
