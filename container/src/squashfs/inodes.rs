//! Directories and files of a squashfs file system.

use sealift_format::num::at;

use super::Superblock;
use super::metadata::{Metadata, Position};
use crate::anatomy::{LONGEST_PATH, Part};
use crate::block::{Block, PlainLen};
use crate::draft::Draft;
use crate::fault::ContainerFault;
use crate::parts::{PART, Parts};
use crate::reader::{Reader, le16, le32, le64};
use crate::walk::{FileSystem, Names, Node};

const NO_FRAGMENT: u32 = u32::MAX;
/// Entries of a block of the fragment table.
const ENTRIES: u32 = 512;
/// The size limit of a directory.
const MOST_DIRECTORY: u32 = 64 << 20;
/// Set in the length of a block that is stored uncompressed.
const UNCOMPRESSED: u32 = 1 << 24;

pub(super) struct Squashfs<'a> {
    reader: &'a Reader<'a>,
    superblock: Superblock,
    metadata: Metadata<'a>,
}

/// Where the content of a regular file lies.
struct File {
    len: u64,
    /// Where its blocks begin.
    start: u64,
    fragment: u32,
    /// Where in its fragment the rest of it begins.
    rest_at: u32,
}

impl<'a> Squashfs<'a> {
    pub(super) fn new(reader: &'a Reader<'a>, superblock: Superblock) -> Self {
        Self { reader, superblock, metadata: Metadata::new(reader, superblock.codec) }
    }

    pub(super) fn metadata(&mut self) -> &mut Metadata<'a> {
        &mut self.metadata
    }

    /// Returns the names in a directory.
    fn names(&mut self, (block, within): (u32, u16), size: u32) -> Result<Names, ContainerFault> {
        // The size counts 3 bytes for the names . and .., which are not stored.
        let mut left = size.saturating_sub(3);
        let start = self.superblock.names_at.saturating_add(block.into());
        if left > MOST_DIRECTORY {
            return Err(self.reader.limit("a squashfs directory is too large"));
        }
        let mut place = Position { block: start, within: within.into() };
        let mut names = Vec::new();
        let short = || self.reader.damaged(start, "a squashfs directory is damaged");
        while left > 0 {
            let header = self.metadata.take(&mut place, 12)?;
            left = left.checked_sub(12).ok_or_else(short)?;
            let inodes = u64::from(le32(&header, 4)) << 16;
            for _ in 0..=le32(&header, 0).min(255) {
                let entry = self.metadata.take(&mut place, 8)?;
                let len = u32::from(le16(&entry, 6)) + 1;
                left = left.checked_sub(8 + len).ok_or_else(short)?;
                names.push((self.metadata.take(&mut place, at(len))?, inodes | u64::from(le16(&entry, 0))));
            }
        }
        Ok(names)
    }

    /// Returns the content of a regular file, the lengths of whose blocks are listed at a place.
    fn parts(&mut self, file: &File, mut list: Position, draft: &mut Draft<'_>) -> Result<Parts, ContainerFault> {
        let block_len = self.superblock.block_len;
        let mut parts = Parts::default();
        let has_fragment = file.fragment != NO_FRAGMENT;
        let blocks = if has_fragment { file.len / block_len } else { file.len.div_ceil(block_len) };
        let mut start = file.start;
        for number in 0..blocks {
            let word = le32(&self.metadata.take(&mut list, 4)?, 0);
            let len = block_len.min(file.len - number * block_len);
            start = match word {
                0 => {
                    parts.push(Part::Hole { len });
                    start
                }
                word => self.part(&mut parts, (start, word), PlainLen::Exactly(len), (0, len), draft)?,
            };
            self.reader.hold(PART)?;
        }
        let rest = file.len - (blocks * block_len).min(file.len);
        if has_fragment && rest > 0 {
            let place = self.fragment(file.fragment)?;
            self.part(&mut parts, place, PlainLen::AtMost(block_len), (file.rest_at.into(), rest), draft)?;
        }
        Ok(parts)
    }

    /// Adds a part of a block, which the format describes by its offset and a word with its length, and returns the offset behind the block.
    fn part(
        &self,
        parts: &mut Parts,
        (offset, word): (u64, u32),
        plain: PlainLen,
        (start, len): (u64, u64),
        draft: &mut Draft<'_>,
    ) -> Result<u64, ContainerFault> {
        let stored_len = u64::from(word & (UNCOMPRESSED - 1));
        let damaged = || self.reader.damaged(offset, "a squashfs block has an impossible length");
        if stored_len > self.superblock.block_len {
            return Err(damaged());
        }
        if word & UNCOMPRESSED == 0 {
            let block = draft.block(Block { offset, stored_len, codec: self.superblock.codec, plain })?;
            parts.push(Part::Inflated { block, start, len });
        } else if start.checked_add(len).is_some_and(|end| end <= stored_len) {
            parts.push(Part::Stored { offset: offset.saturating_add(start), len });
        } else {
            return Err(damaged());
        }
        offset.checked_add(stored_len).ok_or_else(damaged)
    }

    /// Returns where the block of a fragment lies, and the word with its length.
    fn fragment(&mut self, number: u32) -> Result<(u64, u32), ContainerFault> {
        let Superblock { fragments, fragments_at, .. } = self.superblock;
        if number >= fragments {
            return Err(self.reader.damaged(fragments_at, "a squashfs file has an invalid fragment number"));
        }
        let pointer = fragments_at.saturating_add(u64::from(number / ENTRIES) * 8);
        let block = le64(&self.reader.bytes(pointer, 8)?, 0);
        let mut place = Position { block, within: at(number % ENTRIES) * 16 };
        let entry = self.metadata.take(&mut place, 16)?;
        Ok((le64(&entry, 0), le32(&entry, 8)))
    }
}

impl FileSystem for Squashfs<'_> {
    fn root(&self) -> u64 {
        self.superblock.root
    }

    fn node(&mut self, inode: u64, draft: &mut Draft<'_>) -> Result<Node, ContainerFault> {
        let block = self.superblock.inodes_at.saturating_add(inode >> 16);
        let [low, high, ..] = inode.to_le_bytes();
        let mut place = Position { block, within: u16::from_le_bytes([low, high]).into() };
        let file = |len, start, fragment, rest_at| File { len, start, fragment, rest_at };
        match le16(&self.metadata.take(&mut place, 16)?, 0) {
            1 => {
                let rest = self.metadata.take(&mut place, 16)?;
                self.names((le32(&rest, 0), le16(&rest, 10)), le16(&rest, 8).into()).map(Node::Directory)
            }
            8 => {
                let rest = self.metadata.take(&mut place, 24)?;
                self.names((le32(&rest, 8), le16(&rest, 18)), le32(&rest, 4)).map(Node::Directory)
            }
            2 => {
                let rest = self.metadata.take(&mut place, 16)?;
                let file = file(le32(&rest, 12).into(), le32(&rest, 0).into(), le32(&rest, 4), le32(&rest, 8));
                self.parts(&file, place, draft).map(Node::File)
            }
            9 => {
                let rest = self.metadata.take(&mut place, 40)?;
                let file = file(le64(&rest, 8), le64(&rest, 0), le32(&rest, 28), le32(&rest, 32));
                self.parts(&file, place, draft).map(Node::File)
            }
            3 | 10 => {
                let len = at(le32(&self.metadata.take(&mut place, 8)?, 4));
                if len > LONGEST_PATH {
                    return Ok(Node::Other);
                }
                self.metadata.take(&mut place, len).map(Node::Symlink)
            }
            4..=7 | 11..=14 => Ok(Node::Other),
            _ => Err(self.reader.damaged(block, "a squashfs inode is of an unknown type")),
        }
    }
}
