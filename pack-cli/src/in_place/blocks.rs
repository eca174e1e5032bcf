//! Blocks: decoded chunks of a bundle and of its bases, parts of what other bases hold, and objects or pieces without data. Before a byte is handed
//! out, the stored bytes of its chunk are compared with their digest, and its object or piece with the index or layout.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use sealift_format::num::{self, size};
use sealift_format::{BaseObject, BaseRange, Chunk, Object, Row};
use sealift_verify::content::{ChunkDecoder, Content, ContentError, ObjectRanges, Portion, copy_wanted, range_of};

use super::pages::{FreePages, Pages};
use crate::Error;
use sealift_store::OpenBundle;
use sealift_store::base::{BaseReader, Bases, number_of};

/// Bytes of a base object in one block, if the base is not a bundle.
const BASE_PART_LEN: u64 = 1 << 20;
/// Approximate memory of a block besides its data.
const BLOCK_COST: usize = 256;

/// The number of a bundle among those whose chunks are read.
pub(super) type Source = usize;
/// The bundle that is read; the others are bases.
const OWN: Source = 0;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A chunk.
    Chunk(Source, Row<Chunk>),
    /// A part of an object of a base that is not a bundle.
    Base(Row<BaseObject>, u64),
    /// An object, or a piece of one, that consists of holes.
    Hole(Source, Row<Object>, Option<u64>),
}

impl Key {
    /// Returns the bundle in which it is.
    pub(super) fn source(self) -> Option<Source> {
        match self {
            Self::Chunk(source, _) | Self::Hole(source, ..) => Some(source),
            Self::Base(..) => None,
        }
    }

    /// Returns whether the block is read from a base.
    pub(super) fn is_of_base(self) -> bool {
        self.source() != Some(OWN)
    }
}

/// A block in memory.
#[derive(Debug)]
pub(super) struct Block {
    data: Pages,
    /// Where the objects of a chunk lie in the data.
    places: ObjectRanges,
    /// Which of these objects have been checked.
    checked: Vec<AtomicBool>,
    /// What was checked last of all else: several equal pieces have the same data.
    checked_last: Mutex<Option<Portion>>,
}

/// A part of an object, with the block that holds it.
pub(super) struct Span {
    pub(super) key: Key,
    /// The range of the object that the block holds.
    pub(super) within: Range<u64>,
    /// The object or its piece in its bundle; `None` in a part of what another base holds.
    portion: Option<(Source, Portion)>,
}

/// An open bundle with its bases, and where its objects lie.
#[derive(Debug)]
pub(super) struct Blocks {
    /// The bundle, and those of its bases that are bundles.
    sources: Vec<Arc<OpenBundle>>,
    /// For each base, its number among the sources.
    source_of: Vec<Option<Source>>,
    bases: Bases,
    /// Held while a chunk is read: if two chunks were read at once, the head of a disk would move back and forth between them.
    turn: Mutex<()>,
    /// The objects that a base holds, ascending, each with its number there.
    of_base: Vec<(Row<Object>, Row<BaseObject>)>,
    pub(super) free: Arc<FreePages>,
}

/// What a thread needs to make blocks. Its buffers are reused from block to block.
#[derive(Debug)]
pub(super) struct Maker<'a> {
    blocks: &'a Blocks,
    decoder: ChunkDecoder,
    reader: BaseReader<'a>,
    stored: Vec<u8>,
    part: Vec<u8>,
    /// For the prefix of the chunk that is being made.
    pub(super) prefix: Vec<u8>,
}

impl Block {
    /// Returns roughly how many bytes of memory it takes.
    pub(super) fn cost(&self) -> u64 {
        self.data.cost() + num::wide(BLOCK_COST + self.places.cost() + self.checked.len())
    }

    fn is_checked(&self, portion: Portion) -> bool {
        match self.places.number(portion) {
            Some(number) => self.checked[number].load(Ordering::Relaxed),
            None => *self.checked_last.lock() == Some(portion),
        }
    }

    fn set_checked(&self, portion: Portion) {
        match self.places.number(portion) {
            Some(number) => self.checked[number].store(true, Ordering::Relaxed),
            None => *self.checked_last.lock() = Some(portion),
        }
    }

    /// Returns a range of its data.
    pub(super) fn data(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        self.data.get(range)
    }
}

impl Blocks {
    /// # Errors
    /// Returns an error if no base has an object that the bundle lacks.
    pub(super) fn new(own: OpenBundle, bases: Bases) -> Result<Self, Error> {
        let bundle = &own.bundle;
        let mut of_base = Vec::new();
        if !bundle.layout.stores_all() {
            let by_id = bases.by_id();
            for (object, row) in Row::all(bundle.index.objects()) {
                if !bundle.layout.is_stored(object) {
                    of_base.push((object, number_of(&by_id, row)?));
                }
            }
        }
        let (mut sources, mut source_of) = (vec![Arc::new(own)], Vec::new());
        for base in bases.bundles() {
            source_of.push(base.map(|_| sources.len()));
            sources.extend(base.map(Arc::clone));
        }
        Ok(Self { sources, source_of, bases, turn: Mutex::default(), of_base, free: Arc::default() })
    }

    /// Frees what is only needed while blocks are made.
    pub(super) fn rest(&self) {
        self.free.clear();
        self.bases.rest();
    }

    /// Returns the bundle that is read.
    pub(super) fn own(&self) -> &OpenBundle {
        &self.sources[OWN]
    }

    /// Returns a bundle whose chunks are read.
    pub(super) fn source(&self, source: Source) -> &OpenBundle {
        &self.sources[source]
    }

    fn chunk(&self, source: Source, number: Row<Chunk>) -> Option<&Chunk> {
        number.get(&self.source(source).bundle.layout.chunks)
    }

    /// Returns the parts of bases that make up the prefix of a chunk.
    pub(super) fn prefix_of(&self, key: Key) -> &[BaseRange] {
        match key {
            // A base has none: it needs no signature, so that is not left to its layout.
            Key::Chunk(OWN, number) => {
                let layout = &self.own().bundle.layout;
                number.get(&layout.chunks).map_or(&[], |chunk| layout.prefix_of(chunk))
            }
            _ => &[],
        }
    }

    /// Returns the part of an object that contains the byte at `place`, which is below the object's size.
    pub(super) fn span(&self, object: Row<Object>, place: u64) -> Span {
        match self.of_base.binary_search_by_key(&object, |(object, _)| *object) {
            Ok(found) => {
                let base_object = self.of_base[found].1;
                self.span_of_base(base_object, place).unwrap_or_else(|| {
                    let (part, size) = (place / BASE_PART_LEN, self.own().bundle.index.object(object).size);
                    let start = part * BASE_PART_LEN;
                    let within = start..size.min(start + BASE_PART_LEN);
                    Span { key: Key::Base(base_object, part), within, portion: None }
                })
            }
            Err(_) => self.span_of_source(OWN, object, place),
        }
    }

    /// Returns the part of a base object that contains the byte at `place`, if the base is a bundle.
    pub(super) fn span_of_base(&self, object: Row<BaseObject>, place: u64) -> Option<Span> {
        let (base, object) = self.bases.locate(object)?;
        self.source_of[base].map(|source| self.span_of_source(source, object, place))
    }

    fn span_of_source(&self, source: Source, object: Row<Object>, place: u64) -> Span {
        let OpenBundle { bundle, homes, .. } = self.source(source);
        let size = bundle.index.object(object).size;
        let piece_len = bundle.head.root().maxima.piece_len();
        let piece = (size > piece_len).then(|| place / piece_len);
        let chunk = match piece {
            None => homes[object.at()],
            Some(piece) => bundle.layout.pieces_of(object).get(num::size(piece)).and_then(|row| row.chunk),
        };
        let portion = Portion { object, piece };
        let key = chunk.map_or(Key::Hole(source, object, piece), |chunk| Key::Chunk(source, chunk));
        Span { key, within: range_of(bundle, portion), portion: Some((source, portion)) }
    }

    /// Returns the bytes `wanted` of an object from the block of a span of it: a range of the block's data, unless there are holes.
    ///
    /// # Errors
    /// Returns an error if the object or piece does not match the index or layout.
    pub(super) fn find(&self, block: &Block, span: &Span, wanted: Range<u64>) -> Result<BlockPart, ContentError> {
        let within = &span.within;
        let mut data = 0..block.data.len();
        // Parts that other bases hold were checked when they were read, and contain their holes.
        if let Some((source, portion)) = span.portion {
            let bundle = &self.source(source).bundle;
            data = block.places.find(portion);
            if !block.is_checked(portion) {
                Content::check(bundle.into(), portion, &block.data(data.clone()))?;
                block.set_checked(portion);
            }
            if !bundle.layout.holes_of(portion.object).is_empty() {
                let mut out = Vec::new();
                copy_wanted(bundle, portion, &block.data(data), &wanted, &mut out);
                return Ok(BlockPart::Filled(out));
            }
        }
        let from = data.start + size(wanted.start - within.start);
        Ok(BlockPart::Data(from..from + size(wanted.end - wanted.start)))
    }

    /// Returns how many bytes of data a block has at most.
    pub(super) fn len(&self, key: Key) -> u64 {
        match key {
            Key::Chunk(source, number) => self.chunk(source, number).map_or(0, |chunk| chunk.len.into()),
            Key::Base(..) => BASE_PART_LEN,
            Key::Hole(..) => 0,
        }
    }

    /// Returns the block that follows another one, to read ahead: none where the hot set begins or ends.
    pub(super) fn next(&self, key: Key) -> Option<Key> {
        match key {
            Key::Chunk(source, number) => {
                let next = Row::new(number.number() + 1)?;
                let landmark = self.source(source).bundle.layout.landmark.as_ref();
                let is_hot = |chunk: Row<Chunk>| landmark.is_some_and(|hot| hot.contains(&chunk.number()));
                let is_next = self.chunk(source, next).is_some() && is_hot(number) == is_hot(next);
                is_next.then_some(Key::Chunk(source, next))
            }
            Key::Base(object, part) => {
                let size = self.bases.object(object)?.size;
                (size > (part + 1) * BASE_PART_LEN).then_some(Key::Base(object, part + 1))
            }
            Key::Hole(..) => None,
        }
    }
}

/// The wanted bytes of a block.
pub(super) enum BlockPart {
    /// A range of its data.
    Data(Range<usize>),
    /// A copy, with the holes put back.
    Filled(Vec<u8>),
}

impl<'a> Maker<'a> {
    pub(super) fn new(blocks: &'a Blocks) -> Self {
        let reader = BaseReader::new(&blocks.bases);
        Self {
            blocks,
            decoder: ChunkDecoder::default(),
            reader,
            stored: Vec::new(),
            part: Vec::new(),
            prefix: Vec::new(),
        }
    }

    /// Appends a part of a base that is not a bundle to `out`.
    ///
    /// # Errors
    /// Returns an error if the base cannot be read, or has changed.
    pub(super) fn read_base(
        &mut self,
        object: Row<BaseObject>,
        range: Range<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        self.reader.read(object, range, out)
    }

    /// Reads and decodes a block. The stored bytes of a chunk are compared with their digest. `prefix` is the chunk's prefix, if it has one.
    ///
    /// # Errors
    /// Returns an error if the bundle or the base cannot be read, or is damaged.
    pub(super) fn make(&mut self, key: Key, prefix: &[u8]) -> Result<Block, Error> {
        let Blocks { bases, turn, free, .. } = self.blocks;
        let (decoded, places): (&[u8], _) = match key {
            Key::Hole(..) => (&[], ObjectRanges::default()),
            Key::Chunk(source, number) => {
                let OpenBundle { medium, bundle, .. } = self.blocks.source(source);
                let chunk = &bundle.layout.chunks[number.at()];
                let turn = turn.lock();
                medium.read_chunk(chunk, &mut self.stored)?;
                drop(turn);
                let decoded = self.decoder.decode(bundle, number, &self.stored, prefix)?;
                (decoded, ObjectRanges::of(bundle, number, decoded)?)
            }
            Key::Base(object, part) => {
                let size = bases.object(object).map_or(0, |object| object.size);
                let start = part * BASE_PART_LEN;
                self.part.clear();
                self.reader.read(object, start..size.min(start + BASE_PART_LEN), &mut self.part)?;
                (&self.part, ObjectRanges::default())
            }
        };
        let data = Pages::copy(decoded, free);
        let checked = (0..places.count()).map(|_| AtomicBool::new(false)).collect();
        Ok(Block { data, places, checked, checked_last: Mutex::default() })
    }
}
