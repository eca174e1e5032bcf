//! A bundle of which everything but the chunks has been read (core 2).

use alloc::vec::Vec;

use crate::{Chunk, Head, Holds, Index, Layout, Object, Row};

/// A bundle whose head, layout and index have been read and checked. This does not mean that its root is trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Preamble, root and envelopes.
    pub head: Head,
    /// Where each object lies.
    pub layout: Layout,
    /// What is installed.
    pub index: Index,
}

impl Bundle {
    /// Returns an object of the index, or a leaf.
    #[must_use]
    pub fn object(&self, object: Row<Object>) -> Option<&Object> {
        object.get(self.index.objects()).or_else(|| self.layout.recipes.leaf(object))
    }

    /// Returns for each object, and then for each leaf, the chunk whose group contains it; `None` for large objects, and for those without data.
    #[must_use]
    pub fn homes(&self) -> Vec<Option<Row<Chunk>>> {
        let mut homes = alloc::vec![None; self.index.objects().len() + self.layout.recipes.leaves.len()];
        for (row, chunk) in Row::all(&self.layout.chunks) {
            if let Holds::Group(range) = &chunk.holds {
                self.layout.group(range).iter().for_each(|object| homes[object.at()] = Some(row));
            }
        }
        homes
    }
}
