//! Makes the commits of the wanted index from those of the base.

use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use crate::digest_map::DigestMap;
use crate::index::{Index, IndexBuilder, Numbers, OsTree, OsTreeFile, OsTreeKind, row_fault};
use crate::num::at;
use crate::ostree::{Checksum, Commit, DirTree, Malformed};
use crate::{Error, Row};

use super::super::Difference;
use super::super::apply::Same;
use super::dirtrees::Restored;
use super::{Beside, CommitObject, OsTreeDifference, number, row};

fn unreadable(malformed: Malformed) -> Error {
    row_fault(malformed.reason(), 0)
}

/// The files of the commits, in the order in which they were first reached.
pub(in crate::difference) struct Added<'a> {
    /// For each ref of kind 1, the number of its commit's object, if an earlier ref names it.
    pub(in crate::difference) known: Vec<Option<u32>>,
    files: Vec<FileOf<'a>>,
}

/// A file of the wanted index.
#[derive(Clone, Copy)]
enum FileOf<'a> {
    New(u32),
    Base(&'a OsTreeFile),
}

/// A commit that was added.
struct LaidCommit {
    checksum: Checksum,
    parent: Option<Checksum>,
    object: u32,
}

impl OsTreeDifference {
    /// Adds the metadata objects to the builder, in the order of ostree 4.
    pub(in crate::difference) fn add_objects<'a>(
        &self,
        base: &'a Index,
        builder: &mut IndexBuilder,
    ) -> Result<Added<'a>, Error> {
        let base_objects = base.ostree().map_or(&[][..], OsTree::objects);
        let dirtrees = self.dirtrees.restore(base.ostree_metadata())?;
        let dirmetas = self.dirmetas.iter().map(|bytes| (bytes, Sha256::digest(bytes).into()));
        let mut known = Numbers::default();
        let mut objects: Vec<Object<'_>> = Vec::with_capacity(base_objects.len());
        for object in base_objects {
            known.insert(object.kind, object.checksum, number(objects.len())?);
            objects.push(Object { bytes: base.ostree_bytes(object), carried: None, is_met: false });
        }
        let carried = dirtrees.iter().map(|tree| (OsTreeKind::DirTree, &tree.bytes, tree.checksum));
        let carried = carried.zip(0..).chain(dirmetas.map(|(bytes, sum)| (OsTreeKind::DirMeta, bytes, sum)).zip(0..));
        for ((kind, bytes, checksum), own) in carried {
            if known.insert(kind, checksum, number(objects.len())?).is_some() {
                return Err(row_fault("a dirtree or dirmeta is carried twice, or the base has it", at(own)));
            }
            objects.push(Object { bytes, carried: Some(own), is_met: false });
        }
        let base_files = base.ostree().map_or(&[][..], OsTree::files);
        let mut walk = Walk {
            known,
            objects,
            dirtrees: &dirtrees,
            next: [0; 2],
            base_files,
            files: DigestMap::default(),
            new_files: 0..number(self.files.len())?,
            added: Vec::new(),
            builder,
        };
        for (own, file) in Row::all(base_files) {
            walk.files.insert(file.checksum, Row::column(Some(own)));
        }
        let mut commits = Vec::with_capacity(self.commits.len());
        for (own, edited) in self.commits.iter().enumerate() {
            let bytes = match &edited.commit {
                CommitObject::Carried(bytes) => bytes,
                CommitObject::Base(known) => {
                    let object = base_objects.get(at(*known)).filter(|object| object.kind == OsTreeKind::Commit);
                    let missing = || row_fault("the base has no commit of that number", own);
                    base.ostree_bytes(object.ok_or_else(missing)?)
                }
            };
            let commit = Commit::parse(bytes).map_err(unreadable)?;
            let checksum = Sha256::digest(bytes).into();
            let is_known = walk.known.get(OsTreeKind::Commit, &checksum).is_some();
            if is_known && matches!(edited.commit, CommitObject::Carried(_)) {
                return Err(row_fault("a commit is carried that the base has", own));
            }
            let object = walk.builder.ostree_object(OsTreeKind::Commit, bytes);
            commits.push(LaidCommit { checksum, parent: commit.parent.copied(), object });
            match &edited.beside {
                Beside::Nothing => {}
                Beside::Carried(bytes) => drop(walk.builder.ostree_object(OsTreeKind::CommitMeta, bytes)),
                Beside::OfBase => {
                    let beside = walk.known.get(OsTreeKind::CommitMeta, &checksum);
                    let beside = beside.ok_or_else(|| row_fault("the base has no commitmeta of that commit", own))?;
                    walk.builder.ostree_object(OsTreeKind::CommitMeta, row(&walk.objects, beside).bytes);
                }
            }
            walk.meet(OsTreeKind::DirMeta, commit.root_meta)?;
            walk.tree(*commit.root_tree)?;
        }
        if walk.next != [number(dirtrees.len())?, number(self.dirmetas.len())?] {
            return Err(row_fault("a dirtree or dirmeta is carried that no commit reaches", 0));
        }
        if let Some(file) = walk.new_files.next() {
            return Err(row_fault("unreferenced OSTree file", at(file)));
        }
        Ok(Added { known: self.known(&commits)?, files: walk.added })
    }

    /// Returns for each ref the number of its commit's object, if an earlier ref names it: a ref names its commit, and the parents that
    /// follow it.
    fn known(&self, commits: &[LaidCommit]) -> Result<Vec<Option<u32>>, Error> {
        let mut known = Vec::with_capacity(self.refs.len());
        let mut next = 0;
        for (own, edited) in self.refs.iter().enumerate() {
            let commit = at(edited.commit);
            known.push((commit < next).then(|| commits[commit].object));
            if commit > next {
                return Err(row_fault("a ref names another commit than the next or an earlier one", own));
            }
            if commit == next {
                let chain = commits[next..].windows(2).take_while(|pair| pair[0].parent == Some(pair[1].checksum));
                next += 1 + chain.count();
            }
        }
        match next == commits.len() {
            true => Ok(known),
            false => Err(row_fault("unreferenced commit", next)),
        }
    }
}

impl Added<'_> {
    /// Adds the files to the builder, which must have all inodes.
    pub(in crate::difference) fn add_files(
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
                    let attributes = &whole.attribute_rows()[file.attributes.at()];
                    builder.ostree_file(attributes, whole.node(file.content, same, 0));
                }
                FileOf::Base(file) => {
                    builder.ostree_file(base.ostree_attributes(file), base.node(file.kind));
                }
            }
        }
    }
}

/// A metadata object.
struct Object<'w> {
    bytes: &'w [u8],
    /// Its number, if it is carried.
    carried: Option<u32>,
    is_met: bool,
}

/// Visits the wanted objects in the order of ostree 4.
struct Walk<'w, 'a> {
    /// All objects of base and difference, except for carried commits and commitmetas.
    known: Numbers,
    objects: Vec<Object<'w>>,
    dirtrees: &'w [Restored],
    /// The next carried dirtree and the next carried dirmeta.
    next: [u32; 2],
    base_files: &'a [OsTreeFile],
    /// For each checksum, the base's file; `None` once a file with it was reached, of the base or new.
    files: DigestMap,
    new_files: core::ops::Range<u32>,
    added: Vec<FileOf<'a>>,
    builder: &'w mut IndexBuilder,
}

impl<'w> Walk<'w, '_> {
    /// Adds an object when it is first reached, and then returns its bytes; `None` if it was reached before.
    fn meet(&mut self, kind: OsTreeKind, checksum: &Checksum) -> Result<Option<&'w [u8]>, Error> {
        let own = self.known.get(kind, checksum).and_then(|own| self.objects.get_mut(at(own)));
        let Some(Object { bytes, carried, is_met }) = own else {
            return Err(row_fault("a metadata object is named that neither base nor difference have", 0));
        };
        if core::mem::replace(is_met, true) {
            return Ok(None);
        }
        if let Some(own) = carried {
            let next = &mut self.next[usize::from(kind == OsTreeKind::DirMeta)];
            if *own != *next {
                return Err(row_fault(
                    "a carried dirtree or dirmeta is not at the place where it is first reached",
                    at(*own),
                ));
            }
            *next += 1;
        }
        self.builder.ostree_object(kind, bytes);
        Ok(Some(*bytes))
    }

    /// Adds a dirtree and everything below it.
    fn tree(&mut self, root: Checksum) -> Result<(), Error> {
        let mut pending = alloc::vec![root];
        while let Some(checksum) = pending.pop() {
            let next = self.next[0];
            let Some(bytes) = self.meet(OsTreeKind::DirTree, &checksum)? else { continue };
            let is_named = self.next[0] > next && self.dirtrees[at(next)].is_root && checksum != root;
            if is_named {
                return Err(row_fault("the checksum of a carried dirtree is stated where it comes next", at(next)));
            }
            let tree = DirTree::parse(bytes).map_err(unreadable)?;
            for (_, checksum) in tree.files {
                let file = match self.files.insert(*checksum, 0).map(Row::<OsTreeFile>::of_column) {
                    Some(None) => continue,
                    Some(Some(file)) => FileOf::Base(row(self.base_files, file.number())),
                    None => {
                        let new = self.new_files.next();
                        let missing = || row_fault("more OSTree files are named than there are", self.added.len());
                        FileOf::New(new.ok_or_else(missing)?)
                    }
                };
                self.added.push(file);
            }
            for (_, _, meta) in &tree.directories {
                self.meet(OsTreeKind::DirMeta, meta)?;
            }
            pending.extend(tree.directories.iter().rev().map(|(_, tree, _)| **tree));
        }
        Ok(())
    }
}
