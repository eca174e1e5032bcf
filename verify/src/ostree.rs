//! The checksums of OSTree's files, which cover headers and contents (ostree 5).
//!
//! A file of a small object is checked together with the object. The bytes of a large object pass through a [`LargeFiles`] in order: the layout was
//! checked for that order (ostree 7), in which a bundle that is read from start to end brings them.

use std::convert::Infallible;

use sealift_format::num;
use sealift_format::ostree::Checksum;
use sealift_format::ostree::file::FileObjectHasher;
use sealift_format::{Bundle, Index, InodeKind, Object, OsTree, OsTreeFile, Row};

use crate::content::{Content, ContentError, Portion, fill_holes, range_of};

/// The OSTree files of each object: one for each combination of owner, mode and extended attributes with its content.
#[derive(Clone, Debug)]
pub struct OsTreeFiles {
    /// Object and file, in this order.
    uses: Vec<(Row<Object>, u32)>,
}

/// The OSTree files of a large object, while its pieces are read.
#[derive(Clone, Debug)]
pub struct LargeFiles {
    object: Row<Object>,
    next_piece: u64,
    hashers: Vec<(u32, FileObjectHasher)>,
}

impl OsTreeFiles {
    /// Returns those of a bundle.
    #[must_use]
    pub fn new(bundle: &Bundle) -> Self {
        let regular = |(number, file): (u32, &OsTreeFile)| match file.kind {
            InodeKind::Regular(object) => Some((object, number)),
            _ => None,
        };
        let mut uses: Vec<_> = (0..).zip(files(bundle)).filter_map(regular).collect();
        uses.sort_unstable();
        Self { uses }
    }

    /// Returns those files of a delta bundle whose objects only its bases hold, and which `base`, the first of them, does not have: checks of bases
    /// and chunks do not cover these.
    #[must_use]
    pub fn of_bases(bundle: &Bundle, base: &Index) -> Self {
        let mut known: Vec<&Checksum> =
            base.ostree().map_or(&[][..], OsTree::files).iter().map(|file| &file.checksum).collect();
        known.sort_unstable();
        let mut own = Self::new(bundle);
        own.uses.retain(|&(object, number)| {
            !bundle.layout.is_stored(object) && known.binary_search(&&file(bundle, number).checksum).is_err()
        });
        own
    }

    /// Returns their objects, in ascending order.
    pub fn objects(&self) -> impl Iterator<Item = Row<Object>> {
        self.uses.chunk_by(|(object, _), (other, _)| object == other).map(|uses| uses[0].0)
    }

    /// Returns the files of large objects, in ascending order of the objects, before any byte was taken; not of those that a recipe makes.
    #[must_use]
    pub fn large(&self, bundle: &Bundle) -> Vec<(Row<Object>, LargeFiles)> {
        let layout = &bundle.layout;
        let uses = self.uses.chunk_by(|(object, _), (other, _)| object == other);
        uses.filter(|uses| !layout.pieces_of(uses[0].0).is_empty() && layout.recipes.of(uses[0].0).is_none())
            .map(|uses| {
                let object = uses[0].0;
                let hashers = uses.iter().map(|&(_, file)| (file, hasher(bundle, file))).collect();
                (object, LargeFiles { object, next_piece: 0, hashers })
            })
            .collect()
    }

    /// Returns the files of one object, whose whole content is then passed to [`LargeFiles::push`], in parts.
    #[must_use]
    pub fn of(&self, bundle: &Bundle, object: Row<Object>) -> LargeFiles {
        let start = self.uses.partition_point(|(at, _)| *at < object);
        let uses = self.uses[start..].iter().take_while(|(at, _)| *at == object);
        LargeFiles { object, next_piece: 0, hashers: uses.map(|&(_, file)| (file, hasher(bundle, file))).collect() }
    }

    /// Checks the files of a small object.
    pub(crate) fn check(&self, bundle: &Bundle, content: &Content<'_>) -> Result<(), ContentError> {
        let object = content.portion.object;
        let start = self.uses.partition_point(|(at, _)| *at < object);
        for &(_, file) in self.uses[start..].iter().take_while(|(at, _)| *at == object) {
            let mut hasher = hasher(bundle, file);
            content.for_each_part(&mut |part| hasher.update(part));
            compare(bundle, file, hasher)?;
        }
        Ok(())
    }
}

impl LargeFiles {
    /// Returns whether this piece, which has data, is the next one with data.
    #[must_use]
    pub fn is_next(&self, bundle: &Bundle, piece: u64) -> bool {
        let between = usize::try_from(self.next_piece).ok().zip(usize::try_from(piece).ok());
        let between = between.and_then(|(next, piece)| bundle.layout.pieces_of(self.object).get(next..piece));
        between.is_some_and(|between| between.iter().all(|piece| piece.chunk.is_none()))
    }

    /// Takes the next piece with data, which are `data`, and the pieces without data before it.
    pub fn take(&mut self, bundle: &Bundle, piece: u64, data: &[u8]) {
        while self.next_piece < piece && self.take_bare(bundle) {}
        self.update(bundle, data);
    }

    /// Takes the next piece if it has no data, and returns whether it did.
    pub fn take_bare(&mut self, bundle: &Bundle) -> bool {
        let pieces = bundle.layout.pieces_of(self.object);
        let next = usize::try_from(self.next_piece).ok().and_then(|next| pieces.get(next));
        let is_bare = next.is_some_and(|piece| piece.chunk.is_none());
        if is_bare {
            self.update(bundle, &[]);
        }
        is_bare
    }

    /// Takes the next bytes, regardless of pieces.
    pub fn push(&mut self, bytes: &[u8]) {
        self.hashers.iter_mut().for_each(|(_, hasher)| hasher.update(bytes));
    }

    fn update(&mut self, bundle: &Bundle, data: &[u8]) {
        let range = range_of(bundle, Portion { object: self.object, piece: Some(self.next_piece) });
        let holes = bundle.layout.holes_of(self.object);
        for (_, hasher) in &mut self.hashers {
            let Ok(()) = fill_holes(data, holes, range.clone(), &mut |part| {
                hasher.update(part);
                Ok::<(), Infallible>(())
            });
        }
        self.next_piece += 1;
    }

    /// Compares the checksums, after all pieces were taken.
    ///
    /// # Errors
    /// Returns an error if a checksum differs.
    pub fn check(self, bundle: &Bundle) -> Result<(), ContentError> {
        self.hashers.into_iter().try_for_each(|(file, hasher)| compare(bundle, file, hasher))
    }
}

fn files(bundle: &Bundle) -> &[OsTreeFile] {
    bundle.index.ostree().map_or(&[], OsTree::files)
}

fn file(bundle: &Bundle, number: u32) -> &OsTreeFile {
    &files(bundle)[num::at(number)]
}

fn hasher(bundle: &Bundle, number: u32) -> FileObjectHasher {
    FileObjectHasher::new(bundle.index.ostree_attributes(file(bundle, number)), "")
}

fn compare(bundle: &Bundle, number: u32, hasher: FileObjectHasher) -> Result<(), ContentError> {
    let checksum = file(bundle, number).checksum;
    if hasher.finish() == checksum { Ok(()) } else { Err(ContentError::OsTreeFile { checksum }) }
}

#[cfg(test)]
mod tests {
    use sealift_format::{Attributes, Identity, IndexBuilder, Large, Layout, Node, Piece, Xattrs};

    use super::*;
    use crate::trust::sample;

    #[test]
    fn only_pieces_without_data_come_between_two_with_data() {
        let identity = Identity { name: "os".into(), version: 1, created: 0, expires: None, compatible: vec![] };
        let mut builder = IndexBuilder::default();
        builder.begin_ref("main");
        let directory = Attributes { mode: 0o40_755, uid: 0, gid: 0, xattrs: Xattrs::default() };
        builder.inode(&directory, (0, 0), Node::Directory { children: 0 });
        let bytes = builder.finish([].into_iter(), &[0; 32]).expect("it fits");
        let index = Index::parse(bytes, 0).expect("it is sound");
        let data = Some(Row::FIRST);
        let piece = |chunk| Piece { chunk, chaining_value: [0; 32] };
        let layout = Layout {
            pieces: [data, data, None, data, data].map(piece).into(),
            large: vec![Large { object: Row::FIRST, first_piece: 0 }],
            ..Layout::default()
        };
        let bundle = Bundle { head: sample::head(identity), layout, index };
        let files = LargeFiles { object: Row::FIRST, next_piece: 2, hashers: Vec::new() };
        assert_eq!([1, 3, 4, 9].map(|piece| files.is_next(&bundle, piece)), [false, true, false, false]);
    }
}
