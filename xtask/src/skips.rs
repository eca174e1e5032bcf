//! Checks that tests skipped: each test reports them (`skipped` in tests/desk), a chore prints them at its end, and ci fails.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::shell::target_dir;

/// The variable that tells tests the file's path.
pub(crate) const VARIABLE: &str = "SEALIFT_SKIPPED";

/// Prefixes of the reasons that do not fail ci, and why.
#[rustfmt::skip] // a table
const ALLOWED: &[(&str, &str)] = &[
    ("fs-verity is here", "the messages of a file system without it; the step vm has one with it"),
];

/// Returns the file in which tests report skipped checks.
pub(crate) fn file() -> Result<PathBuf> {
    Ok(target_dir()?.join("skipped.txt"))
}

/// Starts with an empty list.
pub(crate) fn begin() -> Result<()> {
    let file = file()?;
    fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))
}

/// Prints what was skipped since [`begin`].
///
/// # Errors
///
/// Returns an error if the chore is ci, which must skip nothing, and something was skipped for a reason that is not allowed.
pub(crate) fn report(chore: &str) -> Result<()> {
    let file = file()?;
    let said = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let mut failing = 0;
    for (reason, tests) in reasons(&said) {
        let allowed = ALLOWED.iter().find(|(start, _)| reason.starts_with(start));
        failing += usize::from(allowed.is_none());
        let note = allowed.map(|(_, note)| format!(" ({note})")).unwrap_or_default();
        println!("{chore}: skipped: {reason}{note}");
        tests.iter().for_each(|test| println!("{chore}:   {test}"));
    }
    ensure!(
        failing == 0 || chore != "ci",
        "tests were skipped for {failing} reasons; see the lines above for what they need"
    );
    Ok(())
}

/// Groups tests by reason, without duplicates.
fn reasons(said: &str) -> BTreeMap<&str, Vec<&str>> {
    let mut reasons = BTreeMap::<&str, Vec<&str>>::new();
    for line in said.lines() {
        let (test, reason) = line.split_once('\t').unwrap_or(("?", line));
        let tests = reasons.entry(reason).or_default();
        if !tests.contains(&test) {
            tests.push(test);
        }
    }
    reasons
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_test_stands_once_under_its_reason() {
        let said = "a::b\tneeds root: devices\nc::d\tneeds root: devices\na::b\tneeds root: devices\na::e\tno bsdtar\n";
        let reasons = reasons(said);
        assert_eq!(reasons["needs root: devices"], ["a::b", "c::d"]);
        assert_eq!(reasons.len(), 2);
    }
}
