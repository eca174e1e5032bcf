//! zstd frames, compressed or built by hand (RFC 8878).

use zstd_safe::{CCtx, CParameter};

/// Compresses into a frame that conforms to core 8.1.
pub fn frame(content: &[u8]) -> Vec<u8> {
    compress(content, &[], false)
}

/// Compresses into such a frame with a prefix (delta 7).
pub fn frame_with_prefix(content: &[u8], prefix: &[u8]) -> Vec<u8> {
    compress(content, prefix, false)
}

/// Compresses into a frame with a checksum, which core 8.1 forbids.
pub fn frame_with_checksum(content: &[u8]) -> Vec<u8> {
    compress(content, &[], true)
}

fn compress(content: &[u8], prefix: &[u8], checksum: bool) -> Vec<u8> {
    let mut context = CCtx::create();
    let parameters =
        [CParameter::CompressionLevel(9), CParameter::ContentSizeFlag(true), CParameter::ChecksumFlag(checksum)];
    for parameter in parameters {
        context.set_parameter(parameter).expect("zstd knows the parameter");
    }
    if !prefix.is_empty() {
        context.ref_prefix(prefix).expect("nothing is under way");
    }
    let mut out = vec![0; zstd_safe::compress_bound(content.len())];
    let len = context.compress2(&mut out[..], content).expect("there is room");
    out.truncate(len);
    out
}

/// A frame built by hand.
#[derive(Clone, Debug)]
pub struct RawFrame {
    /// The frame header's descriptor.
    pub descriptor: u8,
    /// The fields after the descriptor: window, dictionary id and content size.
    pub fields: Vec<u8>,
    /// The blocks, each as its type, its size field and its bytes.
    pub blocks: Vec<(u8, u32, Vec<u8>)>,
    /// Bytes after the blocks.
    pub tail: Vec<u8>,
}

impl RawFrame {
    /// Returns a single segment with one raw block.
    pub fn of(content: &[u8]) -> Self {
        let len = u32::try_from(content.len()).expect("vectors are small");
        Self {
            descriptor: 0b1010_0000, // content size in 4 bytes, single segment
            fields: len.to_le_bytes().to_vec(),
            blocks: vec![(0, len, content.to_vec())],
            tail: Vec::new(),
        }
    }

    /// Returns the same frame with a window of 2^`log` bytes instead of a single segment.
    pub fn with_window(mut self, log: u8) -> Self {
        self.descriptor &= !0b0010_0000;
        self.fields.insert(0, (log - 10) << 3);
        self
    }

    /// Returns the frame's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = 0xfd2f_b528_u32.to_le_bytes().to_vec();
        out.push(self.descriptor);
        out.extend(&self.fields);
        for (number, (kind, size, bytes)) in self.blocks.iter().enumerate() {
            let last = u32::from(number + 1 == self.blocks.len());
            let header = last | u32::from(*kind) << 1 | size << 3;
            out.extend(&header.to_le_bytes()[..3]);
            out.extend(bytes);
        }
        out.extend(&self.tail);
        out
    }
}
