//! What names a bundle, in each line of JSON about one.

use sealift::{Head, Root};
use sealift_format::hex;
use serde::Serialize;

/// The digests by which bundles, targets and reports of the page are matched.
#[derive(Serialize)]
pub(crate) struct Digests {
    /// Of the signed bytes: of this bundle, whoever signs it.
    root_digest: String,
    /// Of the content, which a full bundle and a delta have in common.
    index_digest: String,
}

impl Digests {
    pub(crate) fn of(head: &Head) -> Self {
        Self::new(&head.root_digest(), head.root())
    }

    pub(crate) fn new(root_digest: &[u8; 32], root: &Root) -> Self {
        Self { root_digest: hex(root_digest), index_digest: hex(&root.contents.index_digest) }
    }
}
