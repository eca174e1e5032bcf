//! The dirtrees that a difference carries: one frame with the base's metadata objects as its prefix.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use crate::index::row_fault;
use crate::num::at;
use crate::ostree::{Checksum, DirTree};
use crate::{Error, FrameDecoder, Part};

/// The largest window that RFC 8878 and core 4.3 allow: this frame's window is limited by its content.
pub(super) const WINDOW_LOG: u8 = 31;

/// The placeholder for the checksum of a carried dirtree where it is first reached: there it is the next carried dirtree.
const NEXT: Checksum = [0; 32];

/// Dirtrees in the order in which the commits reach them, in their stored form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DirTrees {
    /// Their lengths.
    pub(super) lens: Vec<u32>,
    /// One zstd frame of all dirtrees, with the base's metadata objects as its prefix; empty if there are no dirtrees.
    pub(super) frame: Vec<u8>,
}

/// A dirtree of the wanted index.
#[derive(Clone, Debug, Default)]
pub(super) struct Restored {
    pub(super) bytes: Vec<u8>,
    pub(super) checksum: Checksum,
    /// Whether no other carried dirtree names it first.
    pub(super) is_root: bool,
}

impl DirTrees {
    /// Returns the dirtrees of the wanted index, given the base's metadata objects.
    pub(super) fn restore(&self, prefix: &[u8]) -> Result<Vec<Restored>, Error> {
        if self.lens.is_empty() {
            return Ok(Vec::new());
        }
        let mut bytes = Vec::new();
        let len = self.lens.iter().map(|len| u64::from(*len)).sum();
        FrameDecoder::new().decode_with(Part::Index, &self.frame, len, WINDOW_LOG, prefix, &mut bytes)?;
        let mut rest = &bytes[..];
        let mut trees = Vec::with_capacity(self.lens.len());
        for (own, len) in self.lens.iter().enumerate() {
            let (tree, behind) = rest.split_at(at(*len));
            trees.push(DirTree::parse(tree).map_err(|malformed| row_fault(malformed.reason(), own))?);
            rest = behind;
        }
        fill(trees)
    }
}

/// Replaces each [`NEXT`] by the checksum for which it stands, from the bottom up.
fn fill(trees: Vec<DirTree<'_>>) -> Result<Vec<Restored>, Error> {
    let count = trees.len();
    let mut trees = trees.into_iter();
    let mut filled = alloc::vec![Restored::default(); count];
    let mut next = 0;
    while let Some(root) = trees.next() {
        // Dirtrees whose directories are not all visited: the number, the dirtree, how many are, and the checksums that replace placeholders.
        let mut open = alloc::vec![(next, root, 0, Vec::<Checksum>::new())];
        next += 1;
        while let Some((own, tree, done, sums)) = open.last_mut() {
            if let Some(directory) = tree.directories.get(*done) {
                *done += 1;
                if *directory.1 == NEXT {
                    let Some(below) = trees.next() else {
                        return Err(row_fault("a dirtree is carried whose next one is missing", *own));
                    };
                    open.push((next, below, 0, Vec::new()));
                    next += 1;
                }
                continue;
            }
            let sums = core::mem::take(sums);
            let mut filled_in = sums.iter();
            let directories = tree.directories.iter().map(|(name, sum, meta)| match **sum {
                NEXT => (*name, filled_in.next().unwrap_or(*sum), *meta),
                _ => (*name, *sum, *meta),
            });
            let directories = directories.collect();
            let bytes = DirTree { files: core::mem::take(&mut tree.files), directories }.encode();
            let checksum: Checksum = Sha256::digest(&bytes).into();
            let own = *own;
            open.pop();
            filled[own] = Restored { bytes, checksum, is_root: open.is_empty() };
            if let Some((_, _, _, sums)) = open.last_mut() {
                sums.push(checksum);
            }
        }
    }
    Ok(filled)
}

/// Returns the bytes of carried dirtrees with [`NEXT`] in place of checksums, and the number of each. `root` is the first of them; `carried` returns
/// the number and the dirtree for a checksum, if it is carried; those in `met` were reached before.
pub(super) fn blank<'a>(
    root: u32,
    carried: &impl Fn(&Checksum) -> Option<(u32, DirTree<'a>)>,
    tree: DirTree<'a>,
    met: &mut BTreeSet<u32>,
) -> Vec<(u32, Vec<u8>)> {
    let mut blanked = Vec::new();
    met.insert(root);
    let mut open = alloc::vec![(root, tree, 0)];
    while let Some((own, tree, done)) = open.last_mut() {
        let Some(directory) = tree.directories.get_mut(*done) else {
            blanked.push((*own, tree.encode()));
            open.pop();
            continue;
        };
        *done += 1;
        let Some((number, below)) = carried(directory.1) else { continue };
        if met.insert(number) {
            directory.1 = &NEXT;
            open.push((number, below, 0));
        }
    }
    blanked
}
