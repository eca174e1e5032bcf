//! Where files come from: directories, single files and tar archives.

mod directory;
mod exclude;
mod file;
mod owner;
mod xattrs;

use sealift_format::Xattr;

use crate::{Error, Tree};

pub use directory::{DirectoryOptions, DirectorySource};
pub use exclude::Exclude;
pub use file::open_file;
pub use owner::{MetadataOptions, OwnerRule, parse_owner};
pub use xattrs::XattrFilter;

/// A tree and the way to its contents.
#[derive(Debug)]
#[non_exhaustive]
pub enum Source {
    /// A directory of this machine.
    Directory(DirectorySource),
}

/// A content that is open for reading.
#[derive(Debug)]
#[non_exhaustive]
pub enum Content<'a> {
    /// A file of this machine.
    File(directory::FileContent<'a>),
}

/// What one thread keeps from one content to the next.
#[derive(Debug, Default)]
pub struct OpenCache {
    directory: directory::DirCache,
}

impl Source {
    /// The files and their metadata.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        match self {
            Self::Directory(source) => &source.tree,
        }
    }

    /// The same, to change metadata.
    pub fn tree_mut(&mut self) -> &mut Tree {
        match self {
            Self::Directory(source) => &mut source.tree,
        }
    }

    /// The size of each content, in bytes.
    #[must_use]
    pub fn content_len(&self, content: u32) -> u64 {
        match self {
            Self::Directory(source) => source.content_len(content),
        }
    }

    /// How many contents there are; they are numbered from 0.
    #[must_use]
    pub fn content_count(&self) -> u32 {
        match self {
            Self::Directory(source) => source.content_count(),
        }
    }

    /// Opens a content.
    ///
    /// # Errors
    /// It cannot be opened, or is not what it was.
    pub fn open<'a>(&'a self, content: u32, cache: &mut OpenCache) -> Result<Content<'a>, Error> {
        match self {
            Self::Directory(source) => source.open(content, &mut cache.directory).map(Content::File),
        }
    }
}

impl Content<'_> {
    /// Fills `buffer` with the bytes that begin at `offset`.
    ///
    /// # Errors
    /// The content is shorter than it was, or cannot be read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        match self {
            Self::File(file) => file.read_at(buffer, offset),
        }
    }

    /// The extended attributes that come with the content and are not in the tree yet.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn xattrs(&self) -> Result<Vec<Xattr>, Error> {
        match self {
            Self::File(file) => file.xattrs(),
        }
    }

    /// Says, after all has been read, whether it was the content of one moment.
    ///
    /// # Errors
    /// The file changed since its directory was read.
    pub fn finish(self) -> Result<(), Error> {
        match self {
            Self::File(file) => file.finish(),
        }
    }
}
