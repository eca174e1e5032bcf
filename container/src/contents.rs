//! Reads the members of a container, and decodes the blocks that they lie in.

use std::collections::VecDeque;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use parking_lot::Mutex;
use sealift_format::num::{up_to, wide};

use super::anatomy::{Anatomy, Member, Part};
use super::block::Block;
use super::decode::decoder;
use super::fault::ContainerFault;
use super::read_at::{ReadAt, Stream};

/// Decoded blocks that are kept, in bytes.
const KEPT: usize = 32 << 20;

/// The blocks of a container, of which some are kept decoded.
pub struct Blocks<'a> {
    bytes: &'a dyn ReadAt,
    anatomy: &'a Anatomy,
    state: Mutex<State<'a>>,
}

#[derive(Default)]
struct State<'a> {
    /// The last decoded blocks, with their numbers.
    kept: VecDeque<(u32, Arc<Vec<u8>>)>,
    kept_len: usize,
    stream: Option<Decoding<'a>>,
}

/// A block too long to be kept, of which the first bytes have been decoded.
struct Decoding<'a> {
    number: u32,
    at: u64,
    decoder: Box<dyn Read + Send + 'a>,
}

impl<'a> Blocks<'a> {
    /// Returns the blocks of a container with these bytes.
    #[must_use]
    pub fn new(bytes: &'a dyn ReadAt, anatomy: &'a Anatomy) -> Self {
        Self { bytes, anatomy, state: Mutex::default() }
    }

    /// Returns what a block decodes to, of at most [`Block::LONGEST_DECODED`] bytes.
    ///
    /// # Errors
    /// Returns an error if the block cannot be read, is damaged, or is longer.
    pub fn decoded(&self, number: u32) -> Result<Arc<Vec<u8>>, ContainerFault> {
        let State { kept, kept_len, .. } = &mut *self.state.lock();
        if let Some((_, decoded)) = kept.iter().find(|(known, _)| *known == number) {
            return Ok(Arc::clone(decoded));
        }
        let block = self.block(number)?;
        let damaged = || self.damaged(block, "a compressed block is damaged");
        let mut stored = vec![0; usize::try_from(block.stored_len).map_err(|_| damaged())?];
        self.bytes.read_exact_at(&mut stored, block.offset)?;
        let decoded = Arc::new(block.decoded(&stored).ok_or_else(damaged)?);
        *kept_len += decoded.len();
        kept.push_back((number, Arc::clone(&decoded)));
        while *kept_len > KEPT
            && let Some((_, oldest)) = kept.pop_front()
        {
            *kept_len -= oldest.len();
        }
        Ok(decoded)
    }

    /// Fills `buffer` with decoded bytes of a block.
    fn read(&self, number: u32, start: u64, buffer: &mut [u8]) -> Result<(), ContainerFault> {
        let block = self.block(number)?;
        if block.plain.most() <= Block::LONGEST_DECODED {
            let decoded = self.decoded(number)?;
            let part = usize::try_from(start).ok().and_then(|start| decoded.get(start..)?.get(..buffer.len()));
            let part = part.ok_or_else(|| self.damaged(block, "a compressed block decodes to fewer bytes"))?;
            buffer.copy_from_slice(part);
            return Ok(());
        }
        let state = &mut *self.state.lock();
        let known = state.stream.take().filter(|known| known.number == number && known.at <= start);
        let mut stream = known.unwrap_or_else(|| {
            let stored = BufReader::new(Stream::new(self.bytes, block.offset, block.stored_len));
            Decoding { number, at: 0, decoder: decoder(block.codec, stored) }
        });
        let damaged = |_| self.damaged(block, "a compressed block is damaged");
        let skipped = io::copy(&mut stream.decoder.by_ref().take(start - stream.at), &mut io::sink());
        stream.at += skipped.map_err(damaged)?;
        stream.decoder.read_exact(buffer).map_err(damaged)?;
        stream.at = start + wide(buffer.len());
        state.stream = Some(stream);
        Ok(())
    }

    fn block(&self, number: u32) -> Result<&'a Block, ContainerFault> {
        let block = usize::try_from(number).ok().and_then(|number| self.anatomy.blocks.get(number));
        let what = "a member uses a block that is not there";
        block.ok_or(ContainerFault::Damaged { kind: self.anatomy.kind, offset: 0, what })
    }

    fn damaged(&self, block: &Block, what: &'static str) -> ContainerFault {
        ContainerFault::Damaged { kind: self.anatomy.kind, offset: block.offset, what }
    }
}

/// The content of a member, which can be a container itself.
pub struct Content<'a, 'c> {
    blocks: &'a Blocks<'c>,
    member: &'a Member,
    /// Where in the member each part begins.
    starts: Vec<u64>,
}

impl<'a, 'c> Content<'a, 'c> {
    /// Returns the content of a member of the container whose blocks these are.
    #[must_use]
    pub fn new(blocks: &'a Blocks<'c>, member: &'a Member) -> Self {
        let begin = |at: &mut u64, part: &Part| {
            let start = *at;
            *at = at.saturating_add(part.len());
            Some(start)
        };
        Self { blocks, member, starts: member.parts.iter().scan(0, begin).collect() }
    }

    fn read_part(&self, part: &Part, skip: u64, buffer: &mut [u8]) -> Result<(), ContainerFault> {
        match *part {
            Part::Stored { offset, .. } => {
                self.blocks.bytes.read_exact_at(buffer, offset.saturating_add(skip)).map_err(Into::into)
            }
            Part::Inflated { block, start, .. } => self.blocks.read(block, start.saturating_add(skip), buffer),
            Part::Hole { .. } => {
                buffer.fill(0);
                Ok(())
            }
        }
    }
}

impl ReadAt for Content<'_, '_> {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.member.len)
    }

    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        offset
            .checked_add(wide(buffer.len()))
            .filter(|end| *end <= self.member.len)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        let first = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        for (part, start) in self.member.parts.iter().zip(&self.starts).skip(first) {
            let skip = offset - start;
            let len = up_to(part.len().saturating_sub(skip), buffer.len());
            let (now, later) = buffer.split_at_mut(len);
            self.read_part(part, skip, now).map_err(|fault| match fault {
                ContainerFault::Io(error) => error,
                fault => io::Error::new(io::ErrorKind::InvalidData, fault.to_string()),
            })?;
            (buffer, offset) = (later, offset + wide(len));
            if buffer.is_empty() {
                return Ok(());
            }
        }
        if buffer.is_empty() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}
