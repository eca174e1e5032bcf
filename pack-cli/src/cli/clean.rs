//! `sealift clean`: what runs left that were killed.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::clean::{Cleaned, clean, clean_store};
use sealift::trust::{Store, TargetKind, TrustOptions};

use super::bundle::jobs;
use super::escape;
use super::failure::Failure;
use super::human::count;
use super::pace::Pace;
use super::show::{BOLD, Show, json_line};

/// Discard what an interrupted run left beside TARGET
///
/// Repeating an interrupted unpack resumes it; clean discards it instead. If an update had already begun to change TARGET, clean finishes
/// it from the staged files. If those are damaged, TARGET is left with files of two bundles: the exit status is 1, and another update
/// repairs it.
///
/// If TARGET is gone, or is no longer an installed tree, clean takes it off the list of `sealift status`. The device still refuses older
/// versions of its bundle: `sealift trust reset` forgets them.
///
/// In an OSTree repository or a composefs store, the next run that writes there removes what an interrupted one left. The install records
/// there, in extensions/sealift or sealift/state, may be removed by hand.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift clean /srv/os
  sealift clean os.sealift")]
pub(crate) struct Clean {
    /// A directory that was unpacked or updated, or a bundle that was packed or signed; or a repository that is gone, as ostree:REPO
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// Directory that lists targets
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    state: Option<PathBuf>,
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
        let options = TrustOptions { state: self.state.clone(), ..TrustOptions::default() };
        // Where nothing says where the state is, there is none that lists anything.
        let state = Store::of_this_process(&options).ok();
        if let (kind @ (TargetKind::Ostree | TargetKind::Composefs), path) = TargetKind::of(&self.target) {
            return self.forget(kind, path, state.as_ref());
        }
        let cleaned = self
            .pace
            .watch(self.show, "Looking", |progress| clean(&self.target, state.as_ref(), jobs(None), progress))?;
        Ok(self.print(cleaned)?)
    }

    fn forget(&self, kind: TargetKind, path: &Path, state: Option<&Store>) -> Result<(), Failure> {
        let cleaned = clean_store(kind, path, state)?;
        if cleaned.was_forgotten {
            return Ok(self.print(cleaned)?);
        }
        Err(match path.exists() {
            true => Failure::usage("what a run left in a repository is removed by the next one that writes there"),
            false => Failure::usage(format!("{}: nothing is there, and nothing is listed", self.target.display())),
        })
    }

    fn print(&self, cleaned: Cleaned) -> std::io::Result<()> {
        let mut out = self.show.out();
        if self.show.json {
            return json_line(&mut out, &cleaned);
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
        if cleaned.was_forgotten {
            done.push("listed no more".to_owned());
        }
        if done.is_empty() {
            done.push("nothing was left".to_owned());
        }
        let target = escape::text(&self.target.display().to_string());
        writeln!(out, "{BOLD}{target}{BOLD:#}: {}", done.join(", "))
    }
}
