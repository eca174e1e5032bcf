//! The objects of the full bundle, which the delta carries or a base has.

use std::collections::HashMap;
use std::ops::Range;

use sealift_format::num::at;
use sealift_format::{Error as FormatError, Extent, Index, Layout, Maxima, Part};

use crate::Error;
use sealift_store::base::{BaseReader, Bases, BundleBase, BundleReader, ObjectReader as _};

/// The shared state of all threads.
pub(super) struct Objects<'a> {
    delta: &'a BundleBase,
    pub(super) bases: &'a Bases,
    /// For each object of the wanted index its number among those of all bases, unless the delta carries it.
    in_bases: Vec<Option<u32>>,
}

/// The state of one thread.
pub(super) struct ObjectReader<'a> {
    objects: &'a Objects<'a>,
    delta: BundleReader<'a>,
    bases: BaseReader<'a>,
}

impl<'a> Objects<'a> {
    /// `delta` is a delta bundle that was completed with `bases`.
    pub(super) fn new(delta: &'a BundleBase, bases: &'a Bases) -> Result<Self, Error> {
        let bundle = &delta.file.bundle;
        let of_bases = bases.indexes().into_iter().flat_map(Index::objects);
        let mut by_row = HashMap::new();
        for (number, row) in (0..).zip(of_bases) {
            by_row.entry((row.id, row.size)).or_insert(number);
        }
        let mut in_bases = Vec::with_capacity(bundle.index.objects().len());
        for (number, row) in (0..).zip(bundle.index.objects()) {
            if bundle.layout.is_carried(number) {
                in_bases.push(None);
                continue;
            }
            let Some(known) = by_row.get(&(row.id, row.size)) else {
                let what = "neither the delta nor a base has the object";
                return Err(FormatError::Row { part: Part::Index, what, row: number.into() }.into());
            };
            in_bases.push(Some(*known));
        }
        Ok(Self { delta, bases, in_bases })
    }

    pub(super) fn index(&self) -> &'a Index {
        &self.delta.file.bundle.index
    }

    /// Returns the number of an object among those of all bases, unless the delta carries it.
    pub(super) fn in_bases(&self, object: u32) -> Option<u32> {
        self.in_bases[at(object)]
    }

    pub(super) fn holes_of(&self, object: u32) -> &'a [Extent] {
        match self.in_bases(object) {
            None => self.delta.file.bundle.layout.holes_of(object),
            Some(number) => self.bases.holes_of(number),
        }
    }

    /// Returns the full bundle's layout, as far as it is known before there are chunks.
    pub(super) fn lay_out(&self, maxima: &Maxima) -> Result<Layout, Error> {
        let Some(full) = &self.delta.file.bundle.layout.full else {
            let what = "there is no layout of the full bundle";
            return Err(FormatError::Malformed { part: Part::Layout, what, at: 0 }.into());
        };
        Ok(full.lay_out(self.index(), maxima, |object| self.holes_of(object))?)
    }

    pub(super) fn reader(&'a self) -> ObjectReader<'a> {
        let delta = BundleReader::of_delta(self.delta, BaseReader::new(self.bases));
        ObjectReader { objects: self, delta, bases: BaseReader::new(self.bases) }
    }
}

impl ObjectReader<'_> {
    /// Appends bytes of an object to `out`, verified against its id.
    pub(super) fn read(&mut self, object: u32, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.objects.in_bases(object) {
            None => self.delta.read(object, range, out),
            Some(number) => self.bases.read(number, range, out),
        }
    }
}
