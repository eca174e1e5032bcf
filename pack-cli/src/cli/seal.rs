//! `sealift seal`: enables fs-verity on files.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use sealift::Error;
use sealift::seal::{SealOptions, SealStats, seal};
use serde::Serialize;

use super::escape;
use super::failure::Failure;
use super::human::{self, Bytes, count};
use super::jobs_arg::JobsArg;
use super::progress_args::ProgressArgs;
use super::show::{BOLD, Show};
use super::verity_args::VerityArgs;
use sealift_format::num;

/// Seal files, so that the kernel refuses to return changed bytes
///
/// Enables fs-verity on each PATH, or on all regular files below it if it is a directory. A sealed file can be read, renamed and removed,
/// but never written to again; if its bytes change on the disk, reading it fails. Files that are already sealed stay as they are. Requires
/// a file system with fs-verity: ext4 with the feature `verity`, f2fs or btrfs.
#[derive(Args, Debug)]
#[command(after_long_help = "\
With --json, prints one object: files, files_before (already sealed), others (links
and other types), logical_bytes and seconds.

Examples:
  sealift seal /srv/os
  sealift seal usr/bin/hello && sealift measure usr/bin/hello")]
pub(crate) struct Seal {
    /// Files and directories
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    parameters: VerityArgs,
    /// A built-in signature for the one file to seal: PKCS#7 over its formatted digest, as made by `fsverity sign`
    #[arg(long, value_name = "SIG")]
    signature: Option<PathBuf>,
    #[command(flatten)]
    jobs: JobsArg,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Seal {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let start = Instant::now();
        let read =
            |path: &PathBuf| fs::read(path).map_err(|source| Error::Io { doing: "read", path: path.clone(), source });
        let options = SealOptions {
            parameters: self.parameters.parameters()?,
            signature: self.signature.as_ref().map(read).transpose()?,
            jobs: self.jobs.count(),
        };
        let stats = self.progress.watch(self.show, "Listing", |progress| seal(&self.paths, &options, progress))?;
        Ok(self.print(&stats, start.elapsed())?)
    }

    fn print(&self, stats: &SealStats, elapsed: Duration) -> std::io::Result<()> {
        let mut out = self.show.out();
        let SealStats { files, files_before, others, logical_bytes } = *stats;
        if self.show.is_told(&mut out, &JsonSealing { stats, seconds: human::seconds(elapsed) })? {
            return Ok(());
        }
        let what = match &self.paths[..] {
            [path] => escape::text(&path.display().to_string()),
            paths => count(num::wide(paths.len()), "path"),
        };
        let mut parts = vec![count(files, "file")];
        if files_before > 0 {
            parts.push(format!("{} already sealed", human::Grouped(files_before)));
        }
        if others > 0 {
            parts.push(format!("{} of other types skipped", human::Grouped(others)));
        }
        let (size, time) = (Bytes(logical_bytes), human::duration(elapsed));
        writeln!(out, "{BOLD}{what}{BOLD:#}: sealed {}", parts.join(", "))?;
        writeln!(out, "  {size} in {time}")
    }
}

#[derive(Serialize)]
struct JsonSealing<'a> {
    #[serde(flatten)]
    stats: &'a SealStats,
    seconds: f64,
}
