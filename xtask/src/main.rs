//! Chores of the workspace, one file per subcommand. They call programs, and contain nothing that the product needs.

mod big;
mod ci;
mod compare;
mod debian;
mod dist;
mod failures;
mod layers;
mod packages;
mod portal;
mod programs;
mod quick;
mod random;
mod shell;
mod skips;
mod steps;
mod tools;
mod vm;
mod web;

use std::env;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};

const HELP: &str = "\
Usage: cargo xtask COMMAND

  quick [STEP]...   run what shows most mistakes, in a minute: formatting, lints, unit tests, vectors
  ci [STEP]...      run everything that must hold, or only the steps named
  ci --list         name the steps
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
  dist              build static programs, archives and Debian packages into target/dist
    --check         make them twice, run them, install and purge one; needs root
  portal            build the program that serves the page, into target/release
  vm                run what only a kernel with fs-verity shows, in Debian's under QEMU
  web               build the package for JavaScript and the page on it into target/web
    --bare          only what the page's benchmark compares it with
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
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
        Some(lexopt::Arg::Value(name)) if name == "ci" => ci::main(args),
        Some(lexopt::Arg::Value(name)) if name == "big" => big::main(args),
        Some(lexopt::Arg::Value(name)) if name == "compare" => compare::main(args),
        Some(lexopt::Arg::Value(name)) if name == "dist" => dist::main(args),
        Some(lexopt::Arg::Value(name)) if name == "portal" => portal::main(args),
        Some(lexopt::Arg::Value(name)) if name == "quick" => quick::main(args),
        Some(lexopt::Arg::Value(name)) if name == "vm" => vm::main(args),
        Some(lexopt::Arg::Value(name)) if name == "web" => web::main(args),
        None => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => bail!("{}\n{HELP}", other.unexpected()),
    }
}

/// Makes the repository's root the working directory, so that every command is as a person would type it there.
fn enter_root() -> Result<()> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = Path::new(&manifest).parent().context("xtask/ lies in the repository's root")?;
    env::set_current_dir(root).with_context(|| format!("cannot enter {}", root.display()))
}
