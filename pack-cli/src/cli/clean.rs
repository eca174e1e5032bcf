//! `sealift clean`: discards what interrupted runs left.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::clean::{CleanStats, clean, clean_slot, clean_store};
use sealift::fs::is_there;
use sealift::slot::SlotAddress;
use sealift::trust::{DeviceState, TargetKind, TrustOptions};

use super::escape;
use super::failure::Failure;
use super::human::count;
use super::jobs_arg::JobsArg;
use super::progress_args::ProgressArgs;
use super::renamed::found_again;
use super::show::{BOLD, Show};
use super::trust_args::tell_waiting;

/// Remove the leftovers of an interrupted run
///
/// Repeating an interrupted unpack resumes it; clean discards it instead. If an update had already begun to change TARGET, clean finishes
/// it from the staged files. If that is impossible, clean gives the update up: TARGET is as it was if nothing had been moved yet; else it
/// is left with files of two bundles, the exit status is 1, and another update repairs it.
///
/// If TARGET is gone, or is no longer an installed tree, clean removes it from the list of `sealift status`. The device still refuses older
/// versions of its bundle; `sealift trust reset` lifts that.
///
/// In an OSTree repository or a composefs store, clean removes the objects that an interrupted import left for the next one. The install
/// records there, in extensions/sealift or sealift/state, may be removed by hand; clean then removes their bundles from the list.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift clean /srv/os
  sealift clean os.sealift")]
pub(crate) struct Clean {
    /// An installed directory, a bundle that was being packed or signed, or a repository, as ostree:REPO
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// Directory with the list of targets
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    state: Option<PathBuf>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Clean {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.target == Path::new("-") {
            return Err(Failure::usage("cannot clean standard input: name a directory or a bundle"));
        }
        let options =
            TrustOptions { state: self.state.clone(), waiting: Some(tell_waiting), ..TrustOptions::default() };
        // Without a state directory there is no list.
        let state = DeviceState::of_this_process(&options).ok();
        if let (kind @ (TargetKind::Ostree | TargetKind::Composefs), path) = TargetKind::of(&self.target) {
            return self.forget(kind, path, state.as_ref());
        }
        if let Some(mut slot) = SlotAddress::of(&self.target) {
            if let Some(state) = &state {
                slot.target = found_again(&slot.target, state, self.show)?;
            }
            let cleaned = self.progress.watch(self.show, "Looking", |progress| {
                clean_slot(&slot, state.as_ref(), JobsArg::default().count(), progress)
            })?;
            return Ok(self.print(cleaned)?);
        }
        let cleaned = self.progress.watch(self.show, "Looking", |progress| {
            clean(&self.target, state.as_ref(), JobsArg::default().count(), progress)
        })?;
        Ok(self.print(cleaned)?)
    }

    fn forget(&self, kind: TargetKind, path: &Path, state: Option<&DeviceState>) -> Result<(), Failure> {
        let cleaned = clean_store(kind, path, state)?;
        if !cleaned.was_forgotten && !is_there(path)? {
            let target = self.target.display();
            return Err(Failure::usage(format!("{target}: no such target, on disk or in the list")));
        }
        Ok(self.print(cleaned)?)
    }

    fn print(&self, cleaned: CleanStats) -> std::io::Result<()> {
        let mut out = self.show.out();
        if self.show.is_told(&mut out, &cleaned)? {
            return Ok(());
        }
        let mut done = Vec::new();
        if cleaned.was_finished {
            done.push("finished an interrupted update".to_owned());
        }
        if cleaned.was_removed {
            done.push("discarded an unfinished run".to_owned());
        }
        if cleaned.was_record_removed {
            done.push("removed the install record of a tree that is gone".to_owned());
        }
        if cleaned.spools > 0 {
            done.push(format!("removed {}", count(cleaned.spools, "unfinished bundle")));
        }
        if cleaned.was_forgotten {
            done.push("removed from the list".to_owned());
        }
        if done.is_empty() {
            done.push("nothing to clean".to_owned());
        }
        let target = escape::text(&self.target.display().to_string());
        writeln!(out, "{BOLD}{target}{BOLD:#}: {}", done.join(", "))
    }
}
