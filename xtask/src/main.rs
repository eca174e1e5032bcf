//! The command line of the chores.

use std::env;
use std::os::unix::process::CommandExt as _;
use std::process::ExitCode;

use anyhow::{Result, bail};
use xtask::{ci, dist, portal, quick, shell, web};

const HELP: &str = "\
Usage: cargo xtask COMMAND

  quick [STEP]...   run what shows most mistakes, in a minute: formatting, lints, unit tests, vectors
  ci [STEP]...      run everything that must hold, or only the steps named
  ci --list         name the steps
  dist              build static programs, archives and Debian packages into target/dist
    --check         make them twice, run them, install and purge one; needs root
  portal            build the program that serves the page, into target/release
  web               build the package for JavaScript and the page on it into target/web
    --bare          only what the page's benchmark compares it with

What bench/ does, each with a --help of its own:

  big               run what must hold and takes more than a few minutes
  compare           run Sealift and its peers in turn, and write bench/RESULTS.md
  vm                run what only a kernel with fs-verity shows, in Debian's under QEMU
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
    shell::enter_root()?;
    let mut args = lexopt::Parser::from_env();
    let name = match args.next()? {
        Some(lexopt::Arg::Value(name)) => name,
        None | Some(lexopt::Arg::Long("help") | lexopt::Arg::Short('h')) => {
            print!("{HELP}");
            return Ok(());
        }
        Some(other) => bail!("{}\n{HELP}", other.unexpected()),
    };
    if ["big", "compare", "vm"].iter().any(|of_bench| name == *of_bench) {
        return Err(shell::bench().args(env::args_os().skip(1)).exec().into());
    }
    match name.to_str() {
        _ if env::args_os().any(|arg| arg == "--help" || arg == "-h") => print!("{HELP}"),
        Some("ci") => ci::main(args)?,
        Some("dist") => dist::main(args)?,
        Some("portal") => portal::main(args)?,
        Some("quick") => quick::main(args)?,
        Some("web") => web::main(args)?,
        _ => bail!("no command {}\n{HELP}", name.display()),
    }
    Ok(())
}
