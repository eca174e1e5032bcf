//! The content of one file, from the chunks that hold it and no others.

use std::convert::Infallible;
use std::ops::Range;

use js_sys::Array;
use sealift_format::{Bundle, Holds, InodeKind, Opened};
use sealift_verify::content::{
    ChunkDecoder, ContentError, check_object, check_piece, fill_holes, group_objects, piece_range,
};
use wasm_bindgen::JsValue;

use crate::error::misuse;
use crate::number::{rounded, to_js};
use crate::object::object;
use crate::report::content_error;

/// Which object the file is, how long, and for each part of it where the stored bytes of its chunk lie.
pub(crate) fn places(opened: &Opened, entry: u32) -> Result<JsValue, JsValue> {
    let bundle = whole(opened)?;
    let row = usize::try_from(entry).ok().and_then(|at| bundle.index.entries().get(at));
    let row = row.ok_or_else(|| misuse("there is no such entry"))?;
    let InodeKind::Regular(number) = bundle.index.inode(row.inode).kind else {
        return Err(misuse("it is not a regular file"));
    };
    let parts: Result<Array, JsValue> = match bundle.layout.pieces_of(number) {
        [] => std::iter::once(place(bundle, bundle.layout.chunk_of(number))).collect(),
        pieces => pieces.iter().map(|piece| place(bundle, piece.chunk)).collect(),
    };
    Ok(object([
        ("object", number.into()),
        ("size", rounded(bundle.index.object(number).size).into()),
        ("parts", parts?.into()),
    ]))
}

/// Offset and length; a part without data has no length.
pub(crate) fn place(bundle: &Bundle, chunk: Option<u32>) -> Result<JsValue, JsValue> {
    let row = chunk.and_then(|chunk| bundle.layout.chunks.get(usize::try_from(chunk).ok()?));
    let (offset, len) = row.map_or((0, 0), |row| (row.offset, row.stored_len));
    let at = to_js("an offset in the file", bundle.head.chunks_at().saturating_add(offset))?;
    Ok(Array::of2(&at.into(), &len.into()).into())
}

/// The bytes of part `part` of an object, checked.
pub(crate) fn part(opened: &Opened, object: u32, part: u32, stored: &[u8]) -> Result<Vec<u8>, JsValue> {
    let bundle = whole(opened)?;
    if usize::try_from(object).map_or(true, |at| at >= bundle.index.objects().len()) {
        return Err(misuse("there is no such object"));
    }
    let read = match bundle.layout.pieces_of(object) {
        [] => read_whole(bundle, object, stored),
        pieces => match usize::try_from(part).ok().and_then(|at| pieces.get(at)) {
            Some(piece) => read_piece(bundle, object, part, piece.chunk, stored),
            None => return Err(misuse("there is no such part")),
        },
    };
    read.map_err(|error| content_error(&error))
}

fn read_whole(bundle: &Bundle, object: u32, stored: &[u8]) -> Result<Vec<u8>, ContentError> {
    let within = 0..bundle.index.object(object).size;
    let Some(number) = bundle.layout.chunk_of(object) else {
        check_object(bundle, object, &[])?;
        return Ok(filled(bundle, object, within, &[]));
    };
    let mut decoder = ChunkDecoder::default();
    let decoded = decoder.decode(bundle, number, stored, &[])?;
    let chunk = &bundle.layout.chunks[usize::try_from(number).unwrap_or(usize::MAX)];
    let objects = match &chunk.holds {
        Holds::Group(range) => bundle.layout.group(range),
        Holds::Piece => &[],
    };
    let data =
        group_objects(bundle, objects, decoded).find(|(found, _)| *found == object).map_or(&[][..], |(_, data)| data);
    check_object(bundle, object, data)?;
    Ok(filled(bundle, object, within, data))
}

fn read_piece(
    bundle: &Bundle,
    object: u32,
    piece: u32,
    chunk: Option<u32>,
    stored: &[u8],
) -> Result<Vec<u8>, ContentError> {
    let mut decoder = ChunkDecoder::default();
    let data = match chunk {
        Some(chunk) => decoder.decode(bundle, chunk, stored, &[])?,
        None => &[],
    };
    check_piece(bundle, object, piece.into(), data)?;
    Ok(filled(bundle, object, piece_range(bundle, object, piece.into()), data))
}

/// The data with the holes put back.
fn filled(bundle: &Bundle, object: u32, within: Range<u64>, data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(usize::try_from(within.end - within.start).unwrap_or(0));
    let Ok(()) = fill_holes(data, bundle.layout.holes_of(object), within, |part| {
        bytes.extend(part);
        Ok::<(), Infallible>(())
    });
    bytes
}

fn whole(opened: &Opened) -> Result<&Bundle, JsValue> {
    match opened {
        Opened::Whole(bundle) => Ok(bundle),
        Opened::Delta(_) => Err(misuse("this is a delta bundle, and its files are where its bases are")),
    }
}
