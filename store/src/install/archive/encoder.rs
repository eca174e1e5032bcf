//! How an archive format describes its members.

use sealift_format::{Attributes, Device, Inode, Row};

/// An archive format that can be written. Each has a file beside this one, and a line in the list of formats.
#[derive(Debug)]
#[non_exhaustive]
pub struct ArchiveEncoder {
    /// The prefix of a target, such as `cpio`.
    pub scheme: &'static str,
    /// Appends what precedes a member's content: a header, the name, and the target of a symbolic link.
    pub(super) header: fn(&Member<'_>, &mut Vec<u8>) -> Result<(), Unfit>,
    /// Zeros follow a content up to a multiple of this many bytes.
    pub(super) align: u64,
    /// What ends the archive.
    pub(super) end: &'static [u8],
    pub(super) has_sockets: bool,
    pub(super) has_xattrs: bool,
}

/// A name in the tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member<'a> {
    /// Its path below the root, without a leading slash; empty for the root.
    pub(super) path: &'a [u8],
    /// The number of the file, the same for all of its names.
    pub(super) number: Row<Inode>,
    pub(super) inode: &'a Inode,
    /// How many names the file has.
    pub(super) names: u32,
    /// The first name of the file, if this is a further name and it is not a directory. No content follows then.
    pub(super) first: Option<&'a [u8]>,
    pub(super) attributes: &'a Attributes,
    /// The length of the content that follows.
    pub(super) size: u64,
    /// The target of a symbolic link.
    pub(super) target: &'a [u8],
    pub(super) device: Option<Device>,
}

/// What a format cannot hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unfit(pub(super) &'static str);
