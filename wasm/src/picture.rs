//! The use of the file's bytes: hot set, large files, shared data.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use js_sys::{Array, Uint32Array};
use sealift_format::num;
use sealift_format::{Holds, Index, InodeKind, Layout, Opened};
use wasm_bindgen::JsValue;

use crate::number::rounded;
use crate::object::object;

/// How many of the largest files are listed.
const LARGEST: usize = 10;

/// The class of a chunk: in the hot set, a group of small files, a piece of a large one, or a piece shared by several.
#[derive(Clone, Copy)]
enum Class {
    Hot,
    Small,
    Large,
    Shared,
}

/// Returns sums over all chunks, and over each of `columns` equal parts of their bytes, with the largest files.
pub(crate) fn picture(opened: &Opened, columns: u32) -> JsValue {
    let layout = opened.layout();
    let classes = classes(layout);
    let total: u64 = layout.chunks.iter().map(|chunk| u64::from(chunk.stored_len)).sum();
    let mut sums = [0_u64; 4];
    for (chunk, class) in layout.chunks.iter().zip(&classes) {
        sums[place(*class)] += u64::from(chunk.stored_len);
    }
    let (largest, saved) = match opened {
        Opened::Whole(bundle) => (largest(&bundle.index), saved(&bundle.index)),
        Opened::Delta(_) => (Vec::new(), 0),
    };
    let [hot, small, large, shared] = sums;
    object([
        ("hot", rounded(hot).into()),
        ("small", rounded(small).into()),
        ("large", rounded(large).into()),
        ("shared", rounded(shared).into()),
        ("saved", rounded(saved).into()),
        ("columns", columns_of(layout, &classes, total, columns).into()),
        ("largest", Uint32Array::from(&largest[..]).into()),
    ])
}

fn place(class: Class) -> usize {
    match class {
        Class::Hot => 0,
        Class::Small => 1,
        Class::Large => 2,
        Class::Shared => 3,
    }
}

fn classes(layout: &Layout) -> Vec<Class> {
    let mut uses = vec![0_u32; layout.chunks.len()];
    for chunk in layout.pieces.iter().filter_map(|piece| usize::try_from(piece.chunk?).ok()) {
        uses[chunk] += 1;
    }
    let hot = layout.landmark.unwrap_or(0);
    let class = |(number, (chunk, uses)): (u32, (&sealift_format::Chunk, u32))| match chunk.holds {
        _ if number < hot => Class::Hot,
        Holds::Group(_) => Class::Small,
        Holds::Piece if uses > 1 => Class::Shared,
        Holds::Piece => Class::Large,
    };
    (0..).zip(layout.chunks.iter().zip(uses)).map(class).collect()
}

/// Returns for each column the class with the largest share.
fn columns_of(layout: &Layout, classes: &[Class], total: u64, columns: u32) -> Array {
    let mut most = vec![[0_u64; 4]; num::at(columns)];
    let edge = |column: u64| total.saturating_mul(column) / u64::from(columns.max(1));
    for (chunk, class) in layout.chunks.iter().zip(classes) {
        let (start, end) = (chunk.offset, chunk.offset.saturating_add(chunk.stored_len.into()));
        let mut column = start.saturating_mul(columns.into()) / total.max(1);
        while let Some(sums) = usize::try_from(column).ok().and_then(|at| most.get_mut(at)) {
            let (from, to) = (start.max(edge(column)), end.min(edge(column + 1)));
            sums[place(*class)] += to.saturating_sub(from);
            if end <= edge(column + 1) {
                break;
            }
            column += 1;
        }
    }
    let words = ["hot", "small", "large", "shared"];
    let word = |sums: &[u64; 4]| {
        (0..).zip(sums).max_by_key(|(at, sum)| (**sum, Reverse(*at))).map_or(0, |(at, _): (usize, _)| at)
    };
    most.iter().map(|sums| JsValue::from_str(words[word(sums)])).collect()
}

/// Returns the entries of the largest files, the largest first.
fn largest(index: &Index) -> Vec<u32> {
    let mut heap = BinaryHeap::new();
    for (number, entry) in (0..).zip(index.entries()) {
        if let InodeKind::Regular(object) = index.inode(entry.inode).kind
            && entry.is_first_name()
        {
            heap.push(Reverse((index.object(object).size, Reverse(number))));
            if heap.len() > LARGEST {
                heap.pop();
            }
        }
    }
    heap.into_sorted_vec().into_iter().map(|Reverse((_, Reverse(number)))| number).collect()
}

/// Returns the bytes of files whose content another file shares.
fn saved(index: &Index) -> u64 {
    let mut seen = vec![false; index.objects().len()];
    let mut saved = 0_u64;
    for inode in index.inodes() {
        if let InodeKind::Regular(object) = inode.kind {
            let seen = &mut seen[num::at(object)];
            saved = saved.saturating_add(if *seen { index.object(object).size } else { 0 });
            *seen = true;
        }
    }
    saved
}
