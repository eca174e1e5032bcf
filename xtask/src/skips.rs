//! What tests did not look at: each says so (tests/skipped), a chore prints it at its end, and a reason that no machine is expected to have fails it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::shell::target_dir;

/// The variable that names the file to tests.
pub(crate) const VARIABLE: &str = "SEALIFT_SKIPPED";

/// Reasons by their beginning, and why they may be.
#[rustfmt::skip] // a table
const EXPECTED: &[(&str, &str)] = &[
    ("needs root", "run ci as root to have these as well"),
    ("needs ext4", "TMPDIR may name a folder on one"),
    ("needs a user namespace", "some containers and kernels give none"),
    ("fs-verity is here", "what is said where it is not; the step vm has what is said where it is"),
    ("udevadm before 254", "Debian 12's udev cannot check rules"),
];

/// Returns where tests say what they did not look at.
pub(crate) fn file() -> Result<PathBuf> {
    Ok(target_dir()?.join("skipped.txt"))
}

/// Begins with nothing skipped.
pub(crate) fn begin() -> Result<()> {
    let file = file()?;
    fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
    fs::write(&file, "").with_context(|| format!("cannot write {}", file.display()))
}

/// Prints what was skipped since [`begin`].
///
/// # Errors
///
/// When a reason is not expected of any machine.
pub(crate) fn report(chore: &str) -> Result<()> {
    let file = file()?;
    let said = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let reasons = reasons(&said);
    for (reason, tests) in &reasons {
        let note = expected(reason).map_or("NOT EXPECTED", |(_, note)| note);
        println!("{chore}: skipped: {reason} ({note})");
        tests.iter().for_each(|test| println!("{chore}:   {test}"));
    }
    let unexpected = reasons.keys().filter(|reason| expected(reason).is_none()).count();
    if unexpected > 0 {
        bail!(
            "tests were skipped for {unexpected} reasons that are not expected; xtask/src/skips.rs lists those that are"
        );
    }
    Ok(())
}

fn expected(reason: &str) -> Option<&'static (&'static str, &'static str)> {
    EXPECTED.iter().find(|(start, _)| reason.starts_with(start))
}

/// Tests by reason, each once.
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
        assert!(expected("needs root: devices").is_some() && expected("no bsdtar").is_none());
        assert!(expected("a line that no test wrote").is_none());
    }
}
