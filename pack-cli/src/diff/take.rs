//! What a device would have to transfer from a bundle.

use sealift_format::{Bundle, Holds, Object, Row};

use super::Take;

/// Returns the cost of the objects marked `new`, by object number.
pub(super) fn take(bundle: &Bundle, new: &[bool]) -> Take {
    let mut take = Take::default();
    for (row, _) in bundle.index.objects().iter().zip(new).filter(|(_, new)| **new) {
        take.objects += 1;
        take.logical_bytes = take.logical_bytes.saturating_add(row.size);
    }
    let new = &with_leaves(bundle, new);
    let is_new = |object: Row<Object>| new.get(object.at()).is_some_and(|new| *new);
    let mut pieces = vec![false; bundle.layout.chunks.len()];
    for large in bundle.layout.large.iter().filter(|large| is_new(large.object)) {
        for chunk in bundle.layout.pieces_of(large.object).iter().filter_map(|piece| piece.chunk) {
            pieces[chunk.at()] = true;
        }
    }
    for (chunk, is_piece) in bundle.layout.chunks.iter().zip(pieces) {
        let is_taken = match &chunk.holds {
            Holds::Group(range) => bundle.layout.group(range).iter().any(|object| is_new(*object)),
            Holds::Piece => is_piece,
        };
        if is_taken {
            take.stored_bytes = take.stored_bytes.saturating_add(chunk.stored_len.into());
        }
    }
    take
}

/// Marks also what the new objects are made of.
fn with_leaves(bundle: &Bundle, new: &[bool]) -> Vec<bool> {
    let recipes = &bundle.layout.recipes;
    let mut marked = new.to_vec();
    marked.resize(bundle.index.objects().len() + recipes.leaves.len(), false);
    for made in recipes.made.iter().filter(|made| new.get(made.object.at()).is_some_and(|new| *new)) {
        for object in recipes.stored_of(made.object) {
            if let Some(marked) = marked.get_mut(object.at()) {
                *marked = true;
            }
        }
    }
    marked
}
