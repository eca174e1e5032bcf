//! `sealift split`: a bundle in several files.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::recovery::Amount;
use sealift::split::{SplitOptions, SplitStats, split};
use sealift_format::num::wide;
use serde::Serialize;

use super::bundle::BundleArg;
use super::digests::Digests;
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::human::{Bytes, count};
use super::jobs_arg::JobsArg;
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::recovery_amount::parse_recovery_amount;
use super::show::{BOLD, Show};
use super::volume_size::parse_volume_size;

/// Split a bundle into volumes, for media that are smaller than it
///
/// Writes NAME-VERSION.001-of-005.sealift-volume and so on. Each volume has the bundle's signatures and whole chunks, so that `sealift info` and
/// `sealift verify` take it alone. The directory with all of them, or one with the others beside it, is a bundle to every verb that reads one. The
/// signatures stay what they are, and equal bundles and sizes give equal volumes. Checks every byte of the bundle, but not who signed it.
///
/// With `--recovery`, also writes NAME-VERSION.recovery-001-of-002.sealift-recovery and so on: with two of them, `sealift repair` makes any two volumes
/// again that are lost, or as many sectors that cannot be read, wherever they are.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift split os.sealift --size fat32 -o /media/stick
  sealift split os.sealift --size dvd --recovery 2 -o discs
  sealift verify discs
  sealift unpack /media/stick /srv/os")]
pub(crate) struct Split {
    #[command(flatten)]
    bundle: BundleArg,
    /// The most bytes that a volume may have: a size such as 4GiB; cd, dvd or bd, a disc of 700 MB, 4.7 GB or 25 GB with room for its file
    /// system; or fat32, the longest file there
    #[arg(long, value_name = "SIZE", value_parser = parse_volume_size)]
    size: u64,
    /// Recovery volumes to write beside them: a number N, so that any N volumes can be lost, or a share of the bundle such as 5%, in as few volumes as
    /// can hold it
    #[arg(long, value_name = "N|P%", value_parser = parse_recovery_amount)]
    recovery: Option<Amount>,
    /// The directory for the volumes, which is made if it is missing
    #[arg(long, short, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: PathBuf,
    #[command(flatten)]
    jobs: JobsArg,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Split {
    pub(crate) fn uses(&self) -> crate::limits::Uses {
        crate::limits::Uses::of(self.jobs)
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        let input = self.bundle.open()?;
        let options =
            SplitOptions { size: self.size, recovery: self.recovery, jobs: self.jobs.count(), limits: limits() };
        let done = self.progress.watch(self.show, "Opening", |progress| split(input, &self.output, &options, progress));
        Ok(print(self.show, &self.bundle.bundle, &done.about(&self.bundle.bundle)?)?)
    }
}

/// Prints into what a bundle was split.
pub(crate) fn print(show: Show, bundle: &Path, done: &SplitStats) -> std::io::Result<()> {
    let mut out = show.out();
    let head = done.opened.head();
    let identity = &head.root().identity;
    let volumes = done.volumes.iter().map(|volume| JsonVolume {
        path: escape::percent(volume.path.as_os_str().as_encoded_bytes()),
        number: volume.header.number,
        file_bytes: volume.file_bytes,
    });
    let recovery = done.recovery.iter().map(|written| JsonVolume {
        path: escape::percent(written.path.as_os_str().as_encoded_bytes()),
        number: written.recovery.number,
        file_bytes: written.file_bytes,
    });
    let summary = JsonSplit {
        name: &identity.name,
        version: identity.version,
        digests: Digests::of(head),
        file_bytes: head.file_len(),
        volumes: volumes.collect(),
        recovery: recovery.collect(),
    };
    if show.is_told(&mut out, &summary)? {
        return Ok(());
    }
    let bundle = escape::text(&shown(bundle));
    let mut volumes = count(wide(done.volumes.len()), "volume");
    if !done.recovery.is_empty() {
        volumes = format!("{volumes}, and {}", count(wide(done.recovery.len()), "recovery volume"));
    }
    writeln!(out, "{BOLD}{bundle}{BOLD:#}: {} version {} in {volumes}", identity.name, identity.version)?;
    let files = done.volumes.iter().map(|volume| (&volume.path, volume.file_bytes));
    for (path, len) in files.chain(done.recovery.iter().map(|written| (&written.path, written.file_bytes))) {
        writeln!(out, "  {}  {}", escape::text(&shown(path)), Bytes(len))?;
    }
    Ok(())
}

/// The output of `--json`.
#[derive(Serialize)]
struct JsonSplit<'a> {
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    digests: Digests,
    file_bytes: u64,
    volumes: Vec<JsonVolume>,
    recovery: Vec<JsonVolume>,
}

#[derive(Serialize)]
struct JsonVolume {
    path: String,
    number: u16,
    file_bytes: u64,
}
