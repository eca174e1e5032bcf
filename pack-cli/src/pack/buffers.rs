//! Recycled buffers: a fresh one costs a page fault for each 4 KiB.

use std::ops::Deref;
use std::sync::Arc;

use parking_lot::Mutex;
/// A pool of unused buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Buffers {
    free: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// A buffer whose parts several chunks may share; it returns to the pool when the last one releases it.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    len: usize,
    home: Buffers,
}

impl Buffers {
    /// Returns a buffer of `len` bytes with unspecified content.
    pub(super) fn take(&self, len: usize) -> Buffer {
        let mut bytes = self.free.lock().pop().unwrap_or_default();
        if bytes.len() < len {
            bytes.resize(len, 0);
        }
        Buffer { bytes, len, home: self.clone() }
    }
}

impl Buffer {
    /// Returns all bytes, to be filled.
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }

    /// Returns a buffer with all bytes, and leaves an empty one.
    pub(super) fn take(&mut self) -> Self {
        let home = self.home.clone();
        std::mem::replace(self, Self { bytes: Vec::new(), len: 0, home })
    }

    /// Keeps the first `len` bytes.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if !bytes.is_empty() {
            self.home.free.lock().push(bytes);
        }
    }
}
