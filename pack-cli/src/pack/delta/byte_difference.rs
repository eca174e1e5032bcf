//! Byte differences for machine code and tables of file systems (delta 8): matches are found by suffix sorting, as in bsdiff.

use bidiff::{DiffParams, Match};
use sealift_format::num::wide;
use sealift_format::{Run, encode_byte_difference};

use super::over_prefix::compress;

/// The longest prefix that is sorted: sorting takes about nine bytes of memory per byte, and a second for 6 MiB.
const SORTED: usize = 24 << 20;

/// Returns whether to try a byte difference, and whether it can be decoded in `memory` bytes.
pub(super) fn fits(prefix: &[u8], data: &[u8], memory: u64) -> bool {
    let needed = prefix.len().saturating_add(data.len().saturating_mul(3));
    prefix.len() <= SORTED && wide(needed) <= memory
}

/// Returns the stored bytes of a chunk of codec 3.
pub(super) fn encode(level: i32, prefix: &[u8], data: &[u8]) -> Result<Vec<u8>, String> {
    let mut matches: Vec<Match> = Vec::new();
    let found = bidiff::diff(prefix, data, &DiffParams::default(), |found| {
        if found.copy_end > found.add_new_start {
            matches.push(found);
        }
        Ok::<(), std::io::Error>(())
    });
    found.map_err(|error| error.to_string())?;
    let (mut runs, mut added, mut copied) = (Vec::with_capacity(matches.len()), Vec::new(), Vec::new());
    let number = |len: usize| u32::try_from(len).map_err(|_| "a chunk is longer than 32 bits".to_owned());
    let signed = |place: usize| wide(place).cast_signed();
    let mut place = 0;
    for found in matches {
        let seek = signed(found.add_old_start) - signed(place);
        let old = &prefix[found.add_old_start..found.add_old_start + found.add_length];
        let new = &data[found.add_new_start..found.copy_start()];
        added.extend(new.iter().zip(old).map(|(new, old)| new.wrapping_sub(*old)));
        copied.extend(&data[found.copy_start()..found.copy_end]);
        place = found.add_old_start + found.add_length;
        runs.push(Run { seek, add: number(found.add_length)?, copy: number(found.copy_end - found.copy_start())? });
    }
    // More runs than a reader accepts (delta 8) gain nothing: use a single one, which copies.
    if runs.len() > data.len().div_ceil(16) {
        runs = vec![Run { seek: 0, add: 0, copy: number(data.len())? }];
        (added, copied) = (Vec::new(), data.to_vec());
    }
    let stored = encode_byte_difference(&runs, &added, &copied, |bytes| {
        compress(level, bytes, &[]).map_err(crate::Error::Usage)
    });
    stored.map_err(|error| error.to_string())
}
