//! The members of a tar archive in order, each with its extended headers applied.

use sealift_container::tar::{BLOCK_LEN, Extent, Header, decimal, more_sparse, until_nul};
use sealift_format::Device;
use sealift_format::num;

use super::pax::{PATH_LEN_MAX, Pax};
use super::window::Window;
use crate::acl;
use crate::source::XattrFilter;
use crate::source::archive::{Archive, ArchiveFault, Member, MemberKind, Segment, Stored, shown};
use crate::{Error, Metadata};

/// The maximum length of an extended header; it is held in memory while its member is read.
const EXTENSION_LEN_MAX: u64 = 16 * 1024 * 1024;
/// The maximum length of a file in Linux.
const FILE_LEN_MAX: u64 = u64::MAX >> 1;

/// Reads members until the archive's end.
#[derive(Debug)]
pub(super) struct Members<'a> {
    archive: &'a Archive,
    filter: &'a XattrFilter,
    window: Window,
    /// The offset of the next header.
    next: u64,
    /// The global header, which applies to all members that follow.
    global: Pax,
}

/// The extended headers of the next member.
#[derive(Debug, Default)]
struct Extensions {
    pax: Option<Pax>,
    path: Option<Vec<u8>>,
    link_path: Option<Vec<u8>>,
}

impl<'a> Members<'a> {
    pub(super) fn new(archive: &'a Archive, filter: &'a XattrFilter) -> Self {
        Self { archive, filter, window: Window::default(), next: 0, global: Pax::default() }
    }

    /// Returns the next member, or `None` at the archive's end.
    pub(super) fn next(&mut self) -> Result<Option<Member>, Error> {
        let mut extensions = Extensions::default();
        let begin = self.next;
        loop {
            let at = self.next;
            let block = self.window.block(self.archive, at)?;
            let block = block.ok_or_else(|| self.archive.fault(at, ArchiveFault::NoEnd))?;
            if block.iter().all(|byte| *byte == 0) {
                if extensions.is_some() {
                    return Err(self.archive.fault(at, ArchiveFault::ExtensionAlone));
                }
                self.check_end(at)?;
                return Ok(None);
            }
            let header = Header::parse(&block).map_err(|fault| self.archive.fault(at, fault))?;
            self.next = at + BLOCK_LEN;
            match header.type_flag() {
                b'x' | b'g' | b'L' | b'K' => self.extension(&header, at, &mut extensions)?,
                b'V' => self.skip(at, header.size().map_err(|fault| self.archive.fault(at, fault))?)?,
                _ => {
                    return self.member(&header, at, extensions).map(|member| Some(Member { offset: begin, ..member }));
                }
            }
        }
    }

    /// Checks that only zeros follow the first block of zeros.
    fn check_end(&self, from: u64) -> Result<(), Error> {
        let mut buffer = vec![0; 64 * 1024];
        let mut at = from;
        while at < self.archive.len() {
            let left = num::up_to(self.archive.len() - at, buffer.len());
            self.archive.read_at(&mut buffer[..left], at)?;
            if buffer[..left].iter().any(|byte| *byte != 0) {
                return Err(self.archive.fault(at, ArchiveFault::BeyondEnd));
            }
            at += num::wide(left);
        }
        Ok(())
    }

    /// Skips a member's bytes, which must be present.
    fn skip(&mut self, header_at: u64, len: u64) -> Result<(), Error> {
        let end = self.next.checked_add(len).filter(|end| *end <= self.archive.len());
        let end = end.ok_or_else(|| self.archive.fault(header_at, ArchiveFault::Truncated))?;
        // The padding of the last member's last block may be missing; the end marker then is, too.
        self.next = end.next_multiple_of(BLOCK_LEN).min(self.archive.len());
        Ok(())
    }

    fn extension(&mut self, header: &Header, at: u64, extensions: &mut Extensions) -> Result<(), Error> {
        let data = self.extension_data(header, at)?;
        let (filter, global) = (self.filter, &mut self.global);
        let read = match header.type_flag() {
            b'g' => global.read_global(&data, filter),
            b'x' => {
                let mut pax = global.clone();
                let read = pax.read(&data, filter);
                read.and_then(|()| set_once(&mut extensions.pax, pax))
            }
            b'L' => long_name(&data).and_then(|name| set_once(&mut extensions.path, name)),
            _ => long_name(&data).and_then(|name| set_once(&mut extensions.link_path, name)),
        };
        read.map_err(|fault| self.archive.fault(at, fault))
    }

    fn extension_data(&mut self, header: &Header, at: u64) -> Result<Vec<u8>, Error> {
        let len = header.size().map_err(|fault| self.archive.fault(at, fault))?;
        if len > EXTENSION_LEN_MAX {
            return Err(self.archive.fault(at, ArchiveFault::ExtensionTooLong { len, max: EXTENSION_LEN_MAX }));
        }
        let from = self.next;
        self.skip(at, len)?;
        let mut data = vec![0; num::size(len)];
        self.archive.read_at(&mut data, from)?;
        Ok(data)
    }

    fn member(&mut self, header: &Header, at: u64, extensions: Extensions) -> Result<Member, Error> {
        let mut pax = extensions.pax.unwrap_or_else(|| self.global.clone());
        let path = pax.sparse.name.take().or(pax.path.take()).or(extensions.path).unwrap_or_else(|| header.name());
        let link_path = pax.link_path.take().or(extensions.link_path);
        let link_path = link_path.unwrap_or_else(|| header.link_name().to_vec());
        let fault = |fault: ArchiveFault| self.archive.fault(at, fault);
        // POSIX: the record's size overrides the header's.
        let size = pax.size.map_or_else(|| header.size(), Ok).map_err(|stated| fault(stated.into()))?;
        let device = || -> Result<Device, ArchiveFault> {
            Ok(Device {
                major: pax.major.map_or_else(|| header.major(), Ok)?,
                minor: pax.minor.map_or_else(|| header.minor(), Ok)?,
            })
        };
        let kind = match header.type_flag() {
            // Before ustar a directory was recognized by its name.
            b'0' | 0 if path.ends_with(b"/") => MemberKind::Directory,
            b'0' | 0 | b'7' | b'S' => {
                let stored = self.content(header, &mut pax, at, size)?;
                return self.finish(header, pax, at, path, MemberKind::Regular(stored));
            }
            b'1' => MemberKind::HardLink(link_path),
            b'2' => MemberKind::Symlink(link_path),
            b'3' => MemberKind::CharDevice(device().map_err(fault)?),
            b'4' => MemberKind::BlockDevice(device().map_err(fault)?),
            b'5' | b'D' => MemberKind::Directory,
            b'6' => MemberKind::Fifo,
            other => {
                let type_flag = shown(&[other]);
                return Err(fault(ArchiveFault::Type { path: shown(&path), type_flag }));
            }
        };
        if header.type_flag() == b'D' {
            self.skip(at, size)?; // the names in it, for `tar --incremental`
        } else if size != 0 && !self.is_header_next()? {
            return Err(fault(ArchiveFault::SizeWithoutContent { path: shown(&path), size }));
        } else if pax.sparse.is_used() {
            return Err(fault(ArchiveFault::SparseMap));
        }
        self.finish(header, pax, at, path, kind)
    }

    /// Returns whether a header follows, or the archive's end, but no content. Whatever the size in the header of a link, a directory or a device
    /// says, no content follows it (POSIX); some programs write there the length of the file that a link names.
    fn is_header_next(&mut self) -> Result<bool, Error> {
        let block = self.window.block(self.archive, self.next)?;
        Ok(block.is_none_or(|block| block.iter().all(|byte| *byte == 0) || Header::parse(&block).is_ok()))
    }

    fn finish(&self, header: &Header, pax: Pax, at: u64, path: Vec<u8>, kind: MemberKind) -> Result<Member, Error> {
        let metadata = || -> Result<Metadata, ArchiveFault> {
            let (mtime, mtime_ns) = pax.mtime.map_or_else(|| header.mtime().map(|seconds| (seconds, 0)), Ok)?;
            let (uid, gid) = (pax.uid.map_or_else(|| header.uid(), Ok)?, pax.gid.map_or_else(|| header.gid(), Ok)?);
            let (mut permissions, xattrs) = (header.permissions()?, pax.into_xattrs()?);
            if let Some(access) = xattrs.get(acl::ACCESS) {
                permissions = acl::permissions(permissions, access);
            }
            Ok(Metadata { permissions, uid, gid, mtime, mtime_ns, xattrs })
        };
        let metadata = metadata().map_err(|fault| self.archive.fault(at, fault))?;
        Ok(Member { offset: at, path, metadata, kind })
    }

    /// Locates a regular file's bytes and skips them.
    fn content(&mut self, header: &Header, pax: &mut Pax, at: u64, size: u64) -> Result<Stored, Error> {
        let mut extents = Vec::new();
        let mut map_len = 0;
        let sparse = std::mem::take(&mut pax.sparse);
        let real_size = match (header.type_flag(), sparse.version, sparse.extents) {
            (b'S', (None, None), None) if header.is_gnu() => {
                self.old_sparse(header, at, &mut extents)?;
                header.real_size().map(Some).map_err(|fault| self.archive.fault(at, fault))?
            }
            (b'S', _, _) => return Err(self.archive.fault(at, ArchiveFault::SparseVersion)),
            (_, (Some(1), Some(0)), None) => {
                map_len = self.sparse_map(at, size, &mut extents)?;
                sparse.real_size
            }
            (_, (None, None) | (Some(0), Some(0 | 1)), Some(found)) => {
                extents = found;
                sparse.real_size
            }
            (_, (None, None), None) if sparse.real_size.is_none() => {
                let offset = self.next;
                self.skip(at, size)?;
                return Ok(Stored::Whole { offset, len: size });
            }
            _ => return Err(self.archive.fault(at, ArchiveFault::SparseVersion)),
        };
        let offset = self.next + map_len;
        self.skip(at, size)?;
        real_size
            .and_then(|real_size| sparse_content(&extents, offset, size.checked_sub(map_len)?, real_size))
            .ok_or_else(|| self.archive.fault(at, ArchiveFault::SparseMap))
    }

    /// Reads the segments of GNU's old format, in the header and in blocks between it and the content.
    fn old_sparse(&mut self, header: &Header, at: u64, extents: &mut Vec<Extent>) -> Result<(), Error> {
        let mut more = header.sparse(extents).map_err(|fault| self.archive.fault(at, fault))?;
        while more {
            let block = self.window.block(self.archive, self.next)?;
            let block = block.ok_or_else(|| self.archive.fault(at, ArchiveFault::Truncated))?;
            self.next += BLOCK_LEN;
            more = more_sparse(&block, extents).map_err(|fault| self.archive.fault(at, fault))?;
        }
        Ok(())
    }

    /// Reads the segments that version 1.0 writes before the content, and returns their length in bytes.
    fn sparse_map(&mut self, at: u64, size: u64, extents: &mut Vec<Extent>) -> Result<u64, Error> {
        let wrong = || self.archive.fault(at, ArchiveFault::SparseMap);
        let mut map_len = 0;
        let mut count: Option<u64> = None;
        let mut begin = None;
        let mut line: Vec<u8> = Vec::new();
        // The first line gives the number of segments, each of which has a line for its offset and one for its length. None of it is trusted.
        while count != Some(0) {
            if map_len >= size {
                return Err(wrong());
            }
            let block = self.window.block(self.archive, self.next + map_len)?;
            let block = block.ok_or_else(|| self.archive.fault(at, ArchiveFault::Truncated))?;
            map_len += BLOCK_LEN;
            for byte in block {
                if byte != b'\n' {
                    line.push(byte);
                    continue;
                }
                let number = decimal(&line).filter(|_| line.len() <= 20).ok_or_else(wrong)?;
                line.clear();
                match (count, begin.take()) {
                    (None, _) => count = Some(number),
                    (Some(left), Some(begin)) => {
                        extents.push((begin, number));
                        count = Some(left - 1);
                    }
                    (Some(_), None) => begin = Some(number),
                }
                if count == Some(0) {
                    break;
                }
            }
            if line.len() > 20 {
                return Err(wrong());
            }
        }
        Ok(map_len)
    }
}

impl Extensions {
    fn is_some(&self) -> bool {
        self.pax.is_some() || self.path.is_some() || self.link_path.is_some()
    }
}

fn set_once<T>(slot: &mut Option<T>, value: T) -> Result<(), ArchiveFault> {
    if slot.replace(value).is_none() { Ok(()) } else { Err(ArchiveFault::ExtensionTwice) }
}

fn long_name(data: &[u8]) -> Result<Vec<u8>, ArchiveFault> {
    let name = until_nul(data);
    if name.len() <= PATH_LEN_MAX {
        return Ok(name.to_vec());
    }
    let number = |len| num::wide(len);
    Err(ArchiveFault::ExtensionTooLong { len: number(name.len()), max: number(PATH_LEN_MAX) })
}

/// Places segments in the archive: they must ascend, be inside the file, and cover exactly the stored bytes.
fn sparse_content(extents: &[Extent], offset: u64, stored_len: u64, len: u64) -> Option<Stored> {
    let mut segments = Vec::new();
    let (mut end, mut stored) = (0, 0);
    for (at, segment_len) in extents.iter().copied() {
        let segment_end = at.checked_add(segment_len)?;
        if at < end || segment_end > len {
            return None;
        }
        end = segment_end;
        if segment_len == 0 {
            continue;
        }
        // After a segment that ends inside a block, GNU tar continues at the next block and others at the next byte.
        if stored % BLOCK_LEN != 0 {
            return None;
        }
        segments.push(Segment { at, len: segment_len, offset: offset.checked_add(stored)? });
        stored = stored.checked_add(segment_len)?;
    }
    let fits = stored == stored_len && len <= FILE_LEN_MAX;
    fits.then(|| Stored::Sparse { len, segments: segments.into() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparse_segments_agree_with_the_sizes() {
        let good = sparse_content(&[(0, 512), (4096, 100), (9000, 0)], 1024, 612, 9000);
        let segments = [Segment { at: 0, len: 512, offset: 1024 }, Segment { at: 4096, len: 100, offset: 1536 }];
        assert_eq!(good, Some(Stored::Sparse { len: 9000, segments: segments.into() }));
        assert_eq!(sparse_content(&[], 0, 0, 7), Some(Stored::Sparse { len: 7, segments: [].into() }));
        let bad: [(&[Extent], u64, u64); 7] = [
            (&[(0, 512)], 511, 600),
            (&[(0, 512)], 513, 600),
            (&[(0, 512)], 512, 511),
            (&[(512, 512), (0, 512)], 1024, 2048),
            (&[(0, 512), (511, 512)], 1024, 2048),
            (&[(0, 100), (512, 512)], 612, 2048),
            (&[(u64::MAX, 1)], 1, u64::MAX),
        ];
        for (extents, stored_len, len) in bad {
            assert_eq!(sparse_content(extents, 0, stored_len, len), None, "{extents:?}");
        }
    }
}
