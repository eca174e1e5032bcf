//! What a container is made of.

use std::cmp::Ordering;

use super::block::{Block, Hint};
use super::fault::ContainerFault;
use super::kind::Kind;

/// The longest path of a member, in bytes (the kernel's `PATH_MAX`).
pub(super) const LONGEST_PATH: usize = 4096;

/// What the bytes of a container are: contents of its members, compressed blocks, and between them the container's own structure.
///
/// Blocks lie within the container, ascend and do not overlap. The parts of a member add up to its length; stored parts lie within the container
/// and outside all blocks, and several members may share them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Anatomy {
    /// What the container is.
    pub kind: Kind,
    /// How its blocks were compressed, if it says so.
    pub hint: Hint,
    /// Its compressed blocks by ascending offset, those of its own tables included, which no member uses.
    pub blocks: Vec<Block>,
    /// The regular files in it, or what it has instead: partitions by number, sections by name, the content of a compressed file without a name.
    /// They are in tree order, each under its first name; of an archive that has a path several times, the last one counts.
    pub members: Vec<Member>,
    /// The other names of members: hard links, in tree order.
    pub links: Vec<Link>,
    /// The symbolic links of file systems and archives that have them, but for ISO 9660, in tree order.
    pub symlinks: Vec<Symlink>,
}

/// A file in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The names of its directories and its own, with slashes between them and none around them. Empty for the content of a compressed file.
    pub path: Vec<u8>,
    /// Its length in bytes.
    pub len: u64,
    /// Its content, from the first byte to the last.
    pub parts: Vec<Part>,
}

/// Another name of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The path, as that of a member.
    pub path: Vec<u8>,
    /// The member's number in [`Anatomy::members`].
    pub member: u32,
}

/// A symbolic link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symlink {
    /// The path, as that of a member.
    pub path: Vec<u8>,
    /// What it names, which may be anything.
    pub target: Vec<u8>,
}

/// A part of a member's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Bytes of the container.
    Stored {
        /// Where they begin, in bytes from the container's start.
        offset: u64,
        /// How many.
        len: u64,
    },
    /// Bytes of what a block decodes to.
    Inflated {
        /// The block's number in [`Anatomy::blocks`].
        block: u32,
        /// Where they begin in the decoded block, in bytes.
        start: u64,
        /// How many.
        len: u64,
    },
    /// Zeros that are stored nowhere.
    Hole {
        /// How many.
        len: u64,
    },
}

impl Part {
    /// Returns its length in the member.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Self::Stored { len, .. } | Self::Inflated { len, .. } | Self::Hole { len } => *len,
        }
    }

    /// Returns whether it has no bytes, which no part of an [`Anatomy`] is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Anatomy {
    /// Returns the member of this name; links are names, too.
    #[must_use]
    pub fn find(&self, path: &[u8]) -> Option<&Member> {
        let after = self.members.partition_point(|member| in_tree_order(&member.path, path).is_le());
        let member = self.members[..after].last().filter(|member| member.path == path);
        member.or_else(|| {
            let after = self.links.partition_point(|link| in_tree_order(&link.path, path).is_le());
            let link = self.links[..after].last().filter(|link| link.path == path)?;
            self.members.get(usize::try_from(link.member).ok()?)
        })
    }

    /// Checks what the type promises, for a container of this length. Every anatomy passes through here.
    pub(super) fn checked(self, container_len: u64) -> Result<Self, ContainerFault> {
        let damaged = |offset, what| ContainerFault::Damaged { kind: self.kind, offset, what };
        let mut end = 0;
        for block in &self.blocks {
            let block_end = block.offset.checked_add(block.stored_len).filter(|end| *end <= container_len);
            if block.offset < end || block.stored_len == 0 {
                return Err(damaged(block.offset, "compressed blocks overlap"));
            }
            end = block_end.ok_or_else(|| damaged(block.offset, "a compressed block extends beyond the end"))?;
        }
        for member in &self.members {
            if !is_path(&member.path) {
                return Err(damaged(0, "a member has an invalid name, or its path is too long"));
            }
            let mut len = 0_u64;
            for part in &member.parts {
                self.check_part(part, container_len).map_err(|(offset, what)| damaged(offset, what))?;
                len = len.saturating_add(part.len());
            }
            if len != member.len {
                return Err(damaged(0, "the parts of a member do not add up to its length"));
            }
        }
        let names_member = |link: &Link| usize::try_from(link.member).is_ok_and(|number| number < self.members.len());
        if !self.links.iter().all(|link| is_path(&link.path) && names_member(link)) {
            return Err(damaged(0, "a link has an invalid name"));
        }
        if !self.symlinks.iter().all(|link| is_path(&link.path)) {
            return Err(damaged(0, "a symbolic link has an invalid name"));
        }
        Ok(self)
    }

    fn check_part(&self, part: &Part, container_len: u64) -> Result<(), (u64, &'static str)> {
        match *part {
            Part::Stored { offset, len } => {
                let end = offset.checked_add(len).filter(|end| *end <= container_len);
                let end = end.ok_or((offset, "the content of a member extends beyond the end"))?;
                let following = self.blocks.partition_point(|block| block.end() <= offset);
                let overlaps = self.blocks.get(following).is_some_and(|block| block.offset < end);
                if overlaps { Err((offset, "the content of a member overlaps a compressed block")) } else { Ok(()) }
            }
            Part::Inflated { block, start, len } => {
                let block = usize::try_from(block).ok().and_then(|number| self.blocks.get(number));
                let block = block.ok_or((0, "a member uses a block that is not there"))?;
                let end = start.checked_add(len).filter(|end| *end <= block.plain.most());
                end.map(|_| ()).ok_or((block.offset, "a member uses more of a block than it decodes to"))
            }
            Part::Hole { .. } => Ok(()),
        }
    }
}

/// Compares two paths by their names, as a walk that visits the names of each directory in order.
#[must_use]
pub fn in_tree_order(one: &[u8], other: &[u8]) -> Ordering {
    let names = |path| <[u8]>::split(path, |byte| *byte == b'/');
    names(one).cmp(names(other))
}

/// Returns whether these bytes can be a name in a directory.
pub(super) fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !matches!(name, b"." | b"..")
        && !name.iter().any(|byte| b"/\0".contains(byte))
}

fn is_path(path: &[u8]) -> bool {
    path.len() <= LONGEST_PATH && (path.is_empty() || path.split(|byte| *byte == b'/').all(is_name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BlockCodec, PlainLen};

    fn block(offset: u64, stored_len: u64) -> Block {
        Block { offset, stored_len, codec: BlockCodec::Zlib, plain: PlainLen::Exactly(50) }
    }

    fn checked(blocks: &[Block], path: &str, len: u64, parts: &[Part]) -> Result<Anatomy, String> {
        let member = Member { path: path.into(), len, parts: parts.to_vec() };
        let (members, links) = (vec![member], vec![Link { path: b"b".to_vec(), member: 0 }]);
        let symlinks = Vec::new();
        let anatomy = Anatomy { kind: Kind::Tar, hint: Hint::None, blocks: blocks.to_vec(), members, links, symlinks };
        anatomy.checked(100).map_err(|fault| fault.to_string())
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let blocks = [block(0, 10), block(10, 20)];
        let (stored, inflated) =
            (Part::Stored { offset: 30, len: 70 }, Part::Inflated { block: 1, start: 40, len: 10 });
        let good = checked(&blocks, "a/b", 81, &[stored, Part::Hole { len: 1 }, inflated]).expect("it is sound");
        assert_eq!((good.find(b"a/b"), good.find(b"b")), (good.members.first(), good.members.first()));
        assert_eq!((good.find(b"a"), good.find(b"")), (None, None));
        let bad: [(&[Block], &str, u64, &[Part]); 12] = [
            (&[block(0, 10), block(9, 20)], "a", 0, &[]),
            (&[block(10, 20), block(0, 10)], "a", 0, &[]),
            (&[block(90, 11)], "a", 0, &[]),
            (&[block(u64::MAX, 2)], "a", 0, &[]),
            (&[block(0, 0)], "a", 0, &[]),
            (&blocks, "a", 69, &[stored]),
            (&blocks, "a", 71, &[Part::Stored { offset: 29, len: 71 }]),
            (&blocks, "a", 1, &[Part::Stored { offset: 100, len: 1 }]),
            (&blocks, "a", 11, &[Part::Inflated { block: 1, start: 40, len: 11 }]),
            (&blocks, "a", 1, &[Part::Inflated { block: 2, start: 0, len: 1 }]),
            (&blocks, "../a", 70, &[stored]),
            (&blocks, "a//b", 70, &[stored]),
        ];
        for (blocks, path, len, parts) in bad {
            assert!(checked(blocks, path, len, parts).is_err(), "{path} {blocks:?} {parts:?}");
        }
    }

    #[test]
    fn tree_order_is_that_of_a_walk() {
        let mut paths = ["a-b", "a/x", "a", "b", "a/x-", "a/x/y"];
        paths.sort_by(|one, other| in_tree_order(one.as_bytes(), other.as_bytes()));
        assert_eq!(paths, ["a", "a/x", "a/x/y", "a/x-", "a-b", "b"]);
    }
}
