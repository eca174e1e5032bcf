//! Cuts a container into segments: what its members have, what an encoder makes of them, and the rest.

use std::collections::HashMap;
use std::io;
use std::ops::Range;

use sealift_container::{Anatomy, Block, BlockCodec, Blocks, ContainerFault, Content, Hint, Part, ReadAt};
use sealift_format::CODED_MAX;
use sealift_format::num::{at, size, up_to, wide};
use sealift_store::source::LeafSource;
use sealift_store::threads::parallel::map;

use super::bodies::decoded;
use super::draft::{DraftPart, DraftRange, DraftSegment};
use super::prove::{Proved, Prover};
use crate::{Error, Progress};

/// Bytes that are read at once.
const READ_LEN: usize = 1 << 20;
/// Stored bytes of blocks that are proved together.
const BATCH_LEN: u64 = 8 << 20;
/// Blocks of a container without any that could be made, after which no more are tried.
const GIVE_UP: usize = 16;
/// Zeros of at least this length are stored nowhere.
const ZEROS_LEN: usize = 4096;
/// Bytes behind an lz4 block that may have had an effect on it: its encoder looks for longer matches than it can use.
const FOLLOWING_LEN: usize = 64;

/// A block that an encoder makes or a base has.
struct Made {
    /// By their place in the block.
    proved: Vec<Proved>,
}

impl Made {
    /// Returns whether an encoder was needed.
    fn is_encoded(&self) -> bool {
        self.proved.iter().any(|proved| proved.coder.is_some())
    }
}

/// A part of a member, and where it lies in the container or in a decoded block.
struct Use {
    start: u64,
    range: DraftRange,
}

/// A container that is being cut.
pub(super) struct Dissection<'a> {
    bytes: &'a dyn ReadAt,
    len: u64,
    anatomy: &'a Anatomy,
    /// For each block, how it is made, if it is.
    made: Vec<Option<Made>>,
    /// By container offset.
    stored: Vec<Use>,
    /// By block, and offset in what it decodes to.
    inflated: Vec<(u32, Use)>,
    segments: Vec<DraftSegment>,
}

/// The part of a member that may be in blocks that are not made again, as a divisor: these bytes are stored twice.
const UNUSED: u64 = 8;

/// The leaf of a container's own bytes, which is not numbered before all of it is known.
pub(super) const STRUCTURE: DraftPart = DraftPart::Leaf(u32::MAX);

impl<'a> Dissection<'a> {
    /// Finds out which blocks the bases have or an encoder makes, on `jobs` threads.
    pub(super) fn new(
        bytes: &'a dyn ReadAt,
        anatomy: &'a Anatomy,
        prover: &Prover<'_>,
        jobs: usize,
        progress: &Progress,
    ) -> Result<Self, ContainerFault> {
        let (blocks, following) = (Blocks::new(bytes, anatomy), following(anatomy));
        let mut made: Vec<Option<Made>> = Vec::with_capacity(anatomy.blocks.len());
        let mut rest = &anatomy.blocks[..];
        while !rest.is_empty() {
            let mut tried = made.iter().filter(|made| made.as_ref().is_none_or(Made::is_encoded));
            let only_bases = tried.clone().nth(GIVE_UP - 1).is_some() && tried.all(Option::is_none);
            if only_bases && prover.bases.is_none() {
                made.extend(rest.iter().map(|_| None));
                break;
            }
            let mut len = 0;
            let within = |block: &&Block| {
                len += block.stored_len;
                len <= BATCH_LEN
            };
            let count = rest.iter().take_while(within).count().max(1);
            let (batch, behind) = rest.split_at(count);
            rest = behind;
            let proved = map(jobs, batch, |block| {
                progress.check()?;
                let next = || next_bytes(&blocks, anatomy, following.get(&block.offset)).unwrap_or_default();
                Ok(prove(bytes, anatomy.hint, block, prover, only_bases, &next))
            });
            made.extend(proved.map_err(io::Error::other)?);
        }
        Ok(Self {
            len: bytes.byte_len()?,
            bytes,
            anatomy,
            made,
            stored: Vec::new(),
            inflated: Vec::new(),
            segments: Vec::new(),
        })
    }

    /// Returns the blocks whose bytes an encoder makes, in bytes of the container.
    pub(super) fn made_len(&self) -> u64 {
        let made = self.anatomy.blocks.iter().zip(&self.made).filter(|(_, made)| made.is_some());
        made.map(|(block, _)| block.stored_len).sum()
    }

    /// Returns whether a member is worth a leaf: it has bytes, and few of them are in blocks that are stored as they are.
    pub(super) fn is_usable(&self, parts: &[Part]) -> bool {
        let (mut used, mut unused) = (0_u64, 0_u64);
        for part in parts {
            match part {
                Part::Stored { len, .. } => used += len,
                Part::Inflated { block, len, .. } if self.made.get(at(*block)).is_some_and(Option::is_some) => {
                    used += len;
                }
                Part::Inflated { len, .. } => unused += len,
                Part::Hole { .. } => {}
            }
        }
        used > 0 && unused <= used / UNUSED
    }

    /// Notes where a member lies, which is a leaf now.
    pub(super) fn add_member(&mut self, leaf: u32, parts: &[Part]) {
        let mut offset = 0;
        for part in parts {
            let len = part.len();
            let range = DraftRange { of: DraftPart::Leaf(leaf), offset, len };
            match *part {
                Part::Stored { offset: start, .. } => self.stored.push(Use { start, range }),
                Part::Inflated { block, start, .. } => self.inflated.push((block, Use { start, range })),
                Part::Hole { .. } => {}
            }
            offset += len;
        }
    }

    /// Cuts the container. What is of no member is appended to `structure`, the leaf [`STRUCTURE`].
    pub(super) fn cut(
        mut self,
        structure: &mut LeafSource,
        progress: &Progress,
    ) -> Result<Vec<DraftSegment>, ContainerFault> {
        self.stored.sort_by_key(|used| used.start);
        self.inflated.sort_by_key(|(block, used)| (*block, used.start));
        let (mut stored, mut inflated) = (std::mem::take(&mut self.stored).into_iter().peekable(), 0);
        let (uses, all_made) = (std::mem::take(&mut self.inflated), std::mem::take(&mut self.made));
        let blocks = Blocks::new(self.bytes, self.anatomy);
        let mut place = 0_u64;
        for number in 0..=self.anatomy.blocks.len() {
            progress.check().map_err(io::Error::other)?;
            let block = self.anatomy.blocks.get(number);
            let end = block.map_or(self.len, |block| block.offset);
            while let Some(Use { start, mut range }) = stored.next_if(|used| used.start < end) {
                // Several members may share bytes: the first has them.
                let known = place.saturating_sub(start).min(range.len);
                (range.offset, range.len) = (range.offset + known, range.len - known);
                if range.len > 0 {
                    self.rest(place..start.max(place), structure)?;
                    place = start.max(place) + range.len;
                    self.push(DraftSegment::Copied(range));
                }
            }
            self.rest(place..end, structure)?;
            let Some(block) = block else { break };
            let own = uses[inflated..].iter().take_while(|(of, _)| at(*of) == number).count();
            let used = &uses[inflated..inflated + own];
            inflated += own;
            place = block.end();
            match all_made.get(number).and_then(Option::as_ref) {
                Some(made) => {
                    let mut from = block.offset;
                    for proved in &made.proved {
                        let body = block.offset + wide(proved.stored.start)..block.offset + wide(proved.stored.end);
                        self.rest(from..body.start, structure)?;
                        self.encoded(proved, (&blocks, number), used, structure)?;
                        from = body.end;
                    }
                    self.rest(from..block.end(), structure)?;
                }
                None => self.rest(block.offset..block.end(), structure)?,
            }
        }
        Ok(self.segments)
    }

    /// Adds a part of a block that an encoder makes of these parts of members, and of the structure where they leave gaps.
    fn encoded(
        &mut self,
        proved: &Proved,
        (blocks, number): (&Blocks<'_>, usize),
        used: &[(u32, Use)],
        structure: &mut LeafSource,
    ) -> Result<(), ContainerFault> {
        let (start, end) = (wide(proved.plain.start), wide(proved.plain.end));
        let (mut inputs, mut place) = (Vec::new(), start);
        let mut plain = None;
        let mut gap = |range: Range<u64>, inputs: &mut Vec<DraftRange>| -> Result<(), ContainerFault> {
            if range.is_empty() {
                return Ok(());
            }
            let number = u32::try_from(number).map_err(io::Error::other)?;
            let plain = match &plain {
                Some(plain) => plain,
                None => plain.insert(blocks.decoded(number)?),
            };
            let bytes = plain.get(size(range.start)..size(range.end)).unwrap_or_default();
            inputs.push(append(structure, bytes)?);
            Ok(())
        };
        for (_, Use { start, range }) in used {
            let (mut range, known) = (*range, place.saturating_sub(*start).min(range.len));
            (range.offset, range.len) = (range.offset + known, range.len - known);
            range.len = range.len.min(end.saturating_sub((*start).max(place)));
            if range.len > 0 {
                gap(place..(*start).max(place), &mut inputs)?;
                place = (*start).max(place) + range.len;
                inputs.push(range);
            }
        }
        gap(place..end, &mut inputs)?;
        if !proved.following.is_empty() {
            inputs.push(append(structure, &proved.following)?);
        }
        let len = wide(proved.stored.len());
        self.push(DraftSegment::Encoded { coder: proved.coder, len, inputs });
        Ok(())
    }

    /// Adds bytes of the container's own, without runs of zeros.
    fn rest(&mut self, range: Range<u64>, structure: &mut LeafSource) -> Result<(), ContainerFault> {
        let (mut place, mut bytes) = (range.start, vec![0; up_to(range.end - range.start, READ_LEN)]);
        while place < range.end {
            let part = &mut bytes[..up_to(range.end - place, READ_LEN)];
            self.bytes.read_exact_at(part, place)?;
            place += wide(part.len());
            let mut from = 0;
            while from < part.len() {
                let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
                let zeros: usize =
                    part[from..].chunks(ZEROS_LEN).take_while(|block| is_zero(block)).map(<[u8]>::len).sum();
                if zeros > 0 {
                    self.push(DraftSegment::Zeros(wide(zeros)));
                    from += zeros;
                }
                let others =
                    part[from..].chunks(ZEROS_LEN).take_while(|block| !is_zero(block)).map(<[u8]>::len).sum::<usize>();
                if others > 0 {
                    let range = append(structure, &part[from..from + others])?;
                    self.push(DraftSegment::Copied(range));
                    from += others;
                }
            }
        }
        Ok(())
    }

    /// Adds a segment, joined with the one before where that is possible.
    fn push(&mut self, segment: DraftSegment) {
        match (self.segments.last_mut(), &segment) {
            (Some(DraftSegment::Zeros(before)), DraftSegment::Zeros(len)) => *before += len,
            (Some(DraftSegment::Copied(before)), DraftSegment::Copied(range))
                if before.of == range.of && before.offset + before.len == range.offset =>
            {
                before.len += range.len;
            }
            _ => self.segments.push(segment),
        }
    }
}

/// Appends bytes to the structure.
fn append(structure: &mut LeafSource, bytes: &[u8]) -> Result<DraftRange, ContainerFault> {
    let range = DraftRange { of: STRUCTURE, offset: structure.pending_len(), len: wide(bytes.len()) };
    structure.write(bytes).map_err(io::Error::other)?;
    Ok(range)
}

/// Returns the place, as member and offset, that follows each lz4 block in a member.
fn following(anatomy: &Anatomy) -> HashMap<u64, (usize, u64)> {
    let mut found = HashMap::new();
    for (number, member) in anatomy.members.iter().enumerate() {
        let mut offset = 0;
        for part in &member.parts {
            offset += part.len();
            let Part::Inflated { block, .. } = part else { continue };
            match anatomy.blocks.get(at(*block)) {
                Some(block) if block.codec == BlockCodec::Lz4Block && offset < member.len => {
                    found.entry(block.offset).or_insert((number, offset));
                }
                _ => {}
            }
        }
    }
    found
}

/// Returns the bytes at a place that may have an effect on what is before it.
fn next_bytes(blocks: &Blocks<'_>, anatomy: &Anatomy, place: Option<&(usize, u64)>) -> Option<Vec<u8>> {
    let (number, offset) = place?;
    let member = anatomy.members.get(*number)?;
    let mut bytes = vec![0; up_to(member.len.saturating_sub(*offset), FOLLOWING_LEN)];
    Content::new(blocks, member).read_exact_at(&mut bytes, *offset).ok()?;
    Some(bytes)
}

/// Returns how a block is made, if it is.
fn prove(
    bytes: &dyn ReadAt,
    hint: Hint,
    block: &Block,
    prover: &Prover<'_>,
    only_bases: bool,
    following: &dyn Fn() -> Vec<u8>,
) -> Option<Made> {
    if block.stored_len > CODED_MAX {
        return None;
    }
    let mut stored = vec![0; size(block.stored_len)];
    bytes.read_exact_at(&mut stored, block.offset).ok()?;
    let plain = decoded(block, &stored).filter(|plain| !plain.is_empty())?;
    let proved = prover.prove(block, hint, (&stored, &plain), following, only_bases)?;
    Some(Made { proved })
}

/// Appends a member's content to the leaves, and hashes it.
pub(super) fn spool(content: &Content<'_, '_>, leaves: &mut LeafSource) -> Result<[u8; 32], Error> {
    let failed = |error| Error::io("read", "a member of a container", error);
    let len = content.byte_len().map_err(failed)?;
    let (mut hasher, mut place) = (blake3::Hasher::new(), 0);
    let mut buffer = vec![0; up_to(len, READ_LEN)];
    while place < len {
        let part = &mut buffer[..up_to(len - place, READ_LEN)];
        content.read_exact_at(part, place).map_err(failed)?;
        hasher.update(part);
        leaves.write(part)?;
        place += wide(part.len());
    }
    Ok(*hasher.finalize().as_bytes())
}
