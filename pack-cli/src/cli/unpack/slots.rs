//! `sealift unpack BUNDLE /dev/DEVICE` and `image:FILE`: writes images to slots.

use std::ffi::OsStr;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use sealift::slot::{self, SlotAddress, SlotStats, SlotsStats};
use sealift::status::{Present, targets};
use sealift::{Durability, ExpectedPartition};

use super::Unpack;
use super::report::would_read;
use crate::audit_words::had_gone_back_from;
use crate::escape;
use crate::failure::{About as _, Failure, shown};
use crate::human::{self, Bytes};
use crate::show::{BOLD, WARN};
use crate::taken;
use crate::then::CommandEnd;
use crate::trust_args::Judge;

/// Takes the slots from the end of the arguments; the first argument is a bundle.
pub(super) fn take_slots(paths: &mut Vec<PathBuf>) -> Vec<SlotAddress> {
    let mut slots = Vec::new();
    while paths.len() > 1
        && let Some(slot) = paths.last().and_then(|path| SlotAddress::of(path))
    {
        slots.push(slot);
        paths.pop();
    }
    slots.reverse();
    slots
}

impl Unpack {
    /// Writes one image of the bundle to each slot.
    pub(super) fn write_slots(&self) -> Result<(), Failure> {
        self.check_of_slots()?;
        let start = Instant::now();
        let options = self.options();
        let judge = self.trust.load()?;
        let input = self.bundle.open()?;
        let written = self.progress.watch(self.show, "Opening", |progress| {
            slot::install(judge.admit(input)?, &self.slots, &options, progress)
        });
        let stats = match written.about(&self.bundle.bundle) {
            Err(failure) => {
                let state = judge.guard().state();
                let is_begun = |present: &Present| present.is_half_updated() || matches!(present, Present::Unfinished);
                let is_half = |slot: &&SlotAddress| {
                    targets(&slot.target, state).is_ok_and(|found| found.iter().any(|found| is_begun(&found.present)))
                };
                return Err(match self.slots.iter().find(is_half).filter(|_| !self.dry_run) {
                    Some(slot) => failure.unfinished(&slot.target),
                    None => failure,
                });
            }
            Ok(stats) => stats,
        };
        judge.warn(self.show);
        let elapsed = start.elapsed();
        let targets = self.slots.iter().map(|slot| slot.target.as_os_str()).collect::<Vec<_>>().join(OsStr::new(" "));
        self.conclude(Path::new(&targets), &judge, |then| self.print_slots(&stats, &judge, elapsed, then))
    }

    fn print_slots(
        &self,
        stats: &SlotsStats,
        judge: &Judge,
        elapsed: Duration,
        then: Option<&CommandEnd>,
    ) -> io::Result<()> {
        let mut out = self.show.out();
        if self.show.is_told(&mut out, &taken::line(stats, judge, self.dry_run, elapsed, then))? {
            return Ok(());
        }
        let SlotsStats { slots, install, .. } = stats;
        let verb = if self.dry_run { "would be written" } else { "written" };
        let bundle = escape::text(&shown(&self.bundle.bundle));
        for stats in slots {
            let (slot, image) = (escape::text(&stats.slot), escape::text(&stats.image));
            let is_there = stats.kept_bytes == stats.bytes && stats.bytes > 0;
            let verb = if is_there { "already written" } else { verb };
            writeln!(out, "{BOLD}{slot}{BOLD:#}: {image} {verb} from {bundle}{}", judge.mark())?;
            print_slot(&mut out, stats, self.dry_run)?;
        }
        judge.print_signers(&mut out)?;
        if let Some(version) = install.gone_back_from {
            writeln!(out, "  {WARN}before{WARN:#}: {}", had_gone_back_from(version))?;
        }
        let stored = Bytes(install.stored_bytes);
        if self.dry_run {
            return would_read(&mut out, install);
        }
        let bytes = slots.iter().map(|slot| slot.bytes).sum();
        let (time, rate) = (human::duration(elapsed), human::rate(bytes, elapsed));
        writeln!(out, "  read {stored} from the bundle in {time}, {rate}")
    }

    /// Returns which partitions the user means.
    pub(super) fn expected_partitions(&self) -> Vec<ExpectedPartition> {
        let none = ExpectedPartition::default;
        let labels = self.expect_partlabel.iter().map(|text| (text, false));
        let all = labels.chain(self.expect_partuuid.iter().map(|text| (text, true)));
        all.flat_map(|(text, is_uuid)| {
            let (targets, value) = self.expected(text);
            let value = Some(value.to_owned());
            let expected = if is_uuid {
                ExpectedPartition { uuid: value, ..none() }
            } else {
                ExpectedPartition { label: value, ..none() }
            };
            targets.into_iter().map(move |target| ExpectedPartition { target, ..expected.clone() })
        })
        .collect()
    }

    /// Splits `IMAGE=VALUE` or `DEVICE=VALUE` into the slots that are meant, `None` for all, and the value. A label may contain `=`: what is before it has to
    /// be as in the argument of a slot.
    fn expected<'v>(&self, text: &'v str) -> (Vec<Option<PathBuf>>, &'v str) {
        let mut splits = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
        let found = splits.find_map(|(name, value)| {
            let is_it =
                |slot: &&SlotAddress| slot.image.as_deref() == Some(name.as_bytes()) || slot.target.as_os_str() == name;
            let targets: Vec<_> = self.slots.iter().filter(is_it).map(|slot| Some(slot.target.clone())).collect();
            (!targets.is_empty()).then_some((targets, value))
        });
        found.unwrap_or_else(|| (vec![None], text))
    }

    /// Returns the digests of what other slots hold: bases that a delta may have.
    pub(super) fn held_by_other_slots(&self, judge: &Judge) -> Result<Vec<[u8; 32]>, Failure> {
        Ok(slot::held_by_others(&self.slots, judge.guard().state())?)
    }

    /// Refuses options that are for other targets.
    fn check_of_slots(&self) -> Result<(), Failure> {
        let tree = self.options().tree;
        let of_others = [
            (self.path.is_some(), "--path"),
            (self.delete, "--delete"),
            (self.rehash, "--rehash"),
            (self.assume_mtime, "--assume-mtime"),
            (self.hardlink_duplicates, "--hardlink-duplicates"),
            (self.seal.is_some(), "--seal"),
            (self.durability != Durability::End, "--durability"),
            (self.remote.is_some(), "--remote"),
            (self.mirror, "--mirror"),
            (tree.owners.is_some(), "--same-owner and --no-same-owner"),
            (tree.devices.is_some(), "--devices and --no-devices"),
        ];
        if let Some((_, option)) = of_others.iter().find(|(is_given, _)| *is_given) {
            return Err(Failure::usage(format!("{option}: not for a block device or image:FILE")));
        }
        for (values, option) in
            [(&self.expect_partlabel, "--expect-partlabel"), (&self.expect_partuuid, "--expect-partuuid")]
        {
            if values.iter().any(|value| self.expected(value).1.is_empty()) {
                return Err(Failure::usage(format!("{option} is empty, and would accept any partition")));
            }
        }
        if self.references.len() > 1 {
            return Err(Failure::usage("a slot gets a file of one --ref"));
        }
        Ok(())
    }
}

fn print_slot(out: &mut dyn io::Write, stats: &SlotStats, dry_run: bool) -> io::Result<()> {
    let SlotStats { bytes, written_bytes, discarded_bytes, kept_bytes, resumed, discards_lie, read_back, .. } = stats;
    let mut parts = vec![Bytes(*bytes).to_string()];
    if *kept_bytes > 0 {
        parts.push(format!("{} of it there before", Bytes(*kept_bytes)));
    }
    if *written_bytes > 0 {
        parts.push(format!("{} written", Bytes(*written_bytes)));
    }
    if *discarded_bytes > 0 {
        parts.push(format!("{} discarded", Bytes(*discarded_bytes)));
    }
    writeln!(out, "  {}", parts.join(", "))?;
    if *resumed {
        let verb = if dry_run { "would complete" } else { "completed" };
        writeln!(out, "  {verb} what an interrupted run began")?;
    }
    if *discards_lie {
        writeln!(out, "  {WARN}wrote zeros{WARN:#}: the device returns old data where it reported a discard")?;
    }
    if *read_back {
        writeln!(out, "  read again and compared")?;
    }
    Ok(())
}
