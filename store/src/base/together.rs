//! One index whose objects are in two places, such as the images of a bundle in slots.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use sealift_format::{Index, Object, RootBase, Row};

use super::{Base, Holder, ObjectReader};
use crate::{Error, OpenBundle, Progress};

/// Two holders, of which the first is asked first.
#[derive(Debug)]
struct Together {
    first: Arc<dyn Holder>,
    second: Arc<dyn Holder>,
}

#[derive(Debug)]
struct TogetherReader<'a> {
    holder: &'a Together,
    first: Box<dyn ObjectReader + 'a>,
    second: Box<dyn ObjectReader + 'a>,
}

impl Base {
    /// Returns this base with what another holder of the same index has.
    pub(super) fn together_with(self, other: Self) -> Self {
        let order = self.order.or(other.order);
        Self { holder: Arc::new(Together { first: self.holder, second: other.holder }), order, ..self }
    }
}

impl Holder for Together {
    fn reader<'a>(&'a self, index: &'a Index) -> Box<dyn ObjectReader + 'a> {
        let (first, second) = (self.first.reader(index), self.second.reader(index));
        Box::new(TogetherReader { holder: self, first, second })
    }

    fn rest(&self) {
        self.first.rest();
        self.second.rest();
    }

    fn has_place(&self, object: Row<Object>) -> bool {
        self.first.has_place(object) || self.second.has_place(object)
    }

    fn named(&self) -> Option<RootBase> {
        self.first.named().or_else(|| self.second.named())
    }

    fn bundle(&self) -> Option<&Arc<OpenBundle>> {
        self.first.bundle().or_else(|| self.second.bundle())
    }
}

impl<'a> TogetherReader<'a> {
    fn of(&mut self, object: Row<Object>) -> &mut (dyn ObjectReader + 'a) {
        if self.holder.first.has_place(object) { &mut *self.first } else { &mut *self.second }
    }
}

impl ObjectReader for TogetherReader<'_> {
    fn read(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        self.of(object).read(object, range, out)
    }

    fn holds(&mut self, object: Row<Object>, progress: &Progress) -> Result<bool, Error> {
        self.of(object).holds(object, progress)
    }

    fn open(&mut self, object: Row<Object>) -> Result<Option<Box<dyn Read>>, Error> {
        self.of(object).open(object)
    }
}
