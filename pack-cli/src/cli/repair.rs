//! `sealift repair`: makes a damaged bundle, or lost and damaged volumes of one, whole again.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use sealift::recovery::{RepairOptions, RepairStats, RepairVolumesStats, are_volumes, repair, repair_volumes};
use serde::Serialize;

use super::escape;
use super::failure::{Failure, shown};
use super::human::{self, Bytes};
use super::jobs_arg::JobsArg;
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::show::{BOLD, Show};

/// Make a damaged bundle or its volumes whole again, with recovery files
///
/// Reads what can be read of the bundle, down to single sectors, and makes the rest again from what `sealift recovery` made. The new file appears once
/// every byte of it agrees with the bundle's own digests; the damaged bundle is not changed. Recovery files may be damaged themselves. Without
/// recovery files, copies of the bundle may do: `sealift unpack COPY1 COPY2 TARGET`.
///
/// Of a bundle in volumes, give the directories or files with what is there of it, recovery volumes included, on one medium or several. Volumes that are
/// lost or damaged are written to the directory of --output, which may be that of the others; those that are whole are not copied.
///
/// This judges no signatures: verify or unpack the result as any other bundle.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift repair /media/disc/os.sealift --recovery os.recovery -o os.sealift
  sealift repair old.sealift --recovery a.recovery --recovery b.recovery -o os.sealift
  sealift repair discs -o discs
  sealift repair /media/disc1 /media/disc2 /media/disc4 -o found")]
pub(crate) struct Repair {
    /// The damaged bundle; if it was split, its volumes and recovery volumes, or their directories
    #[arg(value_name = "BUNDLE", required = true, value_hint = ValueHint::AnyPath)]
    bundles: Vec<PathBuf>,
    /// A recovery file that was made for it; repeat the option for each
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    recovery: Vec<PathBuf>,
    /// The bundle to write, or the directory for volumes
    #[arg(long, short, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    output: PathBuf,
    /// Replace files that exist; damaged volumes are replaced in any case
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    jobs: JobsArg,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Repair {
    pub(crate) fn uses(&self) -> crate::limits::Uses {
        crate::limits::Uses::of(self.jobs)
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        let start = Instant::now();
        let options = RepairOptions { replaces: self.force, jobs: self.jobs.count(), limits: limits() };
        if are_volumes(&self.bundles)? {
            return self.repair_volumes(&options, start);
        }
        let bundle = self.bundles.first().cloned().unwrap_or_default();
        if self.recovery.is_empty() {
            return Err(Failure::usage("give the bundle's recovery file with --recovery"));
        }
        let stats = self.progress.watch(self.show, "Opening", |progress| {
            repair(&bundle, &self.recovery, &self.output, &options, progress)
        })?;
        for (path, why) in &stats.unused {
            self.show.warn(&format!("did without {}: {why}", shown(path)));
        }
        Ok(self.print(&stats, start.elapsed())?)
    }

    /// Makes volumes whole again.
    fn repair_volumes(&self, options: &RepairOptions, start: Instant) -> Result<(), Failure> {
        let paths = [&self.bundles[..], &self.recovery].concat();
        let stats = self
            .progress
            .watch(self.show, "Opening", |progress| repair_volumes(&paths, &self.output, options, progress))?;
        for (path, why) in &stats.unused {
            self.show.warn(&format!("did without {}: {why}", shown(path)));
        }
        for volume in stats.volumes.iter().filter(|volume| !volume.unreadable.is_empty()) {
            let source = volume.source.as_deref().map(shown).unwrap_or_default();
            self.show.warn(&format!("{source} cannot be read at {}", listed(&volume.unreadable)));
        }
        Ok(self.print_volumes(&stats, start.elapsed())?)
    }

    fn print_volumes(&self, stats: &RepairVolumesStats, elapsed: Duration) -> std::io::Result<()> {
        let mut out = self.show.out();
        let identity = &stats.head.root().identity;
        let volumes = stats.volumes.iter().map(|volume| JsonRepairedVolume {
            path: escape::percent(volume.path.as_os_str().as_encoded_bytes()),
            number: volume.header.number,
            file_bytes: volume.file_bytes,
            was_missing: volume.source.is_none(),
            repaired_bytes: volume.repaired_bytes,
            unreadable_bytes: volume.unreadable_bytes,
        });
        let summary = JsonRepairedVolumes {
            name: &identity.name,
            version: identity.version,
            count: stats.count,
            volumes: volumes.collect(),
            missing_recovery: &stats.missing_recovery,
            seconds: human::seconds(elapsed),
        };
        if self.show.is_told(&mut out, &summary)? {
            return Ok(());
        }
        let (name, version, count) = (&identity.name, identity.version, stats.count);
        let output = escape::text(&shown(&self.output));
        match stats.volumes.len() {
            0 => writeln!(out, "{name} version {version}: none of its {count} volumes is lost or damaged")?,
            1 => writeln!(out, "{BOLD}{output}{BOLD:#}: {name} version {version}, 1 of {count} volumes whole again")?,
            made => {
                writeln!(
                    out,
                    "{BOLD}{output}{BOLD:#}: {name} version {version}, {made} of {count} volumes whole again"
                )?;
            }
        }
        for volume in &stats.volumes {
            let path = escape::text(&shown(&volume.path));
            let changed = volume.repaired_bytes.saturating_sub(volume.unreadable_bytes);
            let (unreadable, changed) = (Bytes(volume.unreadable_bytes), Bytes(changed));
            match volume.source {
                None => writeln!(out, "  {path}  was missing")?,
                Some(_) => writeln!(out, "  {path}  {unreadable} that could not be read, {changed} that had changed")?,
            }
        }
        for number in &stats.missing_recovery {
            writeln!(out, "  recovery {number} is missing: sealift split --recovery makes it again")?;
        }
        match stats.volumes.is_empty() {
            true => Ok(()),
            false => writeln!(out, "  every new byte checked: in {}", human::duration(elapsed)),
        }
    }

    fn print(&self, stats: &RepairStats, elapsed: Duration) -> std::io::Result<()> {
        let mut out = self.show.out();
        let identity = &stats.head.root().identity;
        let summary = JsonRepaired {
            name: &identity.name,
            version: identity.version,
            repaired_bytes: stats.repaired_bytes,
            unreadable_bytes: stats.unreadable_bytes,
            head_replaced: stats.is_head_replaced,
            seconds: human::seconds(elapsed),
        };
        if self.show.is_told(&mut out, &summary)? {
            return Ok(());
        }
        let output = escape::text(&shown(&self.output));
        let (name, version) = (&identity.name, identity.version);
        writeln!(out, "{BOLD}{output}{BOLD:#}: whole again, {name} version {version}")?;
        let changed = stats.repaired_bytes.saturating_sub(stats.unreadable_bytes);
        let (unreadable, changed) = (Bytes(stats.unreadable_bytes), Bytes(changed));
        writeln!(out, "  made again: {unreadable} that could not be read, {changed} that had changed")?;
        if stats.is_head_replaced {
            writeln!(out, "  its head was damaged: it has the signatures that it had when recovery was made")?;
        }
        let len = stats.head.file_len();
        writeln!(out, "  every byte checked: in {}, {}", human::duration(elapsed), human::rate(len, elapsed))
    }
}

#[derive(Serialize)]
struct JsonRepaired<'a> {
    name: &'a str,
    version: u64,
    repaired_bytes: u64,
    unreadable_bytes: u64,
    head_replaced: bool,
    seconds: f64,
}

/// How many unreadable ranges are named.
const LISTED: usize = 4;

/// Returns ranges of a file in words.
fn listed(ranges: &[std::ops::Range<u64>]) -> String {
    let mut words: Vec<String> =
        ranges.iter().take(LISTED).map(|range| format!("bytes {} to {}", range.start, range.end - 1)).collect();
    if ranges.len() > LISTED {
        words.push("other places".to_owned());
    }
    words.join(", ")
}

/// The output of `--json` for volumes.
#[derive(Serialize)]
struct JsonRepairedVolumes<'a> {
    name: &'a str,
    version: u64,
    count: u16,
    volumes: Vec<JsonRepairedVolume>,
    missing_recovery: &'a [u16],
    seconds: f64,
}

#[derive(Serialize)]
struct JsonRepairedVolume {
    path: String,
    number: u16,
    file_bytes: u64,
    was_missing: bool,
    repaired_bytes: u64,
    unreadable_bytes: u64,
}
