//! The confirmation before an update takes over a directory that Sealift did not create.

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sealift::Error;
use sealift::unpack::UnpackStats;

use super::escape;
use super::show::Show;
use super::updated::kinds;

/// How many of the paths to delete are shown.
const SHOWN: usize = 5;

/// Shows what taking over `target` replaces and deletes, and asks for confirmation on a terminal; without one, the option itself is the consent.
///
/// # Errors
/// Returns an error if the user declines.
pub(crate) fn agree(show: Show, target: &Path, stats: &UnpackStats) -> Result<(), Error> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        return ask(target, stats);
    }
    tell(show, target, stats);
    Ok(())
}

/// Returns the first paths that would be deleted, after a colon.
fn first_names(stats: &UnpackStats) -> String {
    let names = stats.deletions.iter().take(SHOWN).map(|path| escape::bytes(path.as_os_str().as_bytes()).to_string());
    let names: Vec<String> = names.collect();
    let more = if stats.deletions.len() > SHOWN { ", ..." } else { "" };
    if names.is_empty() { String::new() } else { format!(": {}{more}", names.join(", ")) }
}

fn tell(show: Show, target: &Path, stats: &UnpackStats) {
    show.warn(&format!(
        "{} was not unpacked by sealift; taking it over replaces {} and deletes {}{}",
        target.display(),
        kinds(&stats.replaced),
        kinds(&stats.deleted),
        first_names(stats),
    ));
}

fn ask(target: &Path, stats: &UnpackStats) -> Result<(), Error> {
    let name = escape::text(&target.display().to_string());
    let (replaced, deleted, names) = (kinds(&stats.replaced), kinds(&stats.deleted), first_names(stats));
    // If standard error is closed, nobody can confirm. It is not locked while the user decides, so that Ctrl-C can clear the line.
    let mut err = anstream::stderr();
    let _ = write!(
        err,
        "{name} was not unpacked by sealift. Taking it over would\n  replace {replaced}\n  delete {deleted}{names}\nContinue? [y/N] "
    )
    .and_then(|()| err.flush());
    let mut answer = String::new();
    let _ = io::stdin().lock().read_line(&mut answer);
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Error::Usage(format!("{} was left unchanged", target.display()))),
    }
}
