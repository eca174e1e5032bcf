//! A base that only a request describes: its objects are read from other bases, as far as these have them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use sealift_format::{BaseObject, Index, Object, Request, Row, Rows};

use super::{Base, BaseReader, Bases, Holder, ObjectReader};
use crate::{Error, Progress};

/// A target's content according to its request, with bases that may have some of it.
#[derive(Debug)]
pub(super) struct RequestedBase {
    /// The target's name for its index.
    named: sealift_format::RootBase,
    at_hand: Bases,
    /// For each object, its number among the objects of `at_hand`.
    places: Vec<Option<Row<BaseObject>>>,
}

/// The first bytes of an object's id, and its size.
type Start = ([u8; 8], u64);
/// The whole id, and the object's number among those at hand, if it is there.
type Known = ([u8; 32], Option<Row<BaseObject>>);

#[derive(Debug)]
pub(super) struct RequestedReader<'a> {
    base: &'a RequestedBase,
    at_hand: BaseReader<'a>,
}

impl Base {
    /// Returns the content of the target of `request`, for packing `wanted`. Objects of `at_hand` are read if the target has them too; if one of
    /// these bases equals the target's content, that base is returned.
    pub fn of_request(request: &Request, at_hand: Vec<Self>, wanted: &Index) -> Result<Self, Error> {
        let is_it = |base: &Self| base.named().index_digest == request.base.index_digest;
        let mut at_hand = at_hand;
        if let Some(at) = at_hand.iter().position(is_it) {
            return Ok(at_hand.swap_remove(at));
        }
        let at_hand = Bases::new(at_hand);
        let mut known: HashMap<Start, Known> = HashMap::new();
        let start = |object: &Object| (*object.id.first_chunk().unwrap_or(&[0; 8]), object.size);
        let held = at_hand.list.iter().flat_map(|base| base.index.objects());
        let place = |row| at_hand.is_at_hand(row).then_some(row);
        let held = Rows::new(0..u32::MAX).zip(held);
        known.extend(held.map(|(row, object)| (start(object), (object.id, place(row)))));
        for object in wanted.objects() {
            known.entry(start(object)).or_insert((object.id, None));
        }
        let index = request.complete(|start, size| known.get(&(*start, size)).map(|(id, _)| *id))?;
        let places = index.objects().iter().map(|object| known.get(&start(object)).and_then(|(_, place)| *place));
        let places = places.collect();
        let holder = RequestedBase { named: request.base.clone(), at_hand, places };
        Ok(Self {
            index,
            holder: Arc::new(holder),
            identity: request.base.identity.clone(),
            compatible: None,
            order: None,
        })
    }
}

impl RequestedBase {
    pub(super) fn place(&self, object: Row<Object>) -> Option<Row<BaseObject>> {
        self.places[object.at()]
    }
}

impl Holder for RequestedBase {
    fn reader<'a>(&'a self, _index: &'a Index) -> Box<dyn ObjectReader + 'a> {
        Box::new(RequestedReader::new(self))
    }

    fn has_place(&self, object: Row<Object>) -> bool {
        self.place(object).is_some()
    }

    fn named(&self) -> Option<sealift_format::RootBase> {
        Some(self.named.clone())
    }
}

impl<'a> RequestedReader<'a> {
    pub(super) fn new(base: &'a RequestedBase) -> Self {
        Self { base, at_hand: BaseReader::new(&base.at_hand) }
    }
}

impl ObjectReader for RequestedReader<'_> {
    fn read(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        match self.base.place(object) {
            Some(place) => self.at_hand.read(place, range, out),
            None => Err(Error::Usage(format!("no base has object {object}, which the request lists"))),
        }
    }

    fn holds(&mut self, object: Row<Object>, progress: &Progress) -> Result<bool, Error> {
        self.base.place(object).map_or(Ok(false), |place| self.at_hand.holds(place, progress))
    }
}
