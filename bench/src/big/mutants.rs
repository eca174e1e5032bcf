//! Changes a line of `format` or `verify` at a time, and counts the changes that neither their unit tests nor the vectors notice. COUNT and SEED choose
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
    let mutants = || {
        let mut command = Command::new(&program);
        command.arg("mutants").args(CRATES);
        command
    };
    let listed = output(mutants().arg("--list"))?;
    let mut names: Vec<&str> = listed.lines().collect();
    let count = env::var("COUNT").map_or(Ok(100), |text| text.parse().context("COUNT is a number"))?;
    let mut random = Random::new()?;
    println!("   {count} of {} changes", names.len());
    let mut chosen = Vec::new();
    while chosen.len() < count && !names.is_empty() {
        let at = usize::try_from(random.below(u64::try_from(names.len())?))?;
        chosen.push(names.swap_remove(at));
    }
    let out = target_dir()?.join("mutants");
    renew(&out)?;
    let mut command = mutants();
    command.args(["--test-package", "sealift-format,sealift-verify,sealift-tests", "--no-shuffle", "--timeout", "300"]);
    // Unchanged, it would test the packages that are changed alone, which have no vectors. `ci` tests all.
    command.args(["--baseline", "skip"]);
    command.args(["--colors", "never", "--output"]).arg(&out);
    for name in &chosen {
        command.arg("--re").arg(format!("^{}$", escaped(name)));
    }
    // It ends with 2 if some were missed.
    let status = command.args(["--", "--lib", "--test", "vectors"]).status().context("cannot start cargo-mutants")?;
    ensure!(matches!(status.code(), Some(0 | 2 | 3)), "cargo-mutants ended with {status}");
    let tested: Vec<serde_json::Value> =
        serde_json::from_str(&fs::read_to_string(out.join("mutants.out/mutants.json"))?)?;
    // Several changes may have one name.
    ensure!(tested.len() >= chosen.len(), "cargo-mutants tested {} of {} changes", tested.len(), chosen.len());
    let found = |name: &str| lines(&out.join("mutants.out").join(name));
    let (missed, caught) = (found("missed.txt")?, found("caught.txt")?.len() + found("timeout.txt")?.len());
    missed.iter().for_each(|name| println!("   unnoticed: {name}"));
    let viable = missed.len() + caught;
    println!("   {} of {viable} went unnoticed; {} do not compile", missed.len(), found("unviable.txt")?.len());
    ensure!(missed.len() * 100 <= viable * MOST_MISSED, "more than {MOST_MISSED} % of the changes went unnoticed");
    Ok(())
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
