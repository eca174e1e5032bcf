//! A volume: one of several files that are a bundle together (volumes.md).

use alloc::vec::Vec;
use core::ops::Range;

use crate::bytes::Reader;
use crate::frame::FrameDecoder;
use crate::num::wide;
use crate::set_header::SetHeader;
use crate::{Chunk, Error, Head, Layout, Part};

/// The header of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its number, from 1.
    pub number: u16,
    /// How many volumes the bundle was split into.
    pub count: u16,
    /// The length of the bundle's head in bytes.
    pub head_len: u32,
    /// Where its slice begins, in bytes from the bundle's start.
    pub offset: u64,
    /// The length of its slice in bytes.
    pub len: u64,
    /// The length of the bundle in bytes.
    pub file_len: u64,
    /// The BLAKE3 digest of the bundle's signed bytes, which names the set.
    pub set: [u8; 32],
}

const KIND: u16 = 0;

impl Volume {
    /// The length of a header in bytes.
    pub const LEN: u32 = SetHeader::LEN;
    /// The first eight bytes of every volume.
    pub const MAGIC: [u8; 8] = SetHeader::MAGIC;

    /// Parses a header: exactly [`Self::LEN`] bytes.
    ///
    /// # Errors
    /// Returns an error if it does not conform to volumes 2, as far as can be told without the bundle's head.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let SetHeader { number, count, head_len, offset, len, file_len, set } =
            SetHeader::parse(bytes, Part::Volume, KIND)?;
        let malformed = |what| Err(Reader::new(Part::Volume, bytes).malformed(what));
        let end = offset.checked_add(len).filter(|end| len > 0 && *end <= file_len);
        let Some(end) = end else {
            return malformed("its slice is empty, or does not lie in the bundle");
        };
        if (number == count) != (end == file_len) {
            return malformed("the last volume's slice alone ends where the bundle does");
        }
        Ok(Self { number, count, head_len, offset, len, file_len, set })
    }

    /// Returns the header's bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let Self { number, count, head_len, offset, len, file_len, set } = *self;
        SetHeader { number, count, head_len, offset, len, file_len, set }.encode(KIND)
    }

    /// Parses the bundle's head, which follows the header: [`Self::head_len`] bytes, or as many as there are.
    ///
    /// # Errors
    /// Returns an error if it does not conform to core 3 to 5, or is not that of the volume.
    pub fn parse_head(&self, bytes: &[u8]) -> Result<Head, Error> {
        let malformed = || Reader::new(Part::Volume, &[]).malformed("head_len is not the length of the head");
        let is_whole = wide(bytes.len()) >= self.head_len.min(Head::LEN_MAX).into();
        match Head::parse_first(bytes) {
            Ok((head, [])) => {
                head.root().file_len(head.head_len())?;
                self.check_head(&head)?;
                Ok(head)
            }
            Ok(_) => Err(malformed()),
            Err(Error::Truncated { .. }) if is_whole => Err(malformed()),
            // What is counted is the volume's file.
            Err(Error::Truncated { len, expected }) => {
                Err(Error::Truncated { len: len.saturating_add(Self::LEN.into()), expected })
            }
            Err(error) => Err(error),
        }
    }

    /// Checks that it is a volume of the bundle with this head.
    fn check_head(&self, head: &Head) -> Result<(), Error> {
        let malformed = |what| Err(Reader::new(Part::Volume, &[]).malformed(what));
        if self.set != head.root_digest() {
            return malformed("its set is not that of the root");
        }
        if u64::from(self.head_len) != head.head_len() || self.file_len != head.file_len() {
            return malformed("a length is not that of the root");
        }
        match self.number {
            1 if self.offset != front_len(head) || self.end() < head.chunks_at() => {
                malformed("volume 1 does not have the index")
            }
            1 => Ok(()),
            _ if self.offset < head.chunks_at() => malformed("another volume than 1 has bytes of the index"),
            _ => Ok(()),
        }
    }

    /// Returns the numbers of the chunks in its slice. `chunks` are all chunks of the bundle with this head.
    ///
    /// # Errors
    /// Returns an error if the slice does not begin and end where chunks do.
    pub fn chunks(&self, head: &Head, chunks: &[Chunk]) -> Result<Range<usize>, Error> {
        let at = |offset: u64| match offset.checked_sub(head.chunks_at()) {
            None => Some(0), // the index, which `check_head` compared
            Some(offset) if offset == head.root().maxima.chunks_stored => Some(chunks.len()),
            Some(offset) => chunks.binary_search_by_key(&offset, |chunk| chunk.offset).ok(),
        };
        match (at(self.offset), at(self.end())) {
            (Some(start), Some(end)) => Ok(start..end),
            _ => Err(Reader::new(Part::Volume, &[]).malformed("its slice is cut within a chunk")),
        }
    }

    /// Returns where its slice ends, in bytes from the bundle's start.
    #[must_use]
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.len)
    }

    /// Returns where its slice begins in its own file.
    #[must_use]
    pub fn slice_at(head: &Head) -> u64 {
        u64::from(Self::LEN).saturating_add(front_len(head))
    }

    /// Returns the length of its own file.
    #[must_use]
    pub fn own_len(&self, head: &Head) -> u64 {
        Self::slice_at(head).saturating_add(self.len)
    }

    /// Splits a bundle into volumes whose files have at most `size` bytes, each with as many chunks as fit.
    ///
    /// # Errors
    /// Returns an error if there would be more than 65,535 volumes, or if a chunk, or the index, needs a larger one.
    pub fn split(head: &Head, chunks: &[Chunk], size: u64) -> Result<Vec<Self>, Error> {
        let (start, first) = (front_len(head), head.chunks_at());
        let room = size.saturating_sub(Self::slice_at(head));
        // What cannot be cut: the index, and each chunk.
        let ends = chunks.iter().map(|chunk| first + chunk.offset + u64::from(chunk.stored_len));
        let mut begin = start;
        let (mut slices, mut last, mut largest) = (Vec::new(), start, 0);
        for end in core::iter::once(first).chain(ends) {
            largest = largest.max(end - last);
            if end - begin > room && last > begin {
                slices.push(begin..last);
                begin = last;
            }
            last = end;
        }
        slices.push(begin..last);
        if largest > room {
            let needed = Self::slice_at(head).saturating_add(largest);
            return Err(Error::VolumeSize { size, needed });
        }
        let Ok(count) = u16::try_from(slices.len()) else {
            return Err(Error::TooLarge {
                what: "the number of volumes",
                len: wide(slices.len()),
                max: u16::MAX.into(),
            });
        };
        let head_len = u32::try_from(head.head_len()).unwrap_or(u32::MAX); // at most `Head::LEN_MAX`
        let volume = |(number, slice): (u16, Range<u64>)| Self {
            number,
            count,
            head_len,
            offset: slice.start,
            len: slice.end - slice.start,
            file_len: head.file_len(),
            set: head.root_digest(),
        };
        Ok((1..=count).zip(slices).map(volume).collect())
    }
}

/// Returns the length of what precedes the index: head and stored layout.
#[must_use]
pub fn front_len(head: &Head) -> u64 {
    head.head_len().saturating_add(head.root().contents.layout_stored)
}

/// Reads the chunks of a bundle from its stored layout, of which nothing else is parsed: the rest speaks of the index, which a volume may not have.
///
/// # Errors
/// Returns an error if it does not match its digest, or does not conform to volumes 3.
pub fn stored_chunks(head: &Head, stored: &[u8]) -> Result<Vec<Chunk>, Error> {
    let (contents, maxima) = (&head.root().contents, &head.root().maxima);
    if *blake3::hash(stored).as_bytes() != contents.layout_blake3 {
        return Err(Error::Digest { part: Part::Layout });
    }
    let mut layout = Vec::new();
    FrameDecoder::new().decode(Part::Layout, stored, contents.layout_len, maxima.window_log, &mut layout)?;
    let chunks = Layout::parse_chunks_alone(&layout)?;
    let sum: u64 = chunks.iter().map(|chunk| u64::from(chunk.stored_len)).sum();
    crate::error::compare(&[
        ("chunks", maxima.chunks, wide(chunks.len())),
        ("chunks_stored", maxima.chunks_stored, sum),
    ])?;
    Ok(chunks)
}
