//! A request: what a target has, so that a delta for it can be packed (requests.md).

use alloc::string::String;
use alloc::vec::Vec;

use crate::bytes::Reader;
use crate::frame::FrameDecoder;
use crate::index::{Index, objects_section};
use crate::num::wide;
use crate::{Error, Limits, Part, Preamble, RootBase};

const VERSION: u16 = 0;
/// Bytes of each id in a request.
const PREFIX: usize = 8;
/// log2 of the largest window of the outline's frame.
const WINDOW_LOG: u8 = 27;

/// The index of a target, without most bytes of each object's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The base for a delta bundle: the target's index, with the name and version of the bundle that it installed last.
    pub base: RootBase,
    /// The index's bytes, with only the first eight bytes of each object's id.
    outline: Vec<u8>,
    /// The most entries that its trees may have.
    entries: u64,
}

impl Request {
    /// The first eight bytes of every request.
    pub const MAGIC: [u8; 8] = Preamble::REQUEST_MAGIC;

    /// Returns the request of a target with `index`, whose digest is `index_digest`.
    ///
    /// # Errors
    /// Returns an error if the ids of two objects begin with the same eight bytes, for which there is no request.
    pub fn of(index: &Index, index_digest: [u8; 32], identity: Option<(String, u64)>) -> Result<Self, Error> {
        let (bytes, count) = (index.bytes(), index.objects().len());
        let mut starts: Vec<&[u8]> = index.objects().iter().map(|object| &object.id[..PREFIX]).collect();
        starts.sort_unstable();
        if starts.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Reader::new(Part::Request, &[]).malformed("the ids of two objects begin alike"));
        }
        let base = RootBase { identity, index_digest, index_len: wide(bytes.len()) };
        let start = objects_section(bytes)?.position();
        let ids = start + 8 + 8 * count;
        let mut outline = Vec::with_capacity(bytes.len());
        outline.extend(&bytes[..start - 8]);
        outline.extend(wide(8 + (8 + PREFIX) * count).to_le_bytes());
        outline.extend(&bytes[start..ids]);
        outline.extend(index.objects().iter().flat_map(|object| &object.id[..PREFIX]));
        outline.extend(&bytes[ids + 32 * count..]);
        Ok(Self { base, outline, entries: u64::MAX })
    }

    /// Returns the bytes that must be compressed for [`Self::encode`].
    #[must_use]
    pub fn outline(&self) -> &[u8] {
        &self.outline
    }

    /// Returns the request's bytes. `stored` is the outline as one zstd frame (core 8.1).
    ///
    /// # Errors
    /// Returns an error if the name of its bundle is longer than the format can store.
    pub fn encode(&self, stored: &[u8]) -> Result<Vec<u8>, Error> {
        let mut out = Self::MAGIC.to_vec();
        out.extend(VERSION.to_le_bytes());
        self.base.encode(&mut out)?;
        out.extend(wide(self.outline.len()).to_le_bytes());
        out.extend(wide(stored.len()).to_le_bytes());
        out.extend(stored);
        let hash = blake3::hash(&out);
        out.extend(hash.as_bytes());
        Ok(out)
    }

    /// Parses a request's bytes.
    ///
    /// # Errors
    /// Returns an error if they do not conform to requests.md, or declare more than `limits` allow. The outline is not parsed yet.
    pub fn parse(bytes: &[u8], limits: &Limits) -> Result<Self, Error> {
        let mut reader = Reader::new(Part::Request, bytes);
        if reader.array()? != Self::MAGIC {
            return Err(Reader::new(Part::Request, bytes).malformed("it does not begin with a request's magic bytes"));
        }
        let found = reader.u16()?;
        if found != VERSION {
            return Err(Error::Unsupported { part: Part::Request, what: "version", found: found.into() });
        }
        let Some(end) = bytes.len().checked_sub(32).filter(|end| *end >= reader.position()) else {
            return Err(reader.malformed("it ends within a field"));
        };
        if *blake3::hash(&bytes[..end]).as_bytes() != bytes[end..] {
            return Err(Error::Digest { part: Part::Request });
        }
        let (start, mut reader) = (reader.position(), Reader::new(Part::Request, &bytes[..end]));
        reader.take(start)?;
        let base = RootBase::parse(&mut reader)?;
        let (outline_len, outline_stored) = (reader.u64()?, reader.u64()?);
        if base.index_len > limits.index_len {
            let declared = base.index_len;
            return Err(Error::Limit { what: "index_len", declared, limit: limits.index_len });
        }
        if outline_len > base.index_len {
            return Err(reader.malformed("the outline is longer than the index"));
        }
        let stored = reader.take_wide(outline_stored)?;
        reader.finish()?;
        let mut outline = Vec::new();
        FrameDecoder::new().decode(Part::Request, stored, outline_len, WINDOW_LOG, &mut outline)?;
        Ok(Self { base, outline, entries: limits.entries })
    }

    /// Returns the target's index. `known` returns the id of an object, given its first bytes and its size. If it returns `None`, the missing bytes
    /// are set to 0.
    ///
    /// # Errors
    /// Returns an error if the result does not conform to core 6, or does not have the length that the request states.
    pub fn complete(&self, known: impl Fn(&[u8; PREFIX], u64) -> Option<[u8; 32]>) -> Result<Index, Error> {
        let mut section = objects_section(&self.outline)?;
        let start = section.position();
        let count = section.count()?;
        let sizes = section.planes::<8>(count)?.u64s();
        let ids = section.position();
        let Some(prefixes_len) = count.checked_mul(PREFIX) else {
            return Err(section.malformed("a column is longer than memory"));
        };
        let prefixes = section.take(prefixes_len)?;
        let end = section.position();
        section.finish()?;
        let len = wide(self.outline.len()).saturating_add(24 * wide(count));
        let Some(len) = usize::try_from(len).ok().filter(|_| len == self.base.index_len) else {
            return Err(Reader::new(Part::Request, &[]).malformed("the index has the wrong length"));
        };
        let mut bytes = Vec::with_capacity(len);
        bytes.extend(&self.outline[..start - 8]);
        bytes.extend((8 + 40 * wide(count)).to_le_bytes());
        bytes.extend(&self.outline[start..ids]);
        for (size, prefix) in sizes.zip(prefixes.as_chunks::<PREFIX>().0) {
            match known(prefix, size) {
                Some(id) => bytes.extend(id),
                None => bytes.extend(prefix.iter().chain(&[0; 32 - PREFIX])),
            }
        }
        bytes.extend(&self.outline[end..]);
        Index::parse(bytes, self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{IndexBuilder, Node, Object};
    use crate::{Attributes, Xattrs};

    #[test]
    fn ids_that_are_known_complete_the_index() {
        let attributes = |mode| Attributes { mode, uid: 0, gid: 0, xattrs: Xattrs::default() };
        let mut builder = IndexBuilder::default();
        builder.begin_ref("main");
        builder.inode(&attributes(0o40_755), (0, 0), Node::Directory { children: 2 });
        for (name, content) in [(b"f", 0), (b"g", 1)] {
            builder.entry(name, None);
            builder.inode(&attributes(0o100_644), (0, 0), Node::Regular { content });
        }
        let objects = [Object { id: [1; 32], size: 7 }, Object { id: [2; 32], size: 8 }];
        let bytes = builder.finish(objects.into_iter(), &[3; 32]).expect("it fits");
        let index = Index::parse(bytes, 2).expect("it is sound");
        let request = Request::of(&index, [4; 32], None).expect("the ids begin differently");
        let known = |prefix: &[u8; PREFIX], size| {
            objects.iter().find(|object| object.id.starts_with(prefix) && object.size == size).map(|object| object.id)
        };
        assert_eq!(request.complete(known), Ok(index));
    }
}
