//! Blocks: decoded chunks of a bundle, parts of what its base holds, and what has no data. The stored bytes of each chunk are compared with
//! their digest, and each object or piece with what index and layout say, before a byte of it is handed out.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use sealift_format::num::{self, at, size};
use sealift_format::{BaseObject, Bundle, Chunk, Holds, Object, Row};
use sealift_verify::content::{ChunkDecoder, Content, ContentError, ObjectRows, Portion, fill_holes, range_of};

use super::pages::{FreePages, Pages};
use crate::Error;
use sealift_store::Medium;
use sealift_store::base::{BaseReader, Bases, number_of};

/// Bytes of a base object in one block.
const BASE_PART_LEN: u64 = 1 << 20;
/// What a block takes besides its bytes, roughly.
const BLOCK_COST: usize = 256;

/// What a block is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// A chunk.
    Chunk(Row<Chunk>),
    /// A part of a base object.
    Base(Row<BaseObject>, u64),
    /// An object, or a piece of one, that is all hole.
    Hole(Row<Object>, Option<u64>),
}

/// A block in memory.
#[derive(Debug)]
pub(super) struct Block {
    data: Pages,
    /// The objects of a group with the range of each in the data, by ascending object.
    places: Vec<(Row<Object>, Range<u32>)>,
    /// What of it has been compared.
    checked: Mutex<BTreeSet<(Row<Object>, Option<u64>)>>,
}

/// A part of an object, with the block that has it.
pub(super) struct Span {
    pub(super) key: Key,
    /// The bytes of the object that the block has of it.
    pub(super) within: Range<u64>,
    /// The piece, if the object is a large one.
    piece: Option<u64>,
}

/// An open bundle and where its objects lie.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) medium: Medium,
    /// Whoever reads it. A disk has one head: two chunks that are read at once take it a seek for each part of them.
    turn: Mutex<()>,
    pub(super) bundle: Bundle,
    bases: Bases,
    /// For each object, the chunk of its group.
    chunk_of: Vec<Option<Row<Chunk>>>,
    /// The objects that a base holds, ascending, each with its number there.
    of_base: Vec<(Row<Object>, Row<BaseObject>)>,
    pub(super) free: Arc<FreePages>,
}

/// What a thread needs to make blocks. Its buffers are kept from one to the next.
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
    /// Bytes of memory, roughly.
    pub(super) fn cost(&self) -> u64 {
        self.data.cost() + num::wide(BLOCK_COST + size_of_val(&self.places[..]))
    }

    /// Returns the data of a part of an object.
    fn data_of(&self, object: Row<Object>) -> Option<Range<usize>> {
        if self.places.is_empty() {
            return Some(0..self.data.len());
        }
        let found = self.places.binary_search_by_key(&object, |(object, _)| *object).ok()?;
        let Range { start, end } = self.places[found].1;
        Some(at(start)..at(end))
    }

    /// Returns some of its data.
    pub(super) fn data(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        self.data.get(range)
    }
}

impl Blocks {
    /// # Errors
    /// Returns an error if no base has an object that the bundle lacks, or if the bundle is a pipe.
    pub(super) fn new(medium: Medium, bundle: Bundle, bases: Bases) -> Result<Self, Error> {
        let mut chunk_of = vec![None; bundle.index.objects().len()];
        for (number, chunk) in Row::all(&bundle.layout.chunks) {
            if let Holds::Group(range) = &chunk.holds {
                for object in bundle.layout.group(range) {
                    chunk_of[object.at()] = Some(number);
                }
            }
        }
        let mut of_base = Vec::new();
        if bundle.layout.carried.is_some() {
            let by_id = bases.by_id();
            for (object, row) in Row::all(bundle.index.objects()) {
                if !bundle.layout.is_carried(object) {
                    of_base.push((object, number_of(&by_id, row)?));
                }
            }
        }
        Ok(Self { medium, turn: Mutex::default(), bundle, bases, chunk_of, of_base, free: Arc::default() })
    }

    /// Returns a chunk.
    pub(super) fn chunk(&self, number: Row<Chunk>) -> Option<&Chunk> {
        number.get(&self.bundle.layout.chunks)
    }

    /// Returns the part of an object that has the byte at `place`, which is below its size.
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
            None => self.chunk_of[object.at()],
            Some(piece) => bundle.layout.pieces_of(object).get(num::size(piece)).and_then(|row| row.chunk),
        };
        let within = range_of(bundle, Portion { object, piece });
        Span { key: chunk.map_or(Key::Hole(object, piece), Key::Chunk), within, piece }
    }

    /// Returns the bytes `wanted` of an object from the block of a span of it: a range of the block's data, unless there are holes.
    ///
    /// # Errors
    /// Returns an error if the object or the piece is not what index and layout say.
    pub(super) fn find(
        &self,
        block: &Block,
        (object, span): (Row<Object>, &Span),
        wanted: Range<u64>,
    ) -> Result<Found, ContentError> {
        let (bundle, within) = (&self.bundle, &span.within);
        let is_of_base = matches!(span.key, Key::Base(..));
        let portion = Portion { object, piece: span.piece };
        let data = block.data_of(object).ok_or(ContentError::Object { object })?;
        // What a base has was compared where it was read.
        if !is_of_base && !block.checked.lock().contains(&(object, span.piece)) {
            Content::check(ObjectRows::from(bundle), portion, &block.data(data.clone()))?;
            block.checked.lock().insert((object, span.piece));
        }
        let holes = if is_of_base { &[][..] } else { bundle.layout.holes_of(object) };
        if holes.is_empty() {
            let from = data.start + size(wanted.start - within.start);
            return Ok(Found::Data(from..from + size(wanted.end - wanted.start)));
        }
        let (mut out, mut place) = (Vec::new(), within.start);
        let Ok(()) = fill_holes(&block.data(data), holes, within.clone(), &mut |part| {
            let end = place + num::wide(part.len());
            let (from, to) = (wanted.start.clamp(place, end) - place, wanted.end.clamp(place, end) - place);
            out.extend(&part[size(from)..size(to)]);
            place = end;
            Ok::<(), std::convert::Infallible>(())
        });
        Ok(Found::Filled(out))
    }

    /// Returns the bytes that a block will have.
    pub(super) fn len(&self, key: Key) -> u64 {
        match key {
            Key::Chunk(number) => self.chunk(number).map_or(0, |chunk| chunk.len.into()),
            Key::Base(..) => BASE_PART_LEN,
            Key::Hole(..) => 0,
        }
    }

    /// Returns the block that lies behind another one, if there is one.
    pub(super) fn next(&self, key: Key) -> Option<Key> {
        match key {
            Key::Chunk(number) => {
                let next = Row::new(number.number() + 1)?;
                self.chunk(next).map(|_| Key::Chunk(next))
            }
            Key::Base(object, part) => {
                let size = self.bases.object(object)?.size;
                (size > (part + 1) * BASE_PART_LEN).then_some(Key::Base(object, part + 1))
            }
            Key::Hole(..) => None,
        }
    }

    /// Returns the objects of a group with their places in the chunk, by ascending object; none if the chunk is a piece.
    fn places(&self, chunk: &Chunk, decoded: &[u8]) -> Vec<(Row<Object>, Range<u32>)> {
        let Holds::Group(range) = &chunk.holds else { return Vec::new() };
        let mut start = 0;
        let group = ObjectRows::from(&self.bundle).group(self.bundle.layout.group(range), decoded);
        let places = group.map(|(object, data)| {
            let place = start;
            start += u32::try_from(data.len()).unwrap_or(u32::MAX - start); // a chunk's length is a u32
            (object, place..start)
        });
        let mut places: Vec<_> = places.collect();
        places.sort_unstable_by_key(|(object, _)| *object);
        places
    }
}

/// Where bytes of a block are.
pub(super) enum Found {
    /// In its data.
    Data(Range<usize>),
    /// Here, with the holes put back.
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
            Key::Hole(..) => (&[], Vec::new()),
            Key::Chunk(number) => {
                let chunk = &bundle.layout.chunks[number.at()];
                let turn = turn.lock();
                medium.read_chunk(chunk, &mut self.stored)?;
                drop(turn);
                self.reader.prefix(bundle.layout.prefix_of(chunk), &mut self.prefix)?;
                let decoded = self.decoder.decode(bundle, number, &self.stored, &self.prefix)?;
                (decoded, self.blocks.places(chunk, decoded))
            }
            Key::Base(object, part) => {
                let size = bases.object(object).map_or(0, |object| object.size);
                let start = part * BASE_PART_LEN;
                self.part.clear();
                self.reader.read(object, start..size.min(start + BASE_PART_LEN), &mut self.part)?;
                (&self.part, Vec::new())
            }
        };
        let data = Pages::copy(decoded, free);
        Ok(Block { data, places, checked: Mutex::default() })
    }
}
