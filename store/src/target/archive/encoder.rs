//! What a format of archives says of its members.

use sealift_format::{Attributes, Device, Inode, Row};

/// A format of archives that can be written. Each is one file beside this one, and one line of the list.
#[derive(Debug)]
#[non_exhaustive]
pub struct ArchiveEncoder {
    /// The prefix of a target, such as `cpio`.
    pub scheme: &'static str,
    /// Appends what stands before a member's content: a header, the name, and of a symbolic link its target.
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
    /// Below the root, without a leading slash; empty for the root.
    pub(super) path: &'a [u8],
    /// The same for all names of a file, and another for each file.
    pub(super) number: Row<Inode>,
    pub(super) inode: &'a Inode,
    /// How many names the file has.
    pub(super) names: u32,
    /// The first name of a file that is not a directory, if this is another. No content follows it then.
    pub(super) first: Option<&'a [u8]>,
    pub(super) attributes: &'a Attributes,
    /// The length of the content that follows.
    pub(super) size: u64,
    /// The target of a symbolic link.
    pub(super) target: &'a [u8],
    pub(super) device: Option<Device>,
}

/// What a format cannot say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unfit(pub(super) &'static str);
