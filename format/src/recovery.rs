//! Recovery files: what it takes to make lost bytes of a bundle again (recovery.md).

use alloc::vec::Vec;
use core::ops::Range;

use crate::bytes::Reader;
use crate::num::wide;
use crate::set_header::SetHeader;
use crate::{Error, Head, Part};

/// The header and the geometry of a recovery file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "recovery 2 knows these fields")]
pub struct Recovery {
    /// Its number, from 1.
    pub number: u16,
    /// How many recovery files there are.
    pub count: u16,
    /// The length of the bundle's head in bytes.
    pub head_len: u32,
    /// The length of the bundle in bytes.
    pub file_len: u64,
    /// The BLAKE3 digest of the bundle's signed bytes.
    pub set: [u8; 32],
    /// How the body is cut into codewords, which is the same in all files of a set.
    pub geometry: Geometry,
}

/// How the body of a bundle, its index and chunks, is cut into codewords (recovery 3).
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "recovery 2 knows these fields")]
pub struct Geometry {
    /// Bytes of a shard.
    pub shard_len: u32,
    /// Shards of each column in a codeword.
    pub run: u32,
    /// Recovery shards of a codeword.
    pub parity: u32,
    /// Zeros before each column's bytes.
    pub pad: u32,
    /// Where each column begins, in bytes from the bundle's start: the first where the body does.
    pub starts: Vec<u64>,
}

const KIND: u16 = 1;
/// Points of the code: elements of its field.
const POINTS: u64 = 1 << 16;

impl Recovery {
    /// The length of a header in bytes.
    pub const HEADER_LEN: u32 = SetHeader::LEN;
    /// The first eight bytes, which are those of every volume.
    pub const MAGIC: [u8; 8] = SetHeader::MAGIC;

    /// Parses header and geometry. `geometry` are the bytes after the front, of which those after the geometry are ignored.
    ///
    /// # Errors
    /// Returns an error if they do not conform to recovery 2 and 3.
    pub fn parse(header: &[u8], geometry: &[u8]) -> Result<Self, Error> {
        let RecoveryHeader { number, count, head_len, offset, len, file_len, set } = RecoveryHeader::parse(header)?;
        let mut reader = Reader::new(Part::Recovery, geometry);
        let (shard_len, run, parity, pad) = (reader.u32()?, reader.u32()?, reader.u32()?, reader.u32()?);
        let columns = reader.count32()?;
        let mut starts = Vec::new();
        for _ in 0..columns {
            starts.push(reader.u64()?);
        }
        let fields = geometry.get(..reader.position()).unwrap_or_default();
        if digest(header, fields) != reader.array::<32>()? {
            return Err(Error::Digest { part: Part::Recovery });
        }
        let geometry = Geometry { shard_len, run, parity, pad, starts };
        geometry.check(count, offset, file_len)?;
        let recovery = Self { number, count, head_len, file_len, set, geometry };
        match recovery.len() == Some(len) {
            true => Ok(recovery),
            false => Err(reader.malformed("its length is not that of its geometry")),
        }
    }

    /// Returns all recovery files of the bundle with this head.
    #[must_use]
    pub fn all(head: &Head, count: u16, geometry: &Geometry) -> Vec<Self> {
        let of_number = |number| Self {
            number,
            count,
            head_len: u32::try_from(head.head_len()).unwrap_or(u32::MAX), // at most `Head::LEN_MAX`
            file_len: head.file_len(),
            set: head.root_digest(),
            geometry: geometry.clone(),
        };
        (1..=count).map(of_number).collect()
    }

    /// Returns the length of its own file in bytes; the largest number if it is more than a file can have.
    #[must_use]
    pub fn own_len(&self) -> u64 {
        self.record_at(self.geometry.codewords(self.file_len)).unwrap_or(u64::MAX)
    }

    /// Returns the header's bytes, and those of the geometry.
    ///
    /// # Errors
    /// Returns an error if the geometry does not conform to recovery 3.
    pub fn encode(&self) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let offset = self.geometry.starts.first().copied().unwrap_or_default();
        self.geometry.check(self.count, offset, self.file_len)?;
        let too_large = Error::TooLarge { what: "the length of a recovery file", len: u64::MAX, max: u64::MAX };
        let len = self.len().ok_or(too_large)?;
        let Self { number, count, head_len, file_len, set, .. } = *self;
        let header = SetHeader { number, count, head_len, offset, len, file_len, set }.encode(KIND);
        let Geometry { shard_len, run, parity, pad, starts } = &self.geometry;
        let mut fields = Vec::new();
        for value in [*shard_len, *run, *parity, *pad, u32::try_from(starts.len()).unwrap_or(u32::MAX)] {
            fields.extend(value.to_le_bytes());
        }
        fields.extend(starts.iter().flat_map(|start| start.to_le_bytes()));
        let hash = digest(&header, &fields);
        fields.extend(hash);
        Ok((header, fields))
    }

    /// Checks that it is of the bundle with this head.
    ///
    /// # Errors
    /// Returns an error if its set or a length is that of another bundle.
    pub fn check_head(&self, head: &Head) -> Result<(), Error> {
        let malformed = |what| Err(Reader::new(Part::Recovery, &[]).malformed(what));
        let front = head.head_len().saturating_add(head.root().contents.layout_stored);
        if self.set != head.root_digest() {
            return malformed("its set is not that of the root");
        }
        let is_its = u64::from(self.head_len) == head.head_len() && self.file_len == head.file_len();
        match is_its && self.geometry.starts.first() == Some(&front) {
            true => Ok(()),
            false => malformed("a length is not that of the root"),
        }
    }

    /// Returns where the record of a codeword begins in its file; that of the number of codewords is the file's end. `None` if that is more than a file
    /// can have.
    #[must_use]
    pub fn record_at(&self, codeword: u64) -> Option<u64> {
        let shard_len = u64::from(self.geometry.shard_len);
        let front = self.geometry.starts.first()?.checked_add(Self::HEADER_LEN.into())?;
        let records = front.checked_add(self.geometry.len())?.checked_next_multiple_of(shard_len)?;
        records.checked_add(self.record_len().checked_mul(codeword)?)
    }

    /// Returns where the zeros between geometry and records lie in the file.
    #[must_use]
    pub fn fill(&self) -> Range<u64> {
        let front = self.geometry.starts.first().copied().unwrap_or(0).saturating_add(Self::HEADER_LEN.into());
        let start = front.saturating_add(self.geometry.len());
        start..self.record_at(0).unwrap_or(start)
    }

    /// Checks these bytes.
    ///
    /// # Errors
    /// Returns an error if they are not zeros.
    pub fn check_fill(&self, bytes: &[u8]) -> Result<(), Error> {
        match bytes.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(Reader::new(Part::Recovery, &[]).malformed("the bytes before its records are not zero")),
        }
    }

    /// Returns the length of each record.
    #[must_use]
    pub fn record_len(&self) -> u64 {
        let shard_len = u64::from(self.geometry.shard_len);
        let shards = wide(self.shards().count());
        let columns = wide(self.columns().count());
        let checksums = 4 * (shards + columns * u64::from(self.geometry.run) + 1);
        shards * shard_len + checksums.next_multiple_of(shard_len)
    }

    /// Returns the numbers of the recovery shards that it has of each codeword.
    pub fn shards(&self) -> impl Iterator<Item = u32> + use<> {
        (u32::from(self.number) - 1..self.geometry.parity).step_by(self.count.into())
    }

    /// Returns the numbers of the columns whose checksums it has, which another file has as well.
    pub fn columns(&self) -> impl Iterator<Item = usize> + use<> {
        let (count, shares) = (usize::from(self.count), self.shares());
        (0..self.geometry.starts.len()).filter(move |column| shares.contains(&(column % count.max(1))))
    }

    /// Returns how many of these columns come before one of them; `None` if it is not one of them.
    #[must_use]
    pub fn columns_before(&self, column: usize) -> Option<usize> {
        let (count, [own, other]) = (usize::from(self.count).max(1), self.shares());
        let (rounds, rest) = (column / count, column % count);
        if rest != own && rest != other {
            return None;
        }
        let in_round = |rest: usize| usize::from(own < rest) + usize::from(other < rest && other != own);
        Some(rounds * in_round(count) + in_round(rest))
    }

    /// Returns what a column's number leaves, divided by the number of files, if this file has its checksums.
    fn shares(&self) -> [usize; 2] {
        let (number, count) = (usize::from(self.number).max(1), usize::from(self.count).max(1));
        [number - 1, (number + count - 2) % count]
    }

    /// Returns the bytes of geometry, fill and records.
    fn len(&self) -> Option<u64> {
        let front = self.geometry.starts.first()?.checked_add(Self::HEADER_LEN.into())?;
        self.record_at(self.geometry.codewords(self.file_len))?.checked_sub(front)
    }
}

fn digest(header: &[u8], fields: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new().update(header).update(fields).finalize().as_bytes()
}

/// The header of a recovery file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "recovery 2 knows these fields")]
pub struct RecoveryHeader {
    /// Its number, from 1.
    pub number: u16,
    /// How many recovery files there are.
    pub count: u16,
    /// The length of the bundle's head in bytes.
    pub head_len: u32,
    /// Where the body begins in the bundle: the length of head and layout, which follow the header.
    pub offset: u64,
    /// Bytes of the file after these.
    pub len: u64,
    /// The length of the bundle in bytes.
    pub file_len: u64,
    /// The BLAKE3 digest of the bundle's signed bytes.
    pub set: [u8; 32],
}

impl RecoveryHeader {
    /// Parses a header: exactly [`Recovery::HEADER_LEN`] bytes.
    ///
    /// # Errors
    /// Returns an error if it does not conform to recovery 2, as far as can be told without the bundle's head.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let SetHeader { number, count, head_len, offset, len, file_len, set } =
            SetHeader::parse(bytes, Part::Recovery, KIND)?;
        let malformed = |what| Err(Reader::new(Part::Recovery, bytes).malformed(what));
        if u64::from(head_len) >= offset || offset >= file_len {
            return malformed("the body does not lie behind the head in the bundle");
        }
        if offset.checked_add(len).and_then(|end| end.checked_add(Recovery::HEADER_LEN.into())).is_none() {
            return malformed("it is longer than a file can be");
        }
        Ok(Self { number, count, head_len, offset, len, file_len, set })
    }

    /// Returns whether a file with these first bytes says that it is a recovery file.
    #[must_use]
    pub fn is_of_kind(bytes: &[u8]) -> bool {
        bytes.starts_with(&Recovery::MAGIC) && bytes.get(12..14) == Some(&KIND.to_le_bytes()[..])
    }

    /// Returns the length of its own file in bytes.
    #[must_use]
    pub fn own_len(&self) -> u64 {
        u64::from(Recovery::HEADER_LEN).saturating_add(self.offset).saturating_add(self.len)
    }

    /// Checks the length of its file.
    ///
    /// # Errors
    /// Returns an error if it is another one than the header says.
    pub fn check_len(&self, len: u64) -> Result<(), Error> {
        let expected = self.own_len();
        match len {
            _ if len < expected => Err(Error::Truncated { len, expected: Some(expected) }),
            _ if len > expected => Err(Error::Trailing { expected }),
            _ => Ok(()),
        }
    }
}

impl Geometry {
    fn check(&self, count: u16, offset: u64, file_len: u64) -> Result<(), Error> {
        let malformed = |what| Err(Reader::new(Part::Recovery, &[]).malformed(what));
        if !(64..=65_536).contains(&self.shard_len) || !self.shard_len.is_multiple_of(64) {
            return malformed("the length of a shard is not a multiple of 64 up to 65536");
        }
        if self.pad >= self.shard_len {
            return malformed("the zeros before a column are a shard or more");
        }
        if self.starts.first() != Some(&offset) {
            return malformed("the first column does not begin where the body does");
        }
        if !self.starts.is_sorted_by(|a, b| a < b) || self.starts.last().is_none_or(|last| *last >= file_len) {
            return malformed("columns do not ascend within the bundle");
        }
        if self.run == 0 || self.parity < u32::from(count) {
            return malformed("a codeword has too few shards");
        }
        let data = wide(self.starts.len()).saturating_mul(self.run.into());
        if data.saturating_add(u64::from(self.parity).next_power_of_two()) > POINTS {
            return malformed("a codeword has more shards than the code has points");
        }
        Ok(())
    }

    /// Returns the length of the geometry's bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        5 * 4 + 8 * wide(self.starts.len()) + 32
    }

    /// Returns whether there is no column, which no valid geometry has.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Returns the bytes of a column, as a range of a bundle of `file_len` bytes.
    #[must_use]
    pub fn column(&self, number: usize, file_len: u64) -> Range<u64> {
        let start = self.starts.get(number).copied().unwrap_or(file_len);
        start..self.starts.get(number.saturating_add(1)).copied().unwrap_or(file_len)
    }

    /// Returns the number of codewords of a bundle of `file_len` bytes.
    #[must_use]
    pub fn codewords(&self, file_len: u64) -> u64 {
        let columns = (0..self.starts.len()).map(|number| self.column(number, file_len));
        let longest = columns.map(|column| column.end.saturating_sub(column.start)).max().unwrap_or(0);
        let shards = longest.saturating_add(self.pad.into()).div_ceil(u64::from(self.shard_len).max(1));
        shards.div_ceil(u64::from(self.run).max(1))
    }

    /// Returns the bytes of a codeword in a column, as a range of a bundle of `file_len` bytes, and how many zeros come before them in the run. It may
    /// be empty. What follows it in the run is zeros, too.
    #[must_use]
    pub fn run_of(&self, codeword: u64, column: usize, file_len: u64) -> (Range<u64>, u64) {
        let codewords = u128::from(self.codewords(file_len).max(1));
        let shift = u128::from(wide(column)) * codewords / u128::from(wide(self.starts.len()).max(1));
        let turned = (u128::from(codeword) + shift) % codewords;
        let block = u64::try_from(turned).unwrap_or(0);
        let (bytes, run_len) = (self.column(column, file_len), u64::from(self.run) * u64::from(self.shard_len));
        // Counted from where the zeros before the column begin.
        let (begin, pad) = (block.saturating_mul(run_len), u64::from(self.pad));
        let zeros = pad.saturating_sub(begin).min(run_len);
        let start = bytes.start.saturating_add((begin + zeros).saturating_sub(pad)).min(bytes.end);
        (start..start.saturating_add(run_len - zeros).min(bytes.end), zeros)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    fn recovery(shard_len: u32, (run, parity, pad): (u32, u32, u32), starts: &[u64], file_len: u64) -> Recovery {
        let geometry = Geometry { shard_len, run, parity, pad, starts: starts.to_vec() };
        Recovery { number: 2, count: 2, head_len: 100, file_len, set: [7; 32], geometry }
    }

    fn sound() -> Recovery {
        recovery(64, (3, 2, 10), &[300, 1000, 1500], 2000)
    }

    #[test]
    fn every_flip_is_found() {
        let (header, geometry) = sound().encode().expect("it is sound");
        assert_eq!(Recovery::parse(&header, &geometry), Ok(sound()));
        assert_eq!(RecoveryHeader::parse(&header).expect("it is sound").offset, 300);
        assert_eq!(wide(geometry.len()), sound().geometry.len());
        for at in 0..header.len() {
            let mut bad = header.clone();
            bad[at] ^= 1;
            Recovery::parse(&bad, &geometry).expect_err("a flip");
            Recovery::parse(&header[..at], &geometry).expect_err("a cut header");
        }
        for at in 0..geometry.len() {
            let mut bad = geometry.clone();
            bad[at] ^= 1;
            Recovery::parse(&header, &bad).expect_err("a flip");
            Recovery::parse(&header, &geometry[..at]).expect_err("a cut geometry");
        }
    }

    #[test]
    fn no_other_geometry_is_written_or_read() {
        for bad in [
            recovery(0, (3, 2, 0), &[300], 2000),
            recovery(96, (3, 2, 0), &[300], 2000),
            recovery(1 << 17, (3, 2, 0), &[300], 2000),
            recovery(64, (3, 2, 64), &[300], 2000),
            recovery(64, (0, 2, 0), &[300], 2000),
            recovery(64, (3, 1, 0), &[300], 2000),
            recovery(64, (3, 2, 0), &[], 2000),
            recovery(64, (3, 2, 0), &[300, 300], 2000),
            recovery(64, (3, 2, 0), &[300, 2000], 2000),
            recovery(64, (32_768, 2, 0), &[300, 400], 2000),
            recovery(64, (1, 65_536, 0), &[300], 2000),
        ] {
            let error = bad.encode().expect_err("it is no geometry");
            assert_eq!(error.kind(), crate::Kind::Header, "{bad:?}: {error}");
        }
        recovery(64, (32_767, 2, 0), &[300, 400], 2000).encode().expect("65,536 points are enough");
    }

    #[test]
    fn each_checksum_is_in_two_files() {
        for count in 1..6 {
            let starts: Vec<u64> = (0..13).map(|column| 300 + column).collect();
            let files = (1..=count).map(|number| Recovery { number, count, ..recovery(64, (1, 6, 0), &starts, 2000) });
            let mut times = [0; 13];
            for file in files {
                let own: Vec<usize> = file.columns().collect();
                for column in 0..13 {
                    assert_eq!(file.columns_before(column), own.iter().position(|own| *own == column), "{file:?}");
                }
                own.into_iter().for_each(|column| times[column] += 1);
            }
            assert_eq!(times, [count.min(2); 13]);
        }
    }

    #[test]
    fn codewords_have_each_byte_of_the_body_once() {
        for (run, pad, starts) in
            [(3, 10, &[300, 1000, 1500][..]), (1, 0, &[300]), (2, 63, &[300, 301, 302, 1999]), (40, 5, &[300, 640])]
        {
            let Geometry { shard_len, .. } = sound().geometry;
            let geometry = Geometry { shard_len, run, parity: 2, pad, starts: starts.to_vec() };
            let mut seen = vec![0; 2000];
            for codeword in 0..geometry.codewords(2000) {
                for column in 0..starts.len() {
                    let (range, zeros) = geometry.run_of(codeword, column, 2000);
                    let len = zeros + range.end - range.start;
                    assert!(len <= u64::from(run) * u64::from(shard_len), "{geometry:?}");
                    range.for_each(|at| seen[usize::try_from(at).expect("it is small")] += 1);
                }
            }
            assert!(seen[..300].iter().all(|times| *times == 0) && seen[300..].iter().all(|times| *times == 1));
        }
    }
}
