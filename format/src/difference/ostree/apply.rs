//! Making the commits of the wanted index of those of the base.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use crate::Error;
use crate::index::{Index, IndexBuilder, InodeKind, Node, OsTree, OsTreeFile, OsTreeKind, OsTreeObject};
use crate::num::at;
use crate::ostree::{Checksum, Commit, DirTree, Malformed};

use super::super::Difference;
use super::super::apply::Same;
use super::{Beside, CommitObject, OsTreeDifference, Reference, TreeOp, row};
use crate::index::row_fault;

fn misfit(own: u32) -> Error {
    row_fault("an edit of a dirtree does not fit the base", at(own))
}

fn unreadable(malformed: Malformed) -> Error {
    row_fault(malformed.reason(), 0)
}

/// The OSTree objects of the base.
#[derive(Clone, Copy)]
struct Base<'a> {
    index: &'a Index,
    objects: &'a [OsTreeObject],
    files: &'a [OsTreeFile],
}

impl<'a> Base<'a> {
    /// Returns an object by its number, which is to be of that type.
    fn object(self, kind: OsTreeKind, number: u32) -> Result<&'a OsTreeObject, Error> {
        let object = self.objects.get(at(number)).filter(|object| object.kind == kind);
        object.ok_or_else(|| row_fault("the base has no OSTree object of that number and type", at(number)))
    }
}

/// What the commits have made, in the order in which they came to it.
pub(in crate::difference) struct Laid<'a> {
    /// For each commit of the difference the number of its object.
    pub(in crate::difference) commits: Vec<u32>,
    files: Vec<FileOf<'a>>,
}

/// A file of the wanted index.
#[derive(Clone, Copy)]
enum FileOf<'a> {
    New(u32),
    Base(&'a OsTreeFile),
}

impl OsTreeDifference {
    /// Adds the metadata objects to the builder, in the order of spec 6.6.
    pub(in crate::difference) fn lay_objects<'a>(
        &self,
        base: &'a Index,
        builder: &mut IndexBuilder,
    ) -> Result<Laid<'a>, Error> {
        let base = Base {
            index: base,
            objects: base.ostree().map_or(&[], OsTree::objects),
            files: base.ostree().map_or(&[], OsTree::files),
        };
        if base.objects.len() != at(self.base_objects) || base.files.len() != at(self.base_files) {
            return Err(row_fault("the difference is to another base: it has another number of OSTree objects", 0));
        }
        let made = self.make_trees(base)?;
        let known_objects = base.objects.iter().filter(|object| object.kind != OsTreeKind::CommitMeta);
        let mut walk = Walk {
            objects: known_objects
                .map(|object| ((object.kind, object.checksum), base.index.ostree_bytes(object)))
                .collect(),
            files: base.files.iter().map(|file| (file.checksum, FileOf::Base(file))).collect(),
            met: BTreeSet::new(),
            met_files: BTreeSet::new(),
            laid: Vec::new(),
            builder,
        };
        for (bytes, checksum) in &made {
            walk.objects.insert((OsTreeKind::DirTree, *checksum), bytes);
        }
        for bytes in &self.dirmetas {
            walk.objects.insert((OsTreeKind::DirMeta, Sha256::digest(bytes).into()), bytes);
        }
        for (number, file) in (0..).zip(&self.files) {
            walk.files.insert(file.checksum, FileOf::New(number));
        }
        let beside_of: BTreeMap<&Checksum, &OsTreeObject> = base
            .objects
            .iter()
            .filter(|object| object.kind == OsTreeKind::CommitMeta)
            .map(|object| (&object.checksum, object))
            .collect();
        let mut commits = Vec::with_capacity(self.commits.len());
        for (own, edited) in self.commits.iter().enumerate() {
            let (bytes, known) = match &edited.commit {
                CommitObject::Base(known) => {
                    let object = base.object(OsTreeKind::Commit, *known)?;
                    (base.index.ostree_bytes(object), Some(object.checksum))
                }
                CommitObject::Carried { bytes, .. } => (&bytes[..], None),
            };
            let commit = Commit::parse(bytes).map_err(unreadable)?;
            if let CommitObject::Carried { meta, tree, .. } = &edited.commit {
                let fits = self.meta_sum(base, *meta)? == *commit.root_meta
                    && self.tree_sum(base, &made, *tree)? == *commit.root_tree;
                if !fits {
                    return Err(row_fault("a commit's root has another checksum than the commit says", own));
                }
            }
            commits.push(walk.builder.ostree_object(OsTreeKind::Commit, bytes));
            match &edited.beside {
                Beside::Nothing => {}
                Beside::Carried(bytes) => drop(walk.builder.ostree_object(OsTreeKind::CommitMeta, bytes)),
                Beside::OfBase => {
                    let beside = known.and_then(|known| beside_of.get(&known));
                    let beside = beside.ok_or_else(|| row_fault("the base has nothing beside that commit", own))?;
                    walk.builder.ostree_object(OsTreeKind::CommitMeta, base.index.ostree_bytes(beside));
                }
            }
            walk.meet(OsTreeKind::DirMeta, commit.root_meta)?;
            walk.tree(*commit.root_tree)?;
        }
        let new = walk.laid.iter().filter_map(|file| match file {
            FileOf::New(number) => Some(*number),
            FileOf::Base(_) => None,
        });
        if !new.eq(0..super::number(self.files.len())) {
            return Err(row_fault("a carried OSTree file is in another place than where it is come to", 0));
        }
        Ok(Laid { commits, files: walk.laid })
    }

    fn meta_sum(&self, base: Base<'_>, meta: Reference) -> Result<Checksum, Error> {
        match meta {
            Reference::Carried(meta) => Ok(Sha256::digest(row(&self.dirmetas, meta)).into()),
            Reference::Base(meta) => base.object(OsTreeKind::DirMeta, meta).map(|object| object.checksum),
        }
    }

    fn tree_sum(&self, base: Base<'_>, made: &[(Vec<u8>, Checksum)], tree: Reference) -> Result<Checksum, Error> {
        match tree {
            Reference::Carried(tree) => Ok(row(made, tree).1),
            Reference::Base(tree) => base.object(OsTreeKind::DirTree, tree).map(|object| object.checksum),
        }
    }

    /// Returns the bytes and checksums of the carried dirtrees.
    fn make_trees(&self, base: Base<'_>) -> Result<Vec<(Vec<u8>, Checksum)>, Error> {
        let mut made = alloc::vec![(Vec::new(), [0; 32]); self.trees.len()];
        let metas = self.dirmetas.iter().map(|bytes| Sha256::digest(bytes).into()).collect::<Vec<Checksum>>();
        for own in self.walk()?.bottom_up {
            let bytes = self.make_tree(base, own, &made, &metas)?;
            let checksum = Sha256::digest(&bytes).into();
            made[at(own)] = (bytes, checksum);
        }
        Ok(made)
    }

    fn make_tree(
        &self,
        base: Base<'_>,
        own: u32,
        made: &[(Vec<u8>, Checksum)],
        metas: &[Checksum],
    ) -> Result<Vec<u8>, Error> {
        let tree = row(&self.trees, own);
        let like = match tree.like {
            Some(like) => base.index.ostree_bytes(base.object(OsTreeKind::DirTree, like)?),
            None => &[0],
        };
        let like = DirTree::parse(like).map_err(unreadable)?;
        let mut files: BTreeMap<&[u8], &Checksum> = like.files.into_iter().collect();
        let mut directories: BTreeMap<&[u8], (&Checksum, &Checksum)> =
            like.directories.into_iter().map(|(name, tree, meta)| (name, (tree, meta))).collect();
        let file_sum = |file| match file {
            Reference::Carried(file) => &row(&self.files, file).checksum,
            Reference::Base(file) => &row(base.files, file).checksum,
        };
        let tree_sum = |tree| match tree {
            Reference::Carried(tree) => Ok(&row(made, tree).1),
            Reference::Base(tree) => base.object(OsTreeKind::DirTree, tree).map(|object| &object.checksum),
        };
        let meta_sum = |meta| match meta {
            Reference::Carried(meta) => Ok(row(metas, meta)),
            Reference::Base(meta) => base.object(OsTreeKind::DirMeta, meta).map(|object| &object.checksum),
        };
        for edit in self.edits(tree) {
            let name = self.name(edit);
            let (was_file, was_directory) = (files.remove(name).is_some(), directories.remove_entry(name));
            let fits = match edit.op {
                TreeOp::Removed | TreeOp::FileReplaced(_) => was_file || was_directory.is_some(),
                TreeOp::FileAdded(_) | TreeOp::DirectoryAdded { .. } => !was_file && was_directory.is_none(),
                TreeOp::DirectoryReplaced { .. } => was_file,
                TreeOp::DirectoryChanged { .. } => was_directory.is_some(),
            };
            if !fits {
                return Err(misfit(own));
            }
            match edit.op {
                TreeOp::Removed => {}
                TreeOp::FileAdded(file) | TreeOp::FileReplaced(file) => {
                    files.insert(name, file_sum(file));
                }
                TreeOp::DirectoryAdded { tree, meta } | TreeOp::DirectoryReplaced { tree, meta } => {
                    directories.insert(name, (tree_sum(tree)?, meta_sum(meta)?));
                }
                TreeOp::DirectoryChanged { tree, meta } => {
                    let Some((_, (old_tree, old_meta))) = was_directory else { return Err(misfit(own)) };
                    let tree = tree.map_or(Ok(old_tree), tree_sum)?;
                    directories.insert(name, (tree, meta.map_or(Ok(old_meta), meta_sum)?));
                }
            }
        }
        let directories = directories.into_iter().map(|(name, (tree, meta))| (name, tree, meta));
        Ok(DirTree { files: files.into_iter().collect(), directories: directories.collect() }.encode())
    }
}

impl Laid<'_> {
    /// Adds the files to the builder, which has all inodes, and the files of the repository.
    pub(in crate::difference) fn lay_files(
        &self,
        whole: &Difference,
        base: &Index,
        same: &Same,
        builder: &mut IndexBuilder,
    ) {
        let Some(own) = whole.ostree() else { return };
        for file in &self.files {
            match file {
                FileOf::New(file) => {
                    let file = row(&own.files, *file);
                    let attributes = row(whole.attribute_rows(), file.attributes);
                    builder.ostree_file(attributes, whole.node(file.content, same, 0));
                }
                FileOf::Base(file) => {
                    let node = match file.kind {
                        InodeKind::Regular(content) => Node::Regular { content },
                        InodeKind::Symlink(symlink) => Node::Symlink(base.symlink_target(symlink)),
                        _ => continue,
                    };
                    builder.ostree_file(base.ostree_attributes(file), node);
                }
            }
        }
        own.repository_files.iter().for_each(|(file, bytes)| builder.repository_file(*file, bytes));
    }
}

/// Goes through the wanted objects in the order of spec 6.6.
struct Walk<'w, 'a> {
    /// By type and checksum, all objects that there are in base and difference, but for commits and what is beside them.
    objects: BTreeMap<(OsTreeKind, Checksum), &'w [u8]>,
    files: BTreeMap<Checksum, FileOf<'a>>,
    met: BTreeSet<(OsTreeKind, Checksum)>,
    met_files: BTreeSet<Checksum>,
    laid: Vec<FileOf<'a>>,
    builder: &'w mut IndexBuilder,
}

impl<'w> Walk<'w, '_> {
    /// Adds an object where it is come to for the first time, and then returns its bytes.
    fn meet(&mut self, kind: OsTreeKind, checksum: &Checksum) -> Result<Option<&'w [u8]>, Error> {
        if !self.met.insert((kind, *checksum)) {
            return Ok(None);
        }
        let Some(bytes) = self.objects.get(&(kind, *checksum)).copied() else {
            return Err(row_fault("a metadata object is named that neither base nor difference have", 0));
        };
        self.builder.ostree_object(kind, bytes);
        Ok(Some(bytes))
    }

    /// Adds a dirtree with all below it.
    fn tree(&mut self, root: Checksum) -> Result<(), Error> {
        let mut pending = alloc::vec![root];
        while let Some(checksum) = pending.pop() {
            let Some(bytes) = self.meet(OsTreeKind::DirTree, &checksum)? else { continue };
            let tree = DirTree::parse(bytes).map_err(unreadable)?;
            for (_, checksum) in tree.files {
                if self.met_files.insert(*checksum) {
                    let file = self.files.get(checksum).copied();
                    let missing = || row_fault("an OSTree file is named that neither base nor difference have", 0);
                    self.laid.push(file.ok_or_else(missing)?);
                }
            }
            for (_, _, meta) in &tree.directories {
                self.meet(OsTreeKind::DirMeta, meta)?;
            }
            pending.extend(tree.directories.iter().rev().map(|(_, tree, _)| **tree));
        }
        Ok(())
    }
}
