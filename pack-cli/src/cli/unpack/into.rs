//! `unpack --into FILE`: bundles of several names, each into the target of its line.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use sealift::channel::Channel;
use sealift::choose::by_name;
use sealift::{Error, is_address};
use serde::Serialize;

use super::Unpack;
use super::into_file::{self, IntoLine};
use crate::escape;
use crate::failure::{Failure, shown};
use crate::human::count;
use crate::interrupt;
use crate::limits::limits;
use crate::reading::channel_at;
use crate::several::Several;
use crate::show::{BAD, BOLD, DIM};
use sealift_format::num;

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Outcome {
    Done,
    Failed,
    /// No bundle has the name.
    NoBundle,
    /// The run was stopped before.
    NotTried,
}

/// A line, and what became of it.
#[derive(Debug, Serialize)]
struct Tried {
    line: usize,
    name: String,
    targets: Vec<String>,
    outcome: Outcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

#[derive(Serialize)]
struct JsonInto<'a> {
    dry_run: bool,
    into: &'a [Tried],
    /// Names of bundles that have no line.
    no_line: &'a [String],
}

/// What there is to install.
struct Sources {
    /// Channels, and the name of each.
    channels: Vec<(String, PathBuf)>,
    /// The files of bundles, by their names.
    files: BTreeMap<String, Vec<PathBuf>>,
    /// Files whose heads cannot be read: they may be damaged copies.
    unread: Vec<PathBuf>,
}

impl Sources {
    /// Looks for channels and bundles in these places, and for channels in the directories there. Returns also why files cannot be read.
    fn find(paths: &[PathBuf]) -> Result<(Self, Vec<Failure>), Failure> {
        let (mut channels, mut places, mut unopened) = (Vec::new(), Vec::new(), Vec::new());
        for place in paths {
            match channel_at(place)? {
                Some(channel) => channels.push((channel.list().list().name.clone(), place.clone())),
                None => places.push(place.clone()),
            }
        }
        // A stick may have a channel for each name, in directories of their own.
        for place in places.iter().filter(|place| place.is_dir()) {
            for below in directories_in(place)? {
                match Channel::open(&below) {
                    Ok(Some(channel)) => channels.push((channel.list().list().name.clone(), below)),
                    Ok(None) => {}
                    Err(error) => unopened.push((Channel::list_in(&below), error)),
                }
            }
        }
        let named = by_name(&places, &limits())?;
        let (unread, errors): (_, Vec<Error>) = named.unread.into_iter().chain(unopened).unzip();
        Ok((Self { channels, files: named.files, unread }, errors.into_iter().map(Failure::from).collect()))
    }

    /// Returns what has this name: a channel, or several addresses of it, otherwise bundles, with the files that may be damaged copies of them.
    fn of(&self, name: &str) -> Option<Vec<PathBuf>> {
        let mut channels: Vec<PathBuf> =
            self.channels.iter().filter(|(own, _)| own == name).map(|(_, place)| place.clone()).collect();
        if !channels.iter().all(|place| is_address(place)) {
            channels.truncate(1);
        }
        if !channels.is_empty() {
            return Some(channels);
        }
        self.files.get(name).map(|files| files.iter().chain(&self.unread).cloned().collect())
    }

    /// Returns all names.
    fn names(&self) -> BTreeSet<&str> {
        self.channels.iter().map(|(name, _)| &**name).chain(self.files.keys().map(String::as_str)).collect()
    }
}

/// Returns the directories in a directory, sorted by name; links are not followed.
fn directories_in(place: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Io { doing: "read", path: place.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(place).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

impl Unpack {
    /// Installs what the lines of `file` name, one after the other.
    pub(super) fn take_into(&self, paths: &[PathBuf], file: &Path) -> Result<(), Failure> {
        let lines = into_file::read(file)?;
        if paths.iter().any(|path| path == Path::new("-")) {
            return Err(Failure::usage("--into looks at bundles before it reads them: give files, not standard input"));
        }
        let places = paths.iter().map(|path| shown(path)).collect::<Vec<_>>().join(", ");
        let (sources, unread) = Sources::find(paths)?;
        if sources.names().is_empty() && unread.is_empty() {
            return Err(Failure::usage(format!("{places}: no *.sealift files here, and no volumes")));
        }
        let (trust, show, passed) = (&self.trust, self.show, Cell::new(0));
        let several = Several { paths, name: None, held: Vec::new(), trust, show, passed, said: &[] };
        for (path, failure) in sources.unread.iter().zip(&unread) {
            several.say(path, failure.kind(), &failure.message());
        }
        // Whose bundle an unreadable file was is unknown: that is an error only if there is no other.
        if let (true, Some(failure)) = (sources.names().is_empty(), unread.into_iter().next()) {
            return Err(failure.of_several(&places));
        }
        let has_no_line = |name: &&str| lines.iter().all(|line| line.name != **name);
        let no_line: Vec<String> = sources.names().into_iter().filter(has_no_line).map(str::to_owned).collect();
        let (mut tried, mut worst): (Vec<Tried>, Option<Failure>) = (Vec::new(), None);
        for line in lines {
            let mut row = Tried::of(&line);
            if interrupt::pending() {
                row.outcome = Outcome::NotTried;
            } else if let Some(found) = sources.of(&line.name) {
                match self.of_line(line, found, &sources.unread).run() {
                    Ok(()) => row.outcome = Outcome::Done,
                    Err(failure) => {
                        row.outcome = Outcome::Failed;
                        failure.tell(show.json);
                        (row.kind, row.message) = (Some(failure.kind()), Some(failure.message()));
                        if worst.as_ref().is_none_or(|worst| failure.gravity() > worst.gravity()) {
                            worst = Some(failure);
                        }
                    }
                }
            }
            tried.push(row);
        }
        self.print_into(file, &tried, &no_line)?;
        let is_stopped = worst.is_some() || tried.iter().any(|row| row.outcome == Outcome::NotTried);
        if interrupt::pending() && is_stopped {
            return Err(Failure::of_command(interrupt::status()));
        }
        worst.map_or(Ok(()), |worst| Err(worst.told()))
    }

    /// Returns the run of a line, with the options that hold for all lines.
    fn of_line(&self, line: IntoLine, found: Vec<PathBuf>, said: &[PathBuf]) -> Self {
        let IntoLine { name, mut unpack, .. } = line;
        unpack.paths.splice(0..0, found);
        unpack.name = Some(name);
        unpack.said = said.to_vec();
        unpack.trust = self.trust.with(&unpack.trust);
        unpack.jobs = if unpack.jobs.given().is_some() { unpack.jobs } else { self.jobs };
        if self.rehash {
            (unpack.rehash, unpack.no_check) = (true, false);
        }
        unpack.dry_run = self.dry_run;
        (unpack.show, unpack.progress) = (self.show, self.progress);
        unpack
    }

    /// Prints what became of each line.
    fn print_into(&self, file: &Path, tried: &[Tried], no_line: &[String]) -> io::Result<()> {
        let mut out = self.show.out();
        if self.show.is_told(&mut out, &JsonInto { dry_run: self.dry_run, into: tried, no_line })? {
            return Ok(());
        }
        let done = num::wide(tried.iter().filter(|row| row.outcome == Outcome::Done).count());
        let (lines, verb) =
            (count(num::wide(tried.len()), "line"), if self.dry_run { "would be done" } else { "done" });
        writeln!(out, "{BOLD}{}{BOLD:#}: {done} of {lines} {verb}", escape::text(&shown(file)))?;
        for Tried { name, targets, outcome, kind, .. } in tried {
            let targets = escape::text(&targets.join(" "));
            match outcome {
                Outcome::Done => writeln!(out, "  {:<9} {name} to {targets}", "done")?,
                Outcome::Failed => {
                    let kind = kind.unwrap_or_default();
                    writeln!(out, "  {BAD}{:<9}{BAD:#} {name} to {targets} ({kind})", "failed")?;
                }
                Outcome::NoBundle => {
                    writeln!(
                        out,
                        "  {DIM}{:<9}{DIM:#} no bundle here has the name {name}; {targets} stays",
                        "unchanged"
                    )?;
                }
                Outcome::NotTried => writeln!(out, "  {:<9} {name} to {targets}: stopped before", "not tried")?,
            }
        }
        for name in no_line {
            writeln!(out, "  {DIM}{:<9}{DIM:#} {name}: no line has this name", "left")?;
        }
        Ok(())
    }
}

impl Tried {
    /// A line for which there is nothing yet.
    fn of(line: &IntoLine) -> Self {
        let (name, targets) = (line.name.clone(), line.targets());
        Self { line: line.number, name, targets, outcome: Outcome::NoBundle, kind: None, message: None }
    }
}
