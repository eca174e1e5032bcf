//! Disk images in a bundle that have a dm-verity hash tree, and their root hashes: what a kernel gets as `roothash=`, and `veritysetup verify` takes.
//!
//! The tree is appended to the image's file system (squashfs, EROFS or ext4), or lies beside it in a file of the same name with `.verity` or `.hash`;
//! it has the superblock that `veritysetup format` writes. [`root_hashes`] reads only the superblock and the top block, and
//! [`verify`](crate::verify) compares every block.
//!
//! Looks at files with the usual names of images (`.img` or `.squashfs`, for example), at those with a tree beside them, and at the only file of a bundle.

mod candidates;
mod reader;

use std::fmt;

use sealift_format::num::{size, wide};
use sealift_format::{Bundle, Object, Row, unhex};
use sealift_store::base::Bases;
use sealift_store::threads::parallel::map_with;
use sealift_verify::dm_verity::{HEAD_LEN, find_superblock, superblock_range};
pub use sealift_verify::dm_verity::{HashTree, Layer, Mismatch, Superblock, SuperblockError};
use sealift_verify::escape;

use crate::{Error, Input, Phase, Progress};
use candidates::{Candidate, Candidates};
use reader::{FileReader, Files};

/// The images that were found.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct VerityImages {
    /// The images with a hash tree, in tree order. If several files have the same content and the same tree, the first of them.
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
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum VerityFault {
    /// Blocks do not have the hashes in the tree.
    Mismatch(Mismatch),
    /// A file beside the image names another root hash.
    OtherRootHash {
        /// The path of the file.
        path: Vec<u8>,
    },
}

impl fmt::Display for VerityFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mismatch(mismatch) => mismatch.fmt(f),
            Self::OtherRootHash { path } => write!(f, "{} names another root hash", escape::bytes(path)),
        }
    }
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

/// Returns whether a bundle has files that [`root_hashes`] looks at.
#[must_use]
pub fn may_have_images(bundle: &Bundle) -> bool {
    !Candidates::of(&bundle.index).list.is_empty()
}

/// Returns the images in a bundle, whose root hashes are those of the top blocks of their trees. Reads few chunks of each, and compares them with their
/// digests; whether the bundle is trusted is for a [`Guard`](crate::trust::Guard) to decide.
///
/// # Errors
/// Returns an error if the bundle comes through a pipe, if a chunk is damaged, or if a base has to be read.
pub fn root_hashes(input: &Input, bundle: &Bundle) -> Result<VerityImages, Error> {
    let candidates = Candidates::of(&bundle.index);
    let bases = Bases::default();
    let files = Files::new(input, bundle, &bases)?;
    let images = find_all(&files, &candidates)?.into_iter().map(|found| found.image).collect();
    Ok(VerityImages { images, left_out: candidates.left_out })
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
    let mut all = find_all(&files, &candidates)?;
    if !all.is_empty() {
        let len = |found: &Found| found.image.tree.as_ref().map_or(0, |tree| tree.tree.data_len());
        progress.enter(Phase::Hashing, all.iter().map(len).sum(), wide(all.len()));
    }
    for Found { image, data, tree } in &mut all {
        if let Ok(found) = &mut image.tree {
            let mismatch = first_mismatch(&files, &found.tree, (*data, *tree), jobs, progress)?;
            found.compared = mismatch.map_or(Compared::EveryBlock, Compared::Differs);
        }
        progress.add(0, 1);
    }
    Ok(VerityImages { images: all.into_iter().map(|found| found.image).collect(), left_out: candidates.left_out })
}

/// An image, with the objects of the data and of the tree.
struct Found {
    image: VerityImage,
    data: Row<Object>,
    tree: Row<Object>,
}

fn find_all(files: &Files<'_>, candidates: &Candidates<'_>) -> Result<Vec<Found>, Error> {
    let mut reader = files.reader();
    let found = candidates.list.iter().map(|candidate| find(&mut reader, files.bundle, candidate));
    found.filter_map(Result::transpose).collect()
}

/// Looks for the hash tree of a file: beside it, and then behind its file system.
fn find(reader: &mut FileReader<'_>, bundle: &Bundle, candidate: &Candidate<'_>) -> Result<Option<Found>, Error> {
    let index = &bundle.index;
    let len = |object| index.object(object).size;
    let data = candidate.object;
    let mut beside = candidate.trees(index);
    let place = loop {
        let Some((name, tree)) = beside.next() else {
            let head = reader.read(data, 0..len(data).min(HEAD_LEN))?;
            let Some(range) = superblock_range(&head, len(data)) else { return Ok(None) };
            let start = range.start;
            let bytes = reader.read(data, range)?;
            let Some(at) = find_superblock(&bytes) else { return Ok(None) };
            break (None, data, start + wide(at), Superblock::parse(&bytes[at..]));
        };
        let superblock = reader.read(tree, 0..len(tree).min(wide(Superblock::LEN)))?;
        if Superblock::is_at(&superblock) {
            break (Some(candidate.beside(index, &name)), tree, 0, Superblock::parse(&superblock));
        }
    };
    let (tree_path, tree, tree_offset, superblock) = place;
    let data_len = if tree_path.is_some() { len(data) } else { tree_offset };
    let hash_tree = superblock.and_then(|superblock| HashTree::new(superblock, tree_offset, len(tree), data_len));
    let image = VerityImage {
        reference: candidate.reference.name.clone(),
        path: index.path(candidate.directory, candidate.entry),
        tree_path,
        tree_offset,
        tree: match hash_tree {
            Ok(hash_tree) => Ok(VerityTree {
                root_hash: root_hash(reader, &hash_tree, (data, tree))?,
                named: named(reader, bundle, candidate)?,
                compared: Compared::TopBlock,
                tree: hash_tree,
            }),
            Err(error) => Err(error),
        },
    };
    Ok(Some(Found { image, data, tree }))
}

fn root_hash(
    reader: &mut FileReader<'_>,
    of: &HashTree,
    (data, tree): (Row<Object>, Row<Object>),
) -> Result<Vec<u8>, Error> {
    let top = match of.top() {
        Some(top) => reader.read(tree, top)?,
        None => reader.read(data, 0..of.data_len())?,
    };
    Ok(of.hash(&top))
}

/// Returns the root hash in a file beside an image.
fn named(
    reader: &mut FileReader<'_>,
    bundle: &Bundle,
    candidate: &Candidate<'_>,
) -> Result<Option<NamedRootHash>, Error> {
    let Some((name, object)) = candidate.root_hash_file(&bundle.index) else { return Ok(None) };
    let text = reader.read(object, 0..bundle.index.object(object).size)?;
    let text = std::str::from_utf8(&text).unwrap_or_default().trim_ascii().to_ascii_lowercase();
    // What is no digest belongs to something else.
    let root_hash = unhex(&text).filter(|bytes| !bytes.is_empty());
    Ok(root_hash.map(|root_hash| NamedRootHash { path: candidate.beside(&bundle.index, &name), root_hash }))
}

/// The least bytes that a thread reads and hashes at once.
const PORTION_LEN: u64 = 1 << 20;

/// Compares every block with its hash, from the top level down to the data. Below a level that differs, hashes mean nothing.
fn first_mismatch(
    files: &Files<'_>,
    of: &HashTree,
    (data, tree): (Row<Object>, Row<Object>),
    jobs: usize,
    progress: &Progress,
) -> Result<Option<Mismatch>, Error> {
    // Whole pieces of the data, which are decoded at once.
    let portion_len = files.bundle.head.root().maxima.piece_len().max(PORTION_LEN);
    for layer in of.layers() {
        let step = (portion_len / u64::from(layer.block_len)).max(1);
        let starts = (0..layer.blocks).step_by(size(step));
        let portions: Vec<_> = starts.map(|start| start..layer.blocks.min(start + step)).collect();
        let start = || (files.reader(), files.reader());
        let found = map_with(jobs, &portions, start, |(blocks_reader, hashes_reader), portion| {
            progress.check()?;
            let blocks_of = if layer.level.is_some() { tree } else { data };
            let blocks = blocks_reader.read(blocks_of, layer.bytes_of(portion.clone()))?;
            let hashes = hashes_reader.read(tree, layer.hashes_of(portion.clone()))?;
            if layer.level.is_none() {
                progress.add(wide(blocks.len()), 0);
            }
            Ok(of.compare(layer, portion.start, &blocks, &hashes))
        })?;
        if let Some(found) = found.into_iter().flatten().reduce(Mismatch::and) {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
