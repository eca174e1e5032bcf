//! Blocks: decoded chunks of a bundle, parts of base objects, and objects or pieces without data. Before a byte is handed out, the stored bytes of
//! its chunk are compared with their digest, and its object or piece with the index or layout.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use sealift_format::num::{self, size};
use sealift_format::{BaseObject, Bundle, Chunk, Object, Row};
use sealift_verify::content::{ChunkDecoder, Content, ContentError, Places, Portion, copy_wanted, range_of};

use super::pages::{FreePages, Pages};
use crate::Error;
use sealift_store::Medium;
use sealift_store::base::{BaseReader, Bases, number_of};

/// Bytes of a base object in one block.
const BASE_PART_LEN: u64 = 1 << 20;
/// Approximate memory of a block besides its data.
const BLOCK_COST: usize = 256;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A chunk.
    Chunk(Row<Chunk>),
    /// A part of a base object.
    Base(Row<BaseObject>, u64),
    /// An object, or a piece of one, that consists of holes.
    Hole(Row<Object>, Option<u64>),
}

/// A block in memory.
#[derive(Debug)]
pub(super) struct Block {
    data: Pages,
    /// Where the objects of a chunk lie in the data.
    places: Places,
    /// The objects and pieces that have been checked.
    checked: Mutex<BTreeSet<(Row<Object>, Option<u64>)>>,
}

/// A part of an object, with the block that holds it.
pub(super) struct Span {
    pub(super) key: Key,
    /// The range of the object that the block holds.
    pub(super) within: Range<u64>,
    /// The piece, if the object is a large one.
    piece: Option<u64>,
}

/// An open bundle and where its objects lie.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) medium: Medium,
    /// Held while a chunk is read: if two chunks were read at once, the head of a disk would move back and forth between them.
    turn: Mutex<()>,
    pub(super) bundle: Bundle,
    bases: Bases,
    /// For each object, the chunk of its group.
    homes: Vec<Option<Row<Chunk>>>,
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
    prefix: Vec<u8>,
    part: Vec<u8>,
}

impl Block {
    /// Returns roughly how many bytes of memory it takes.
    pub(super) fn cost(&self) -> u64 {
        self.data.cost() + num::wide(BLOCK_COST + self.places.cost())
    }

    /// Returns a range of its data.
    pub(super) fn data(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        self.data.get(range)
    }
}

impl Blocks {
    /// # Errors
    /// Returns an error if no base has an object that the bundle lacks, or if the bundle is a pipe.
    pub(super) fn new(medium: Medium, bundle: Bundle, bases: Bases) -> Result<Self, Error> {
        let mut of_base = Vec::new();
        if bundle.layout.carried.is_some() {
            let by_id = bases.by_id();
            for (object, row) in Row::all(bundle.index.objects()) {
                if !bundle.layout.is_carried(object) {
                    of_base.push((object, number_of(&by_id, row)?));
                }
            }
        }
        let homes = bundle.homes();
        Ok(Self { medium, turn: Mutex::default(), bundle, bases, homes, of_base, free: Arc::default() })
    }

    /// Returns a chunk.
    pub(super) fn chunk(&self, number: Row<Chunk>) -> Option<&Chunk> {
        number.get(&self.bundle.layout.chunks)
    }

    /// Returns the part of an object that contains the byte at `place`, which is below the object's size.
    pub(super) fn span(&self, object: Row<Object>, place: u64) -> Span {
        let bundle = &self.bundle;
        let size = bundle.index.object(object).size;
        if let Ok(found) = self.of_base.binary_search_by_key(&object, |(object, _)| *object) {
            let part = place / BASE_PART_LEN;
            let start = part * BASE_PART_LEN;
            let within = start..size.min(start + BASE_PART_LEN);
            return Span { key: Key::Base(self.of_base[found].1, part), within, piece: None };
        }
        let piece_len = bundle.head.root().maxima.piece_len();
        let piece = (size > piece_len).then(|| place / piece_len);
        let chunk = match piece {
            None => self.homes[object.at()],
            Some(piece) => bundle.layout.pieces_of(object).get(num::size(piece)).and_then(|row| row.chunk),
        };
        let within = range_of(bundle, Portion { object, piece });
        Span { key: chunk.map_or(Key::Hole(object, piece), Key::Chunk), within, piece }
    }

    /// Returns the bytes `wanted` of an object from the block of a span of it: a range of the block's data, unless there are holes.
    ///
    /// # Errors
    /// Returns an error if the object or piece does not match the index or layout.
    pub(super) fn find(
        &self,
        block: &Block,
        (object, span): (Row<Object>, &Span),
        wanted: Range<u64>,
    ) -> Result<BlockPart, ContentError> {
        let (bundle, within) = (&self.bundle, &span.within);
        let portion = Portion { object, piece: span.piece };
        let mut data = 0..block.data.len();
        // Parts of base objects were checked when they were read, and contain their holes.
        if !matches!(span.key, Key::Base(..)) {
            data = block.places.find(portion);
            if !block.checked.lock().contains(&(object, span.piece)) {
                Content::check(bundle.into(), portion, &block.data(data.clone()))?;
                block.checked.lock().insert((object, span.piece));
            }
            if !bundle.layout.holes_of(object).is_empty() {
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
            Key::Chunk(number) => self.chunk(number).map_or(0, |chunk| chunk.len.into()),
            Key::Base(..) => BASE_PART_LEN,
            Key::Hole(..) => 0,
        }
    }

    /// Returns the block that follows another one, to read ahead: none where the hot set begins or ends.
    pub(super) fn next(&self, key: Key) -> Option<Key> {
        match key {
            Key::Chunk(number) => {
                let next = Row::new(number.number() + 1)?;
                let is_hot = |chunk: Row<Chunk>| {
                    self.bundle.layout.landmark.as_ref().is_some_and(|hot| hot.contains(&chunk.number()))
                };
                self.chunk(next).filter(|_| is_hot(number) == is_hot(next)).map(|_| Key::Chunk(next))
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
            prefix: Vec::new(),
            part: Vec::new(),
        }
    }

    /// Reads and decodes a block. The stored bytes of a chunk are compared with their digest.
    ///
    /// # Errors
    /// Returns an error if the bundle or the base cannot be read, or is damaged.
    pub(super) fn make(&mut self, key: Key) -> Result<Block, Error> {
        let Blocks { medium, turn, bundle, bases, free, .. } = self.blocks;
        let (decoded, places): (&[u8], _) = match key {
            Key::Hole(..) => (&[], Places::default()),
            Key::Chunk(number) => {
                let chunk = &bundle.layout.chunks[number.at()];
                let turn = turn.lock();
                medium.read_chunk(chunk, &mut self.stored)?;
                drop(turn);
                self.reader.prefix(bundle.layout.prefix_of(chunk), &mut self.prefix)?;
                let decoded = self.decoder.decode(bundle, number, &self.stored, &self.prefix)?;
                (decoded, Places::of(bundle, number, decoded)?)
            }
            Key::Base(object, part) => {
                let size = bases.object(object).map_or(0, |object| object.size);
                let start = part * BASE_PART_LEN;
                self.part.clear();
                self.reader.read(object, start..size.min(start + BASE_PART_LEN), &mut self.part)?;
                (&self.part, Places::default())
            }
        };
        let data = Pages::copy(decoded, free);
        Ok(Block { data, places, checked: Mutex::default() })
    }
}
