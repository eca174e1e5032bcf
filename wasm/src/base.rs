//! The bases of a delta bundle: the parts of base objects with which its chunks are decoded (delta 6), and the objects that only a base holds.

use std::ops::Range;

use js_sys::Array;
use sealift_format::num::at;
use sealift_format::{BaseObject, BaseRange, Bundle, Chunk, DigestMap, Index, Object, Row, Rows};
use sealift_verify::content::{
    ChunkDecoder, Content, ContentError, ObjectRanges, Portion, copy_wanted, portions_of, range_of,
};
use sealift_verify::objects::{Checked, VerityTable};
use sealift_verify::ostree::{LargeFiles, OsTreeFiles};
use wasm_bindgen::JsValue;

use crate::error::misuse;
use crate::place::place;

/// The bases of a delta bundle, in the order of its root.
#[derive(Debug, Default)]
pub(crate) struct Bases {
    bases: Vec<Base>,
    /// For each object of the wanted index, where a base has it; `None` if it is carried.
    origins: Vec<Option<Origin>>,
    decoder: ChunkDecoder,
    /// The prefix of a chunk, as far as it has been filled.
    prefix: Vec<u8>,
    renamed: Renamed,
}

#[derive(Debug)]
struct Base {
    bundle: Bundle,
    /// For each object, the chunk of its group.
    homes: Vec<Option<Row<Chunk>>>,
    /// The fs-verity digests of its objects, from its own check. Only the reader that finishes the check has them.
    digests: Vec<u8>,
}

/// Portions of an object, each with its chunk.
pub(crate) type Portions = Vec<(Portion, Option<Row<Chunk>>)>;

/// An object of a base.
#[derive(Clone, Copy, Debug)]
struct Origin {
    base: u32,
    object: Row<Object>,
}

/// The OSTree files that consist of base objects, while those are read.
#[derive(Debug, Default)]
struct Renamed {
    files: Option<OsTreeFiles>,
    /// The portions that are still to be read, in reverse order: the object, and a portion of it with its chunk in the base.
    parts: Vec<(Row<Object>, Portion, Option<Row<Chunk>>)>,
    /// The files of the object that is being read.
    open: Option<LargeFiles>,
}

/// The position of a range in its object and in the prefix.
struct PrefixPart {
    from: Origin,
    within: Range<u64>,
    at: u64,
}

impl Bases {
    pub(crate) fn len(&self) -> usize {
        self.bases.len()
    }

    pub(crate) fn indexes(&self) -> Vec<&Index> {
        self.bases.iter().map(|base| &base.bundle.index).collect()
    }

    /// Returns the first base, from which the wanted index was made.
    pub(crate) fn first(&self) -> Option<&Index> {
        self.bases.first().map(|base| &base.bundle.index)
    }

    pub(crate) fn push(&mut self, bundle: Bundle, digests: Vec<u8>) {
        self.bases.push(Base { homes: bundle.homes(), bundle, digests });
    }

    /// Finds in the bases the objects that the completed bundle does not carry.
    pub(crate) fn find_objects(&mut self, bundle: &Bundle) {
        let mut known = DigestMap::default();
        for (number, row) in (0..u32::MAX).zip(self.bases.iter().flat_map(|base| base.bundle.index.objects())) {
            known.insert(row.id, number);
        }
        let mut origins = Vec::with_capacity(bundle.index.objects().len());
        for (number, row) in Row::all(bundle.index.objects()) {
            let found = known.get(&row.id).filter(|_| !bundle.layout.is_stored(number));
            origins.push(found.and_then(|found| self.origin(Row::new(found)?)));
        }
        self.origins = origins;
    }

    /// Returns where a base has an object of the completed bundle: the base, its number there, and its portions with their chunks.
    pub(crate) fn portions(&self, object: Row<Object>) -> Option<(u32, Portions)> {
        let origin = self.origins.get(object.at()).copied().flatten()?;
        let base = self.base(origin);
        let home = base.homes.get(origin.object.at()).copied().flatten();
        Some((origin.base, portions_of(&base.bundle, origin.object, home).collect()))
    }

    pub(crate) fn bundle(&self, base: u32) -> &Bundle {
        &self.bases[at(base)].bundle
    }

    fn base(&self, origin: Origin) -> &Base {
        &self.bases[at(origin.base)]
    }

    /// Adds the fs-verity digests of the objects that the bases have.
    pub(crate) fn add_digests(&self, table: &mut VerityTable) {
        for (number, origin) in Rows::new(0..u32::MAX).zip(&self.origins) {
            let Some(origin) = origin else { continue };
            let digests = &self.base(*origin).digests;
            if let Some(digest) = digests.as_chunks().0.get(origin.object.at()) {
                table.take(Checked::Object { object: number, digest: *digest });
            }
        }
    }

    /// Returns whether recipes make a part of a prefix: it is of views, or of objects that are made in a base.
    pub(crate) fn lack(&self, prefix: &[BaseRange]) -> bool {
        prefix.iter().any(|range| self.origin(range.object).is_none_or(|from| self.makes(from)))
    }

    fn makes(&self, from: Origin) -> bool {
        self.base(from).bundle.layout.recipes.of(from.object).is_some()
    }

    /// Returns whether a bundle or one of its bases has recipes.
    pub(crate) fn have_recipes(&self, bundle: &Bundle) -> bool {
        self.bases.iter().map(|base| &base.bundle).chain([bundle]).any(|bundle| !bundle.layout.recipes.is_empty())
    }

    /// Returns whether a recipe makes an object, or what it is decoded with. `home` is the chunk of its group.
    pub(crate) fn is_made(&self, bundle: &Bundle, object: Row<Object>, home: Option<Row<Chunk>>) -> bool {
        let lacks = |(_, chunk): (Portion, Option<Row<Chunk>>)| {
            let chunk = chunk.and_then(|chunk| chunk.get(&bundle.layout.chunks));
            chunk.is_some_and(|chunk| self.lack(bundle.layout.prefix_of(chunk)))
        };
        match self.origins.get(object.at()).copied().flatten() {
            Some(origin) => self.makes(origin),
            None => bundle.layout.recipes.of(object).is_some() || portions_of(bundle, object, home).any(lacks),
        }
    }

    /// Returns how many objects recipes make.
    pub(crate) fn count_made(&self, bundle: &Bundle) -> usize {
        if !self.have_recipes(bundle) {
            return 0;
        }
        Row::all(bundle.index.objects())
            .zip(bundle.homes())
            .filter(|((own, _), home)| self.is_made(bundle, *own, *home))
            .count()
    }

    /// Returns the base chunks that the prefix of a chunk needs, each with its base, and its place in the base's file.
    pub(crate) fn begin_prefix(&mut self, ranges: &[BaseRange]) -> Result<Array, JsValue> {
        if self.lack(ranges) {
            return Ok(Array::new());
        }
        let mut chunks = Vec::new();
        let mut len = 0;
        for place in self.places(ranges) {
            len = place.at + (place.within.end - place.within.start);
            let base = place.from.base;
            chunks.extend(self.parts(place.from, &place.within).filter_map(|(_, chunk)| Some((base, chunk?))));
        }
        chunks.sort_unstable();
        chunks.dedup();
        self.prefix.clear();
        self.prefix.resize(usize::try_from(len).map_err(|_| misuse("the prefix is longer than memory"))?, 0);
        let rows = Array::new();
        for (base, number) in chunks {
            rows.push(&Array::of3(&base.into(), &number.number().into(), &place(self.bundle(base), Some(number))?));
        }
        Ok(rows)
    }

    /// Copies to the prefix that was begun what a chunk of a base, given its stored bytes, contributes to it.
    pub(crate) fn fill_prefix(
        &mut self,
        ranges: &[BaseRange],
        base: u32,
        number: Row<Chunk>,
        stored: &[u8],
    ) -> Result<(), ContentError> {
        let mut decoder = std::mem::take(&mut self.decoder);
        let mut prefix = std::mem::take(&mut self.prefix);
        let bundle = self.bundle(base);
        let decoded = decoder.decode(bundle, number, stored, &[])?;
        let places = ObjectRanges::of(bundle, number, decoded)?;
        for place in self.places(ranges).filter(|place| place.from.base == base) {
            for (portion, _) in self.parts(place.from, &place.within).filter(|(_, own)| *own == Some(number)) {
                let (part, mut bytes) = (range_of(bundle, portion), Vec::new());
                copy_wanted(bundle, portion, &decoded[places.find(portion)], &place.within, &mut bytes);
                let target = place.at + (place.within.start.max(part.start) - place.within.start);
                let target =
                    usize::try_from(target).ok().and_then(|target| prefix.get_mut(target..)?.get_mut(..bytes.len()));
                if let Some(target) = target {
                    target.copy_from_slice(&bytes);
                }
            }
        }
        (self.decoder, self.prefix) = (decoder, prefix);
        Ok(())
    }

    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Returns the ranges of a chunk's prefix, and their positions.
    fn places<'a>(&'a self, ranges: &'a [BaseRange]) -> impl Iterator<Item = PrefixPart> + use<'a> {
        ranges.iter().scan(0, |next: &mut u64, range| {
            let within = range.offset..range.offset.saturating_add(range.len);
            let place = PrefixPart { from: self.origin(range.object)?, within, at: *next };
            *next = next.saturating_add(range.len);
            Some(place)
        })
    }

    /// Returns where the bases have an object.
    fn origin(&self, object: Row<BaseObject>) -> Option<Origin> {
        let (base, object) =
            BaseObject::locate(object, self.bases.iter().map(|base| base.bundle.index.objects().len()))?;
        Some(Origin { base: u32::try_from(base).ok()?, object })
    }

    /// Returns the portions in which a base stores an object, as far as they overlap `wanted`, each with its chunk.
    fn parts<'a>(
        &'a self,
        from: Origin,
        wanted: &Range<u64>,
    ) -> impl Iterator<Item = (Portion, Option<Row<Chunk>>)> + use<'a> {
        let (base, wanted) = (self.base(from), wanted.clone());
        let home = base.homes.get(from.object.at()).copied().flatten();
        portions_of(&base.bundle, from.object, home).filter(move |(portion, _)| {
            let part = range_of(&base.bundle, *portion);
            part.start < wanted.end && wanted.start < part.end
        })
    }

    /// Begins the check of the OSTree files whose content the bases have under another checksum.
    pub(crate) fn begin_renamed(&mut self, bundle: &Bundle) {
        let Some(first) = self.first() else { return };
        let files = OsTreeFiles::of_bases(bundle, first);
        let mut parts = Vec::new();
        // In the order of the wanted index, which is mostly that of the bases' files.
        for object in files.objects().filter(|object| !self.is_made(bundle, *object, None)) {
            let portions = self.portions(object).map_or_else(Vec::new, |(_, portions)| portions);
            parts.extend(portions.into_iter().map(|(portion, chunk)| (object, portion, chunk)));
        }
        parts.reverse();
        self.renamed = Renamed { files: Some(files), parts, open: None };
    }

    /// Returns the base and the place of the next chunk that [`Self::check_renamed`] needs.
    pub(crate) fn next_renamed(&self) -> Result<JsValue, JsValue> {
        let Some((object, _, chunk)) = self.renamed.parts.last() else { return Ok(JsValue::UNDEFINED) };
        let Some(origin) = self.origins[object.at()] else { return Ok(JsValue::UNDEFINED) };
        Ok(Array::of2(&origin.base.into(), &place(self.bundle(origin.base), *chunk)?).into())
    }

    /// Checks the next OSTree files, as far as a chunk of a base, given its stored bytes, holds their content.
    pub(crate) fn check_renamed(&mut self, bundle: &Bundle, stored: &[u8]) -> Result<(), ContentError> {
        let Self { bases, origins, decoder, renamed: Renamed { files, parts, open }, .. } = self;
        let base_of = |object: Row<Object>| origins[object.at()].map_or(0, |origin| origin.base);
        let (Some(files), Some(&(first, _, chunk))) = (files, parts.last()) else { return Ok(()) };
        let base = base_of(first);
        let held = &bases[at(base)].bundle;
        let (decoded, places) = match chunk {
            Some(number) => {
                let decoded = decoder.decode(held, number, stored, &[])?;
                (decoded, ObjectRanges::of(held, number, decoded)?)
            }
            None => (&[][..], ObjectRanges::default()),
        };
        while let Some((object, portion, own)) =
            parts.pop_if(|(object, _, own)| base_of(*object) == base && (own.is_none() || *own == chunk))
        {
            let data = if own.is_some() { &decoded[places.find(portion)] } else { &[] };
            let content = Content::check(held.into(), portion, data)?;
            let hashers = open.get_or_insert_with(|| files.of(bundle, object));
            content.for_each_part(&mut |part| hashers.push(part));
            if parts.last().is_none_or(|(next, ..)| *next != object)
                && let Some(hashers) = open.take()
            {
                hashers.check(bundle)?;
            }
        }
        Ok(())
    }
}
