//! The files that damage affects, according to index and layout. The root vouches for both, whatever the state of the chunks.

use js_sys::Array;
use sealift_format::{Bundle, Chunk, Holds, Layout, Object, Opened, Row};
use sealift_verify::escape;
use wasm_bindgen::JsValue;

use crate::object::object;

/// Returns the files in a chunk or with an object as content, or that recipes may make of it: the total number, and the first `limit` in tree order.
pub(crate) fn files(opened: &Opened, chunk: Option<u32>, of: Option<u32>, limit: u32) -> JsValue {
    let layout = opened.layout();
    let mut objects = chunk.and_then(Row::new).map(|chunk| objects_of(layout, chunk)).unwrap_or_default();
    objects.extend(of.and_then(Row::new));
    let recipes = &layout.recipes;
    if objects.iter().any(|object| recipes.leaf(*object).is_some()) {
        // This reader does not know which objects are made of a leaf: each may be.
        objects.extend(recipes.made.iter().map(|made| made.object));
    }
    objects.sort_unstable();
    let mut found = Found { count: 0, names: Array::new(), limit };
    match opened {
        Opened::Whole(bundle) => in_trees(bundle, &objects, &mut found),
        Opened::Delta(delta) => {
            for edit in delta.difference.edited_names() {
                if edit.carried.is_some_and(|object| objects.binary_search(&object).is_ok()) {
                    found.take(&edit.path);
                }
            }
        }
    }
    object(&[("count", found.count.into()), ("names", found.names.into())])
}

struct Found {
    count: u32,
    names: Array,
    limit: u32,
}

impl Found {
    fn take(&mut self, path: &[u8]) {
        self.count += 1;
        if self.names.length() < self.limit {
            self.names.push(&escape::bytes(path).into());
        }
    }
}

fn objects_of(layout: &Layout, number: Row<Chunk>) -> Vec<Row<Object>> {
    match number.get(&layout.chunks).map(|chunk| &chunk.holds) {
        None => Vec::new(),
        Some(Holds::Group(range)) => layout.group(range).to_vec(),
        Some(Holds::Piece) => {
            let has = |object| layout.pieces_of(object).iter().any(|piece| piece.chunk == Some(number));
            layout.large.iter().map(|large| large.object).filter(|object| has(*object)).collect()
        }
    }
}

fn in_trees(bundle: &Bundle, objects: &[Row<Object>], found: &mut Found) {
    let index = &bundle.index;
    for (directory, entry, object) in index.refs().iter().flat_map(|tree| index.regulars(tree)) {
        if objects.binary_search(&object).is_ok() {
            found.take(&index.path(directory, entry));
        }
    }
}
