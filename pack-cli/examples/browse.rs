//! A bundle browser: opens a bundle once, then lists and reads files by path, in any order, reading nothing else.
//!
//! ```text
//! browse BUNDLE ALLOWED_SIGNERS STATE
//! ```
//!
//! Reads commands from standard input, one per line: `ls [PATH]` and `cat PATH`.

use std::error::Error;
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use sealift::cat::Contents;
use sealift::inspect::{EntryKind, entries, find};
use sealift::trust::{Guard, TrustOptions};
use sealift::{Bundle, Input, Limits, Progress};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bundle, signers, state] = &arguments[..] else {
        eprintln!("usage: browse BUNDLE ALLOWED_SIGNERS STATE");
        return ExitCode::from(2);
    };
    let trust = TrustOptions { signers: Some(signers.into()), state: Some(state.into()), ..TrustOptions::default() };
    match browse(Path::new(bundle), &trust) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("browse: {error}");
            ExitCode::from(error.downcast_ref().map_or(2, sealift::Error::exit_status))
        }
    }
}

fn browse(path: &Path, trust: &TrustOptions) -> Result<(), Box<dyn Error>> {
    let guard = Guard::load(trust)?;
    // Reads head, layout and index; content can be extracted only because the guard admitted the head.
    let mut contents = Contents::open(guard.admit(Input::open(path)?, Limits::default())?)?;
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (verb, path) = line.split_once(' ').unwrap_or((&line, ""));
        let done = match verb {
            "ls" => list(contents.bundle(), path, &mut out),
            // One read after the index for a file, one for each piece of a large one.
            "cat" => contents.cat(path.as_bytes(), &mut out, &Progress::default()).map_err(Into::into),
            _ => Err(format!("{verb}: there are ls [PATH] and cat PATH").into()),
        };
        if let Err(error) = done {
            writeln!(out, "{error}")?;
        }
    }
    Ok(out.flush()?)
}

/// Prints the tree at and below a path, indented.
fn list(bundle: &Bundle, path: &str, out: &mut impl std::io::Write) -> Result<(), Box<dyn Error>> {
    let top = find(bundle, path.as_bytes())?;
    let (reference, top) = (top.reference.name.clone(), top.path());
    // Tree order groups a directory's entries; people expect them right after the directory's name.
    let mut all: Vec<_> = entries(bundle).filter(|entry| entry.reference.name == reference).collect();
    all.sort_by_cached_key(|entry| entry.path().split(|byte| *byte == b'/').map(<[u8]>::to_vec).collect::<Vec<_>>());
    for entry in all {
        let path = entry.path();
        let below = path.strip_prefix(&top[..]).filter(|rest| top.is_empty() || rest.is_empty() || rest[0] == b'/');
        let Some(below) = below.filter(|_| !path.is_empty()) else { continue };
        let depth = below.iter().filter(|byte| **byte == b'/').count();
        // A name is bytes, and may contain terminal control sequences.
        let name = entry.name.escape_ascii();
        let what = match entry.what {
            EntryKind::Directory => "/".to_owned(),
            EntryKind::Regular { object, .. } => format!("  {} bytes", object.size),
            EntryKind::Symlink(target) => format!(" -> {}", target.escape_ascii()),
            _ => "  (special)".to_owned(),
        };
        writeln!(out, "{:width$}{name}{what}", "", width = depth * 2)?;
    }
    Ok(())
}
