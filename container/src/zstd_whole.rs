//! zstd without a C compiler, for WebAssembly. The decoder takes whole frames, so that one that is read as a stream is held in memory.

use std::io::{self, BufRead, Cursor, Read};

use zstd_rs::Decompressor;

/// The most bytes of a frame that is read as a stream, and the most to which it decodes.
const LONGEST: usize = 64 << 20;
/// The decoder writes a little beyond the end. Without this room it would allocate twice the memory.
const ROOM: usize = 256;
/// Bytes of the longest header of a frame.
const LONGEST_HEADER: usize = 18;

/// Decodes frames into a buffer that has room for all that they decode to, and returns its length.
pub(super) fn decompress(stored: &[u8], decoded: &mut [u8]) -> Option<usize> {
    let mut out = Vec::with_capacity(decoded.len().checked_add(ROOM)?);
    let len = Decompressor::new().decompress(stored, None, decoded.len(), &mut out).ok()?;
    decoded.get_mut(..len)?.copy_from_slice(out.get(..len)?);
    Some(len)
}

/// Decodes one zstd frame of at most [`LONGEST`] bytes.
pub(super) struct Decoder<R> {
    stored: R,
    /// What the frame decodes to, once it was read.
    decoded: Option<Cursor<Vec<u8>>>,
}

impl<R: BufRead> Decoder<R> {
    pub(super) fn new(stored: R) -> Self {
        Self { stored, decoded: None }
    }

    /// Takes the frame, and no byte more, and decodes it.
    fn decode(&mut self) -> io::Result<Vec<u8>> {
        let mut frame = Vec::new();
        self.append(&mut frame, 5)?;
        let descriptor = frame.get(4).copied().unwrap_or(0);
        let is_single = descriptor & 0x20 != 0;
        let dictionary_len = [0, 1, 2, 4].get(usize::from(descriptor & 3)).copied().unwrap_or(0);
        let size_len = match descriptor >> 6 {
            0 => usize::from(is_single),
            log => 1 << log,
        };
        self.append(&mut frame, usize::from(!is_single) + dictionary_len + size_len)?;
        loop {
            let at = frame.len();
            self.append(&mut frame, 3)?;
            let header =
                frame.get(at..).unwrap_or_default().iter().rev().fold(0, |sum, byte| sum << 8 | u32::from(*byte));
            // A run has one byte, however long it is.
            let len = if header >> 1 & 3 == 1 { 1 } else { header >> 3 };
            self.append(&mut frame, sealift_format::num::at(len))?;
            if header & 1 != 0 {
                break;
            }
        }
        self.append(&mut frame, if descriptor & 4 != 0 { 4 } else { 0 })?;
        let mut decoded = Vec::new();
        let done = Decompressor::new().decompress_frame(&frame, None, LONGEST, &mut decoded);
        done.map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
        Ok(decoded)
    }

    /// Appends so many bytes to a frame.
    fn append(&mut self, frame: &mut Vec<u8>, len: usize) -> io::Result<()> {
        if frame.len() + len > LONGEST + LONGEST_HEADER {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let at = frame.len();
        frame.resize(at + len, 0);
        self.stored.read_exact(frame.get_mut(at..).unwrap_or_default())
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.decoded.is_none() {
            self.decoded = Some(Cursor::new(self.decode()?));
        }
        self.decoded.as_mut().map_or(Ok(0), |decoded| decoded.read(buffer))
    }
}
