//! Recovery files that are read.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use sealift_format::num::{at, size, wide};
use sealift_format::volume::stored_chunks;
use sealift_format::{Chunk, Error as FormatError, Head, Part, Recovery};

use super::{code, readable};
use crate::{Error, Limits};

/// An open recovery file whose header and geometry are sound.
#[derive(Debug)]
pub(super) struct RecoveryFile {
    pub(super) path: PathBuf,
    file: File,
    pub(super) recovery: Recovery,
}

/// Head and stored layout of the bundle.
#[derive(Debug)]
pub(super) struct Front {
    pub(super) head: Head,
    pub(super) layout: Vec<u8>,
}

/// The checksums in a record.
pub(super) struct Checksums<'a> {
    recovery: &'a Recovery,
    bytes: Vec<u8>,
}

impl Front {
    /// Returns the bundle's chunks.
    ///
    /// # Errors
    /// Returns an error if the layout does not conform to core 7.
    pub(super) fn chunks(&self) -> Result<Vec<Chunk>, Error> {
        Ok(stored_chunks(&self.head, &self.layout)?)
    }
}

impl RecoveryFile {
    /// Returns whether both are of one set.
    pub(super) fn is_with(&self, other: &Self) -> bool {
        let (own, other) = (&self.recovery, &other.recovery);
        Recovery { number: other.number, ..own.clone() } == *other
    }

    /// Opens a recovery file, and reads the bundle's front from it.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or does not conform to recovery 2 and 3.
    pub(super) fn open(path: &Path, limits: &Limits) -> Result<(Self, Front), Error> {
        let failed = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Error::unexpected(path, "ends within a recovery file's first parts"),
            _ => Error::io("read", path, error),
        };
        let of_path = |error: FormatError| Error::unexpected(path, error.to_string());
        let file = File::open(path).map_err(failed)?;
        let len = file.metadata().map_err(failed)?.len();
        let mut header = vec![0; at(Recovery::HEADER_LEN).min(size(len))];
        file.read_exact_at(&mut header, 0).map_err(failed)?;
        let front_len = Recovery::front_len(&header).map_err(of_path)?;
        let geometry_at = front_len.saturating_add(Recovery::HEADER_LEN.into());
        if geometry_at > len
            || front_len > limits.layout_len.saturating_add(1 << 20).saturating_add(Head::LEN_MAX.into())
        {
            return Err(Error::unexpected(path, "ends within head and layout of the bundle, or states too long ones"));
        }
        let mut front = vec![0; size(front_len)];
        file.read_exact_at(&mut front, Recovery::HEADER_LEN.into()).map_err(failed)?;
        let mut geometry = vec![0; size((len - geometry_at).min(MOST_GEOMETRY))];
        file.read_exact_at(&mut geometry, geometry_at).map_err(failed)?;
        let recovery = Recovery::parse(&header, &geometry).map_err(of_path)?;
        let (head, layout) = Head::parse_first(&front).map_err(of_path)?;
        limits.check(head.root()).map_err(of_path)?;
        recovery.check_head(&head).map_err(of_path)?;
        if *blake3::hash(layout).as_bytes() != head.root().contents.layout_blake3 {
            return Err(of_path(FormatError::Digest { part: Part::Layout }));
        }
        code::memory(&recovery.geometry)?;
        let front = Front { layout: layout.to_vec(), head };
        Ok((Self { path: path.to_owned(), file, recovery }, front))
    }

    /// Reads the checksums in the record of a codeword; `None` if they are damaged.
    pub(super) fn checksums(&self, codeword: u64) -> Option<Checksums<'_>> {
        let shards = wide(self.recovery.shards().count());
        let shards_len = shards * u64::from(self.recovery.geometry.shard_len);
        let count = shards + wide(self.recovery.columns().count()) * u64::from(self.recovery.geometry.run);
        let start = self.recovery.record_at(codeword)?.checked_add(shards_len)?;
        let mut bytes = vec![0; size(4 * (count + 1))];
        let lost = readable::read(&self.file, &mut bytes, start);
        let own = bytes.split_off(size(4 * count));
        (lost.is_empty() && code::checksum(&bytes).to_le_bytes() == own[..])
            .then_some(Checksums { recovery: &self.recovery, bytes })
    }

    /// Passes the sound recovery shards of a codeword to `take`, with their numbers, until it returns false.
    ///
    /// # Errors
    /// Returns those of `take`.
    pub(super) fn shards(
        &self,
        codeword: u64,
        mut take: impl FnMut(usize, &[u8]) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let (Some(checksums), Some(start)) = (self.checksums(codeword), self.recovery.record_at(codeword)) else {
            return Ok(());
        };
        let mut shard = vec![0; at(self.recovery.geometry.shard_len)];
        for (place, number) in self.recovery.shards().enumerate() {
            let offset = start.saturating_add(wide(place) * u64::from(self.recovery.geometry.shard_len));
            let lost = readable::read(&self.file, &mut shard, offset);
            let is_sound = lost.is_empty() && checksums.at(place) == Some(code::checksum(&shard));
            if is_sound && !take(at(number), &shard)? {
                break;
            }
        }
        Ok(())
    }
}

/// Bytes that the longest geometry takes: each column has at least one shard in a codeword.
const MOST_GEOMETRY: u64 = 5 * 4 + 8 * 65_536 + 32;

impl Checksums<'_> {
    /// Returns the checksum of a data shard; `None` if another file has it.
    pub(super) fn of(&self, column: usize, shard: usize) -> Option<u32> {
        let (first, step) = (usize::from(self.recovery.number) - 1, usize::from(self.recovery.count));
        let before = column.checked_sub(first).filter(|columns| columns.is_multiple_of(step))? / step;
        self.at(self.recovery.shards().count() + before * at(self.recovery.geometry.run) + shard)
    }

    fn at(&self, place: usize) -> Option<u32> {
        Some(u32::from_le_bytes(*self.bytes.get(4 * place..)?.first_chunk()?))
    }
}
