//! Disk images in a bundle that have a dm-verity hash tree, and their root hashes: what a kernel gets as `roothash=`, and `veritysetup verify` takes.
//!
//! The tree is appended to the image's file system (squashfs, EROFS or ext4), or lies beside it in a file of the same name with `.verity` or `.hash`;
//! it has the superblock that `veritysetup format` writes. In a disk image with a GPT, data and tree may also be two partitions, whose UUIDs are the halves
//! of the root hash, as systemd makes and finds them. [`root_hashes`] reads only the superblock and the top block, and
//! [`verify`](crate::verify) compares every block.
//!
//! Looks at files with the usual names of images (`.img` or `.squashfs`, for example), at those with a tree beside them, and at the only file of a bundle.

mod candidates;

use std::fmt;
use std::ops::Range;

use sealift_format::num::{size, wide};
use sealift_format::{Bundle, Object, Row, unhex};
use sealift_store::base::Bases;
use sealift_store::threads::parallel::map_with;
use sealift_verify::dm_verity::{HEAD_LEN, TABLE_LEN, find_superblock, partitions, superblock_range};
pub use sealift_verify::dm_verity::{HashTree, Layer, Mismatch, Superblock, SuperblockError};
use sealift_verify::escape;

use crate::files::{FileReader, Files};
use crate::{Error, Input, Phase, Progress};
use candidates::{Candidate, Candidates};

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
    /// The partitions of the image in which data and tree are, if they are.
    pub partitions: Option<VerityPartitions>,
    /// The tree, unless it cannot be used.
    pub tree: Result<VerityTree, SuperblockError>,
}

/// The partitions of an image with data and tree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerityPartitions {
    /// The number of the one with the data, from 1.
    pub data: u32,
    /// The number of the one with the tree.
    pub tree: u32,
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
pub fn root_hashes(input: &mut Input, bundle: &Bundle) -> Result<VerityImages, Error> {
    let candidates = Candidates::of(&bundle.index);
    let bases = Bases::default().making(bundle, input, 1)?;
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
            let mismatch = first_mismatch(&files, &found.tree, [*data, *tree], jobs, progress)?;
            found.compared = mismatch.map_or(Compared::EveryBlock, Compared::Differs);
        }
        progress.add(0, 1);
    }
    Ok(VerityImages { images: all.into_iter().map(|found| found.image).collect(), left_out: candidates.left_out })
}

/// An image, with the places of the data and of the tree.
struct Found {
    image: VerityImage,
    data: Place,
    tree: Place,
}

/// An object, or what lies in it from an offset on.
#[derive(Clone, Copy)]
struct Place {
    object: Row<Object>,
    start: u64,
}

impl Place {
    fn of(object: Row<Object>) -> Self {
        Self { object, start: 0 }
    }

    fn read(self, reader: &mut FileReader<'_>, range: Range<u64>) -> Result<Vec<u8>, Error> {
        reader.read(self.object, self.start + range.start..self.start + range.end)
    }
}

fn find_all(files: &Files<'_>, candidates: &Candidates<'_>) -> Result<Vec<Found>, Error> {
    let mut reader = files.reader();
    let mut all = Vec::new();
    for candidate in &candidates.list {
        match find(&mut reader, files.bundle, candidate)? {
            Some(found) => all.push(found),
            None => all.extend(find_in_partitions(&mut reader, files.bundle, candidate)?),
        }
    }
    Ok(all)
}

/// Looks for partitions with hash trees in a disk image, and for those whose data they are for.
fn find_in_partitions(
    reader: &mut FileReader<'_>,
    bundle: &Bundle,
    candidate: &Candidate<'_>,
) -> Result<Vec<Found>, Error> {
    let (index, object) = (&bundle.index, candidate.object);
    let len = index.object(object).size;
    let partitions = partitions(&reader.read(object, 0..len.min(TABLE_LEN))?, len);
    let mut found = Vec::new();
    for tree_in in &partitions {
        let (place, tree_len) = (Place { object, start: tree_in.range.start }, tree_in.range.end - tree_in.range.start);
        let superblock = place.read(reader, 0..tree_len.min(wide(Superblock::LEN)))?;
        let Ok(superblock) = Superblock::parse(&superblock) else { continue };
        // Whose data they are is only known by the root hash; the data is long enough for now.
        let Ok(tree) = HashTree::new(superblock.clone(), 0, tree_len, u64::MAX) else { continue };
        let Some(top) = tree.top() else { continue };
        let root_hash = tree.hash(&place.read(reader, top)?);
        let Some(data_in) = partitions.iter().find(|data| data.is_of(tree_in, &root_hash)) else { continue };
        let tree = HashTree::new(superblock, 0, tree_len, data_in.range.end - data_in.range.start);
        let named = named(reader, bundle, candidate)?;
        let image = VerityImage {
            reference: candidate.reference.name.clone(),
            path: index.path(candidate.directory, candidate.entry),
            tree_path: None,
            tree_offset: tree_in.range.start,
            partitions: Some(VerityPartitions { data: data_in.number, tree: tree_in.number }),
            tree: tree.map(|tree| VerityTree { tree, root_hash, named, compared: Compared::TopBlock }),
        };
        found.push(Found { image, data: Place { object, start: data_in.range.start }, tree: place });
    }
    // A file beside the image names one root hash, and an image may have several trees, as of `/` and of `/usr`.
    if found.len() > 1 {
        found.iter_mut().filter_map(|found| found.image.tree.as_mut().ok()).for_each(|tree| tree.named = None);
    }
    Ok(found)
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
        partitions: None,
        tree: match hash_tree {
            Ok(hash_tree) => Ok(VerityTree {
                root_hash: root_hash(reader, &hash_tree, [data, tree].map(Place::of))?,
                named: named(reader, bundle, candidate)?,
                compared: Compared::TopBlock,
                tree: hash_tree,
            }),
            Err(error) => Err(error),
        },
    };
    Ok(Some(Found { image, data: Place::of(data), tree: Place::of(tree) }))
}

fn root_hash(reader: &mut FileReader<'_>, of: &HashTree, [data, tree]: [Place; 2]) -> Result<Vec<u8>, Error> {
    let top = match of.top() {
        Some(top) => tree.read(reader, top)?,
        None => data.read(reader, 0..of.data_len())?,
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
    [data, tree]: [Place; 2],
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
            let blocks = blocks_of.read(blocks_reader, layer.bytes_of(portion.clone()))?;
            let hashes = tree.read(hashes_reader, layer.hashes_of(portion.clone()))?;
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
