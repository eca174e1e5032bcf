//! The expected fs-verity digests of a sealed tree's files.

use std::collections::HashMap;

use sealift_format::Index;
use sealift_format::verity::{Algorithm, FileDigest};

/// Maps fs-verity digests to object ids: a sealed file is identified by it without being read.
#[derive(Clone, Debug, Default)]
pub struct Digests(HashMap<[u8; 32], [u8; 32]>);

impl Digests {
    /// Maps the digests of an index's objects, given in order and verified by the index's digest of them; empty if not all are known.
    pub fn new(index: &Index, table: &[[u8; 32]]) -> Self {
        Self(index.objects().iter().zip(table).map(|(object, digest)| (*digest, object.id)).collect())
    }

    /// Returns the id of the object that has this digest.
    #[must_use]
    pub fn object(&self, digest: &FileDigest) -> Option<[u8; 32]> {
        let bytes: &[u8; 32] = digest.as_bytes().try_into().ok().filter(|_| digest.algorithm() == Algorithm::Sha256)?;
        self.0.get(bytes).copied()
    }
}
