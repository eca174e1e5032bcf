//! Makes recovery volumes for a bundle that is split.

use sealift_format::num::wide;
use sealift_format::volume::front_len;
use sealift_format::{Chunk, Error as FormatError, Geometry, Head, Recovery, Volume};

use super::code;
use crate::Error;

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
    let (geometry, count) = geometry_of(Volume::slice_at(head), volumes, amount)?;
    debug_assert_eq!(geometry.starts.first(), Some(&front_len(head)), "volume 1 begins where the body does");
    Ok(Recovery::all(head, count, &geometry))
}

/// Returns how these volumes are cut into codewords, and how many recovery volumes there are. `slice_at` is where slices begin in their files.
fn geometry_of(slice_at: u64, volumes: &[Volume], amount: Amount) -> Result<(Geometry, u16), Error> {
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
    let pad = slice_at % shard_len;
    let longest = volumes.iter().map(|volume| (volume.len + pad).div_ceil(shard_len)).max().unwrap_or(1);
    let most = (1..=longest.min(POINTS)).rev().find(|run| points(*run) <= POINTS).unwrap_or(1);
    let run = longest.div_ceil(longest.div_ceil(most)); // so that the last codeword is as long as the others
    let (parity, count) = parity_of(run);
    let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let starts = volumes.iter().map(|volume| volume.offset).collect();
    let geometry =
        Geometry { shard_len: SHARD_LEN, run: narrow(run), parity: narrow(parity), pad: narrow(pad), starts };
    code::memory(&geometry)?;
    Ok((geometry, u16::try_from(count).unwrap_or(u16::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DVD: u64 = 4_696_178_688;

    /// Full volumes, of which the first begins behind a front of 5 MB.
    fn volumes(count: u16) -> Vec<Volume> {
        let file_len = 5_000_000 + u64::from(count) * DVD;
        let volume = |number| Volume {
            number,
            count,
            head_len: 1000,
            offset: 5_000_000 + (u64::from(number) - 1) * DVD,
            len: DVD,
            file_len,
            set: [7; 32],
        };
        (1..=count).map(volume).collect()
    }

    #[test]
    fn a_set_of_discs_takes_little_memory_and_few_checksums() {
        for (count, amount, files) in [
            (20, Amount::Volumes(2), 2),
            (20, Amount::Percent(10), 2),
            (20, Amount::Percent(5), 1),
            (1, Amount::Volumes(1), 1),
            (20, Amount::Volumes(20), 20),
            (100, Amount::Volumes(10), 10),
        ] {
            let volumes = volumes(count);
            let (geometry, found) = geometry_of(5_000_112, &volumes, amount).expect("it fits");
            assert_eq!(found, files, "{amount:?}");
            assert!(code::memory(&geometry).expect("it is within the limit") <= 32 << 20, "{geometry:?}");
            assert!(geometry.parity >= u32::from(found) * geometry.run || matches!(amount, Amount::Percent(_)));
            let file_len = volumes.last().map_or(0, Volume::end);
            let head_len = 1000;
            let file = Recovery { number: 1, count: found, head_len, file_len, set: [7; 32], geometry };
            // A twentieth, and 4 bytes for each shard of a share of the columns.
            let most = DVD + DVD / 20 + DVD / 2048 * 4 * u64::from(count) * 2 / u64::from(files) + 10_000_000;
            assert!(file.own_len() < most, "{amount:?}: {}", file.own_len());
        }
    }

    #[test]
    fn too_many_are_refused() {
        geometry_of(5_000_112, &volumes(20), Amount::Volumes(u16::MAX)).expect_err("the code has fewer points");
        geometry_of(5_000_112, &volumes(40_000), Amount::Volumes(30_000)).expect_err("the code has fewer points");
    }
}
