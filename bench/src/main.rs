//! What compares Sealift with its peers, and what must hold but takes long. `cargo xtask` runs it by the same names.

mod big;
mod compare;
mod debian;
mod dist;
mod products;
mod random;
mod tree;
mod vm;

use std::env;
use std::process::ExitCode;

use anyhow::{Result, bail};
use xtask::shell::enter_root;

const HELP: &str = "\
Usage: cargo xtask big|compare|vm

  big [STEP]...     run what must hold and takes more than a few minutes, as root; SEED=N repeats a run's chances
  big --list        name the steps
  big fresh         only: run the README's two commands on systems that have nothing else; prints what they installed
    --only NAME     only bookworm or trixie, only demo or ci
  compare [TREE]    run Sealift and its peers in turn over a tree (default: Debian's linux-source-6.1)
                    and write bench/RESULTS.md
    --runs N        of each contender; the median counts (default 3)
    --only M[,M]    only these measures, printed
    --scratch DIR   instead of /dev/shm
    --skip-large    no bundle of 2 GB, no million files
    --small         parts and channel with little input, to see within minutes that they work; their figures say little
  vm                run what only a kernel with fs-verity shows, in Debian's under QEMU
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    if env::args_os().any(|arg| arg == "--help" || arg == "-h") {
        print!("{HELP}");
        return Ok(());
    }
    enter_root()?;
    let mut args = lexopt::Parser::from_env();
    match args.next()? {
        Some(lexopt::Arg::Value(name)) if name == "big" => big::main(args),
        Some(lexopt::Arg::Value(name)) if name == "compare" => compare::main(args),
        Some(lexopt::Arg::Value(name)) if name == "dist" => dist::run(),
        Some(lexopt::Arg::Value(name)) if name == "vm" => vm::main(args),
        _ => bail!("no such command\n{HELP}"),
    }
}
