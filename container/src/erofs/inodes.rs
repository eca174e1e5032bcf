//! Directories and files of an EROFS file system.

use sealift_format::num::up_to;

use super::Superblock;
use crate::anatomy::Part;
use crate::draft::Draft;
use crate::fault::ContainerFault;
use crate::parts::{PART, Parts};
use crate::reader::{Reader, le16, le32, le64, size};
use crate::walk::{FileSystem, Names, Node, target};

/// Inodes are numbered by their place, in units of so many bytes.
const SLOT: u64 = 32;
const NULL: u32 = u32::MAX;
/// The size limit of a directory.
const MOST_DIRECTORY: u64 = 64 << 20;

pub(super) struct Erofs<'a> {
    pub(super) reader: &'a Reader<'a>,
    pub(super) superblock: Superblock,
    /// The content of the packed inode.
    pub(super) packed: Parts,
}

/// An inode.
pub(super) struct Inode {
    pub(super) place: u64,
    pub(super) layout: u16,
    kind: u16,
    pub(super) len: u64,
    /// The field that each layout uses in its own way.
    own: u32,
    /// Where it ends, with its extended attributes.
    pub(super) end: u64,
}

impl<'a> Erofs<'a> {
    pub(super) fn new(reader: &'a Reader<'a>, superblock: Superblock) -> Self {
        Self { reader, superblock, packed: Parts::default() }
    }

    /// Reads where the content of the packed inode lies, which others refer to.
    pub(super) fn read_packed(&mut self, draft: &mut Draft<'_>) -> Result<(), ContainerFault> {
        if let Some(number) = self.superblock.packed {
            let inode = self.inode(number)?;
            self.packed = self.parts(&inode, draft)?;
        }
        Ok(())
    }

    fn inode(&self, number: u64) -> Result<Inode, ContainerFault> {
        let place = number.checked_mul(SLOT).and_then(|place| place.checked_add(self.superblock.inodes_at));
        let place = place.ok_or_else(|| self.reader.damaged(0, "a directory entry has an invalid inode number"))?;
        let compact = self.reader.bytes(place, 32)?;
        let format = le16(&compact, 0);
        let (is_extended, layout) = (format & 1 != 0, format >> 1 & 7);
        let (len, own_len) = if is_extended { (le64(&compact, 8), 64) } else { (u64::from(le32(&compact, 8)), 32) };
        let xattrs = match u64::from(le16(&compact, 2)) {
            0 => 0,
            count => 12 + 4 * (count - 1),
        };
        if i64::try_from(len).is_err() {
            return Err(self.damaged(place));
        }
        let (kind, own) = (le16(&compact, 4) >> 12, le32(&compact, 16));
        Ok(Inode { place, layout, kind, len, own, end: place + own_len + xattrs })
    }

    pub(super) fn damaged(&self, place: u64) -> ContainerFault {
        self.reader.damaged(place, "an EROFS inode is damaged")
    }

    /// Returns an inode's content.
    fn parts(&self, inode: &Inode, draft: &mut Draft<'_>) -> Result<Parts, ContainerFault> {
        let start = self.superblock.place(inode.own.into());
        match inode.layout {
            0 => Ok(Parts::stored(start, inode.len)),
            2 => {
                let whole = inode.len / self.superblock.block_len() * self.superblock.block_len();
                let mut parts = Parts::stored(start, whole);
                parts.push(Part::Stored { offset: inode.end, len: inode.len - whole });
                Ok(parts)
            }
            4 => self.chunks(inode),
            1 | 3 => self.clusters(inode, draft),
            _ => Err(self.damaged(inode.place)),
        }
    }

    /// Returns the content of a file that is stored in chunks.
    fn chunks(&self, inode: &Inode) -> Result<Parts, ContainerFault> {
        let chunk_len = self.superblock.block_len().checked_shl(inode.own & 0x1f).filter(|len| *len > 0);
        let chunk_len = chunk_len.ok_or_else(|| self.damaged(inode.place))?;
        let has_indexes = inode.own & 0x20 != 0;
        let len = if has_indexes { 8 } else { 4 };
        let mut place = inode.end.next_multiple_of(len);
        let mut parts = Parts::default();
        while parts.len() < inode.len {
            let len_here = chunk_len.min(inode.len - parts.len());
            let record = self.reader.bytes(place, size(len))?;
            let (device, block) =
                if has_indexes { (le16(&record, 2), le32(&record, 4)) } else { (0, le32(&record, 0)) };
            if device != 0 {
                return Err(self.reader.unsupported(place, "an EROFS file system with contents on another device"));
            }
            parts.push(match block {
                NULL => Part::Hole { len: len_here },
                block => Part::Stored { offset: self.superblock.place(block.into()), len: len_here },
            });
            self.reader.hold(PART)?;
            place += len;
        }
        Ok(parts)
    }

    /// Returns the names in a directory.
    fn names(&self, inode: &Inode, draft: &mut Draft<'_>) -> Result<Names, ContainerFault> {
        let damaged = || self.reader.damaged(inode.place, "an EROFS directory is damaged");
        if inode.len > MOST_DIRECTORY || matches!(inode.layout, 1 | 3) {
            let what = "an EROFS directory is compressed or too large, which is not supported";
            return Err(self.reader.unsupported(inode.place, what));
        }
        let mut content = Vec::new();
        for part in self.parts(inode, draft)?.into_list() {
            match part {
                Part::Stored { offset, len } => content.extend(self.reader.bytes(offset, up_to(len, usize::MAX))?),
                _ => return Err(damaged()),
            }
        }
        let mut names = Vec::new();
        for block in content.chunks(size(self.superblock.directory_len)) {
            let records = usize::from(le16(block, 8)) / 12;
            for number in 0..records {
                let record = block.get(number * 12..number * 12 + 12).ok_or_else(damaged)?;
                let start = usize::from(le16(record, 8));
                let end = if number + 1 < records { usize::from(le16(block, number * 12 + 20)) } else { block.len() };
                let name = block.get(start..end).ok_or_else(damaged)?;
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                if !matches!(name, b"." | b"..") {
                    names.push((name.to_vec(), le64(record, 0)));
                }
            }
        }
        Ok(names)
    }
}

impl FileSystem for Erofs<'_> {
    fn root(&self) -> u64 {
        self.superblock.root
    }

    fn node(&mut self, number: u64, draft: &mut Draft<'_>) -> Result<Node, ContainerFault> {
        let inode = self.inode(number)?;
        match inode.kind {
            0o04 => self.names(&inode, draft).map(Node::Directory),
            0o10 => self.parts(&inode, draft).map(Node::File),
            // Its content is not compressed.
            0o12 if !matches!(inode.layout, 1 | 3) => target(self.parts(&inode, draft)?, self.reader),
            _ => Ok(Node::Other),
        }
    }
}
