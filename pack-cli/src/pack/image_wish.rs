//! Collects what composefs images need of contents while they are read (images 2).

use sealift_format::verity::{Algorithm, FileDigest, FileHasher, Parameters};
use sealift_format::{Image, num};

use super::PackOptions;

/// What to collect from a content for images.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ImageWish {
    is_on: bool,
    with_sha512: bool,
}

/// The collected data.
#[derive(Clone, Debug, Default)]
#[cfg_attr(not(feature = "composefs"), allow(dead_code, reason = "nothing makes images"))]
pub(super) struct ForImages {
    /// The content, if it is stored inline in the image; else empty.
    pub(super) within: Box<[u8]>,
    pub(super) sha512: Option<FileDigest>,
}

impl ForImages {
    pub(super) fn has_any(&self) -> bool {
        !self.within.is_empty() || self.sha512.is_some()
    }
}

/// Blocks of 4096 bytes, no salt.
pub(super) fn parameters(algorithm: Algorithm) -> Parameters {
    Parameters::new(algorithm, 4096, &[]).unwrap_or_default() // both hashes support this block size
}

impl ImageWish {
    pub(super) fn of(options: &PackOptions) -> Self {
        Self { is_on: !options.images.is_empty(), with_sha512: options.images.contains(&Algorithm::Sha512) }
    }

    /// Collects the data of a content that is read whole.
    pub(super) fn find(self, bytes: &[u8]) -> ForImages {
        let is_within = self.is_on && num::wide(bytes.len()) <= Image::WITHIN_LEN_MAX;
        let within = if is_within { Box::from(bytes) } else { Box::default() };
        let hash = || {
            let mut hasher = FileHasher::new(&parameters(Algorithm::Sha512));
            hasher.update(bytes);
            hasher.finish()
        };
        ForImages { within, sha512: (self.with_sha512 && !is_within).then(hash) }
    }

    /// Hashes a piece's part of its content's SHA-512 tree.
    pub(super) fn hash_piece(self, bytes: &[u8]) -> Option<FileHasher> {
        self.with_sha512.then(|| {
            let mut hasher = FileHasher::new(&parameters(Algorithm::Sha512));
            hasher.update(bytes);
            hasher
        })
    }
}
