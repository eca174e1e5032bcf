//! `sealift unpack`: installs a bundle.

mod archive;
mod args;
mod channel;
mod composefs;
mod import;
mod into;
mod into_file;
mod ostree;
mod report;
mod slots;

use std::cell::Cell;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use sealift::archive::ArchiveEncoder;
use sealift::channel::Channel;
use sealift::fs::is_directory;
use sealift::ostree::{OsTreeStats, USB_PATH};
use sealift::seal::KernelSignature;
use sealift::status::{Installed, installed};
use sealift::trust::{TargetKind, Trusted};
use sealift::unpack::{UnpackStats, is_half_updated, may_go_on};
use sealift::{Error, InstallStats, Progress, is_address};

use super::adopt;
use super::advice::ADD_CERTIFICATE;
use super::base_args::BaseArgs;
use super::bundle::BundleArg;
use super::failure::{About as _, Failure};
use super::progress_display;
use super::reading::channel_at;
use super::several::Several;
use super::then::{self, CommandEnd};
use super::trust_args::Judge;
pub(crate) use args::Unpack;
use import::Import;

impl Unpack {
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let mut paths = std::mem::take(&mut self.paths);
        if let Some(file) = self.into.take() {
            return self.take_into(&paths, &file);
        }
        if self.usb.is_none() {
            self.slots = slots::take_slots(&mut paths);
            self.target = match self.slots.first() {
                Some(slot) => Some(slot.target.clone()),
                None if paths.len() > 1 => paths.pop(),
                None => None,
            };
            self.take_image_layout()?;
            if self.target.is_none() {
                return Err(Failure::usage(
                    "give the TARGET after the bundle: a directory, ostree:REPO, composefs:REPO, an archive or a block device; or --into FILE",
                ));
            }
        }
        if self.slots.is_empty()
            && (self.read_back || !self.expect_partlabel.is_empty() || !self.expect_partuuid.is_empty())
        {
            return Err(Failure::usage(
                "--read-back, --expect-partlabel and --expect-partuuid are for block devices and image:FILE",
            ));
        }
        if self.next_volume.is_given() && paths.len() > 1 {
            return Err(Failure::usage("--next-volume reads one bundle: give the one place to which its volumes come"));
        }
        if let [place] = &paths[..]
            && is_address(place)
            && let Some(channel) = channel_at(place)?
        {
            return self.take_channel(&channel, &place.clone());
        }
        if paths.len() > 1 && paths.iter().all(|place| Channel::is_address(place)) {
            return self.take_mirrors(&paths);
        }
        if let ([bundle], None) = (&paths[..], &self.name)
            && (self.next_volume.is_given() || !is_directory(bundle)?)
        {
            let next_volume = Some((self.next_volume.clone(), self.show));
            self.bundle = BundleArg { next_volume, ..BundleArg::of(bundle.clone()) };
            return self.run_one();
        }
        if self.base.is_given() {
            return Err(Failure::usage("--base is for a single delta: give only that bundle, without --name"));
        }
        if paths.iter().any(|path| path == Path::new("-")) {
            return Err(Failure::usage(
                "standard input can only be read once: give files when you give several bundles",
            ));
        }
        if let [place] = &paths[..]
            && let Some(channel) = Channel::open(place).about(&Channel::list_in(place))?
        {
            return self.take_channel(&channel, &place.clone());
        }
        let judge = self.trust.load()?;
        let name = self.wanted_name(&self.found(&judge));
        let held = self.held(&judge)?;
        let (trust, said) = (&self.trust.clone(), &self.said.clone());
        let several = Several { paths: &paths, name, held, trust, show: self.show, passed: Cell::new(0), said };
        several.take(self.takes_chains(), |candidate| {
            if !candidate.before.is_empty() {
                let chain: Vec<_> = candidate.before.iter().chain([&candidate.path]).cloned().collect();
                return match self.dry_run {
                    true => self.say_chain(&chain, candidate.file_bytes),
                    false => self.take_chain(&chain),
                };
            }
            self.bundle = match candidate.volumes.is_empty() {
                true => BundleArg::with_copies(candidate.path.clone(), candidate.copies.clone()),
                false => BundleArg::of_group(candidate.volumes.clone()),
            };
            self.base = BaseArgs::of(&candidate.bases);
            let done = self.run_one();
            self.bundle.tell_of_copies(self.show);
            done
        })
    }

    /// Returns what is installed in the target.
    fn found(&self, judge: &Judge) -> Vec<Installed> {
        // A damaged record binds to no name; other faults show when unpacking.
        let found = |target: &Path| installed(target, judge.guard().state()).unwrap_or_default();
        self.target.as_deref().map_or_else(Vec::new, found)
    }

    /// Returns the contents that deltas for the target can be over.
    fn held(&self, judge: &Judge) -> Result<Vec<[u8; 32]>, Failure> {
        match self.slots.is_empty() {
            true => Ok(self.found(judge).iter().map(|found| found.head.root().contents.index_digest).collect()),
            // What a slot holds is gone as soon as the next image is written to it.
            false => self.held_by_other_slots(judge),
        }
    }

    /// Takes the directory of a target `oci:DIR`.
    fn take_image_layout(&mut self) -> Result<(), Failure> {
        let Some(target) = self.target.take() else { return Ok(()) };
        let (directory, is_layout) = match TargetKind::image_layout(&target) {
            None => (target, false),
            Some((directory, None)) => (directory.to_owned(), true),
            Some((directory, Some(_))) => {
                return Err(Failure::usage(format!(
                    "{}: the image has the tag with which it was packed: give oci:{}",
                    target.display(),
                    directory.display()
                )));
            }
        };
        (self.target, self.image_layout) = (Some(directory), is_layout);
        Ok(())
    }

    /// Returns the name given, or the one that all bundles in the target share.
    fn wanted_name(&self, held: &[Installed]) -> Option<String> {
        let only = match held {
            [only] => Some(only.head.root().identity.name.clone()),
            _ => None,
        };
        let of_directory = self.target.as_deref().filter(|_| self.slots.is_empty());
        let bound = || sealift::trust::bound_name(of_directory?).ok().flatten();
        self.name.clone().or(only).or_else(bound)
    }

    fn run_one(&self) -> Result<(), Failure> {
        if let Some(medium) = &self.usb {
            return self.write_usb(medium);
        }
        if !self.slots.is_empty() {
            return self.write_slots();
        }
        let target = self.target.as_deref().unwrap_or(Path::new("")); // clap requires it
        let (kind, place) = TargetKind::of(target);
        if kind != TargetKind::Ostree && (self.remote.is_some() || self.mirror) {
            return Err(Failure::usage("--remote and --mirror are for ostree:REPO"));
        }
        match kind {
            TargetKind::Ostree => self.import(place),
            TargetKind::Composefs => self.import_store(place),
            TargetKind::Directory => match ArchiveEncoder::of(target) {
                Some((encoder, file)) => self.write_archive(encoder, file),
                None => self.unpack(target),
            },
            TargetKind::Slot => self.write_slots(),
        }
    }

    /// Unpacks into a directory.
    fn unpack(&self, target: &Path) -> Result<(), Failure> {
        let start = Instant::now();
        if self.references.len() > 1 {
            return Err(Failure::usage("a directory can hold only one --ref"));
        }
        let options = self.options();
        let judge = self.trust.load()?;
        let input = self.bundle.open()?;
        let given = adopt::Consent { is_given: self.yes, deletes: self.delete };
        let consent = |stats: &UnpackStats| progress_display::aside(|| adopt::agree(self.show, target, stats, given));
        let stats = self.progress.watch(self.show, "Opening", |progress| {
            sealift::unpack::unpack_asking(judge.admit(input)?, target, &options, progress, &consent)
        });
        let goes_on = stats.as_ref().is_err_and(|error| !self.dry_run && may_go_on(target, error));
        let stats = match stats.about(&self.bundle.bundle) {
            Err(failure) if goes_on => {
                if !failure.is_stop() {
                    let shown = target.display();
                    self.show.warn(&match is_half_updated(target) {
                        true => format!(
                            "{shown} is partly updated: repeat the command to complete the update, or get out of it: sealift clean {shown}"
                        ),
                        false => format!(
                            "progress was saved: repeat the command to resume, or discard it: sealift clean {shown}"
                        ),
                    });
                }
                return Err(failure.unfinished(target));
            }
            stats => stats?,
        };
        judge.warn(self.show);
        self.warn_of_signature(&stats.install);
        let elapsed = start.elapsed();
        self.conclude(target, &judge, |then| self.print(target, &stats, &judge, elapsed, then))
    }

    /// Imports into an OSTree repository.
    fn import(&self, repo: &Path) -> Result<(), Failure> {
        let options = self.ostree_options()?;
        let shown_target = self.target.as_deref().unwrap_or(repo);
        let take = |bundle, progress: &Progress| sealift::ostree::import(bundle, repo, &options, progress);
        let taken = self.take_commits(shown_target, repo, take);
        taken.map_err(|failure| failure.of_target(repo))
    }

    /// Imports into the OSTree repository on removable media.
    fn write_usb(&self, medium: &Path) -> Result<(), Failure> {
        if self.seal.is_some() {
            return Err(Failure::usage("--seal is for directories and ostree:REPO, not for --usb"));
        }
        let options = self.ostree_options()?;
        let take = |bundle, progress: &Progress| sealift::ostree::write_usb(bundle, medium, &options, progress);
        self.take_commits(medium, &medium.join(USB_PATH), take)
    }

    fn take_commits(
        &self,
        shown_target: &Path,
        repo: &Path,
        take: impl FnOnce(Trusted, &Progress) -> Result<OsTreeStats, Error>,
    ) -> Result<(), Failure> {
        let (stats, judge, elapsed) = self.take(Some((TargetKind::Ostree, repo)), take)?;
        self.warn_of_signature(&stats.import.install);
        ostree::warn_of_summary(self.show, &stats, shown_target);
        self.conclude(shown_target, &judge, |then| {
            ostree::print(&self.imported(&judge, shown_target, elapsed, then), &stats)
        })
    }

    /// Imports into a composefs store.
    fn import_store(&self, store: &Path) -> Result<(), Failure> {
        let options = self.options();
        let (stats, judge, elapsed) = self.take(Some((TargetKind::Composefs, store)), |bundle, progress| {
            sealift::composefs::import(bundle, store, &options, progress)
        })?;
        let target = self.target.as_deref().unwrap_or(store);
        let tried = self.seal == Some(sealift::seal::Seal::Try);
        self.conclude(target, &judge, |then| {
            composefs::print(&self.imported(&judge, target, elapsed, then), &stats, tried)
        })
    }

    fn imported<'a>(
        &'a self,
        judge: &'a Judge,
        target: &'a Path,
        elapsed: Duration,
        then: Option<&'a CommandEnd>,
    ) -> Import<'a> {
        let (bundle, no_check) = (&*self.bundle.bundle, self.no_check);
        Import { show: self.show, judge, target, bundle, dry_run: self.dry_run, no_check, elapsed, then }
    }

    /// Prints the summary, and runs the command of `--then`: after it, or with --json before it, since that line says how the command ended.
    /// `target` is as the user wrote it.
    fn conclude(
        &self,
        target: &Path,
        judge: &Judge,
        print: impl FnOnce(Option<&CommandEnd>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let (Some(line), Some(head), false) = (&self.then, judge.head(), self.dry_run) else {
            return Ok(print(None)?);
        };
        let is_archive_there = ArchiveEncoder::of(target).is_some_and(|(_, file)| file == Path::new("-"));
        let run = || then::run(line, target, head, self.show.json || is_archive_there);
        // The bundle is installed, so the command runs even if nobody reads the summary.
        let (end, printed) = if self.show.json {
            let end = run();
            let printed = print(Some(&end));
            (end, printed)
        } else {
            let printed = print(None).and_then(|()| io::stdout().flush());
            (run(), printed)
        };
        end.check()?;
        Ok(printed?)
    }

    /// Runs `take`, which imports into the repository or store at a place, or writes an archive. Returns its result, the judge, and the time it took.
    fn take<S>(
        &self,
        place: Option<(TargetKind, &Path)>,
        take: impl FnOnce(Trusted, &Progress) -> Result<S, Error>,
    ) -> Result<(S, Judge, Duration), Failure> {
        self.check_of_repository()?;
        let start = Instant::now();
        let judge = self.trust.load()?;
        let input = self.bundle.open()?;
        let stats = self.progress.watch(self.show, "Opening", |progress| take(judge.admit(input)?, progress));
        let unfinished = place.filter(|(kind, place)| {
            !self.dry_run && stats.as_ref().is_err_and(|error| sealift::import_may_go_on(*kind, place, error))
        });
        let stats = match (stats.about(&self.bundle.bundle), unfinished) {
            (Err(failure), Some((kind, place))) => {
                return Err(import::unfinished(self.show, failure, &kind.argument(place)));
            }
            (stats, _) => stats?,
        };
        judge.warn(self.show);
        Ok((stats, judge, start.elapsed()))
    }

    /// Warns why the kernel refused the bundle's kernel signature.
    fn warn_of_signature(&self, stats: &InstallStats) {
        if let KernelSignature::Refused { why, is_key_unknown } = &stats.kernel_signature {
            let advice = if *is_key_unknown { ADD_CERTIFICATE } else { "" };
            self.show.warn(&format!("sealed the index without the bundle's kernel signature: {why}{advice}"));
        }
    }
}
