//! What a slot already has of an image: after a killed run, or of the image before.

use sealift_format::num::{size, wide};
use sealift_format::{Bundle, Object, Row};

use crate::slot::{Fingerprint, HEAD_LEN, Slot, ranges, value_of};
use crate::threads::parallel::map_with;
use crate::{Error, Progress};

/// What a slot has of an image.
#[derive(Debug, Default)]
pub(super) struct There {
    /// Whether it has all of it.
    pub(super) is_all: bool,
    /// Whether it has each piece; empty if the image has none, or was not compared.
    pieces: Vec<bool>,
    /// Bytes of the image that it has.
    pub(super) bytes: u64,
    /// The digests of the image, if it has all of it.
    pub(super) fingerprint: Option<Fingerprint>,
    /// The slot's first bytes, if it has a part of the image.
    pub(super) head: Vec<u8>,
}

impl There {
    /// Compares a slot with an image, piece by piece where the bundle tells of pieces.
    pub(super) fn of(
        slot: &Slot,
        bundle: &Bundle,
        object: Row<Object>,
        jobs: usize,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let Object { id, size: len } = *bundle.index.object(object);
        let piece_len = bundle.head.root().maxima.piece_len();
        let wanted = bundle.layout.pieces_of(object);
        if wanted.is_empty() {
            if slot.size() < len {
                return Ok(Self::default());
            }
            let found = Fingerprint::read(slot, len, piece_len, jobs, progress)?;
            let is_all = found.id == id;
            let fingerprint = is_all.then_some(found);
            return Ok(Self { is_all, bytes: if is_all { len } else { 0 }, fingerprint, ..Self::default() });
        }
        let failed = |error| Error::io("read", slot.shown(), error);
        let ranges: Vec<_> = ranges(len, piece_len).zip(wanted).collect();
        let pieces = map_with(
            jobs,
            &ranges,
            || (),
            |(), (range, piece)| {
                progress.check()?;
                progress.add(range.end - range.start, 0);
                let is_there = range.end <= slot.size();
                Ok(is_there && value_of(slot, range.clone()).map_err(failed)? == piece.chaining_value)
            },
        )?;
        let there = ranges.iter().zip(&pieces).filter(|(_, is_there)| **is_there);
        let bytes = there.map(|((range, _), _)| range.end - range.start).sum();
        let is_all = pieces.iter().all(|is_there| *is_there);
        let fingerprint = is_all.then(|| fingerprint_of(bundle, object)).flatten();
        let mut head = Vec::new();
        if bytes > 0 && !is_all {
            head.resize(size(len.min(HEAD_LEN).min(slot.size())), 0);
            slot.read_exact_at(&mut head, 0).map_err(failed)?;
        }
        Ok(Self { is_all, pieces, bytes, fingerprint, head })
    }

    /// Returns what a slot has that is not examined, since its record says that it has all.
    pub(super) fn assumed(bundle: &Bundle, object: Row<Object>) -> Self {
        let bytes = bundle.index.object(object).size;
        Self { is_all: true, bytes, fingerprint: fingerprint_of(bundle, object), ..Self::default() }
    }

    /// Returns whether it has a piece.
    pub(super) fn has(&self, piece: u64) -> bool {
        self.is_all || self.pieces.get(size(piece)).copied().unwrap_or(false)
    }
}

/// Returns the digests of an image that the bundle has; `None` for one that only a base has, if it is longer than a piece.
pub(super) fn fingerprint_of(bundle: &Bundle, object: Row<Object>) -> Option<Fingerprint> {
    let Object { id, size } = *bundle.index.object(object);
    let piece_len = bundle.head.root().maxima.piece_len();
    let pieces: Vec<_> = bundle.layout.pieces_of(object).iter().map(|piece| piece.chaining_value).collect();
    let is_known = wide(pieces.len()) == size.div_ceil(piece_len) || size <= piece_len;
    is_known.then_some(Fingerprint { id, piece_len, pieces })
}
