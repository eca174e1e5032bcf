//! `sealift repair`: makes a damaged bundle whole again.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use sealift::recovery::{RepairOptions, RepairStats, repair};
use serde::Serialize;

use super::escape;
use super::failure::{Failure, shown};
use super::human::{self, Bytes};
use super::jobs_arg::JobsArg;
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::show::{BOLD, Show};

/// Make a damaged bundle whole again, with its recovery files
///
/// Reads what can be read of the bundle, down to single sectors, and makes the rest again from what `sealift recovery` made. The new file appears once
/// every byte of it agrees with the bundle's own digests; the damaged bundle is not changed. Recovery files may be damaged themselves. Without
/// recovery files, copies of the bundle may do: `sealift unpack COPY1 COPY2 TARGET`.
///
/// This judges no signatures: verify or unpack the result as any other bundle.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift repair /media/disc/os.sealift --recovery os.recovery -o os.sealift
  sealift repair old.sealift --recovery a.recovery --recovery b.recovery -o os.sealift")]
pub(crate) struct Repair {
    /// The damaged bundle
    #[arg(value_name = "BUNDLE", value_hint = ValueHint::FilePath)]
    bundle: PathBuf,
    /// A recovery file that was made for it; repeat the option for each
    #[arg(long, value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    recovery: Vec<PathBuf>,
    /// The bundle to write
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Replace the file if it exists
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
        let stats = self.progress.watch(self.show, "Opening", |progress| {
            repair(&self.bundle, &self.recovery, &self.output, &options, progress)
        })?;
        for (path, why) in &stats.unused {
            self.show.warn(&format!("did without {}: {why}", shown(path)));
        }
        Ok(self.print(&stats, start.elapsed())?)
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
