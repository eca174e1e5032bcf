//! A delta bundle: what it carries, and the full bundle that results with its bases (delta 3).

use crate::difference::base_object;
use crate::error::compare;
use crate::layout::{check_ranges, index_maxima, layout_maxima, maxima};
use crate::num::{fit, wide};
use crate::{Bundle, Difference, Error, Head, Index, Layout, Maxima, Part, RootBases, verity};

/// A delta bundle whose head, layout and difference have been read and checked. This does not mean that its root is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    /// Preamble, root and envelopes.
    pub head: Head,
    /// Where each carried object lies, by its number in the difference.
    pub layout: Layout,
    /// The difference from the index of the first base to the wanted index.
    pub difference: Difference,
}

impl Delta {
    /// Returns the bases. There are none only if the head was changed after the bundle was opened.
    #[must_use]
    pub fn bases(&self) -> &[crate::RootBase] {
        self.head.root().bases.as_ref().map_or(&[], |bases| &bases.bases)
    }

    /// Returns the bundle that results with `bases`, in the order of the root: it has the wanted index, and its layout numbers the objects as
    /// that index does and states which are [carried](Layout::carried).
    ///
    /// # Errors
    /// Returns an error if `bases` are not those of the root, or the difference does not result in the index that the root states.
    pub fn complete(self, bases: &[&Index]) -> Result<Bundle, Error> {
        let declared = self.bases();
        let are_same = declared.len() == bases.len()
            && declared.iter().zip(bases).all(|(declared, base)| {
                wide(base.bytes().len()) == declared.index_len && verity::digest(base.bytes()) == declared.index_digest
            });
        if !are_same {
            return Err(Error::Digest { part: Part::Base });
        }
        check_ranges(&self.layout, |object| base_object(bases, object).map(|row| row.size))?;
        let bytes = self.difference.apply(bases)?;
        self.check_wanted(&bytes)?;
        let index = Index::parse(bytes, self.head.root().maxima.entries)?;
        self.with_wanted(index)
    }

    /// The same, given the wanted index.
    ///
    /// # Errors
    /// Returns an error if it is not the index that the root states.
    pub fn complete_with(self, index: Index) -> Result<Bundle, Error> {
        self.check_wanted(index.bytes())?;
        self.with_wanted(index)
    }

    /// Compares the bytes of the wanted index with the root.
    fn check_wanted(&self, index: &[u8]) -> Result<(), Error> {
        let contents = &self.head.root().contents;
        if verity::digest(index) != contents.index_digest {
            return Err(Error::Digest { part: Part::Index });
        }
        if wide(index.len()) == contents.index_len {
            return Ok(());
        }
        let what = "the wanted index has another length than was declared";
        Err(Error::Malformed { part: Part::Index, what, at: 0 })
    }

    fn with_wanted(self, index: Index) -> Result<Bundle, Error> {
        // The carried objects are in the order of the wanted index.
        let numbers = self.difference.carried_in(&index);
        if numbers.len() != self.difference.objects().len() {
            let what = "the wanted index lacks a carried object, or has them in another order";
            return Err(Error::Row { part: Part::Index, what, row: wide(numbers.len()) });
        }
        let declared = &self.head.root().maxima;
        let objects = fit(index.objects().len(), "the number of objects")?;
        let layout = self.layout.renumbered(numbers, objects);
        declared.check_index(&index_maxima(&index)?)?;
        declared.check(&maxima(&index, &layout, declared.piece_log2, declared.window_log)?)?;
        Ok(Bundle { head: self.head, layout, index })
    }
}

/// Compares what the root declares with the layout of a delta bundle.
pub(crate) fn check_layout(declared: &Maxima, bases: &RootBases, layout: &Layout) -> Result<(), Error> {
    declared.check_layout(&layout_maxima(layout)?)?;
    let mut prefix_len = 0;
    for chunk in &layout.chunks {
        let mut lens = layout.prefix_of(chunk).iter().map(|range| range.len);
        let Some(len) = lens.try_fold(0_u64, u64::checked_add) else {
            return Err(Error::Limit { what: "prefix_len", declared: u64::MAX, limit: u64::MAX });
        };
        prefix_len = len.max(prefix_len);
    }
    compare(&[("prefix_len", bases.prefix_len.into(), prefix_len)])
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;
    use crate::{BaseRange, Chunk, Codec, Holds, Row};

    #[test]
    fn prefixes_of_more_bytes_than_can_be_counted_are_over_a_limit() {
        let range = |object, len| BaseRange { object: Row::new(object).expect("it is small"), offset: 0, len };
        let chunk = Chunk {
            codec: Codec::ZstdPrefix,
            offset: 0,
            stored_len: 1,
            len: 1,
            digest: [0; 32],
            holds: Holds::Piece,
            prefix: 0..2,
        };
        let mut layout = Layout { chunks: vec![chunk], ..Layout::default() };
        let mut declared = Maxima { chunks: 1, ..layout_maxima(&layout).expect("it is small") };
        declared.chunk_len = 1;
        let bases = RootBases { difference_len: 0, prefix_len: u32::MAX, bases: vec![] };
        for (len, kind) in [(u64::MAX - 1, crate::Kind::Header), (u64::MAX, crate::Kind::Limit)] {
            layout.ranges = vec![range(0, 1), range(1, len)];
            let found = check_layout(&declared, &bases, &layout).expect_err("it is too long");
            assert_eq!(found.kind(), kind, "{len}");
        }
    }
}
