//! The signed list of a channel: which bundles it has (channel.md).

use alloc::string::String;
use alloc::vec::Vec;

use crate::area::{self, Envelope};
use crate::bytes::Reader;
use crate::name::is_bundle_name;
use crate::num::{self, fit, wide};
use crate::{Error, Part};

const VERSION: u32 = 0;
const PREAMBLE_LEN: usize = 32;
/// The bytes of the longest list, without preamble and signature area.
const LEN_MAX: u32 = 1 << 24;
/// The most rows of a list.
pub const ROWS_MAX: usize = 1 << 16;
/// The most bases of a row.
pub const BASES_MAX: usize = 16;

/// A channel's list, with its signatures, which are not judged yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedList {
    list: ChannelList,
    signed: Vec<u8>,
    area: Vec<u8>,
}

/// The bundles of a channel (channel 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelList {
    /// The name of what the bundles update.
    pub name: String,
    /// A number that rises from each list of a name to the next.
    pub sequence: u64,
    /// When the list was made, in seconds since 1970-01-01 UTC.
    pub created: i64,
    /// The first second in which it must no longer be used.
    pub expires: i64,
    /// The files, in ascending order of their names.
    pub files: Vec<ListedFile>,
}

/// A file of a channel: a full bundle or a delta bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// The file's name, of the form of a bundle's name.
    pub file: String,
    /// The bundle's version.
    pub version: u64,
    /// When the bundle was made, in seconds since 1970-01-01 UTC.
    pub created: i64,
    /// Bytes of the file.
    pub len: u64,
    /// The digest that names the bundle (trust 2).
    pub root_digest: [u8; 32],
    /// The digest of what it installs.
    pub index_digest: [u8; 32],
    /// The digests of its bases, in ascending order; none in a full bundle.
    pub bases: Vec<[u8; 32]>,
}

impl SignedList {
    /// The first eight bytes of every list.
    pub const MAGIC: [u8; 8] = *b"\x89SLCH\r\n\x1a";
    /// The name of the list's file.
    pub const FILE: &str = "channel.sealift-list";
    /// Bytes of the longest file.
    pub const FILE_LEN_MAX: u64 = 32 + (1 << 24) + (1 << 20);

    /// Returns a list with these signatures of [`ChannelList::signed`].
    ///
    /// # Errors
    /// Returns an error if a field has not its form, or the signatures need more room than there is.
    pub fn new(list: ChannelList, mut envelopes: Vec<Envelope>) -> Result<Self, Error> {
        envelopes.sort();
        envelopes.dedup();
        let signed = list.signed()?;
        let area = area::encode_area(&signed, &envelopes, area::area_len_for(&envelopes)?)?;
        Ok(Self { list, signed, area })
    }

    /// Parses a file's bytes.
    ///
    /// # Errors
    /// Returns an error if they do not conform to channel 2 and 3.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let truncated = |expected| Error::Truncated { len: wide(bytes.len()), expected };
        let mut reader = Reader::new(Part::List, bytes.get(..PREAMBLE_LEN).ok_or(truncated(None))?);
        if reader.array()? != Self::MAGIC {
            return Err(reader.malformed("it does not begin with the magic bytes of a channel's list"));
        }
        let found = reader.u32()?;
        if found != VERSION {
            return Err(Error::Unsupported { part: Part::List, what: "version", found: found.into() });
        }
        let list_len = reader.u32()?;
        if !(1..=LEN_MAX).contains(&list_len) {
            return Err(reader.malformed("its length is not between 1 and 16777216"));
        }
        if reader.array::<16>()? != [0; 16] {
            return Err(reader.malformed("reserved bytes are not zero"));
        }
        let area_at = PREAMBLE_LEN + num::at(list_len);
        let area_len = bytes.get(area_at..).and_then(|area| area.first_chunk()).ok_or(truncated(None))?;
        let expected = wide(area_at) + u64::from(area::parse_area_len(*area_len)?);
        if wide(bytes.len()) < expected {
            return Err(truncated(Some(expected)));
        }
        if wide(bytes.len()) > expected {
            return Err(Error::Trailing { expected });
        }
        let (signed, area) = bytes.split_at(area_at);
        area::check_area(signed, area)?;
        let list = ChannelList::parse(signed.get(PREAMBLE_LEN..).unwrap_or_default())?;
        Ok(Self { list, signed: signed.to_vec(), area: area.to_vec() })
    }

    /// Returns the file's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.signed[..], &self.area].concat()
    }

    /// Returns the list.
    #[must_use]
    pub fn list(&self) -> &ChannelList {
        &self.list
    }

    /// Returns the signed bytes.
    #[must_use]
    pub fn signed(&self) -> &[u8] {
        &self.signed
    }

    /// Returns kind and body of each envelope, in their order.
    pub fn envelopes(&self) -> impl Iterator<Item = (u16, &[u8])> {
        area::envelopes(&self.area)
    }
}

impl ChannelList {
    /// Returns the signed bytes: preamble and list.
    ///
    /// # Errors
    /// Returns an error if a field has not its form.
    pub fn signed(&self) -> Result<Vec<u8>, Error> {
        let list = self.encode()?;
        let mut out = SignedList::MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        out.extend(fit::<u32>(list.len(), "the length of the list")?.to_le_bytes());
        out.extend([0; 16]);
        out.extend(&list);
        // What no reader accepts is not signed.
        if list.len() > num::at(LEN_MAX) {
            return Err(Error::TooLarge {
                what: "the length of the list",
                len: wide(list.len()),
                max: u64::from(LEN_MAX),
            });
        }
        Self::parse(&list)?;
        Ok(out)
    }

    fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(Part::List, bytes);
        let (sequence, created, expires) = (reader.u64()?, reader.i64()?, reader.i64()?);
        if expires <= created {
            return Err(reader.malformed("it does not expire after it was made"));
        }
        let name = read_name(&mut reader)?;
        let count = reader.count32()?;
        if !(1..=ROWS_MAX).contains(&count) {
            return Err(reader.malformed("the number of its rows is not between 1 and 65536"));
        }
        let mut files: Vec<ListedFile> = Vec::new();
        for _ in 0..count {
            let file = ListedFile::parse(&mut reader)?;
            if files.last().is_some_and(|last| last.file >= file.file) {
                return Err(reader.malformed("the names of its files do not ascend"));
            }
            files.push(file);
        }
        reader.finish()?;
        Ok(Self { name, sequence, created, expires, files })
    }

    fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        out.extend(self.sequence.to_le_bytes());
        out.extend(self.created.to_le_bytes());
        out.extend(self.expires.to_le_bytes());
        put_name(&mut out, &self.name)?;
        out.extend(fit::<u32>(self.files.len(), "the number of files")?.to_le_bytes());
        self.files.iter().try_for_each(|file| file.encode(&mut out))?;
        Ok(out)
    }
}

impl ListedFile {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, Error> {
        let mut row = Self {
            file: read_name(reader)?,
            version: reader.u64()?,
            created: reader.i64()?,
            len: reader.u64()?,
            root_digest: reader.array()?,
            index_digest: reader.array()?,
            bases: Vec::new(),
        };
        let count = reader.u8()?;
        if usize::from(count) > BASES_MAX {
            return Err(reader.malformed("a file has more than 16 bases"));
        }
        for _ in 0..count {
            let base = reader.array()?;
            if row.bases.last().is_some_and(|last| *last >= base) || base == row.index_digest {
                return Err(reader.malformed("the bases of a file do not ascend, or one is what it installs"));
            }
            row.bases.push(base);
        }
        Ok(row)
    }

    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        put_name(out, &self.file)?;
        out.extend(self.version.to_le_bytes());
        out.extend(self.created.to_le_bytes());
        out.extend(self.len.to_le_bytes());
        out.extend(self.root_digest);
        out.extend(self.index_digest);
        out.push(fit(self.bases.len(), "the number of bases")?);
        out.extend(self.bases.as_flattened());
        Ok(())
    }
}

fn read_name(reader: &mut Reader<'_>) -> Result<String, Error> {
    let len = reader.u8()?;
    match core::str::from_utf8(reader.take(len.into())?) {
        Ok(name) if is_bundle_name(name) => Ok(name.into()),
        _ => Err(reader.malformed("a name has not the form of a bundle's name")),
    }
}

fn put_name(out: &mut Vec<u8>, name: &str) -> Result<(), Error> {
    out.push(fit(name.len(), "the length of a name")?);
    out.extend(name.as_bytes());
    Ok(())
}
