//! A delta bundle over its bases, as the base of another delta.

use std::ops::Range;
use std::sync::Arc;

use rustix::fs::Advice;
use sealift_format::{BaseObject, Bundle, Index, Object, Row};

use super::bundle::BundleReader;
use super::check::number_of;
use super::{Base, BaseReader, Bases, Holder, ObjectReader};
use crate::{Error, Input, OpenBundle, Progress};

/// A delta bundle that was completed with its bases.
#[derive(Debug)]
struct Chained {
    own: OpenBundle,
    bases: Bases,
    /// For each object that the delta does not carry, its number among those of the bases.
    places: Vec<Option<Row<BaseObject>>>,
    jobs: usize,
}

#[derive(Debug)]
struct ChainedReader<'a> {
    base: &'a Chained,
    own: BundleReader<'a>,
    rest: BaseReader<'a>,
}

impl Base {
    /// Makes a base of a delta bundle that was completed with these bases; makes objects on `jobs` threads.
    ///
    /// # Errors
    /// Returns an error if the delta comes through a pipe, or if this program lacks an encoder for its recipes.
    pub(super) fn of_delta(mut input: Input, bundle: Bundle, bases: Bases, jobs: usize) -> Result<Self, Error> {
        let bases = bases.making(&bundle, &mut input, jobs)?;
        let by_id = bases.by_id();
        let mut places = Vec::with_capacity(bundle.index.objects().len());
        for (object, row) in Row::all(bundle.index.objects()) {
            let is_stored = bundle.layout.is_stored(object);
            places.push(if is_stored { None } else { Some(number_of(&by_id, row)?) });
        }
        let (index, identity) = (bundle.index.clone(), bundle.head.root().identity.clone());
        let order = bases.order_of(&bundle, None);
        let own = OpenBundle::new(&input, bundle, Advice::Normal)?;
        Ok(Self {
            index,
            holder: Arc::new(Chained { own, bases, places, jobs }),
            identity: Some((identity.name, identity.version)),
            compatible: Some(identity.compatible),
            order,
        })
    }
}

impl Chained {
    fn place(&self, object: Row<Object>) -> Option<Row<BaseObject>> {
        self.places.get(object.at()).copied().flatten()
    }
}

impl Holder for Chained {
    fn reader<'a>(&'a self, _index: &'a Index) -> Box<dyn ObjectReader + 'a> {
        let prefixes = Box::new(BaseReader::only(&self.bases));
        let own = BundleReader::over(&self.own, Some(prefixes), self.jobs);
        Box::new(ChainedReader { base: self, own, rest: BaseReader::new(&self.bases) })
    }

    fn rest(&self) {
        self.bases.rest();
    }

    fn has_place(&self, object: Row<Object>) -> bool {
        self.place(object).is_none_or(|place| self.bases.is_at_hand(place))
    }
}

impl ObjectReader for ChainedReader<'_> {
    fn read(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.base.place(object) {
            Some(place) => self.rest.read(place, range, out),
            None => self.own.read(object, range, out),
        }
    }

    fn holds(&mut self, object: Row<Object>, progress: &Progress) -> Result<bool, Error> {
        match self.base.place(object) {
            Some(place) => self.rest.holds(place, progress),
            None => self.own.holds(object, progress),
        }
    }
}
