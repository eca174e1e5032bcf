//! What `sealift verify` says of a file that is sound: a bundle, one of its volumes, or a recovery file.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use sealift::{Error, Head, Progress};
use serde::Serialize;

use super::digests::Digests;
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::progress_args::ProgressArgs;
use super::show::{BOLD, GOOD, Show};
use super::signers::Signers;
use super::trust_args::Judge;

/// A file that is part of a bundle, or protects it, and is checked without the rest.
pub(crate) struct Alone<'a> {
    pub(crate) path: &'a Path,
    pub(crate) head: &'a Head,
    pub(crate) judge: &'a Judge,
    pub(crate) show: Show,
    pub(crate) progress: ProgressArgs,
}

impl Alone<'_> {
    /// Judges the signers, and checks the file. Returns what `check` does, and the time it took.
    pub(crate) fn check<T>(self, check: impl FnOnce(&Progress) -> Result<T, Error>) -> Result<(T, Duration), Failure> {
        let start = Instant::now();
        self.judge.judge(self.head).about(self.path)?;
        let checked = self.progress.watch(self.show, "Opening", |progress| check(progress)).about(self.path)?;
        self.judge.warn(self.show);
        Ok((checked, start.elapsed()))
    }
}

/// A verdict: whose file it is, and by whom it is signed.
pub(crate) struct Verdict<'a> {
    pub(crate) path: &'a Path,
    pub(crate) head: &'a Head,
    /// What the file is, for people.
    pub(crate) label: String,
    /// What was found, such as `sound`.
    pub(crate) word: &'static str,
    pub(crate) judge: &'a Judge,
}

/// The verdict in JSON, with what is said of this kind of file.
#[derive(Serialize)]
struct JsonVerdict<'a, T> {
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    digests: Digests,
    #[serde(flatten)]
    signers: Signers,
    #[serde(flatten)]
    rest: T,
}

impl Verdict<'_> {
    /// With --json, prints the verdict with `rest`, and returns that nothing else is to be printed.
    pub(crate) fn is_told(&self, out: &mut dyn Write, show: Show, rest: impl Serialize) -> io::Result<bool> {
        let identity = &self.head.root().identity;
        let line = JsonVerdict {
            name: &identity.name,
            version: identity.version,
            digests: Digests::of(self.head),
            signers: self.judge.signers(),
            rest,
        };
        show.is_told(out, &line)
    }

    /// Prints the verdict's own line.
    pub(crate) fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let (path, label, word) = (escape::text(&shown(self.path)), &self.label, self.word);
        writeln!(out, "{BOLD}{path}{BOLD:#}: {GOOD}{word}{GOOD:#}, {label}{}", self.judge.mark())
    }
}
