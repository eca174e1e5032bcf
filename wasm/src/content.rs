//! The content of one file, read only from the chunks that hold it.

use js_sys::Array;
use sealift_format::{Bundle, Chunk, InodeKind, Kind, Object, Opened, Row};
use sealift_verify::content::{ChunkDecoder, portions_of};
use wasm_bindgen::JsValue;

use crate::base::{Bases, Portions};
use crate::error::{misuse, refusal};
use crate::number::rounded;
use crate::object::object;
use crate::place::place;
use crate::report::content_error;

/// Returns a file's object, its length, for each part its chunk and the place of that chunk's stored bytes, and the base that has the object, if any.
pub(crate) fn places(opened: &Opened, bases: &Bases, entry: u32) -> Result<JsValue, JsValue> {
    let bundle = whole(opened)?;
    let row = usize::try_from(entry).ok().and_then(|at| bundle.index.entries().get(at));
    let row = row.ok_or_else(|| misuse("there is no such entry"))?;
    let InodeKind::Regular(number) = bundle.index.inode(row.inode).kind else {
        return Err(misuse("it is not a regular file"));
    };
    let home = bundle.homes()[number.at()];
    if bases.is_made(bundle, number, home) {
        let fact = "the device makes it: use sealift cat";
        return Err(refusal(Kind::Unsupported, &fact));
    }
    let (base, portions) = portions(bundle, bases, number, home);
    let held = base.map_or(bundle, |base| bases.bundle(base));
    let parts: Result<Array, JsValue> = portions.iter().map(|(_, chunk)| place(held, *chunk)).collect();
    let chunks = portions.iter().map(|(_, chunk)| JsValue::from(chunk.map(Row::number))).collect::<Array>();
    Ok(object(&[
        ("object", number.number().into()),
        ("size", rounded(bundle.index.object(number).size).into()),
        ("parts", parts?.into()),
        ("chunks", chunks.into()),
        ("base", base.into()),
    ]))
}

/// Returns the portions of an object, which is in the group of chunk `home` or in pieces, with their chunks, and the base that has it.
fn portions(bundle: &Bundle, bases: &Bases, object: Row<Object>, home: Option<Row<Chunk>>) -> (Option<u32>, Portions) {
    match bases.portions(object) {
        Some((base, portions)) => (Some(base), portions),
        None => (None, portions_of(bundle, object, home).collect()),
    }
}

/// Returns the checked bytes of part `part` of an object.
pub(crate) fn part(opened: &Opened, bases: &Bases, object: u32, part: u32, stored: &[u8]) -> Result<Vec<u8>, JsValue> {
    let bundle = whole(opened)?;
    let object = Row::new(object).filter(|object| object.at() < bundle.index.objects().len());
    let object = object.ok_or_else(|| misuse("there is no such object"))?;
    let (base, portions) = portions(bundle, bases, object, bundle.homes()[object.at()]);
    let Some(&(portion, chunk)) = usize::try_from(part).ok().and_then(|part| portions.get(part)) else {
        return Err(misuse("there is no such part"));
    };
    let held = base.map_or(bundle, |base| bases.bundle(base));
    let mut decoder = ChunkDecoder::default();
    let content =
        decoder.portion(held, portion, chunk, stored, bases.prefix()).map_err(|error| content_error(&error))?;
    let mut bytes = Vec::with_capacity(content.data.len());
    content.for_each_part(&mut |part| bytes.extend(part));
    Ok(bytes)
}

fn whole(opened: &Opened) -> Result<&Bundle, JsValue> {
    match opened {
        Opened::Whole(bundle) => Ok(bundle),
        Opened::Delta(_) => Err(misuse("this is a delta bundle: its files are known only with its bases")),
    }
}
