//! The summary of what was imported into a repository or store.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use sealift::{ImportStats, SetRef};
use serde::Serialize;

use crate::audit_words::had_gone_back_from;
use crate::escape;
use crate::failure::Failure;
use crate::human::{self, Bytes, Grouped, count};
use crate::show::{Show, WARN};
use crate::taken;
use crate::then::CommandEnd;
use crate::trust_args::Judge;

/// An import that ended, or was only tried.
pub(super) struct Import<'a> {
    pub(super) show: Show,
    pub(super) judge: &'a Judge,
    pub(super) target: &'a Path,
    pub(super) bundle: &'a Path,
    pub(super) dry_run: bool,
    /// Whether existing objects were not checked.
    pub(super) no_check: bool,
    pub(super) elapsed: Duration,
    pub(super) then: Option<&'a CommandEnd>,
}

impl Import<'_> {
    /// Prints target, bundle, signers and refs. With --json, prints `stats` instead, and returns that nothing else is to be printed.
    pub(super) fn begin<S: Serialize>(&self, out: &mut dyn Write, stats: &S, import: &ImportStats) -> io::Result<bool> {
        if self.show.is_told(out, &taken::line(stats, self.judge, self.dry_run, self.elapsed, self.then))? {
            return Ok(true);
        }
        self.judge.print_taken(out, self.target, self.bundle, self.dry_run)?;
        for SetRef { name, value } in &import.refs {
            writeln!(out, "  {} is {value}", escape::text(name))?;
        }
        Ok(false)
    }

    /// Prints how existing objects were checked, and how many were repaired.
    pub(super) fn checked(&self, out: &mut dyn Write, stats: &ImportStats) -> io::Result<()> {
        if let Some(version) = stats.install.gone_back_from {
            writeln!(out, "  {WARN}before{WARN:#}: {}", had_gone_back_from(version))?;
        }
        let (checked, hashed, repaired) = (stats.checked_objects, stats.hashed_objects, stats.repaired_objects);
        let objects = count(checked, "object");
        match (checked, hashed) {
            _ if self.no_check => writeln!(out, "  existing objects were not checked (--no-check)")?,
            (0, _) => {}
            (_, 0) => writeln!(out, "  {objects} checked by size and time, not by content")?,
            _ if hashed < checked => {
                writeln!(out, "  {objects} checked by size and time, {} of them hashed", Grouped(hashed))?;
            }
            _ => writeln!(out, "  {} hashed", count(hashed, "object"))?,
        }
        if stats.resumed_objects > 0 {
            let verb = if self.dry_run { "would reuse" } else { "reused" };
            writeln!(out, "  {verb} {} from the interrupted import", count(stats.resumed_objects, "object"))?;
        }
        if repaired > 0 {
            let verb = if self.dry_run { "to be replaced" } else { "replaced" };
            writeln!(out, "  {WARN}{}{WARN:#} {verb}", count(repaired, "damaged object"))?;
        }
        Ok(())
    }

    /// Prints how much was written, and how fast.
    pub(super) fn wrote(&self, out: &mut dyn Write, stats: &ImportStats) -> io::Result<()> {
        let (logical, stored) = (stats.install.logical_bytes, stats.install.stored_bytes);
        let (time, rate) = (human::duration(self.elapsed), human::rate(logical, self.elapsed));
        writeln!(out, "  wrote {} (read {} from the bundle) in {time}, {rate}", Bytes(logical), Bytes(stored))
    }
}

/// Says how to resume an import into `target`, or to discard it.
pub(super) fn unfinished(show: Show, failure: Failure, target: &Path) -> Failure {
    if !failure.is_stop() {
        let how = if failure.is_of_content() { "repeat the command with a good copy" } else { "repeat the command" };
        let target = target.display();
        show.warn(&format!("progress was saved: {how} to resume, or discard it: sealift clean {target}"));
    }
    failure.unfinished(target)
}

/// Prints how many objects were sealed.
pub(super) fn sealed(out: &mut dyn Write, stats: &ImportStats) -> io::Result<()> {
    writeln!(out, "  {} sealed: the kernel protects them from changes", count(stats.sealed_objects, "object"))
}
