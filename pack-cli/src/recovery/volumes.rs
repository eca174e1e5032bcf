//! Makes recovery volumes for a bundle that is split.

use std::path::Path;

use sealift_format::num::wide;
use sealift_format::volume::front_len;
use sealift_format::{Chunk, Error as FormatError, Geometry, Head, Recovery, Volume};
use sealift_store::OpenVolume;
use sealift_store::fs::partial::PartialFile;

use super::{code, make};
use crate::{Error, Origin, Progress};

/// How much recovery there is for the volumes of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a caller chooses one")]
pub enum Amount {
    /// So many recovery volumes: as many volumes can be lost.
    Volumes(u16),
    /// So many bytes for each 100 bytes of the bundle, in as few volumes as can hold them.
    Percent(u32),
}

/// Bytes of a shard: a sector of a disc.
const SHARD_LEN: u32 = 2048;
/// Points of the code that are used. With more, scattered damage would be spread more evenly over codewords, but those would not fit into the
/// processor's caches.
const POINTS: u64 = 1 << 12;
/// Points of the code: elements of its field.
const MOST_POINTS: u64 = 1 << 16;

/// Splits a bundle into volumes, so that their files and those of their recovery have at most `size` bytes.
///
/// # Errors
/// Returns an error if there would be too many volumes, or if a chunk, or the index, needs a larger one.
pub(crate) fn plan(
    head: &Head,
    chunks: &[Chunk],
    size: u64,
    amount: Amount,
) -> Result<(Vec<Volume>, Vec<Recovery>), Error> {
    // Recovery volumes are longer than the longest of the others by their checksums.
    let mut data_size = size;
    loop {
        let volumes = Volume::split(head, chunks, data_size).map_err(|error| match error {
            FormatError::VolumeSize { needed, .. } => {
                FormatError::VolumeSize { size, needed: needed.saturating_add(size - data_size) }
            }
            error => error,
        })?;
        let recovery = recovery_of(head, &volumes, amount)?;
        let longest = recovery.iter().map(Recovery::own_len).max().unwrap_or(0);
        if longest <= size {
            return Ok((volumes, recovery));
        }
        data_size = data_size.saturating_sub(longest - size);
    }
}

/// Returns the recovery volumes of these volumes.
fn recovery_of(head: &Head, volumes: &[Volume], amount: Amount) -> Result<Vec<Recovery>, Error> {
    let columns = wide(volumes.len());
    let parity_of = |run: u64| match amount {
        Amount::Volumes(count) => (run * u64::from(count), u64::from(count)),
        Amount::Percent(percent) => {
            let count = (columns * u64::from(percent)).div_ceil(100);
            ((columns * run * u64::from(percent)).div_ceil(100).max(count), count)
        }
    };
    let points = |run: u64| columns * run + parity_of(run).0.next_power_of_two();
    if parity_of(1).1 == 0 || points(1) > MOST_POINTS {
        let most = "there is no recovery of that size: choose fewer recovery volumes, or larger volumes";
        return Err(Error::Usage(most.into()));
    }
    let shard_len = u64::from(SHARD_LEN);
    let pad = Volume::slice_at(head) % shard_len;
    let longest = volumes.iter().map(|volume| (volume.len + pad).div_ceil(shard_len)).max().unwrap_or(1);
    let most = (1..=longest.min(POINTS)).rev().find(|run| points(*run) <= POINTS).unwrap_or(1);
    let run = longest.div_ceil(longest.div_ceil(most)); // so that the last codeword is as long as the others
    let (parity, count) = parity_of(run);
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let starts = volumes.iter().map(|volume| volume.offset).collect();
    let geometry =
        Geometry { shard_len: SHARD_LEN, run: narrow(run), parity: narrow(parity), pad: narrow(pad), starts };
    code::memory(&geometry)?;
    debug_assert_eq!(geometry.starts.first(), Some(&front_len(head)), "volume 1 begins where the body does");
    Ok(Recovery::all(head, u16::try_from(count).unwrap_or(u16::MAX), &geometry))
}

/// Writes the recovery volumes that were planned. `path` is that of the bundle, which is read from `origin`.
///
/// # Errors
/// Returns an error if the bundle cannot be read, or a file cannot be written.
pub(crate) fn write(
    origin: &Origin,
    path: &Path,
    recovery: &[Recovery],
    files: &[PartialFile],
    jobs: usize,
    progress: &Progress,
) -> Result<(), Error> {
    make::write_all(origin, path, recovery, files, jobs, progress)
}

/// Returns the name of a recovery volume's file: `os-7.recovery-001-of-002.sealift-recovery`.
pub(crate) fn file_name(head: &Head, recovery: &Recovery) -> String {
    let identity = &head.root().identity;
    let digits = recovery.count.to_string().len().max(3);
    let Recovery { number, count, .. } = recovery;
    let stem = format!("{}-{}", identity.name, identity.version);
    format!("{stem}.recovery-{number:0digits$}-of-{count:0digits$}.{}", OpenVolume::RECOVERY_EXTENSION)
}
