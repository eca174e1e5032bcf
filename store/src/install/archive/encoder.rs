//! How an archive format describes its members.

use sealift_format::{Attributes, Device, Inode, Row};

use super::written::Written;
use crate::Error;

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
    /// What follows the members, if that depends on their contents.
    pub(super) ending: Option<Ending>,
}

/// Members that an archive has instead of some of the tree, and that are made of the contents.
#[derive(Debug)]
pub(super) struct Ending {
    /// Regular files at the root that the tree must have, and the archive has not. They lie behind its end until the others are made.
    pub(super) replaced: &'static [&'static str],
    /// Returns the members with what ends the archive.
    pub(super) make: fn(&Written<'_>) -> Result<Vec<u8>, Error>,
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
