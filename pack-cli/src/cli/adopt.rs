//! Asking before a directory is taken over that Sealift did not make.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sealift::unpack::UnpackStats;

use super::escape;
use super::failure::Failure;
use super::updated::kinds;

/// Names that are shown of what would be deleted.
const SHOWN: usize = 5;

/// Whether somebody is there who can be asked: else the option is the consent.
pub(crate) fn may_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Says what taking `target` over would replace and delete.
pub(crate) fn plan(target: &Path, stats: &UnpackStats) -> String {
    let target = escape::text(&target.display().to_string());
    let mut plan = format!("{target} was not unpacked by sealift. Taking it over would");
    plan.push_str(&format!("\n  replace {}", kinds(&stats.replaced)));
    plan.push_str(&format!("\n  delete {}", kinds(&stats.deleted)));
    let names = stats.deletions.iter().take(SHOWN).map(|path| escape::bytes(path.as_os_str().as_bytes()).to_string());
    let names: Vec<String> = names.collect();
    if !names.is_empty() {
        let more = if stats.deletions.len() > SHOWN { ", ..." } else { "" };
        plan.push_str(&format!(": {}{more}", names.join(", ")));
    }
    plan
}

/// Asks whether to go on.
///
/// # Errors
/// The answer is no.
pub(crate) fn ask(target: &Path, stats: &UnpackStats) -> Result<(), Failure> {
    let mut err = anstream::stderr().lock();
    // With standard error gone there is nobody to tell, and nobody who says yes.
    let _ = write!(err, "{}\nGo on? [y/N] ", plan(target, stats)).and_then(|()| err.flush());
    let mut answer = String::new();
    let _ = io::stdin().lock().read_line(&mut answer);
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::usage(format!("{} was left as it is", target.display()))),
    }
}
