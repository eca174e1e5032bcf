//! The header of the files of a set: of volumes (volumes 2) and of recovery files (recovery 2). They differ in their kind, and in what they say of it.

use alloc::vec::Vec;

use crate::bytes::Reader;
use crate::num::wide;
use crate::{Error, Part, Preamble};

/// The fields of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetHeader {
    /// The file's number, from 1.
    pub(crate) number: u16,
    /// How many files of its kind there are.
    pub(crate) count: u16,
    /// The length of the bundle's head in bytes.
    pub(crate) head_len: u32,
    /// Where the slice or the body begins, in bytes from the bundle's start.
    pub(crate) offset: u64,
    /// The length of what follows head and layout in the file.
    pub(crate) len: u64,
    /// The length of the bundle in bytes.
    pub(crate) file_len: u64,
    /// The BLAKE3 digest of the bundle's signed bytes.
    pub(crate) set: [u8; 32],
}

const VERSION: u32 = 0;

impl SetHeader {
    /// The length of a header in bytes.
    pub(crate) const LEN: u32 = 112;
    /// The first eight bytes.
    pub(crate) const MAGIC: [u8; 8] = Preamble::VOLUME_MAGIC;

    /// Parses a header of this kind: exactly [`Self::LEN`] bytes. `part` names it in errors.
    ///
    /// # Errors
    /// Returns an error if it does not conform to volumes 2 and recovery 2, as far as both say the same.
    pub(crate) fn parse(bytes: &[u8], part: Part, kind: u16) -> Result<Self, Error> {
        let mut reader = Reader::new(part, bytes);
        if !Self::MAGIC.starts_with(bytes.get(..8).unwrap_or(bytes)) {
            return Err(reader.malformed("it does not begin with the magic bytes of a volume"));
        }
        if wide(bytes.len()) < Self::LEN.into() {
            return Err(Error::Truncated { len: wide(bytes.len()), expected: None });
        }
        reader.take(8)?;
        let version = reader.u32()?;
        if version != VERSION {
            return Err(Error::Unsupported { part, what: "version", found: version.into() });
        }
        let (found, reserved) = (reader.u16()?, reader.u16()?);
        let (number, count, head_len) = (reader.u16()?, reader.u16()?, reader.u32()?);
        let (offset, len, file_len, set) = (reader.u64()?, reader.u64()?, reader.u64()?, reader.array()?);
        let closed = reader.position();
        if *blake3::hash(bytes.get(..closed).unwrap_or_default()).as_bytes() != reader.array::<32>()? {
            return Err(Error::Digest { part });
        }
        if found != kind {
            return Err(Error::Unsupported { part, what: "kind", found: found.into() });
        }
        if reserved != 0 {
            return Err(reader.malformed("reserved bytes are not zero"));
        }
        if number == 0 || number > count {
            return Err(reader.malformed("its number is not between 1 and the number of files of its kind"));
        }
        reader.finish()?;
        Ok(Self { number, count, head_len, offset, len, file_len, set })
    }

    /// Returns the bytes of a header of this kind.
    pub(crate) fn encode(&self, kind: u16) -> Vec<u8> {
        let mut out = Self::MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        for field in [kind, 0, self.number, self.count] {
            out.extend(field.to_le_bytes());
        }
        out.extend(self.head_len.to_le_bytes());
        for field in [self.offset, self.len, self.file_len] {
            out.extend(field.to_le_bytes());
        }
        out.extend(self.set);
        let hash = blake3::hash(&out);
        out.extend(hash.as_bytes());
        out
    }
}
