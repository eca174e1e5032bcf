//! The expected fs-verity digests of a sealed tree's files.

use std::collections::HashMap;

use sealift_format::Index;
use sealift_format::verity::{Algorithm, FileDigest};

/// The objects that fs-verity digests stand for: with them a sealed file is known without being read.
#[derive(Clone, Debug, Default)]
pub struct Digests(HashMap<[u8; 32], [u8; 32]>);

impl Digests {
    /// The digests of an index's objects, in their order, which its digest of them has vouched for; or none, where not all are known.
    pub fn new(index: &Index, table: &[[u8; 32]]) -> Self {
        Self(index.objects().iter().zip(table).map(|(object, digest)| (*digest, object.id)).collect())
    }

    /// The id of the object that has this digest.
    #[must_use]
    pub fn object(&self, digest: &FileDigest) -> Option<[u8; 32]> {
        let bytes: &[u8; 32] = digest.as_bytes().try_into().ok().filter(|_| digest.algorithm() == Algorithm::Sha256)?;
        self.0.get(bytes).copied()
    }
}
