//! Which runs of columns were written while volumes are repaired: a bit for each.

use std::sync::atomic::{AtomicU64, Ordering};

use sealift_format::num::size;
use sealift_format::{Error as FormatError, Geometry};

use crate::Error;

/// A bit for each run that has bytes. Most of a short column's runs have none, and no bit.
#[derive(Debug)]
pub(super) struct Written<'a> {
    geometry: &'a Geometry,
    file_len: u64,
    /// The number of the first run of each column.
    first: Vec<u64>,
    bits: Vec<AtomicU64>,
}

/// The most bytes that these bits may take: those of a bundle of 4 TiB in shards of 2 KiB.
const MEMORY: u64 = 256 << 20;

impl<'a> Written<'a> {
    /// Creates bits for a bundle of `file_len` bytes.
    ///
    /// # Errors
    /// Returns an error if they take more memory than this program keeps.
    pub(super) fn new(geometry: &'a Geometry, file_len: u64) -> Result<Self, Error> {
        let (mut first, mut all) = (Vec::with_capacity(geometry.starts.len()), 0_u64);
        for number in 0..geometry.starts.len() {
            first.push(all);
            let column = geometry.column(number, file_len);
            let len = (column.end.saturating_sub(column.start)).saturating_add(geometry.pad.into());
            all = all.saturating_add(len.div_ceil(run_len(geometry)));
        }
        let words = all.div_ceil(64);
        let declared = words.saturating_mul(8);
        if declared > MEMORY {
            return Err(FormatError::Limit { what: "the memory for repairing volumes", declared, limit: MEMORY }.into());
        }
        Ok(Self { geometry, file_len, first, bits: (0..words).map(|_| AtomicU64::new(0)).collect() })
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.bits.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    }

    /// Notes that the run of a column that begins at `offset` of the bundle was written.
    pub(super) fn note(&self, column: usize, offset: u64) {
        if let Some((word, bit)) = self.place_of(column, offset) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// Returns whether it was.
    pub(super) fn has(&self, column: usize, offset: u64) -> bool {
        self.place_of(column, offset).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    fn place_of(&self, column: usize, offset: u64) -> Option<(&AtomicU64, u64)> {
        let start = self.geometry.column(column, self.file_len).start;
        // The first run of a column begins with the padding.
        let number = offset.saturating_sub(start).saturating_add(self.geometry.pad.into()) / run_len(self.geometry);
        let bit = self.first.get(column)?.saturating_add(number);
        Some((self.bits.get(size(bit / 64))?, 1 << (bit % 64)))
    }
}

fn run_len(geometry: &Geometry) -> u64 {
    u64::from(geometry.run).saturating_mul(geometry.shard_len.into()).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn geometry(shard_len: u32, (run, pad): (u32, u32), starts: &[u64]) -> Geometry {
        Geometry { shard_len, run, parity: 1, pad, starts: starts.to_vec() }
    }

    #[test]
    fn each_run_has_a_bit_of_its_own() {
        for (run, pad) in [(1, 0), (3, 10), (2, 63)] {
            let geometry = geometry(64, (run, pad), &[300, 1000, 1001, 1500]);
            let written = Written::new(&geometry, 2000).expect("it is small");
            let codewords = geometry.codewords(2000);
            let runs = (0..4).flat_map(|column| (0..codewords).map(move |codeword| (codeword, column)));
            let runs: Vec<_> = runs
                .map(|(codeword, column)| (column, geometry.run_of(codeword, column, 2000).0))
                .filter(|(_, range)| !range.is_empty())
                .collect();
            for (number, (column, range)) in runs.iter().enumerate() {
                assert!(!written.has(*column, range.start), "{column} {range:?}");
                written.note(*column, range.start);
                for (other, (column, range)) in runs.iter().enumerate() {
                    assert_eq!(written.has(*column, range.start), other <= number, "{column} {range:?}");
                }
            }
            written.clear();
            assert!(runs.iter().all(|(column, range)| !written.has(*column, range.start)));
        }
    }

    /// With one long column and many short ones, most codewords have bytes of one column only.
    #[test]
    fn short_columns_take_little() {
        let starts: Vec<u64> = std::iter::once(300).chain((0..65_000).map(|short| (1 << 32) + short)).collect();
        let short = geometry(64, (1, 0), &starts);
        let written = Written::new(&short, (1 << 32) + 65_000).expect("it is small");
        assert!(written.bits.len() * 8 < 16 << 20, "{} words", written.bits.len());
        let error = Written::new(&geometry(64, (1, 0), &[300, 1 << 40]), (1 << 40) + 1).expect_err("it is too much");
        assert!(error.to_string().contains("the memory for repairing volumes"), "{error}");
    }
}
