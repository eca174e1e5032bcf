//! Changes a line of `format` or `verify` at a time, and counts the changes that neither their own tests nor the vectors notice. COUNT and SEED choose
//! the changes.

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::shell::{output, renew, target_dir};
use xtask::tools::CARGO_MUTANTS;

use crate::random::Random;

/// The crates that are changed; their code decides what is accepted.
const CRATES: [&str; 4] = ["--package", "sealift-format", "--package", "sealift-verify"];
/// The share of changes, in percent, that may go unnoticed: some change nothing that anyone could see.
const MOST_MISSED: usize = 8;

pub(crate) fn run() -> Result<()> {
    let program = CARGO_MUTANTS.ensure()?;
    let listed = output(mutants(&program).arg("--list"))?;
    let mut names: Vec<&str> = listed.lines().collect();
    let count = env::var("COUNT").map_or(Ok(100), |text| text.parse().context("COUNT is a number"))?;
    let mut random = Random::new()?;
    println!("   {count} of {} changes", names.len());
    let mut chosen = Vec::new();
    while chosen.len() < count && !names.is_empty() {
        let at = usize::try_from(random.below(u64::try_from(names.len())?))?;
        chosen.push(names.swap_remove(at).to_owned());
    }
    // The vectors need crates that take longer to compile: only what the tests of the changed crate do not notice is left to them.
    let first = test(&program, &chosen, &[], &["--tests"])?;
    ensure!(first.tested >= chosen.len(), "cargo-mutants tested {} of {} changes", first.tested, chosen.len());
    println!(
        "   {} of {} went unnoticed by the tests of their crate; {} do not compile",
        first.missed.len(),
        first.viable,
        first.unviable
    );
    // Unchanged, it would test the packages that are changed, which have no vectors. `ci` tests all.
    let vectors = ["--test-package", "sealift-tests", "--baseline", "skip", "--cargo-arg=--test=vectors"];
    let mut missed = match &first.missed[..] {
        [] => Vec::new(),
        missed => test(&program, missed, &vectors, &[])?.missed,
    };
    // Changes that delete a field are tested whatever names are given.
    missed.retain(|name| first.missed.contains(name));
    missed.iter().for_each(|name| println!("   unnoticed: {name}"));
    println!("   {} of {} went unnoticed", missed.len(), first.viable);
    ensure!(
        missed.len() * 100 <= first.viable * MOST_MISSED,
        "more than {MOST_MISSED} % of the changes went unnoticed"
    );
    Ok(())
}

fn mutants(program: &Path) -> Command {
    let mut command = Command::new(program);
    // What a feature leaves out would go unnoticed.
    command.args(["mutants", "--all-features"]).args(CRATES);
    command
}

/// What tests notice.
struct Found {
    tested: usize,
    /// Changes that compile.
    viable: usize,
    unviable: usize,
    /// The names of those that went unnoticed.
    missed: Vec<String>,
}

/// Tests the changes of these names; several may have one.
fn test(program: &Path, names: &[String], options: &[&str], of_cargo: &[&str]) -> Result<Found> {
    let out = target_dir()?.join("mutants");
    renew(&out)?;
    let mut command = mutants(program);
    command.args(["--no-shuffle", "--timeout", "300", "--colors", "never", "--output"]).arg(&out).args(options);
    // Each change is compiled and tested once: what takes long is to optimise it, and to compile what did not change.
    command.env("CARGO_INCREMENTAL", "1");
    for package in ["format", "verify"] {
        command.arg(format!("--cargo-arg=--config=profile.dev.package.sealift-{package}.opt-level=0"));
    }
    for name in names {
        command.arg("--re").arg(format!("^{}$", escaped(name)));
    }
    // It ends with 2 if some were missed, and with 3 if some took too long.
    let status = command.arg("--").args(of_cargo).status().context("cannot start cargo-mutants")?;
    ensure!(matches!(status.code(), Some(0 | 2 | 3)), "cargo-mutants ended with {status}");
    let found = |name: &str| lines(&out.join("mutants.out").join(name));
    let (missed, caught) = (found("missed.txt")?, found("caught.txt")?.len() + found("timeout.txt")?.len());
    let (viable, unviable) = (missed.len() + caught, found("unviable.txt")?.len());
    Ok(Found { tested: viable + unviable, viable, unviable, missed })
}

fn lines(path: &Path) -> Result<Vec<String>> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// Returns a regular expression that matches the text alone. Others than these letters are not escaped: `\<` would be the start of a word.
fn escaped(text: &str) -> String {
    let plain = |letter: char| !r"\.+*?()|[]{}^$".contains(letter);
    text.chars().map(|letter| if plain(letter) { letter.to_string() } else { format!("\\{letter}") }).collect()
}
