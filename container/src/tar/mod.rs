//! tar archives. Sparse files are no members, since their content is not stored as one stretch.
//!
//! What is exported are the parts of a tar archive for other readers of it.

mod fault;
mod header;
mod records;

use std::collections::HashMap;

use sealift_format::num::wide;

use crate::anatomy::Anatomy;
use crate::archive_path::archive_path;
use crate::block::Hint;
use crate::draft::Draft;
use crate::fault::ContainerFault;
use crate::parts::Parts;
use crate::reader::{Reader, STEP, size};
pub use fault::TarFault;
pub use header::{BLOCK_LEN, Block, Extent, Header, decimal, more_sparse, until_nul};
pub use records::records;

/// The longest extended header.
const LONGEST_EXTENSION: u64 = 1 << 20;

/// Returns whether a container that begins with these bytes is a tar archive, of POSIX or GNU.
pub(super) fn is(head: &[u8]) -> bool {
    let block = head.first_chunk::<512>();
    block.is_some_and(|block| block[257..].starts_with(b"ustar") && Header::parse(block).is_ok())
}

/// Takes an archive apart. What follows its end is structure.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let mut archive = Archive {
        reader,
        draft: Draft::new(reader),
        names: HashMap::new(),
        at: 0,
        global: Extended::default(),
        global_len: 0,
    };
    let mut extensions = Extensions::default();
    while archive.at < reader.len() {
        let at = archive.at;
        let block = reader.up_to(at, 512)?;
        let Some(block) = block.first_chunk::<512>().filter(|block| block.iter().any(|byte| *byte != 0)) else {
            break;
        };
        let header = Header::parse(block).map_err(|_| reader.damaged(at, "a header of a file is damaged"))?;
        archive.at += BLOCK_LEN;
        if !archive.extension(&header, at, &mut extensions)? {
            archive.member(&header, at, std::mem::take(&mut extensions))?;
        }
    }
    archive.draft.finish(Hint::None)
}

struct Archive<'a> {
    reader: &'a Reader<'a>,
    draft: Draft<'a>,
    /// Members by path, for hard links.
    names: HashMap<Vec<u8>, u32>,
    /// Where the next header or content begins.
    at: u64,
    global: Extended,
    /// The bytes of all headers in it.
    global_len: u64,
}

/// What an extended header says of where a member is and how long.
#[derive(Clone, Default)]
struct Extended {
    path: Option<Vec<u8>>,
    link_path: Option<Vec<u8>>,
    size: Option<u64>,
    is_sparse: bool,
}

impl Extended {
    /// Applies a member's own extended header; of two records with one keyword the later wins.
    fn read(&mut self, data: &[u8]) -> Result<(), TarFault> {
        records(data).try_for_each(|record| {
            let (keyword, value) = record?;
            let path = || (!value.is_empty()).then(|| value.to_vec());
            match keyword {
                b"path" => self.path = path(),
                b"linkpath" => self.link_path = path(),
                // An empty one cancels an earlier record (POSIX).
                b"size" if value.is_empty() => self.size = None,
                b"size" => self.size = Some(decimal(value).ok_or(TarFault::Number { field: "size" })?),
                // star's sparse files.
                b"SCHILY.realsize" => return Err(TarFault::SparseMap),
                _ => self.is_sparse |= keyword.starts_with(b"GNU.sparse."),
            }
            Ok(())
        })
    }

    /// Applies a header for all members that follow.
    fn read_global(&mut self, data: &[u8]) -> Result<(), TarFault> {
        // Programs differ over these in a global header: what one reads as content is a header to another.
        let is_of_one = |keyword: &[u8]| {
            matches!(keyword, b"path" | b"linkpath" | b"size" | b"SCHILY.realsize")
                || keyword.starts_with(b"GNU.sparse.")
        };
        if records(data).any(|record| record.is_ok_and(|(keyword, _)| is_of_one(keyword))) {
            return Err(TarFault::Pax);
        }
        self.read(data)
    }
}

/// The extended headers of the next member.
#[derive(Default)]
struct Extensions {
    pax: Option<Extended>,
    path: Option<Vec<u8>>,
    link_path: Option<Vec<u8>>,
}

impl Archive<'_> {
    /// Reads an extended header, if this is one.
    fn extension(&mut self, header: &Header, at: u64, to: &mut Extensions) -> Result<bool, ContainerFault> {
        let flag = header.type_flag();
        if !matches!(flag, b'x' | b'g' | b'L' | b'K') {
            return Ok(false);
        }
        let damaged = || self.reader.damaged(at, "an extended header is damaged");
        let len = header.size().ok().filter(|len| *len <= LONGEST_EXTENSION).ok_or_else(damaged)?;
        let data = self.reader.bytes(self.at, size(len))?;
        match flag {
            b'g' => {
                self.reader.hold(len)?;
                self.global_len += len;
                self.global.read_global(&data).map_err(|_| damaged())?;
            }
            b'x' => {
                self.reader.pay(self.global_len)?;
                let mut pax = self.global.clone();
                pax.read(&data).map_err(|_| damaged())?;
                to.pax = Some(pax);
            }
            b'L' => to.path = Some(until_nul(&data).to_vec()),
            _ => to.link_path = Some(until_nul(&data).to_vec()),
        }
        self.skip(at, len)?;
        Ok(true)
    }

    fn member(&mut self, header: &Header, at: u64, extensions: Extensions) -> Result<(), ContainerFault> {
        let damaged = |what| self.reader.damaged(at, what);
        let mut pax = extensions.pax.unwrap_or_else(|| self.global.clone());
        let stated = header.size().ok().ok_or_else(|| damaged("a file has an impossible length"))?;
        let len = pax.size.unwrap_or(stated);
        let written = pax.path.take().or(extensions.path).unwrap_or_else(|| header.name());
        let path = || archive_path(&written).ok_or_else(|| damaged("a file has an invalid name"));
        match header.type_flag() {
            // Before ustar a directory was recognized by its name.
            b'0' | 0 if written.ends_with(b"/") => Ok(()),
            b'0' | 0 | b'7' if !pax.is_sparse => {
                let path = path()?;
                let offset = self.at;
                self.skip(at, len)?;
                let member = self.draft.member(path.clone(), Parts::stored(offset, len))?;
                self.reader.hold(STEP + wide(path.len()))?;
                self.names.insert(path, member);
                Ok(())
            }
            b'1' => {
                let target = pax.link_path.take().or(extensions.link_path);
                let target = target.unwrap_or_else(|| header.link_name().to_vec());
                let member = archive_path(&target).and_then(|target| self.names.get(&target).copied());
                // A link to a file that is not in the archive has no content here.
                member.map_or(Ok(()), |member| self.draft.link(path()?, member))
            }
            // Whatever size these state, they have no content (POSIX).
            b'2' => {
                let target = pax.link_path.take().or(extensions.link_path);
                let target = target.unwrap_or_else(|| header.link_name().to_vec());
                // One with a name that no file has is left out.
                archive_path(&written).map_or(Ok(()), |path| self.draft.symlink(path, target))
            }
            b'3'..=b'6' => Ok(()),
            b'S' => {
                let mut more = header.sparse(&mut Vec::new()).map_err(|_| damaged("a sparse file is damaged"))?;
                while more {
                    let block: Block = self.reader.bytes(self.at, 512)?.first_chunk().copied().unwrap_or([0; 512]);
                    let damaged = |_| self.reader.damaged(at, "a sparse file is damaged");
                    more = more_sparse(&block, &mut Vec::new()).map_err(damaged)?;
                    self.at += BLOCK_LEN;
                }
                self.skip(at, len)
            }
            _ => self.skip(at, len),
        }
    }

    /// Skips content, which must be present. The padding of the last block may be missing.
    fn skip(&mut self, at: u64, len: u64) -> Result<(), ContainerFault> {
        let end = self.at.checked_add(len).filter(|end| *end <= self.reader.len());
        let end = end.ok_or_else(|| self.reader.damaged(at, "the archive ends within a file"))?;
        self.at = end.next_multiple_of(BLOCK_LEN);
        Ok(())
    }
}
