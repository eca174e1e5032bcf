//! Parts of containers as a source: byte strings one after the other in a file without a name, for contents that recipes make again.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use sealift_format::num::{at, fit, wide};

use crate::fs::parent::shown_directory;
use crate::fs::unnamed::unnamed_file;
use crate::{Error, Metadata, Tree};

/// Leaves (recipes 3.1), in the order in which they were added. They have paths, but no tree.
#[derive(Debug)]
pub struct LeafSource {
    pub(super) tree: Tree,
    file: File,
    /// Where the file is, for messages.
    folder: PathBuf,
    leaves: Vec<Leaf>,
    /// The end of what was written.
    end: u64,
}

/// A byte string, and where it comes from.
#[derive(Clone, Debug)]
struct Leaf {
    path: Vec<u8>,
    offset: u64,
    len: u64,
}

impl LeafSource {
    /// What follows a container's path in that of the leaf with what is of no member. No member's path ends so.
    pub const STRUCTURE: &[u8] = b"///";

    /// Makes a file without a name in `folder`, without any leaf yet.
    ///
    /// # Errors
    /// Returns an error if no file can be made there.
    pub fn new(folder: &Path) -> Result<Self, Error> {
        let shown = shown_directory(folder);
        let file = unnamed_file(folder).map_err(|error| Error::io("create a file in", &shown, error))?;
        let (tree, folder) = (Tree::new(Metadata::default()), shown);
        Ok(Self { tree, file, folder, leaves: Vec::new(), end: 0 })
    }

    /// Appends bytes of the next leaf.
    ///
    /// # Errors
    /// Returns an error if they cannot be written, for example because the disk is full.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all_at(bytes, self.end);
        written.map_err(|error| Error::io("write to a file in", &self.folder, error))?;
        self.end += wide(bytes.len());
        Ok(())
    }

    /// Ends the leaf, which has all that was written since the one before. Returns its number.
    ///
    /// # Errors
    /// Returns an error if there are more than can be numbered.
    pub fn finish_leaf(&mut self, path: Vec<u8>) -> Result<u32, Error> {
        let number = fit(self.leaves.len(), "the number of leaves")?;
        let offset = self.leaves.last().map_or(0, |leaf| leaf.offset + leaf.len);
        self.leaves.push(Leaf { path, offset, len: self.end - offset });
        Ok(number)
    }

    /// Drops all leaves but the first `count`, and what was written since.
    ///
    /// # Errors
    /// Returns an error if the file cannot be cut.
    pub fn truncate(&mut self, count: usize) -> Result<(), Error> {
        self.leaves.truncate(count);
        self.end = self.leaves.last().map_or(0, |leaf| leaf.offset + leaf.len);
        self.file.set_len(self.end).map_err(|error| Error::io("cut a file in", &self.folder, error))
    }

    /// Returns the bytes of the leaf that is not finished yet.
    #[must_use]
    pub fn pending_len(&self) -> u64 {
        self.end - self.leaves.last().map_or(0, |leaf| leaf.offset + leaf.len)
    }

    /// Returns the number of leaves.
    #[must_use]
    pub fn count(&self) -> usize {
        self.leaves.len()
    }

    /// Returns a leaf's length in bytes.
    #[must_use]
    pub fn len_of(&self, leaf: u32) -> u64 {
        self.leaves[at(leaf)].len
    }

    /// Returns the path from which a leaf comes: that of its container, two slashes, and its own; or that of its container and [`Self::STRUCTURE`].
    #[must_use]
    pub fn path_of(&self, leaf: u32) -> &[u8] {
        &self.leaves[at(leaf)].path
    }

    /// Returns whether a leaf is what is of no member of its container.
    #[must_use]
    pub fn is_structure(&self, leaf: u32) -> bool {
        self.path_of(leaf).ends_with(Self::STRUCTURE)
    }

    /// Fills `buffer` with bytes of a leaf.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub fn read_at(&self, leaf: u32, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let read = self.file.read_exact_at(buffer, self.leaves[at(leaf)].offset + offset);
        read.map_err(|error| Error::io("read a file in", &self.folder, error))
    }

    pub(super) fn open_content(&self, leaf: u32) -> LeafContent<'_> {
        LeafContent { source: self, leaf }
    }
}

/// The bytes of a leaf.
#[derive(Debug)]
pub struct LeafContent<'a> {
    source: &'a LeafSource,
    leaf: u32,
}

impl LeafContent<'_> {
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.source.read_at(self.leaf, buffer, offset)
    }
}
