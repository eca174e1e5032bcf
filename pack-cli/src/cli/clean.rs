//! `sealift clean`: what runs left that were killed.

use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use sealift::clean::{Cleaned, clean};
use serde::Serialize;

use super::bundle::jobs;
use super::escape;
use super::failure::Failure;
use super::human::count;
use super::show::{BOLD, Pace, Show, json_line};

/// Remove what a run that was killed left beside TARGET
///
/// An unpacking that did not end goes on when it is run again; this gives it up instead. An update that had begun to change TARGET is
/// finished first, from what it had prepared. Where that is damaged, TARGET holds files of two bundles: the exit status is 1, and an
/// update makes it whole.
///
/// What a run left in an OSTree repository is removed by the next one that writes there. What is kept there of the bundles that it
/// took, in extensions/sealift, may be removed by hand.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift clean /srv/os
  sealift clean os.sealift")]
pub(crate) struct Clean {
    /// A directory that was unpacked or updated, or a bundle that was packed or signed
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    pace: Pace,
}

impl Clean {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.target == Path::new("-") {
            return Err(Failure::usage("standard input has nothing beside it: name a directory or a bundle"));
        }
        if self.target.as_os_str().as_bytes().starts_with(b"ostree:") {
            return Err(Failure::usage("what a run left in a repository is removed by the next one that writes there"));
        }
        let cleaned = self.pace.watch(self.show, "Looking", |progress| clean(&self.target, jobs(None), progress))?;
        Ok(self.print(cleaned)?)
    }

    fn print(&self, cleaned: Cleaned) -> std::io::Result<()> {
        let mut out = self.show.out();
        if self.show.json {
            let Cleaned { was_removed, was_finished, spools, .. } = cleaned;
            return json_line(&mut out, &Summary { was_removed, was_finished, spools });
        }
        if self.show.quiet {
            return Ok(());
        }
        let mut done = Vec::new();
        if cleaned.was_finished {
            done.push("an update that had begun was finished".to_owned());
        }
        if cleaned.was_removed {
            done.push("what a run had made so far was removed".to_owned());
        }
        if cleaned.spools > 0 {
            done.push(format!("{} removed", count(cleaned.spools, "unfinished bundle")));
        }
        if done.is_empty() {
            done.push("nothing was left".to_owned());
        }
        let target = escape::text(&self.target.display().to_string());
        writeln!(out, "{BOLD}{target}{BOLD:#}: {}", done.join(", "))
    }
}

#[derive(Serialize)]
struct Summary {
    was_removed: bool,
    was_finished: bool,
    spools: u64,
}
