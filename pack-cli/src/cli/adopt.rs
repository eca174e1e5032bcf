//! The confirmation before an update takes over a directory that Sealift did not create.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sealift::unpack::UnpackStats;
use sealift::{Error, RecordFault};

use super::escape;
use super::show::Show;
use super::updated::kinds;

/// How many of the paths to delete are shown.
const SHOWN: usize = 5;

/// What taking over a directory needs besides `--adopt`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Consent {
    /// `--yes`: nobody is asked.
    pub(crate) is_given: bool,
    /// `--delete`: what would be lost is not in the bundle.
    pub(crate) deletes: bool,
}

/// Shows what taking over `target` replaces and deletes, and asks for confirmation on the terminal, wherever standard input and output lead. Without
/// one, `--adopt` itself is the consent, but not to deletions.
///
/// # Errors
/// Returns an error if the user declines, or cannot be asked.
pub(crate) fn agree(show: Show, target: &Path, stats: &UnpackStats, consent: Consent) -> Result<(), Error> {
    if consent.is_given {
        tell(show, target, stats);
        return Ok(());
    }
    match File::options().read(true).write(true).open("/dev/tty") {
        Ok(terminal) => ask(&terminal, target, stats),
        Err(_) if consent.deletes => Err(unasked(target, stats)),
        Err(_) => {
            tell(show, target, stats);
            Ok(())
        }
    }
}

fn unasked(target: &Path, stats: &UnpackStats) -> Error {
    let (replaced, deleted, names) = (kinds(&stats.replaced), kinds(&stats.deleted), first_names(stats));
    Error::Usage(format!(
        "{} {}; taking it over would replace {replaced} and delete {deleted}{names}; \
         there is no terminal to ask on: --adopt --delete needs --yes",
        target.display(),
        why(stats)
    ))
}

/// Returns the first paths that would be deleted, after a colon.
fn first_names(stats: &UnpackStats) -> String {
    let names = stats.deletions.iter().take(SHOWN).map(|path| escape::bytes(path.as_os_str().as_bytes()).to_string());
    let names: Vec<String> = names.collect();
    let more = if stats.deletions.len() > SHOWN { ", ..." } else { "" };
    if names.is_empty() { String::new() } else { format!(": {}{more}", names.join(", ")) }
}

/// Returns why the target is not shown to be this program's.
fn why(stats: &UnpackStats) -> String {
    match &stats.adopted {
        None | Some(RecordFault::Missing { listed: None }) => "was not unpacked by sealift".into(),
        Some(why) => why.to_string(),
    }
}

fn tell(show: Show, target: &Path, stats: &UnpackStats) {
    show.warn(&format!(
        "{} {}; taking it over replaces {} and deletes {}{}",
        target.display(),
        why(stats),
        kinds(&stats.replaced),
        kinds(&stats.deleted),
        first_names(stats),
    ));
}

fn ask(terminal: &File, target: &Path, stats: &UnpackStats) -> Result<(), Error> {
    let name = escape::text(&target.display().to_string());
    let (replaced, deleted, names) = (kinds(&stats.replaced), kinds(&stats.deleted), first_names(stats));
    let why = escape::text(&why(stats));
    let question = format!(
        "{name} {why}. Taking it over would\n  replace {replaced}\n  delete {deleted}{names}\nContinue? [y/N] "
    );
    let (mut answer, mut out) = (String::new(), terminal);
    // A question that cannot be shown, or an answer that cannot be read, is no consent.
    let asked = out.write_all(question.as_bytes()).and_then(|()| BufReader::new(terminal).read_line(&mut answer));
    match (asked, answer.trim().to_ascii_lowercase().as_str()) {
        (Ok(_), "y" | "yes") => Ok(()),
        _ => Err(Error::Usage(format!("{} was left unchanged", target.display()))),
    }
}
