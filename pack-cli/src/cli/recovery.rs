//! `sealift recovery`: makes recovery files for a bundle.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use sealift::recovery::{MakeOptions, MakeStats, make};
use serde::Serialize;

use super::bundle::BundleArg;
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::human::{self, Bytes, count};
use super::jobs_arg::JobsArg;
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::show::{BOLD, Show};
use sealift_format::num;

/// Make recovery files, with which a damaged bundle can be repaired
///
/// Recovery of 5 % makes any 5 % of the bundle again: sectors that cannot be read, wherever they are, or about as much in a row. `sealift repair` does
/// that. The bundle is verified first, and stays as it is; signatures that are added later do not matter. Keep the recovery file on another
/// medium, or beside the bundle: it may be damaged, too.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift recovery os.sealift -o os.recovery
  sealift recovery os.sealift -o a.recovery -o b.recovery --percent 20
  sealift repair /media/disc/os.sealift --recovery os.recovery -o os.sealift")]
pub(crate) struct Recovery {
    #[command(flatten)]
    bundle: BundleArg,
    /// The recovery file to write; repeat it for several files, each with an equal share
    #[arg(long, short, value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    output: Vec<PathBuf>,
    /// Bytes of recovery for each 100 bytes of the bundle, in all files together
    #[arg(long, value_name = "P", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    percent: u32,
    /// Replace the files if they exist
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    jobs: JobsArg,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Recovery {
    pub(crate) fn uses(&self) -> crate::limits::Uses {
        crate::limits::Uses::of(self.jobs)
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.output.iter().any(|output| output == Path::new("-")) {
            return Err(Failure::usage("a recovery file is not written in order: give the name of a file"));
        }
        let start = Instant::now();
        let options =
            MakeOptions { percent: self.percent, replaces: self.force, jobs: self.jobs.count(), limits: limits() };
        let input = self.bundle.open()?;
        let stats =
            self.progress.watch(self.show, "Verifying", |progress| make(input, &self.output, &options, progress));
        Ok(self.print(&stats.about(&self.bundle.bundle)?, start.elapsed())?)
    }

    fn print(&self, stats: &MakeStats, elapsed: Duration) -> std::io::Result<()> {
        let mut out = self.show.out();
        let summary = JsonRecovery {
            files: num::wide(self.output.len()),
            file_bytes: stats.file_bytes,
            checksum_bytes: stats.checksum_bytes,
            shard_bytes: stats.shard_len,
            burst_bytes: stats.burst_bytes,
            seconds: human::seconds(elapsed),
        };
        if self.show.is_told(&mut out, &summary)? {
            return Ok(());
        }
        let files: Vec<_> = self.output.iter().map(|output| escape::text(&shown(output))).collect();
        let bundle = escape::text(&shown(&self.bundle.bundle));
        writeln!(out, "{BOLD}{}{BOLD:#}: recovery of {} % for {bundle}", files.join(", "), self.percent)?;
        let (all, checksums) = (Bytes(stats.file_bytes), Bytes(stats.checksum_bytes));
        writeln!(out, "  {all} in {}, {checksums} of them checksums", count(num::wide(files.len()), "file"))?;
        let (shard, burst) = (Bytes(stats.shard_len.into()), Bytes(stats.burst_bytes));
        writeln!(out, "  for damage anywhere in parts of {shard}, or of {burst} in a row")?;
        let len = stats.head.file_len();
        writeln!(out, "  in {}, {}", human::duration(elapsed), human::rate(len, elapsed))
    }
}

#[derive(Serialize)]
struct JsonRecovery {
    files: u64,
    file_bytes: u64,
    checksum_bytes: u64,
    shard_bytes: u32,
    burst_bytes: u64,
    seconds: f64,
}
