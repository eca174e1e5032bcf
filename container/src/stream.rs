//! Compressed files: gzip, xz, zstd, lz4 and bzip2. Their content is one member without a name; each of their streams is a block.

use sealift_format::num::wide;

use super::anatomy::{Anatomy, Part};
use super::block::{Block, BlockCodec, Hint, PlainLen};
use super::decode::measure;
use super::draft::Draft;
use super::fault::ContainerFault;
use super::kind::Kind;
use super::parts::{PART, Parts};
use super::reader::{Reader, le32};
use super::xz_index;
use super::zstd_frame;

/// Magic numbers of frames that decoders of zstd and lz4 skip.
const SKIPPABLE: u32 = 0x184d_2a50;
/// The magic number of lz4's older format, which kernels read. A file in it has no end of its own.
const OLDER_LZ4: u32 = 0x184c_2102;
/// The most bytes of a block in it: 8 MiB that do not compress.
const OLDER_LZ4_BLOCK: u32 = (8 << 20) + (8 << 20) / 255 + 16;

/// Returns the kind of compressed file that begins with these bytes, of which there should be 32.
pub(super) fn kind(head: &[u8]) -> Option<Kind> {
    let is_bzip2 = head.starts_with(b"BZh") && head.get(3).is_some_and(|level| (b'1'..=b'9').contains(level));
    match le32(head, 0) {
        // With compression method 8, the only one.
        gzip if gzip & 0x00ff_ffff == 0x0008_8b1f => Some(Kind::Gzip),
        0xfd2f_b528 => Some(Kind::Zstd),
        // The second is that of the older format.
        0x184d_2204 | OLDER_LZ4 => Some(Kind::Lz4),
        _ if head.starts_with(b"\xfd7zXZ\0") => Some(Kind::Xz),
        _ if is_bzip2 => Some(Kind::Bzip2),
        // pzstd begins with a frame that states the length of the next one.
        skippable if skippable & !0xf == SKIPPABLE => Some(Kind::Zstd),
        _ => None,
    }
}

/// Takes a compressed file apart. What follows its last stream is structure.
pub(super) fn read(reader: &Reader<'_>) -> Result<Anatomy, ContainerFault> {
    let mut draft = Draft::new(reader);
    let (parts, _) = parts(reader, reader.kind(), 0, &mut draft)?;
    draft.member(Vec::new(), parts)?;
    draft.finish(Hint::None)
}

/// Returns what the streams of a kind decode to that begin at an offset and follow each other, and where they end.
pub(super) fn parts(
    reader: &Reader<'_>,
    kind: Kind,
    mut at: u64,
    draft: &mut Draft<'_>,
) -> Result<(Parts, u64), ContainerFault> {
    let mut parts = Parts::default();
    let mut streams = 0_u64;
    while let head = reader.up_to(at, 32)?
        && self::kind(&head) == Some(kind)
    {
        if le32(&head, 0) & !0xf == SKIPPABLE {
            at = skipped(reader, at)?;
            continue;
        }
        let codec = match kind {
            Kind::Gzip => BlockCodec::Gzip,
            Kind::Xz => BlockCodec::Xz,
            Kind::Zstd => BlockCodec::Zstd,
            Kind::Lz4 => BlockCodec::Lz4Frame,
            _ => BlockCodec::Bzip2,
        };
        let measured = match kind {
            Kind::Xz => xz_index::measure(reader, at),
            Kind::Zstd => zstd_frame::measure(reader, at),
            Kind::Lz4 if is_older_lz4(&head) => {
                older_lz4_len(reader, at).and_then(|len| measure(reader, codec, at, len))
            }
            _ => measure(reader, codec, at, u64::MAX),
        };
        let (stored_len, plain_len) = match measured {
            Ok(lengths) => lengths,
            // Bytes behind a stream that only look like another.
            Err(ContainerFault::Damaged { .. }) if streams > 0 => break,
            Err(fault) => return Err(fault),
        };
        let block = draft.block(Block { offset: at, stored_len, codec, plain: PlainLen::Exactly(plain_len) })?;
        reader.hold(PART)?;
        parts.push(Part::Inflated { block, start: 0, len: plain_len });
        (at, streams) = (at + stored_len, streams + 1);
    }
    if streams > 0 { Ok((parts, at)) } else { Err(reader.damaged(at, "a compressed file without content")) }
}

fn is_older_lz4(head: &[u8]) -> bool {
    le32(head, 0) == OLDER_LZ4
}

/// Returns the length of a stream in lz4's older format: it ends where no block of a possible length follows.
fn older_lz4_len(reader: &Reader<'_>, at: u64) -> Result<u64, ContainerFault> {
    let mut end = at + 4;
    loop {
        let len = le32(&reader.up_to(end, 4)?, 0);
        if !(1..=OLDER_LZ4_BLOCK).contains(&len) {
            return Ok(end - at);
        }
        end += 4 + u64::from(len);
        if end > reader.len() {
            return Err(reader.damaged(at, "an lz4 block extends beyond the end"));
        }
    }
}

/// Returns where a frame ends that decoders skip.
fn skipped(reader: &Reader<'_>, at: u64) -> Result<u64, ContainerFault> {
    let header = reader.bytes(at, 8)?;
    let end = at + wide(header.len()) + u64::from(le32(&header, 4));
    if end <= reader.len() { Ok(end) } else { Err(reader.damaged(at, "a skippable frame extends beyond the end")) }
}
