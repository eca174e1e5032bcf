//! Hashes what is read.

use std::io::{self, Read};

use sha2::{Digest as _, Sha256};

use crate::oci::Digest;

/// A reader that hashes the bytes that pass.
pub(super) struct Hashed<R> {
    inner: R,
    hasher: Sha256,
}

impl<R: Read> Hashed<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, hasher: Sha256::new() }
    }

    /// Returns the digest of all bytes to the end, of which a decoder may have left some.
    pub(super) fn finish(mut self) -> io::Result<Digest> {
        io::copy(&mut self, &mut io::sink())?;
        Ok(Digest(self.hasher.finalize().into()))
    }
}

impl<R: Read> Read for Hashed<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..len).unwrap_or_default());
        Ok(len)
    }
}

/// Returns the digest of bytes in memory.
pub(super) fn digest_of(bytes: &[u8]) -> Digest {
    Digest(Sha256::digest(bytes).into())
}
