//! One volume of a bundle whose others are not there: what it is, and whether it is sound.

use std::io::{self, Write};
use std::time::Duration;

use sealift::OpenVolume;
use sealift::volume::{VolumeStats, verify_volume};
use serde::Serialize;

use super::bundle::BundleArg;
use super::failure::{Failure, verdict_printed};
use super::human::{self, Bytes, count};
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::show::{Show, fact};
use super::trust_args::Judge;
use super::verdict::{Alone, Verdict};

/// Checks the volume, and prints the result.
pub(crate) fn verify(volume: &OpenVolume, judge: &Judge, show: Show, progress: ProgressArgs) -> Result<(), Failure> {
    let alone = Alone { path: volume.path(), head: volume.head(), judge, show, progress };
    let (checked, elapsed) = alone.check(|progress| verify_volume(volume, &limits(), progress))?;
    verdict_printed(print(volume, checked, judge, show, elapsed))
}

fn print(volume: &OpenVolume, checked: VolumeStats, judge: &Judge, show: Show, elapsed: Duration) -> io::Result<()> {
    let mut out = show.out();
    let verdict = Verdict { path: volume.path(), head: volume.head(), label: volume.label(), word: "sound", judge };
    let rest = JsonVerifiedVolume {
        volume: JsonVolume::of(volume),
        file_bytes: checked.file_bytes,
        first_chunk: checked.first_chunk,
        chunks: checked.chunks,
        seconds: human::seconds(elapsed),
    };
    if verdict.is_told(&mut out, show, rest)? {
        return Ok(());
    }
    verdict.print(&mut out)?;
    judge.print_signers(&mut out)?;
    let chunks = count(checked.chunks, "chunk");
    let (len, elapsed) = (Bytes(checked.file_bytes), human::duration(elapsed));
    writeln!(out, "  every byte of this volume, with {chunks}: {len} in {elapsed}; the others are not here")
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
struct JsonVerifiedVolume {
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
