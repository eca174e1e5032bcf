//! zstd by its C library.

use std::io::{self, BufRead, Read};

use zstd_safe::{DCtx, InBuffer, OutBuffer};

/// Decodes frames into a buffer that has room for all that they decode to, and returns its length.
pub(super) fn decompress(stored: &[u8], decoded: &mut [u8]) -> Option<usize> {
    zstd_safe::decompress(decoded, stored).ok()
}

/// Decodes one zstd frame, within libzstd's usual limit for windows (128 MiB).
pub(super) struct Decoder<R> {
    context: DCtx<'static>,
    stored: R,
    is_done: bool,
}

impl<R> Decoder<R> {
    pub(super) fn new(stored: R) -> Self {
        Self { context: DCtx::create(), stored, is_done: false }
    }
}

impl<R: BufRead> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while !self.is_done {
            let bytes = self.stored.fill_buf()?;
            let is_end = bytes.is_empty();
            let (mut input, mut output) = (InBuffer::around(bytes), OutBuffer::around(&mut *buffer));
            let left = self.context.decompress_stream(&mut output, &mut input);
            let left = left.map_err(|code| io::Error::other(zstd_safe::get_error_name(code)))?;
            let (taken, len) = (input.pos(), output.pos());
            self.stored.consume(taken);
            self.is_done = left == 0;
            if len > 0 {
                return Ok(len);
            }
            if is_end && !self.is_done {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(0)
    }
}
