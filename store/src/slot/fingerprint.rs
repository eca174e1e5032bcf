//! The digests of an image: its object's id, and the chaining values of its pieces, so that a difference can be told by its place.

use std::ops::Range;

use blake3::Hasher;
use blake3::hazmat::{ChainingValue, HasherExt as _};
use sealift_format::num::{up_to, wide};
use sealift_format::pieces;

use super::Slot;
use crate::threads::parallel::map_with;
use crate::{Error, Progress};

/// The length of pieces if only the id is asked for, which does not depend on it.
const READ_LEN: u64 = 1 << 20;

/// The digests of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint {
    /// The object's id.
    pub(crate) id: [u8; 32],
    /// The length of a piece, a power of two.
    pub(crate) piece_len: u64,
    /// The chaining values of its pieces; none if it is not longer than one.
    pub(crate) pieces: Vec<ChainingValue>,
}

/// Makes a fingerprint of bytes that come in order.
#[derive(Debug)]
pub(crate) struct Fingerprints {
    hasher: Hasher,
    at: u64,
    piece_len: u64,
    pieces: Vec<ChainingValue>,
}

impl Fingerprints {
    pub(crate) fn new(piece_len: u64) -> Self {
        Self { hasher: Hasher::new(), at: 0, piece_len, pieces: Vec::new() }
    }

    /// Takes what follows.
    pub(crate) fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let within = self.at % self.piece_len;
            if within == 0 && self.at > 0 {
                self.end_piece();
                self.hasher.set_input_offset(self.at);
            }
            let (part, rest) = bytes.split_at(up_to(self.piece_len - within, bytes.len()));
            self.hasher.update(part);
            self.at += wide(part.len());
            bytes = rest;
        }
    }

    fn end_piece(&mut self) {
        self.pieces.push(std::mem::take(&mut self.hasher).finalize_non_root());
    }

    /// Returns the fingerprint of all that it took.
    pub(crate) fn finish(mut self) -> Fingerprint {
        let piece_len = self.piece_len;
        if self.pieces.is_empty() {
            return Fingerprint { id: *self.hasher.finalize().as_bytes(), piece_len, pieces: Vec::new() };
        }
        self.end_piece();
        Fingerprint { id: pieces::object_id(&self.pieces).unwrap_or_default(), piece_len, pieces: self.pieces }
    }
}

impl Fingerprint {
    /// Reads the first `len` bytes of a slot, on `jobs` threads.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or is shorter.
    pub(crate) fn read(slot: &Slot, len: u64, piece_len: u64, jobs: usize, progress: &Progress) -> Result<Self, Error> {
        if len <= piece_len {
            let mut hasher = Hasher::new();
            let read = slot.read_parts(0, len, |part| _ = hasher.update(part));
            read.map_err(|error| Error::io("read", slot.shown(), error))?;
            progress.add(len, 0);
            return Ok(Self { id: *hasher.finalize().as_bytes(), piece_len, pieces: Vec::new() });
        }
        let ranges: Vec<Range<u64>> = ranges(len, piece_len).collect();
        let pieces = map_with(
            jobs,
            &ranges,
            || (),
            |(), range| {
                progress.check()?;
                let value = value_of(slot, range.clone()).map_err(|error| Error::io("read", slot.shown(), error))?;
                progress.add(range.end - range.start, 0);
                Ok(value)
            },
        )?;
        Ok(Self { id: pieces::object_id(&pieces).unwrap_or_default(), piece_len, pieces })
    }

    /// Returns whether the first `len` bytes of a slot are the image with this id; not if it cannot be read, or is shorter.
    ///
    /// # Errors
    /// Returns [`Error::Cancelled`].
    pub(crate) fn is_in(slot: &Slot, len: u64, id: &[u8; 32], jobs: usize, progress: &Progress) -> Result<bool, Error> {
        match Self::read(slot, len, READ_LEN, jobs, progress) {
            Err(Error::Io { .. }) => Ok(false),
            found => found.map(|found| found.id == *id),
        }
    }

    /// Returns the first range in which another image of the same length differs; `None` if there is none.
    pub(crate) fn first_difference(&self, other: &Self, len: u64) -> Option<Range<u64>> {
        if self.id == other.id {
            return None;
        }
        let whole = 0..len;
        if self.piece_len != other.piece_len || self.pieces.len() != other.pieces.len() {
            return Some(whole);
        }
        let differs = self.pieces.iter().zip(&other.pieces).position(|(own, other)| own != other);
        Some(differs.map_or(whole, |piece| range_of(wide(piece), len, self.piece_len)))
    }
}

/// Returns the chaining value of a piece of a slot.
pub(crate) fn value_of(slot: &Slot, range: Range<u64>) -> std::io::Result<ChainingValue> {
    let mut hasher = Hasher::new();
    hasher.set_input_offset(range.start);
    slot.read_parts(range.start, range.end - range.start, |part| _ = hasher.update(part))?;
    Ok(hasher.finalize_non_root())
}

/// Returns the ranges of the pieces of an image.
pub(crate) fn ranges(len: u64, piece_len: u64) -> impl Iterator<Item = Range<u64>> {
    (0..len.div_ceil(piece_len)).map(move |piece| range_of(piece, len, piece_len))
}

fn range_of(piece: u64, len: u64, piece_len: u64) -> Range<u64> {
    let start = piece.saturating_mul(piece_len).min(len);
    start..len.min(start.saturating_add(piece_len))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use sealift_format::num::size;

    use super::*;
    use crate::slot::SlotAddress;

    #[test]
    fn reading_and_taking_agree_and_a_difference_has_a_place() {
        const PIECE: u64 = 64 << 10;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("it");
        for len in [0, 1, PIECE, PIECE + 1, 5 * PIECE + 3] {
            let mut content: Vec<u8> = (0..251).cycle().take(size(len)).collect();
            std::fs::write(&path, &content).expect("it is ours");
            let mut taking = Fingerprints::new(PIECE);
            content.chunks(9973).for_each(|part| taking.take(part));
            let taken = taking.finish();
            let target = [b"image:", path.as_os_str().as_bytes()].concat();
            let address = SlotAddress { image: None, target: crate::error::path_of(&target).to_owned() };
            let read = || {
                let slot = Slot::open(&address).expect("it is there");
                Fingerprint::read(&slot, len, PIECE, 2, &Progress::default()).expect("it is read")
            };
            assert_eq!(taken, read());
            assert_eq!(taken.id, *blake3::hash(&content).as_bytes());
            assert_eq!(taken.first_difference(&read(), len), None);
            let Some(last) = len.checked_sub(1) else { continue };
            content[size(last)] ^= 1;
            std::fs::write(&path, &content).expect("it is ours");
            let start = if len > PIECE { last / PIECE * PIECE } else { 0 };
            assert_eq!(taken.first_difference(&read(), len), Some(start..len));
        }
    }
}
