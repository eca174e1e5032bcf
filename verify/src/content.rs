//! Chunks and objects: their bytes are handed out only once they match the digests that the root vouches for (core 8).

use std::convert::Infallible;
use std::ops::Range;

use blake3::hazmat::HasherExt as _;
use sealift_format::num::{at, fit, up_to, wide};
use sealift_format::ostree::Checksum;
use sealift_format::{
    Bundle, ByteDifference, Chunk, Codec, Delta, Error as FormatError, Extent, FrameDecoder, Head, Holds, Layout,
    Object, Part, Row, check_frame, check_frame_with_prefix, data_len, data_ranges, hex,
};

/// The bytes of an object, a piece or a chunk do not match their digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The chunk's stored bytes are wrong, or do not decode.
    #[error(transparent)]
    Chunk(#[from] FormatError),
    /// The decoded bytes are not the object that the index names.
    #[error("object {object}: its content does not match its id")]
    Object {
        /// The object.
        object: Row<Object>,
    },
    /// The decoded bytes are not the piece that the layout names.
    #[error("object {object}: piece {piece} does not match its chaining value")]
    Piece {
        /// The object.
        object: Row<Object>,
        /// The piece's number in the object.
        piece: u64,
    },
    /// What a recipe uses does not make the bytes that it states.
    #[error("segment {segment} of the recipes does not give the bytes that it states")]
    Recipe {
        /// The segment's number.
        segment: u32,
    },
    /// A commit's file does not match the checksum in its dirtree.
    #[error(
        "OSTree file {}: its owner, mode, extended attributes and content do not match its checksum",
        hex(checksum)
    )]
    OsTreeFile {
        /// The checksum in the dirtree.
        checksum: Checksum,
    },
}

impl ContentError {
    /// Returns the kind of failure (core 11.1).
    #[must_use]
    pub fn kind(&self) -> sealift_format::Kind {
        match self {
            Self::Chunk(error) => error.kind(),
            Self::Object { .. } | Self::Piece { .. } | Self::Recipe { .. } | Self::OsTreeFile { .. } => {
                sealift_format::Kind::Object
            }
        }
    }
}

/// Decodes chunks after checking them. Reuses its buffers.
#[derive(Debug, Default)]
pub struct ChunkDecoder {
    decoder: FrameDecoder,
    decoded: Vec<u8>,
}

/// Checks a chunk's stored bytes against its digest.
///
/// # Errors
/// Returns an error if they differ.
pub fn check_stored(number: Row<Chunk>, chunk: &Chunk, stored: &[u8]) -> Result<(), ContentError> {
    if blake3::hash(stored).as_bytes() == &chunk.digest {
        return Ok(());
    }
    Err(FormatError::Digest { part: Part::Chunk(number.number()) }.into())
}

/// Checks a chunk with a prefix as far as possible without the bases: the headers of its frames, and the runs of a byte difference. Its stored bytes
/// must have matched their digest already.
///
/// # Errors
/// Returns an error if they do not follow core 8.1 and delta 8.
pub(crate) fn check_shape(head: &Head, layout: &Layout, number: Row<Chunk>, stored: &[u8]) -> Result<(), ContentError> {
    let Some(chunk) = number.get(&layout.chunks) else {
        return Err(FormatError::Digest { part: Part::Chunk(number.number()) }.into());
    };
    let (part, window_log) = (Part::Chunk(number.number()), head.root().maxima.window_log);
    match chunk.codec {
        Codec::Raw => {}
        Codec::Zstd => check_frame(part, stored, chunk.len.into(), window_log)?,
        Codec::ZstdPrefix => check_frame_with_prefix(part, stored, chunk.len.into(), window_log)?,
        Codec::ByteDifference => {
            let prefix_len = layout.prefix_len(chunk);
            ByteDifference::parse(part, stored, chunk.len, prefix_len, window_log, &mut FrameDecoder::new())?;
        }
    }
    Ok(())
}

impl ChunkDecoder {
    /// Checks the stored bytes of chunk `number` and returns its decoded bytes, which must become [`Content`] before they are handed out. `prefix`
    /// are the bytes of the chunk's prefix (delta 6), from objects that have been checked; they are ignored for a chunk without a prefix.
    ///
    /// # Errors
    /// Returns an error if the bytes do not match their digest or do not decode.
    pub fn decode<'a>(
        &'a mut self,
        bundle: &Bundle,
        number: Row<Chunk>,
        stored: &'a [u8],
        prefix: &[u8],
    ) -> Result<&'a [u8], ContentError> {
        self.decode_of(&bundle.head, &bundle.layout, number, stored, prefix)
    }

    /// The same for a bundle whose index may be unknown.
    pub(crate) fn decode_of<'a>(
        &'a mut self,
        head: &Head,
        layout: &Layout,
        number: Row<Chunk>,
        stored: &'a [u8],
        prefix: &[u8],
    ) -> Result<&'a [u8], ContentError> {
        let Some(chunk) = number.get(&layout.chunks) else {
            return Err(FormatError::Digest { part: Part::Chunk(number.number()) }.into());
        };
        check_stored(number, chunk, stored)?;
        let window_log = head.root().maxima.window_log;
        let part = Part::Chunk(number.number());
        match chunk.codec {
            Codec::Raw => return Ok(stored),
            Codec::Zstd => self.decoder.decode(part, stored, chunk.len.into(), window_log, &mut self.decoded)?,
            Codec::ZstdPrefix => {
                self.decoder.decode_with(part, stored, chunk.len.into(), window_log, prefix, &mut self.decoded)?;
            }
            Codec::ByteDifference => {
                let prefix_len = layout.prefix_len(chunk);
                let difference =
                    ByteDifference::parse(part, stored, chunk.len, prefix_len, window_log, &mut self.decoder)?;
                difference.apply(prefix, &mut self.decoder, &mut self.decoded)?;
            }
        }
        Ok(&self.decoded[..at(chunk.len)])
    }

    /// Decodes the chunk that holds a portion, as [`Self::decode`] does, and checks the portion. A portion without a chunk has no data.
    ///
    /// # Errors
    /// Returns the errors of [`Self::decode`] and of [`Content::check`].
    pub fn portion<'a>(
        &'a mut self,
        bundle: &'a Bundle,
        portion: Portion,
        chunk: Option<Row<Chunk>>,
        stored: &'a [u8],
        prefix: &[u8],
    ) -> Result<Content<'a>, ContentError> {
        let data = match chunk {
            Some(chunk) => {
                let decoded = self.decode(bundle, chunk, stored, prefix)?;
                &decoded[ObjectRanges::of(bundle, chunk, decoded)?.find(portion)]
            }
            None => &[],
        };
        Content::check(bundle.into(), portion, data)
    }
}

/// Where the data of each portion lies in a chunk's decoded bytes.
#[derive(Debug, Default)]
pub struct ObjectRanges {
    /// The objects of its group, in ascending order.
    objects: Vec<(Row<Object>, Range<u32>)>,
    len: usize,
}

impl ObjectRanges {
    /// Returns the places in chunk `number`, given its decoded bytes.
    ///
    /// # Errors
    /// Returns an error if they are longer than a chunk can be.
    pub fn of(bundle: &Bundle, number: Row<Chunk>, decoded: &[u8]) -> Result<Self, FormatError> {
        let group = group_of_chunk(&bundle.layout, number);
        let (mut objects, mut start) = (Vec::with_capacity(group.len()), 0);
        for (object, data) in ObjectRows::from(bundle).group(group, decoded) {
            let end = fit(at(start) + data.len(), "a chunk's length")?;
            objects.push((object, start..end));
            start = end;
        }
        objects.sort_unstable_by_key(|(object, _)| *object);
        Ok(Self { objects, len: decoded.len() })
    }

    /// Returns the place of a portion; an empty one if the chunk does not hold it.
    #[must_use]
    pub fn find(&self, portion: Portion) -> Range<usize> {
        match (portion.piece, self.number(portion)) {
            (Some(_), _) => 0..self.len,
            (None, None) => 0..0,
            (None, Some(found)) => at(self.objects[found].1.start)..at(self.objects[found].1.end),
        }
    }

    /// Returns the number of a portion among those that have places of their own, which are whole objects.
    #[must_use]
    pub fn number(&self, portion: Portion) -> Option<usize> {
        let found = || self.objects.binary_search_by_key(&portion.object, |(object, _)| *object).ok();
        portion.piece.is_none().then(found).flatten()
    }

    /// Returns how many portions have places of their own.
    #[must_use]
    pub fn count(&self) -> usize {
        self.objects.len()
    }

    /// Returns the bytes of heap memory that this takes.
    #[must_use]
    pub fn cost(&self) -> usize {
        size_of_val(&self.objects[..])
    }
}

/// The objects that a bundle carries and where their bytes lie, as needed to check them.
#[derive(Clone, Copy, Debug)]
pub struct ObjectRows<'a> {
    rows: &'a [Object],
    pub(crate) layout: &'a Layout,
    piece_len: u64,
}

/// What is checked against one hash: a whole object, or a piece of a large one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "nothing else identifies a portion")]
pub struct Portion {
    /// The object.
    pub object: Row<Object>,
    /// The piece's number in the object; `None` for a whole object.
    pub piece: Option<u64>,
}

/// A portion of an object whose bytes match index and layout. It can only be made by checking them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Content<'a> {
    /// The portion.
    pub portion: Portion,
    /// Its range in the object, in bytes.
    pub range: Range<u64>,
    /// Its bytes without the holes.
    pub data: &'a [u8],
    holes: &'a [Extent],
}

impl<'a> From<&'a Bundle> for ObjectRows<'a> {
    fn from(bundle: &'a Bundle) -> Self {
        Self { rows: bundle.index.objects(), layout: &bundle.layout, piece_len: bundle.head.root().maxima.piece_len() }
    }
}

impl<'a> From<&'a Delta> for ObjectRows<'a> {
    fn from(delta: &'a Delta) -> Self {
        Self {
            rows: delta.difference.objects(),
            layout: &delta.layout,
            piece_len: delta.head.root().maxima.piece_len(),
        }
    }
}

impl<'a> ObjectRows<'a> {
    /// Returns an object or a leaf.
    fn row(self, object: Row<Object>) -> Object {
        let found = object.get(self.rows).or_else(|| self.layout.recipes.leaf(object));
        found.copied().unwrap_or(Object { id: [0; 32], size: 0 })
    }

    /// Returns for each object, and then for each leaf, whether it has no recipe.
    pub(crate) fn stored(self) -> Vec<bool> {
        let recipes = &self.layout.recipes;
        let mut stored = vec![true; self.rows.len() + recipes.leaves.len()];
        for made in &recipes.made {
            if let Some(stored) = stored.get_mut(made.object.at()) {
                *stored = false;
            }
        }
        stored
    }

    fn range(self, portion: Portion) -> Range<u64> {
        let size = self.row(portion.object).size;
        let Some(piece) = portion.piece else { return 0..size };
        let start = piece.saturating_mul(self.piece_len).min(size);
        start..size.min(start.saturating_add(self.piece_len))
    }

    /// Returns the bytes of a small object in its group, which are those without the holes.
    pub(crate) fn grouped_len(self, object: Row<Object>) -> u64 {
        data_len(self.layout.holes_of(object), 0..self.row(object).size)
    }

    /// Returns the data of each object of a group, from the group's decoded bytes.
    pub fn group(self, objects: &'a [Row<Object>], decoded: &'a [u8]) -> impl Iterator<Item = (Row<Object>, &'a [u8])> {
        let mut rest = decoded;
        objects.iter().map(move |&object| {
            let (data, behind) = rest.split_at(up_to(self.grouped_len(object), rest.len()));
            rest = behind;
            (object, data)
        })
    }
}

/// Returns the portions of an object in order, each with the chunk that holds it, if it has data. `group` is the chunk that holds the object if it is
/// not in pieces.
pub fn portions_of(
    bundle: &Bundle,
    object: Row<Object>,
    group: Option<Row<Chunk>>,
) -> impl Iterator<Item = (Portion, Option<Row<Chunk>>)> {
    let objects = ObjectRows::from(bundle);
    let is_large = objects.row(object).size > objects.piece_len;
    let whole = (!is_large).then_some((Portion { object, piece: None }, group));
    let pieces = (0..).zip(bundle.layout.pieces_of(object));
    whole.into_iter().chain(pieces.map(move |(piece, row)| (Portion { object, piece: Some(piece) }, row.chunk)))
}

/// Returns the range of a portion in its object, in bytes.
#[must_use]
pub fn range_of(bundle: &Bundle, portion: Portion) -> Range<u64> {
    ObjectRows::from(bundle).range(portion)
}

impl<'a> Content<'a> {
    /// Checks a portion, given its bytes without the holes.
    ///
    /// # Errors
    /// Returns an error if an object does not match its id, or a piece its chaining value.
    pub fn check(objects: ObjectRows<'a>, portion: Portion, data: &'a [u8]) -> Result<Self, ContentError> {
        let (object, range) = (portion.object, objects.range(portion));
        let content = Self { portion, range, data, holes: objects.layout.holes_of(object) };
        let Some(piece) = portion.piece else {
            let found = content.hash(blake3::Hasher::new()).finalize();
            return if found.as_bytes() == &objects.row(object).id {
                Ok(content)
            } else {
                Err(ContentError::Object { object })
            };
        };
        let mut hasher = blake3::Hasher::new();
        hasher.set_input_offset(content.range.start);
        let pieces = objects.layout.pieces_of(object);
        let wanted = usize::try_from(piece).ok().and_then(|piece| pieces.get(piece)).map(|piece| piece.chaining_value);
        if !content.range.is_empty() && wanted == Some(content.hash(hasher).finalize_non_root()) {
            return Ok(content);
        }
        Err(ContentError::Piece { object, piece })
    }

    /// Returns whether the object has a hole, in this portion or elsewhere.
    #[must_use]
    pub fn has_holes(&self) -> bool {
        !self.holes.is_empty()
    }

    /// Returns the data in parts, each with its offset in the object, in ascending order. Between them are holes.
    pub fn extents(&self) -> impl Iterator<Item = (u64, &'a [u8])> {
        let mut rest = self.data;
        data_ranges(self.holes, self.range.clone()).map(move |range| {
            let (part, behind) = rest.split_at(up_to(range.end - range.start, rest.len()));
            rest = behind;
            (range.start, part)
        })
    }

    /// Passes all bytes to `take`, in parts: the data, with holes as zeros.
    pub fn for_each_part(&self, take: &mut dyn FnMut(&[u8])) {
        let Ok(()) = self.try_for_each_part(|part| {
            take(part);
            Ok::<(), Infallible>(())
        });
    }

    /// The same for a `take` that may fail.
    ///
    /// # Errors
    /// Returns the first error of `take`.
    pub fn try_for_each_part<E>(&self, mut take: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        fill_holes(self.data, self.holes, self.range.clone(), &mut take)
    }

    fn hash(&self, mut hasher: blake3::Hasher) -> blake3::Hasher {
        if self.holes.is_empty() {
            hasher.update(self.data);
        } else {
            self.for_each_part(&mut |part| {
                hasher.update(part);
            });
        }
        hasher
    }
}

/// Checks the bytes of a portion of an object that was made, holes included.
///
/// # Errors
/// Returns an error if the object does not match its id, or the piece its chaining value.
pub fn check_made(bundle: &Bundle, portion: Portion, bytes: &[u8]) -> Result<(), ContentError> {
    let range = range_of(bundle, portion);
    if range.end - range.start != wide(bytes.len()) {
        return Err(ContentError::Object { object: portion.object });
    }
    Content::check(bundle.into(), portion, bytes).map(drop)
}

/// Returns the objects of the group that a chunk holds; none for a chunk that holds a piece.
pub(crate) fn group_of_chunk(layout: &Layout, chunk: Row<Chunk>) -> &[Row<Object>] {
    match chunk.get(&layout.chunks).map(|chunk| &chunk.holds) {
        Some(Holds::Group(range)) => layout.group(range),
        _ => &[],
    }
}

/// Appends the bytes `wanted` of an object to `out`, as far as a portion with these data has them, with holes as zeros.
pub fn copy_wanted(bundle: &Bundle, portion: Portion, data: &[u8], wanted: &Range<u64>, out: &mut Vec<u8>) {
    let within = range_of(bundle, portion);
    let mut place = within.start;
    let Ok(()) = fill_holes(data, bundle.layout.holes_of(portion.object), within, &mut |part| {
        out.extend(overlap(part, place, wanted));
        place += wide(part.len());
        Ok::<(), Infallible>(())
    });
}

/// Returns the overlap of `wanted` with `part`, the bytes from `place` on.
#[must_use]
pub fn overlap<'a>(part: &'a [u8], place: u64, wanted: &Range<u64>) -> &'a [u8] {
    let [from, to] = [wanted.start, wanted.end].map(|end| up_to(end.saturating_sub(place), part.len()));
    &part[from..to]
}

/// Passes the bytes `within` of an object to `take`, in parts: `data`, with holes as zeros.
///
/// # Errors
/// Returns the first error of `take`.
pub(crate) fn fill_holes<E>(
    mut data: &[u8],
    holes: &[Extent],
    within: Range<u64>,
    take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut at = within.start;
    for range in data_ranges(holes, within.clone()) {
        take_zeros(range.start - at, take)?;
        let (part, rest) = data.split_at(up_to(range.end - range.start, data.len()));
        take(part)?;
        data = rest;
        at = range.end;
    }
    take_zeros(within.end - at, take)
}

fn take_zeros<E>(mut len: u64, take: &mut dyn FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    static ZEROS: [u8; 65_536] = [0; 65_536];
    while len > 0 {
        let part = up_to(len, ZEROS.len());
        take(&ZEROS[..part])?;
        len -= wide(part);
    }
    Ok(())
}
