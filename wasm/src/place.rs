//! The place of a chunk's stored bytes in the file.

use js_sys::Array;
use sealift_format::{Bundle, Chunk, Row};
use wasm_bindgen::JsValue;

use crate::number::to_js;

/// Returns offset and length; the length is zero for a part without a chunk.
pub(crate) fn place(bundle: &Bundle, chunk: Option<Row<Chunk>>) -> Result<JsValue, JsValue> {
    let row = chunk.and_then(|chunk| chunk.get(&bundle.layout.chunks));
    let (offset, len) = row.map_or((0, 0), |row| (row.offset, row.stored_len));
    let at = to_js("an offset in the file", bundle.head.chunks_at().saturating_add(offset))?;
    Ok(Array::of2(&at.into(), &len.into()).into())
}
