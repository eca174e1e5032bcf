//! tar archives. Sparse files are no members, since their content is not stored as one stretch.

use std::collections::HashMap;

use sealift_format::num::{size, wide};

use super::anatomy::Anatomy;
use super::archive_path::archive_path;
use super::block::Hint;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::parts::Parts;
use super::reader::{Reader, STEP};
use crate::source::XattrFilter;
use crate::source::tar::header::{BLOCK_LEN, Block, Header, more_sparse, until_nul};
use crate::source::tar::pax::Pax;

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
        global: Pax::default(),
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
    global: Pax,
    /// The bytes of all headers in it.
    global_len: u64,
}

/// The extended headers of the next member.
#[derive(Default)]
struct Extensions {
    pax: Option<Pax>,
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
        let filter = XattrFilter::default();
        match flag {
            b'g' => {
                self.reader.hold(len)?;
                self.global_len += len;
                self.global.read_global(&data, &filter).map_err(|_| damaged())?;
            }
            b'x' => {
                self.reader.pay(self.global_len)?;
                let mut pax = self.global.clone();
                pax.read(&data, &filter).map_err(|_| damaged())?;
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
            b'0' | 0 | b'7' if !pax.sparse.is_used() => {
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
