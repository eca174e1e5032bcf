//! Chunks and objects: nothing of their bytes is handed out before it agrees with what the root vouches for (spec 8).

use std::convert::Infallible;
use std::fmt;
use std::ops::Range;

use blake3::hazmat::HasherExt as _;
use sealift_format::ostree::Checksum;
use sealift_format::{
    Bundle, Chunk, Codec, Error as FormatError, Extent, FrameDecoder, Head, Layout, Object, Part, Suffix, check_frame,
    check_frame_with_prefix, data_ranges,
};

/// An object's or a piece's bytes do not match, or its chunk's do not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContentError {
    /// The chunk's stored bytes are wrong, or do not decode.
    #[error(transparent)]
    Chunk(#[from] FormatError),
    /// The decoded bytes are not the object that the index names.
    #[error("object {object}: its content does not match its id")]
    Object {
        /// The object's number.
        object: u32,
    },
    /// The decoded bytes are not the piece that the layout names.
    #[error("object {object}: piece {piece} does not match its chaining value")]
    Piece {
        /// The object's number.
        object: u32,
        /// The piece's number in the object.
        piece: u64,
    },
    /// A commit's file is not the one that its dirtree names.
    #[error(
        "OSTree file {}: its owner, mode, extended attributes and content do not match its checksum",
        Hex(checksum)
    )]
    OsTreeFile {
        /// The checksum that the dirtree has.
        checksum: Checksum,
    },
}

/// A checksum as OSTree writes it.
struct Hex<'a>(&'a Checksum);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl ContentError {
    /// The word for it (spec 11).
    #[must_use]
    pub fn kind(&self) -> sealift_format::Kind {
        match self {
            Self::Chunk(error) => error.kind(),
            Self::Object { .. } | Self::Piece { .. } | Self::OsTreeFile { .. } => sealift_format::Kind::Object,
        }
    }
}

/// Decodes chunks after checking them; keeps its buffers from one to the next.
#[derive(Debug, Default)]
pub struct ChunkDecoder {
    decoder: FrameDecoder,
    decoded: Vec<u8>,
}

/// Checks a chunk's stored bytes against its digest.
///
/// # Errors
/// They differ.
pub fn check_stored(number: u32, chunk: &Chunk, stored: &[u8]) -> Result<(), ContentError> {
    if blake3::hash(stored).as_bytes() == &chunk.digest {
        return Ok(());
    }
    Err(FormatError::Digest { part: Part::Chunk(number) }.into())
}

/// Checks what can be known of a chunk of a delta bundle without the bases: the headers of its frames, and the runs of a byte difference.
/// Its stored bytes are to have matched their digest.
///
/// # Errors
/// They are not as spec 8.1 and 8.2 say.
pub fn check_shape(head: &Head, layout: &Layout, number: u32, stored: &[u8]) -> Result<(), ContentError> {
    let Some(chunk) = layout.chunks.get(usize::try_from(number).unwrap_or(usize::MAX)) else {
        return Err(FormatError::Digest { part: Part::Chunk(number) }.into());
    };
    let (part, window_log) = (Part::Chunk(number), head.root().maxima.window_log);
    match chunk.codec {
        Codec::Raw => {}
        Codec::Zstd => check_frame(part, stored, chunk.len.into(), window_log)?,
        Codec::ZstdPrefix => check_frame_with_prefix(part, stored, chunk.len.into(), window_log)?,
        Codec::Suffix => {
            let prefix_len = layout.prefix_len(chunk);
            Suffix::parse(part, stored, chunk.len, prefix_len, window_log, &mut FrameDecoder::new())?;
        }
    }
    Ok(())
}

impl ChunkDecoder {
    /// Checks the stored bytes of chunk `number` and returns its decoded bytes. They are to be checked by [`check_object`] or
    /// [`check_piece`] before they are handed out. `prefix` are the bytes of the chunk's prefix (spec 7.5), of objects that have been
    /// checked; of a chunk without one they are not looked at.
    ///
    /// # Errors
    /// The bytes do not match their digest or do not decode.
    pub fn decode<'a>(
        &'a mut self,
        bundle: &Bundle,
        number: u32,
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
        number: u32,
        stored: &'a [u8],
        prefix: &[u8],
    ) -> Result<&'a [u8], ContentError> {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(chunk) = layout.chunks.get(at) else {
            return Err(FormatError::Digest { part: Part::Chunk(number) }.into());
        };
        check_stored(number, chunk, stored)?;
        let window_log = head.root().maxima.window_log;
        let part = Part::Chunk(number);
        match chunk.codec {
            Codec::Raw => return Ok(stored),
            Codec::Zstd => self.decoder.decode(part, stored, chunk.len.into(), window_log, &mut self.decoded)?,
            Codec::ZstdPrefix => {
                self.decoder.decode_with(part, stored, chunk.len.into(), window_log, prefix, &mut self.decoded)?;
            }
            Codec::Suffix => {
                let prefix_len = layout.prefix_len(chunk);
                let suffix = Suffix::parse(part, stored, chunk.len, prefix_len, window_log, &mut self.decoder)?;
                suffix.apply(prefix, &mut self.decoder, &mut self.decoded)?;
            }
        }
        Ok(&self.decoded[..usize::try_from(chunk.len).unwrap_or(usize::MAX)])
    }
}

/// Checks an object whose data are `data`: its bytes without the holes.
///
/// # Errors
/// It does not match its id.
pub fn check_object(bundle: &Bundle, object: u32, data: &[u8]) -> Result<(), ContentError> {
    check_row(bundle.index.object(object), &bundle.layout, object, data)
}

/// The same by the object's row in a table of its own.
pub(crate) fn check_row(row: &Object, layout: &Layout, object: u32, data: &[u8]) -> Result<(), ContentError> {
    let mut hasher = blake3::Hasher::new();
    update(&mut hasher, data, layout.holes_of(object), 0..row.size);
    if hasher.finalize().as_bytes() == &row.id { Ok(()) } else { Err(ContentError::Object { object }) }
}

/// Checks a piece of a large object whose data are `data`. Returns where the piece begins in its object.
///
/// # Errors
/// It does not match its chaining value.
pub fn check_piece(bundle: &Bundle, object: u32, piece: u64, data: &[u8]) -> Result<u64, ContentError> {
    check_piece_at(&bundle.layout, object, piece, piece_range(bundle, object, piece), data)
}

/// The same where it is known which bytes of the object the piece has.
pub(crate) fn check_piece_at(
    layout: &Layout,
    object: u32,
    piece: u64,
    range: Range<u64>,
    data: &[u8],
) -> Result<u64, ContentError> {
    let mut hasher = blake3::Hasher::new();
    hasher.set_input_offset(range.start);
    update(&mut hasher, data, layout.holes_of(object), range.clone());
    let pieces = layout.pieces_of(object);
    let wanted = usize::try_from(piece).ok().and_then(|piece| pieces.get(piece)).map(|piece| piece.chaining_value);
    if range.start < range.end && wanted == Some(hasher.finalize_non_root()) {
        return Ok(range.start);
    }
    Err(ContentError::Piece { object, piece })
}

/// The bytes of an object that are in one of its pieces.
#[must_use]
pub fn piece_range(bundle: &Bundle, object: u32, piece: u64) -> Range<u64> {
    let size = bundle.index.object(object).size;
    let start = piece.saturating_mul(bundle.head.root().maxima.piece_len()).min(size);
    start..size.min(start.saturating_add(bundle.head.root().maxima.piece_len()))
}

/// The data of each object of a group, from the group's decoded bytes.
pub fn group_objects<'a>(
    bundle: &'a Bundle,
    objects: &'a [u32],
    decoded: &'a [u8],
) -> impl Iterator<Item = (u32, &'a [u8])> {
    let mut rest = decoded;
    objects.iter().map(move |&object| {
        let len = stored_len(bundle, object);
        let (data, behind) = rest.split_at(usize::try_from(len).unwrap_or(usize::MAX).min(rest.len()));
        rest = behind;
        (object, data)
    })
}

fn stored_len(bundle: &Bundle, object: u32) -> u64 {
    sealift_format::data_len(bundle.layout.holes_of(object), 0..bundle.index.object(object).size)
}

/// Gives the bytes of `within` of an object to `take`, in parts: `data`, with the holes put back as zeros.
///
/// # Errors
/// The first that `take` gives.
pub fn fill_holes<E>(
    mut data: &[u8],
    holes: &[Extent],
    within: Range<u64>,
    mut take: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut at = within.start;
    for range in data_ranges(holes, within.clone()) {
        take_zeros(range.start - at, &mut take)?;
        let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX);
        let (part, rest) = data.split_at(len.min(data.len()));
        take(part)?;
        data = rest;
        at = range.end;
    }
    take_zeros(within.end - at, &mut take)
}

fn take_zeros<E>(mut len: u64, take: &mut impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
    static ZEROS: [u8; 65_536] = [0; 65_536];
    while len > 0 {
        let part = usize::try_from(len).unwrap_or(usize::MAX).min(ZEROS.len());
        take(&ZEROS[..part])?;
        len -= u64::try_from(part).unwrap_or(len);
    }
    Ok(())
}

/// Hashes the bytes of `within` of an object.
fn update(hasher: &mut blake3::Hasher, data: &[u8], holes: &[Extent], within: Range<u64>) {
    if holes.is_empty() {
        hasher.update(data);
        return;
    }
    let Ok(()) = fill_holes(data, holes, within, |part| {
        hasher.update(part);
        Ok::<(), Infallible>(())
    });
}
