//! The base objects in a bundle.

use std::ops::Range;
use std::sync::Arc;

use rustix::fs::Advice;
use sealift_format::{Chunk, Index, Limits, Object, Row};
use sealift_verify::content::{ChunkDecoder, Content, ObjectRanges, Portion, copy_wanted, portions_of, range_of};

use super::{Base, Holder, ObjectReader};
use crate::kept_order::KeptOrder;
use crate::trust::Guard;
use crate::{Error, Input, OpenBundle, Unopened};

/// Chunks that a thread caches: successive reads are mostly close together.
const KEPT: usize = 6;
/// The limit for their total bytes, unless a single chunk is larger.
const KEPT_LEN: usize = 64 << 20;

/// Reads the objects of a bundle in one thread.
#[derive(Debug)]
pub(super) struct BundleReader<'a> {
    base: &'a OpenBundle,
    decoder: ChunkDecoder,
    stored: Vec<u8>,
    /// Cached chunks, the most recent first.
    kept: Vec<(Row<Chunk>, Vec<u8>, ObjectRanges)>,
    /// The last piece that was verified: a large one is read in many parts.
    checked: Option<Portion>,
}

impl Base {
    /// Opens a bundle as a base that `guard` trusts, as [`Guard::judge_base`] does: its content will be used.
    ///
    /// # Errors
    /// Returns an error if the bundle is refused or damaged, is a delta bundle, or comes through a pipe.
    pub fn of_bundle(input: Input, limits: Limits, guard: &Guard) -> Result<Self, Error> {
        let unopened = input.begin(limits)?;
        guard.judge_base(unopened.head())?;
        Self::of_known(unopened)
    }

    /// Opens a bundle that a delta names as its base: the delta vouches for it.
    pub(crate) fn of_known(unopened: Unopened) -> Result<Self, Error> {
        let (input, bundle) = unopened.open_bundle()?;
        let index = bundle.index.clone();
        let identity = bundle.head.root().identity.clone();
        let order = KeptOrder::of_bundle(&bundle);
        let holder = Arc::new(OpenBundle::new(&input, bundle, Advice::Normal)?);
        Ok(Self {
            index,
            holder: Box::new(holder),
            identity: Some((identity.name, identity.version)),
            compatible: Some(identity.compatible),
            order,
        })
    }
}

impl Holder for Arc<OpenBundle> {
    fn reader<'a>(&'a self, _index: &'a Index) -> Box<dyn ObjectReader + 'a> {
        Box::new(BundleReader::new(self))
    }

    fn bundle(&self) -> Option<&Arc<OpenBundle>> {
        Some(self)
    }
}

impl<'a> BundleReader<'a> {
    pub(super) fn new(base: &'a OpenBundle) -> Self {
        Self { base, decoder: ChunkDecoder::default(), stored: Vec::new(), kept: Vec::new(), checked: None }
    }

    fn read_checked(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let base = self.base;
        let bundle = &base.bundle;
        for (portion, chunk) in portions_of(bundle, object, base.homes[object.at()]) {
            let within = range_of(bundle, portion);
            let wanted = within.start.max(range.start)..within.end.min(range.end);
            if wanted.is_empty() && portion.piece.is_some() {
                continue;
            }
            let is_checked = portion.piece.is_some() && self.checked == Some(portion);
            let data = match chunk {
                None => &[],
                Some(chunk) => self.data(chunk, portion)?,
            };
            if !is_checked {
                Content::check(bundle.into(), portion, data)?;
            }
            copy_wanted(bundle, portion, data, &range, out);
            self.checked = Some(portion);
        }
        Ok(())
    }

    /// Returns the data of a portion that a chunk brings.
    fn data(&mut self, number: Row<Chunk>, portion: Portion) -> Result<&[u8], Error> {
        if let Some(known) = self.kept.iter().position(|(kept, ..)| *kept == number) {
            self.kept[..=known].rotate_right(1);
        } else {
            let OpenBundle { medium, bundle, .. } = self.base;
            medium.read_chunk(&bundle.layout.chunks[number.at()], &mut self.stored)?;
            let decoded = self.decoder.decode(bundle, number, &self.stored, &[])?;
            let mut buffer = Vec::new();
            let mut kept_len = self.kept.iter().map(|(_, kept, _)| kept.len()).sum::<usize>() + decoded.len();
            while self.kept.len() >= KEPT || (kept_len > KEPT_LEN && !self.kept.is_empty()) {
                buffer = self.kept.pop().map_or_else(Vec::new, |(_, kept, _)| kept);
                kept_len -= buffer.len();
            }
            buffer.clear();
            buffer.extend(decoded);
            let places = ObjectRanges::of(bundle, number, &buffer)?;
            self.kept.insert(0, (number, buffer, places));
        }
        Ok(self.kept.first().map_or(&[], |(_, decoded, places)| &decoded[places.find(portion)]))
    }
}

impl ObjectReader for BundleReader<'_> {
    fn read(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        self.read_checked(object, range, out).map_err(|error| error.of_bundle(self.base.medium.path()))
    }

    /// A bundle's content is verified when it is read.
    fn holds(&mut self, _object: Row<Object>) -> Result<bool, Error> {
        Ok(true)
    }
}
