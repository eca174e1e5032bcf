//! Recovery files that are read.

use std::fs::File;
use std::iter;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use sealift_format::num::{at, size, wide};
use sealift_format::volume::{front_len, stored_chunks};
use sealift_format::{Chunk, Error as FormatError, Head, Part, Recovery, RecoveryHeader};

use super::{code, readable};
use crate::{Error, Limits, Progress, VolumeFault};

/// An open recovery file whose header and geometry are sound.
#[derive(Debug)]
pub(super) struct RecoveryFile {
    path: PathBuf,
    file: File,
    pub(super) recovery: Recovery,
}

/// Head and stored layout of the bundle.
#[derive(Clone, Debug)]
pub(super) struct Front {
    pub(super) head: Head,
    pub(super) layout: Vec<u8>,
}

/// A part of the bundle, and its BLAKE3.
pub(super) struct Digested {
    pub(super) range: Range<u64>,
    pub(super) digest: [u8; 32],
}

/// The checksums in a record.
pub(super) struct Checksums<'a> {
    recovery: &'a Recovery,
    bytes: Vec<u8>,
    /// Ranges of them that cannot be read.
    unread: Vec<Range<usize>>,
    /// Whether some of them are wrong, and nothing tells which.
    pub(super) have_changed: bool,
}

impl Front {
    /// Parses head and stored layout.
    ///
    /// # Errors
    /// Returns an error if the head does not conform to core 3 to 5, or the layout does not match its digest.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let (head, layout) = Head::parse_first(bytes)?;
        head.root().file_len(head.head_len())?;
        match *blake3::hash(layout).as_bytes() == head.root().contents.layout_blake3 {
            true => Ok(Self { layout: layout.to_vec(), head }),
            false => Err(FormatError::Digest { part: Part::Layout }),
        }
    }

    /// Returns its bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        [self.head.encode(), self.layout.clone()].concat()
    }

    /// Returns where the index and the chunks are in the bundle, and their digests, in order.
    ///
    /// # Errors
    /// Returns an error if the layout does not conform to core 7.
    pub(super) fn digests(&self) -> Result<Vec<Digested>, Error> {
        let (contents, chunks_at) = (&self.head.root().contents, self.head.chunks_at());
        let index = front_len(&self.head)..chunks_at;
        let chunk = |chunk: Chunk| {
            let start = chunks_at.saturating_add(chunk.offset);
            Digested { range: start..start.saturating_add(chunk.stored_len.into()), digest: chunk.digest }
        };
        let chunks = stored_chunks(&self.head, &self.layout)?;
        let index = Digested { range: index, digest: contents.index_blake3 };
        Ok(iter::once(index).chain(chunks.into_iter().map(chunk)).collect())
    }
}

impl RecoveryFile {
    /// Opens a recovery file, and reads the bundle's front from it.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or does not conform to recovery 2 and 3.
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<(Self, Front), Error> {
        let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
        let of_path = |error: FormatError| Error::unexpected(path, error.to_string());
        let recovery = read_recovery(path, &file, limits)?.map_err(of_path)?;
        let front = read_front(path, &file, &recovery)?.map_err(of_path)?;
        limits.check(front.head.root()).map_err(of_path)?;
        code::memory(&recovery.geometry)?;
        Ok((Self::of(path, file, recovery), front))
    }

    /// A file whose header and geometry are known.
    pub(super) fn of(path: &Path, file: File, recovery: Recovery) -> Self {
        Self { path: path.to_owned(), file, recovery }
    }

    /// Returns whether both are of one set.
    pub(super) fn is_with(&self, other: &Self) -> bool {
        let (own, other) = (&self.recovery, &other.recovery);
        Recovery { number: other.number, ..own.clone() } == *other
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns header and geometry.
    pub(super) fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Reads the checksums in the record of a codeword, as far as they can be read.
    pub(super) fn checksums(&self, codeword: u64) -> Option<Checksums<'_>> {
        let shards_len = wide(self.recovery.shards().count()) * u64::from(self.recovery.geometry.shard_len);
        let start = self.recovery.record_at(codeword)?.checked_add(shards_len)?;
        let mut bytes = vec![0; size(self.recovery.record_len().checked_sub(shards_len)?)];
        let unread = readable::read(&self.file, &mut bytes, start);
        Checksums::parse(&self.recovery, &bytes, unread)
    }

    /// Passes recovery shards of a codeword to `take`, with their numbers, until it returns false: those that their checksums show to be sound, or, unless
    /// `is_checked`, those that can be read and of which nothing tells whether they are.
    ///
    /// # Errors
    /// Returns those of `take`.
    pub(super) fn shards(
        &self,
        codeword: u64,
        checksums: &Checksums<'_>,
        is_checked: bool,
        mut take: impl FnMut(usize, &[u8]) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let Some(start) = self.recovery.record_at(codeword) else { return Ok(()) };
        let shard_len = at(self.recovery.geometry.shard_len);
        let mut shards = vec![0; self.recovery.shards().count() * shard_len];
        // What cannot be read is zeros, which agree with a checksum only if they are right.
        let unread = readable::read(&self.file, &mut shards, start);
        for (place, (number, shard)) in self.recovery.shards().zip(shards.chunks_exact(shard_len)).enumerate() {
            let (begin, end) = (place * shard_len, (place + 1) * shard_len);
            let is_read = !unread.iter().any(|unread| unread.start < end && begin < unread.end);
            let is_wanted = match checksums.at(place) {
                Some(checksum) if checksum == code::checksum(shard) => is_checked,
                Some(_) => !is_checked && is_read && checksums.have_changed,
                None => !is_checked && is_read,
            };
            if is_wanted && !take(at(number), shard)? {
                break;
            }
        }
        Ok(())
    }

    /// Checks every record (recovery 7). Returns how many bytes they have.
    ///
    /// # Errors
    /// Returns an error if one is damaged or cannot be read.
    pub(super) fn check_records(&self, head: &Head, progress: &Progress) -> Result<u64, Error> {
        let codewords = self.recovery.geometry.codewords(self.recovery.file_len);
        let (len, shards) = (self.recovery.record_len(), self.recovery.shards().count());
        let mut record = vec![0; size(len)];
        for codeword in 0..codewords {
            progress.check()?;
            let start = self.recovery.record_at(codeword).unwrap_or(u64::MAX);
            let failed = |error| Error::io("read", &self.path, error);
            self.file.read_exact_at(&mut record, start).map_err(failed)?;
            let damaged = || {
                let (label, record) = (label(head, &self.recovery), codeword + 1);
                let fault = VolumeFault::Record { label, record, records: codewords, offset: start };
                Error::Volumes { path: self.path.clone(), fault: Box::new(fault) }
            };
            let (data, rest) =
                record.split_at_checked(shards * at(self.recovery.geometry.shard_len)).unwrap_or_default();
            let checksums = Checksums::parse(&self.recovery, rest, Vec::new());
            let checksums = checksums.filter(|checksums| !checksums.have_changed).ok_or_else(damaged)?;
            let mut own = data.chunks_exact(at(self.recovery.geometry.shard_len)).enumerate();
            let fill = rest.get(checksums.bytes.len() + 4..).unwrap_or_default();
            if !own.all(|(place, shard)| checksums.at(place) == Some(code::checksum(shard)))
                || fill.iter().any(|byte| *byte != 0)
            {
                return Err(damaged());
            }
            progress.add(len, 0);
        }
        Ok(len * codewords)
    }
}

/// Returns what a recovery file is, for people: `os version 7, recovery 1 of 2`.
pub(super) fn label(head: &Head, recovery: &Recovery) -> String {
    let identity = &head.root().identity;
    let Recovery { number, count, .. } = recovery;
    format!("{} version {}, recovery {number} of {count}", identity.name, identity.version)
}

/// Bytes that the longest geometry takes: each column has at least one shard in a codeword.
const MOST_GEOMETRY: u64 = 5 * 4 + 8 * 65_536 + 32;

/// Reads the header of a recovery file.
///
/// # Errors
/// Returns an error if it cannot be read. The inner one is that of recovery 2.
pub(super) fn read_header(path: &Path, file: &File) -> Result<Result<(Vec<u8>, RecoveryHeader), FormatError>, Error> {
    let failed = |error| Error::io("read", path, error);
    let len = file.metadata().map_err(failed)?.len();
    let mut header = vec![0; at(Recovery::HEADER_LEN).min(size(len))];
    file.read_exact_at(&mut header, 0).map_err(failed)?;
    Ok(RecoveryHeader::parse(&header).map(|parsed| (header, parsed)))
}

/// Reads header and geometry, where the file may end early.
///
/// # Errors
/// As [`read_header`].
pub(super) fn read_recovery(path: &Path, file: &File, limits: &Limits) -> Result<Result<Recovery, FormatError>, Error> {
    let failed = |error| Error::io("read", path, error);
    let (header, parsed) = match read_header(path, file)? {
        Ok(read) => read,
        Err(error) => return Ok(Err(error)),
    };
    let len = file.metadata().map_err(failed)?.len();
    let start = parsed.offset.saturating_add(Recovery::HEADER_LEN.into());
    if parsed.offset > most_front(limits) {
        let limit = most_front(limits);
        return Ok(Err(FormatError::Limit { what: "the length of head and layout", declared: parsed.offset, limit }));
    }
    if start >= len {
        return Ok(Err(FormatError::Truncated { len, expected: Some(parsed.own_len()) }));
    }
    let mut geometry = vec![0; size((len - start).min(MOST_GEOMETRY))];
    let unread = readable::read(file, &mut geometry, start);
    let readable = unread.first().map_or(geometry.len(), |unread| unread.start);
    Ok(Recovery::parse(&header, geometry.get(..readable).unwrap_or_default()))
}

/// Returns the most bytes that head and layout may have.
pub(super) fn most_front(limits: &Limits) -> u64 {
    limits.layout_len.saturating_add(1 << 20).saturating_add(Head::LEN_MAX.into())
}

/// Reads the bundle's front.
///
/// # Errors
/// Returns an error if it cannot be read. The inner one is what is wrong with it.
pub(super) fn read_front(path: &Path, file: &File, recovery: &Recovery) -> Result<Result<Front, FormatError>, Error> {
    let front_len = recovery.geometry.starts.first().copied().unwrap_or(0);
    let mut bytes = vec![0; size(front_len)];
    file.read_exact_at(&mut bytes, Recovery::HEADER_LEN.into()).map_err(|error| Error::io("read", path, error))?;
    let checked = Head::parse_first(&bytes).and_then(|(head, _)| recovery.check_head(&head));
    Ok(checked.and_then(|()| Front::parse(&bytes)))
}

impl<'a> Checksums<'a> {
    /// Parses what follows the shards in a record, of which these ranges cannot be read.
    fn parse(recovery: &'a Recovery, rest: &[u8], unread: Vec<Range<usize>>) -> Option<Self> {
        let columns = wide(recovery.columns().count()) * u64::from(recovery.geometry.run);
        let count = size(wide(recovery.shards().count()) + columns);
        let (bytes, rest) = rest.split_at_checked(4 * count)?;
        let is_sound = code::checksum(bytes).to_le_bytes() == *rest.first_chunk()?;
        let have_changed = !is_sound && unread.is_empty();
        Some(Self { recovery, bytes: bytes.to_vec(), unread, have_changed })
    }

    /// Returns the place of the checksum of a column's first shard; `None` if only other files have those of this column.
    pub(super) fn place_of(&self, column: usize) -> Option<usize> {
        let before = self.recovery.columns_before(column)?;
        Some(self.recovery.shards().count() + before * at(self.recovery.geometry.run))
    }

    /// Returns the checksum at a place; `None` if it cannot be read.
    pub(super) fn at(&self, place: usize) -> Option<u32> {
        let (start, end) = (4 * place, 4 * place + 4);
        if self.unread.iter().any(|unread| unread.start < end && start < unread.end) {
            return None;
        }
        Some(u32::from_le_bytes(*self.bytes.get(start..)?.first_chunk()?))
    }
}
