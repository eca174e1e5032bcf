//! One volume of a bundle whose others are not there: what it is, and whether it is sound.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use sealift::OpenVolume;
use sealift::volume::{VolumeStats, verify_volume};
use serde::Serialize;

use super::bundle::BundleArg;
use super::digests::Digests;
use super::escape;
use super::failure::{About as _, Failure, shown, verdict_printed};
use super::human::{self, Bytes, count};
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::show::{BOLD, GOOD, Show, fact};
use super::signers::Signers;
use super::trust_args::Judge;

/// Checks the volume, and prints the result.
pub(crate) fn verify(volume: &OpenVolume, judge: &Judge, show: Show, progress: ProgressArgs) -> Result<(), Failure> {
    let start = Instant::now();
    judge.judge(volume.head()).about(volume.path())?;
    let checked =
        progress.watch(show, "Opening", |progress| verify_volume(volume, &limits(), progress)).about(volume.path())?;
    judge.warn(show);
    verdict_printed(print(volume, checked, judge, show, start.elapsed()))
}

fn print(volume: &OpenVolume, checked: VolumeStats, judge: &Judge, show: Show, elapsed: Duration) -> io::Result<()> {
    let mut out = show.out();
    let identity = &volume.head().root().identity;
    let summary = JsonVerifiedVolume {
        name: &identity.name,
        version: identity.version,
        digests: Digests::of(volume.head()),
        signers: judge.signers(),
        volume: JsonVolume::of(volume),
        file_bytes: checked.file_bytes,
        first_chunk: checked.first_chunk,
        chunks: checked.chunks,
        seconds: human::seconds(elapsed),
    };
    if show.is_told(&mut out, &summary)? {
        return Ok(());
    }
    let (path, label) = (escape::text(&shown(volume.path())), volume.label());
    writeln!(out, "{BOLD}{path}{BOLD:#}: {GOOD}sound{GOOD:#}, {label}{}", judge.mark())?;
    judge.print_signers(&mut out)?;
    let chunks = count(checked.chunks, "chunk");
    writeln!(
        out,
        "  every byte of this volume, with {chunks}: {} in {}; the others are not here",
        Bytes(checked.file_bytes),
        human::duration(elapsed)
    )
}

/// Prints what the volume is, as a fact about its bundle.
pub(crate) fn print_fact(out: &mut dyn Write, volume: &OpenVolume) -> io::Result<()> {
    let header = volume.header();
    fact(out, "Volume", format!("{} of {}, with {} of the bundle", header.number, header.count, Bytes(header.len)))
}

/// A volume in JSON.
#[derive(Serialize)]
pub(crate) struct JsonVolume {
    number: u16,
    count: u16,
    offset: u64,
    slice_bytes: u64,
}

impl JsonVolume {
    pub(crate) fn of(volume: &OpenVolume) -> Self {
        let header = volume.header();
        Self { number: header.number, count: header.count, offset: header.offset, slice_bytes: header.len }
    }
}

#[derive(Serialize)]
struct JsonVerifiedVolume<'a> {
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    digests: Digests,
    #[serde(flatten)]
    signers: Signers,
    volume: JsonVolume,
    file_bytes: u64,
    first_chunk: u64,
    chunks: u64,
    seconds: f64,
}

/// Returns the volume that was given, if opening it as a bundle failed because the others are not beside it.
pub(crate) fn alone(given: &BundleArg, failure: &Failure) -> Result<Option<OpenVolume>, Failure> {
    match failure.lacks_volumes() && given.volumes.is_empty() {
        true => Ok(OpenVolume::open(&given.bundle)?),
        false => Ok(None),
    }
}
