//! What the chunks of the file hold: the hot set, small files, large files, shared data.

use js_sys::{Uint8Array, Uint32Array};
use sealift_format::{Chunk, Holds, Index, InodeKind, Layout, Opened};
use wasm_bindgen::JsValue;

use crate::number::rounded;
use crate::object::object;

/// How many of the largest files are listed.
const LARGEST: usize = 10;

/// Returns the class of each chunk (0 in the hot set, 1 a group of small files, 2 a piece of a large file, 3 a piece that occurs several times), the
/// bytes saved, and the largest files.
pub(crate) fn picture(opened: &Opened) -> JsValue {
    let (largest, saved) = match opened {
        Opened::Whole(bundle) => (largest(&bundle.index), saved(&bundle.index)),
        Opened::Delta(_) => (Vec::new(), 0),
    };
    object(&[
        ("classes", Uint8Array::from(&classes(opened.layout())[..]).into()),
        ("saved", rounded(saved).into()),
        ("largest", Uint32Array::from(&largest[..]).into()),
    ])
}

fn classes(layout: &Layout) -> Vec<u8> {
    let mut uses = vec![0_u32; layout.chunks.len()];
    for chunk in layout.pieces.iter().filter_map(|piece| piece.chunk) {
        uses[chunk.at()] += 1;
    }
    let hot = layout.landmark.clone().unwrap_or(0..0);
    let class = |(number, (chunk, uses)): (u32, (&Chunk, u32))| match chunk.holds {
        _ if hot.contains(&number) => 0,
        Holds::Group(_) => 1,
        Holds::Piece => 2 + u8::from(uses > 1),
    };
    (0..).zip(layout.chunks.iter().zip(uses)).map(class).collect()
}

/// Returns the entries of the largest files, the largest first.
fn largest(index: &Index) -> Vec<u32> {
    let mut found: Vec<(u64, u32)> = Vec::with_capacity(LARGEST + 1);
    for (number, entry) in (0..).zip(index.entries()) {
        if let InodeKind::Regular(object) = index.inode(entry.inode).kind
            && entry.is_first_name()
        {
            let size = index.object(object).size;
            found.insert(found.iter().position(|(other, _)| *other < size).unwrap_or(found.len()), (size, number));
            found.truncate(LARGEST);
        }
    }
    found.into_iter().map(|(_, number)| number).collect()
}

/// Returns the bytes that storing equal contents once saves.
fn saved(index: &Index) -> u64 {
    let mut seen = vec![false; index.objects().len()];
    let mut saved = 0_u64;
    for inode in index.inodes() {
        if let InodeKind::Regular(object) = inode.kind {
            let seen = &mut seen[object.at()];
            saved = saved.saturating_add(if *seen { index.object(object).size } else { 0 });
            *seen = true;
        }
    }
    saved
}
