//! The base objects in a bundle.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use rustix::fs::Advice;
use sealift_format::{BaseObject, Chunk, DEPTH_MAX, Index, Limits, Made, Object, PartOf, Row};
use sealift_verify::content::{
    ChunkDecoder, Content, ContentError, ObjectRanges, Portion, check_made, copy_wanted, overlap, portions_of, range_of,
};

use super::{Base, BaseReader, Holder, ObjectReader};
use crate::kept_order::KeptOrder;
use crate::made_spool::MadeSpool;
use crate::recipe::Maker;
use crate::trust::Guard;
use crate::{Error, Input, OpenBundle, Progress, Unopened};

/// Chunks that a thread caches: successive reads are mostly close together.
const KEPT: usize = 6;
/// The limit for their total bytes, unless a single chunk is larger.
const KEPT_LEN: usize = 64 << 20;

/// Portions of objects that were made and stay in memory.
const MADE: usize = 3;
/// The limit for their total bytes, unless a single portion is larger.
const MADE_LEN: usize = 8 << 20;

/// Reads the objects of a bundle in one thread.
#[derive(Debug)]
pub(super) struct BundleReader<'a> {
    base: &'a OpenBundle,
    /// The bases of a delta bundle, for prefixes and recipes.
    bases: Option<Box<BaseReader<'a>>>,
    decoder: ChunkDecoder,
    stored: Vec<u8>,
    prefix: Vec<u8>,
    /// Cached chunks, the most recent first.
    kept: Vec<(Row<Chunk>, Vec<u8>, ObjectRanges)>,
    /// The last portion that was verified: a large one is read in many parts.
    checked: Option<Portion>,
    /// What makes objects, for each depth of recipes.
    makers: Vec<Maker>,
    /// How many objects are being made, each for the one before.
    depth: usize,
    /// The last portions that were made, the most recent first.
    made: VecDeque<(Portion, Vec<u8>)>,
}

impl Base {
    /// Opens a bundle as a base that `guard` trusts, as [`Guard::judge_base`] does: its content will be used.
    ///
    /// # Errors
    /// Returns an error if the bundle is refused or damaged, is a delta bundle, or comes through a pipe.
    pub fn of_bundle(input: Input, limits: Limits, guard: &Guard) -> Result<Self, Error> {
        let unopened = input.begin(limits)?;
        guard.judge_base(unopened.head())?;
        Self::of_known(unopened, 1)
    }

    /// Opens a bundle that a delta names as its base: the delta vouches for it. Its recipes are made on `jobs` threads.
    pub(crate) fn of_known(unopened: Unopened, jobs: usize) -> Result<Self, Error> {
        let (input, bundle) = unopened.open_bundle()?;
        let index = bundle.index.clone();
        let identity = bundle.head.root().identity.clone();
        let order = KeptOrder::of_bundle(&bundle);
        let holder = Arc::new(OpenBundle { jobs, ..OpenBundle::new(&input, bundle, Advice::Normal)? });
        Ok(Self {
            index,
            holder: Arc::new(holder),
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
        Self::over(base, None, base.made.get().map_or(base.jobs, |made| made.jobs))
    }

    /// Returns a reader of a bundle, or of a delta bundle over these bases, that makes objects on `jobs` threads.
    pub(super) fn over(base: &'a OpenBundle, bases: Option<Box<BaseReader<'a>>>, jobs: usize) -> Self {
        Self {
            base,
            bases,
            decoder: ChunkDecoder::default(),
            stored: Vec::new(),
            prefix: Vec::new(),
            kept: Vec::new(),
            checked: None,
            makers: (0..DEPTH_MAX).map(|_| Maker::new(jobs)).collect(),
            depth: 0,
            made: VecDeque::new(),
        }
    }

    fn read_checked(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let base = self.base;
        let bundle = &base.bundle;
        if let Some(made) = bundle.layout.recipes.of(object) {
            return self.read_made(made, range, out);
        }
        for (portion, chunk) in portions_of(bundle, object, base.homes[object.at()]) {
            let within = range_of(bundle, portion);
            let wanted = within.start.max(range.start)..within.end.min(range.end);
            if wanted.is_empty() && portion.piece.is_some() {
                continue;
            }
            let is_checked = self.checked == Some(portion);
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

    /// Appends bytes of an object that has a recipe. Each portion is compared with its id or chaining value.
    fn read_made(&mut self, made: &Made, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let base = self.base;
        let bundle = &base.bundle;
        if let Some(spool) = base.made.get() {
            let place = match spool.place(made.object) {
                Some(place) => place,
                None => self.keep_made(made, spool)?,
            };
            return spool.read(&place, &range, out);
        }
        for (portion, _) in portions_of(bundle, made.object, None) {
            let within = range_of(bundle, portion);
            let wanted = within.start.max(range.start)..within.end.min(range.end);
            if wanted.is_empty() {
                continue;
            }
            let place = match self.made.iter().position(|(known, _)| *known == portion) {
                Some(place) => place,
                None => {
                    let mut bytes = Vec::new();
                    self.make(made, within.clone(), &mut bytes)?;
                    check_made(bundle, portion, &bytes)?;
                    self.made.push_front((portion, bytes));
                    self.forget_made();
                    0
                }
            };
            out.extend(self.made.get(place).map_or(&[][..], |(_, bytes)| overlap(bytes, within.start, &wanted)));
        }
        Ok(())
    }

    /// Frees the portions that were made longest ago: what is read next is mostly close to one of the last places.
    fn forget_made(&mut self) {
        let mut len = 0;
        let kept = self.made.iter().take(MADE).take_while(|(_, bytes)| {
            len += bytes.len();
            len <= MADE_LEN
        });
        let kept = kept.count().max(1);
        self.made.truncate(kept);
    }

    /// Makes an object and writes it to the spool. Returns where it lies there.
    fn keep_made(&mut self, made: &Made, spool: &MadeSpool) -> Result<Range<u64>, Error> {
        let bundle = &self.base.bundle;
        let object = made.object.get(bundle.index.objects()).or_else(|| bundle.layout.recipes.leaf(made.object));
        let len = object.map_or(0, |object| object.size);
        let place = spool.reserve(len);
        let mut bytes = Vec::new();
        for (portion, _) in portions_of(bundle, made.object, None) {
            let within = range_of(bundle, portion);
            bytes.clear();
            self.make(made, within.clone(), &mut bytes)?;
            check_made(bundle, portion, &bytes)?;
            spool.write(&bytes, place.start + within.start)?;
        }
        spool.keep(made.object, place.clone());
        Ok(place)
    }

    /// Appends bytes that a recipe makes, unchecked.
    fn make(&mut self, made: &Made, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let recipes = &self.base.bundle.layout.recipes;
        let depth = self.depth;
        // The format has no deeper recipes.
        let Some(maker) = self.makers.get_mut(depth) else {
            return Err(ContentError::Object { object: made.object }.into());
        };
        let mut maker = std::mem::take(maker);
        self.depth += 1;
        let done = maker.read(recipes, &made.segments, range, out, &mut |of, range, out| match of {
            PartOf::Object(object) => self.read_checked(object, range, out),
            PartOf::Base(object) => self.of_bases(object)?.read(object, range, out),
            PartOf::View(view) => {
                let number = recipes.base_objects.saturating_add(view.number());
                let object = Row::new(number).ok_or(ContentError::Object { object: made.object })?;
                self.of_bases(object)?.read(object, range, out)
            }
        });
        self.depth = depth;
        self.makers[depth] = maker;
        done
    }

    fn of_bases(&mut self, object: Row<BaseObject>) -> Result<&mut BaseReader<'a>, Error> {
        match &mut self.bases {
            Some(bases) => Ok(bases),
            None => Err(Error::Usage(format!("there is no base with the object {object}"))),
        }
    }

    /// Returns the data of a portion that a chunk brings.
    fn data(&mut self, number: Row<Chunk>, portion: Portion) -> Result<&[u8], Error> {
        if let Some(known) = self.kept.iter().position(|(kept, ..)| *kept == number) {
            self.kept[..=known].rotate_right(1);
        } else {
            let OpenBundle { medium, bundle, .. } = self.base;
            medium.read_chunk(&bundle.layout.chunks[number.at()], &mut self.stored)?;
            let chunk = &bundle.layout.chunks[number.at()];
            self.prefix.clear();
            if let Some(bases) = &mut self.bases {
                bases.prefix(bundle.layout.prefix_of(chunk), &mut self.prefix)?;
            }
            let decoded = self.decoder.decode(bundle, number, &self.stored, &self.prefix)?;
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
    fn holds(&mut self, object: Row<Object>, progress: &Progress) -> Result<bool, Error> {
        progress.add(self.base.bundle.index.object(object).size, 0);
        Ok(true)
    }
}
