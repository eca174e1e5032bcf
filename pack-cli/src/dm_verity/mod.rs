//! Disk images in a bundle that have a dm-verity hash tree, and their root hashes: what a kernel gets as `roothash=`, and `veritysetup verify` takes.
//!
//! The tree is appended to the image's file system (squashfs, EROFS or ext4), or lies beside it in a file of the same name with `.verity` or `.hash`;
//! it has the superblock that `veritysetup format` writes. [`root_hashes`] reads only the superblock and the top block, and
//! [`verify`](crate::verify) compares every block.
//!
//! Looks at files with the usual names of images ([`may_be_image`]), at those with a tree beside them, and at the only file of a bundle.

mod candidates;
mod reader;

use sealift_format::num::{size, wide};
use sealift_format::{Bundle, Object, Row};
use sealift_store::base::Bases;
use sealift_store::threads::parallel::map_with;
pub use sealift_verify::dm_verity::{HashTree, Layer, Mismatch, Superblock, SuperblockError};
use sealift_verify::dm_verity::{HEAD_LEN, find_superblock, superblock_range};

use crate::{Error, Input, Phase, Progress};
pub use candidates::may_be_image;
use candidates::{Candidate, Candidates};
use reader::{FileReader, Files};

/// The images that were found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerityImages {
    /// The images with a hash tree, in tree order. If several files have the same content, the first of them.
    pub images: Vec<VerityImage>,
    /// How many more files have the name of an image, beyond the number that is looked at.
    pub left_out: usize,
}

/// An image with a hash tree.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerityImage {
    /// The ref that contains it.
    pub reference: String,
    /// Its path in that ref.
    pub path: Vec<u8>,
    /// The path of the file with the tree; `None` if that is appended to the image.
    pub tree_path: Option<Vec<u8>>,
    /// Where the tree's superblock begins in its file, in bytes.
    pub tree_offset: u64,
    /// The tree, unless it cannot be used.
    pub tree: Result<VerityTree, SuperblockError>,
}

/// A hash tree, with its root hash.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerityTree {
    /// The tree.
    pub tree: HashTree,
    /// The hash of its top block.
    pub root_hash: Vec<u8>,
    /// The root hash that a file beside the image names.
    pub named: Option<NamedRootHash>,
    /// What was compared.
    pub compared: Compared,
}

/// A root hash in a file with the name of an image and `.roothash`, where systemd looks for it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NamedRootHash {
    /// The path of the file.
    pub path: Vec<u8>,
    /// The root hash.
    pub root_hash: Vec<u8>,
}

/// How much of a hash tree was compared.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compared {
    /// Only the top block was read.
    TopBlock,
    /// Each block has the hash in the tree, up to the root hash.
    EveryBlock,
    /// Some do not.
    Differs(Mismatch),
}

/// Why a kernel will not read an image, or not all of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VerityFault {
    /// Blocks do not have the hashes in the tree.
    #[error("{0}")]
    Mismatch(Mismatch),
    /// A file beside the image names another root hash.
    #[error("{} names another root hash", String::from_utf8_lossy(.path))]
    OtherRootHash {
        /// The path of the file.
        path: Vec<u8>,
    },
}

impl VerityTree {
    /// Returns why a kernel will not read the image, as far as that was found.
    #[must_use]
    pub fn fault(&self) -> Option<VerityFault> {
        if let Compared::Differs(mismatch) = &self.compared {
            return Some(VerityFault::Mismatch(mismatch.clone()));
        }
        let other = self.named.as_ref().filter(|named| named.root_hash != self.root_hash)?;
        Some(VerityFault::OtherRootHash { path: other.path.clone() })
    }
}

/// Returns the images in a bundle, whose root hashes are those of the top blocks of their trees. Reads few chunks of each, and compares them with their
/// digests; whether the bundle is trusted is for a [`Guard`](crate::trust::Guard) to decide.
///
/// # Errors
/// Returns an error if the bundle comes through a pipe, if a chunk is damaged, or if the bundle is a delta that was completed: its bases are needed.
pub fn root_hashes(input: &Input, bundle: &Bundle) -> Result<VerityImages, Error> {
    let candidates = Candidates::of(&bundle.index);
    if candidates.list.is_empty() {
        return Ok(VerityImages::default());
    }
    let bases = Bases::default();
    images(&Files::new(input, bundle, &bases)?, candidates)
}

/// Returns the images in a bundle, and compares every block with its tree.
pub(crate) fn check(
    input: &Input,
    bundle: &Bundle,
    bases: &Bases,
    jobs: usize,
    progress: &Progress,
) -> Result<VerityImages, Error> {
    let candidates = Candidates::of(&bundle.index);
    if candidates.list.is_empty() {
        return Ok(VerityImages::default());
    }
    let files = Files::new(input, bundle, bases)?;
    let objects: Vec<_> = candidates.list.iter().map(|candidate| candidate.object).collect();
    let mut found = images(&files, candidates)?;
    let len = |image: &VerityImage| image.tree.as_ref().map_or(0, |found| found.tree.data_len());
    progress.enter(Phase::Hashing, found.images.iter().map(len).sum(), wide(found.images.len()));
    let _ = objects;
    for image in &mut found.images {
        let Ok(found) = &mut image.tree else { continue };
        let mismatch = mismatch(&files, &found.tree, (Row::FIRST, Row::FIRST), jobs, progress)?;
        found.compared = mismatch.map_or(Compared::EveryBlock, Compared::Differs);
        progress.add(0, 1);
    }
    Ok(found)
}
