//! The sizes that a reader accepts.

use crate::Error;
use crate::cost::Cost;
use crate::head::Root;
use crate::recipes::MAKES;

/// A reader's own limits, compared with what the root declares before anything is allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Decoded bytes of the index.
    pub index_len: u64,
    /// Decoded bytes of the layout.
    pub layout_len: u64,
    /// Decoded bytes of one chunk.
    pub chunk_len: u32,
    /// log2 of the largest zstd window.
    pub window_log: u8,
    /// Components of a path.
    pub depth: u32,
    /// Bytes of a chunk's prefix.
    pub prefix_len: u32,
    /// Entries of all trees: an OSTree dirtree that occurs at many places takes no bytes for the others.
    pub entries: u64,
    /// Bytes of all paths: a few long names above many others take no bytes for the others.
    pub paths: u64,
    /// Bytes of all files: holes take no bytes in the bundle, but time to hash.
    pub logical: u64,
    /// Bytes of leaves, of objects that are made, and of what encoders and decoders take for them, each.
    pub recipes: u64,
    /// Bytes of memory that making an object takes.
    pub recipe_memory: u64,
    /// Bytes of memory that the bundle takes at most, according to [`Cost`], together with `cache`.
    pub memory: u64,
    /// The threads for which `memory` is compared.
    pub jobs: u64,
    /// Bytes of memory for what is kept between reads.
    pub cache: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            index_len: 1 << 30,
            layout_len: 1 << 30,
            chunk_len: 128 << 20,
            window_log: 27,
            depth: 4096,
            prefix_len: 1 << 30,
            entries: 1 << 24,
            paths: 1 << 31,
            logical: 1 << 42,
            recipes: 1 << 42,
            recipe_memory: 1 << 30,
            memory: u64::MAX,
            jobs: 1,
            cache: 0,
        }
    }
}

impl Limits {
    /// No limits beyond those of the format: for what was read within limits before, such as a device's own records.
    pub const NONE: Self = Self {
        index_len: u64::MAX,
        layout_len: u64::MAX,
        chunk_len: u32::MAX,
        window_log: 31,
        depth: u32::MAX,
        prefix_len: u32::MAX,
        entries: u64::MAX,
        paths: u64::MAX,
        logical: u64::MAX,
        recipes: u64::MAX,
        recipe_memory: u64::MAX,
        memory: u64::MAX,
        jobs: 1,
        cache: 0,
    };

    /// Compares the root's declared sizes with these limits.
    ///
    /// # Errors
    /// Returns an error that names the first size that exceeds its limit.
    pub fn check(&self, root: &Root) -> Result<(), Error> {
        let checks = [
            ("index_len", root.contents.index_len, self.index_len),
            // If an index is incompressible, its stored form is a few bytes longer for each block.
            ("index_stored", root.contents.index_stored, self.index_len.saturating_add(1 << 20)),
            ("layout_len", root.contents.layout_len, self.layout_len),
            ("layout_stored", root.contents.layout_stored, self.layout_len.saturating_add(1 << 20)),
            ("chunk_len", root.maxima.chunk_len.into(), self.chunk_len.into()),
            ("chunk_stored", root.maxima.chunk_stored.into(), u64::from(self.chunk_len) + (1 << 20)),
            ("window_log", root.maxima.window_log.into(), self.window_log.into()),
            ("depth", root.maxima.depth.into(), self.depth.into()),
            ("entries", root.maxima.entries, self.entries),
            ("paths", root.maxima.paths, self.paths),
            ("size", root.maxima.logical, self.logical),
            ("memory", Cost::of(root, self.jobs).memory.saturating_add(self.cache), self.memory),
        ];
        within(&checks)?;
        if let Some(bases) = &root.bases {
            for base in &bases.bases {
                within(&[("index_len of a base", base.index_len, self.index_len)])?;
            }
            within(&[
                ("difference_len", bases.difference_len, self.index_len),
                ("prefix_len", bases.prefix_len.into(), self.prefix_len.into()),
            ])?;
        }
        if let Some(sums) = &root.recipes {
            within(&[("leaves", sums.leaves, 1 << 24)])?;
            if !MAKES {
                return Ok(());
            }
            within(&[
                ("leaf_bytes", sums.leaf_bytes, self.recipes),
                ("made_bytes", sums.made_bytes, self.recipes),
                ("decoded_bytes", sums.decoded_bytes, self.recipes),
                ("the bytes to encode", sums.encoded_bytes(), self.recipes),
                ("the memory for recipes", sums.memory, self.recipe_memory),
            ])?;
        }
        Ok(())
    }
}

/// Returns an error that names the first size of these, each with its declared value and its limit, that exceeds it.
fn within(sizes: &[(&'static str, u64, u64)]) -> Result<(), Error> {
    match sizes.iter().find(|(_, declared, limit)| declared > limit) {
        Some(&(what, declared, limit)) => Err(Error::Limit { what, declared, limit }),
        None => Ok(()),
    }
}
