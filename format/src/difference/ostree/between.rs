//! Compares the commits of two indexes.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use crate::index::{Index, Object, OsTree, OsTreeFile, OsTreeKind, OsTreeObject};
use crate::num::at;
use crate::ostree::{Checksum, DirTree};
use crate::{Error, Row};

use super::dirtrees::{DirTrees, blank};
use super::{Beside, CommitObject, EditedCommit, EditedCommitRef, OsTreeDifference, number};

fn objects(index: &Index) -> &[OsTreeObject] {
    index.ostree().map_or(&[], OsTree::objects)
}

fn files(index: &Index) -> &[OsTreeFile] {
    index.ostree().map_or(&[], OsTree::files)
}

/// Returns the dirtree of an object. It was parsed with the index, so this does not fail.
fn dirtree<'a>(index: &'a Index, object: &OsTreeObject) -> DirTree<'a> {
    DirTree::parse(index.ostree_bytes(object)).unwrap_or_default()
}

/// Returns the difference from the commits of `base` to those of `wanted`, if that has commits, and the files that the base does not have: the caller
/// sets their content. `is_same` returns whether two files differ only in their checksum, and `compress` returns a frame of bytes with a prefix.
pub(in crate::difference) fn between(
    base: &Index,
    wanted: &Index,
    is_same: impl Fn(&OsTreeFile, &OsTreeFile) -> bool,
    compress: impl FnOnce(&[u8], &[u8]) -> Result<Vec<u8>, String>,
) -> Result<Option<(OsTreeDifference, Vec<OsTreeFile>)>, String> {
    if wanted.ostree().is_none() {
        return Ok(None);
    }
    let base_files: BTreeMap<&Checksum, &OsTreeFile> = files(base).iter().map(|file| (&file.checksum, file)).collect();
    let mut new_files = Vec::new();
    for file in files(wanted) {
        match base_files.get(&file.checksum) {
            None => new_files.push(*file),
            Some(known) if is_same(known, file) => {}
            // An index can be read without checking that a file's content matches its checksum (ostree 5).
            Some(_) => return Err("an OSTree file of the base has another content than its checksum says".to_string()),
        }
    }
    let known: BTreeMap<(OsTreeKind, Checksum), u32> =
        (0..).zip(objects(base)).map(|(number, object)| ((object.kind, object.checksum), number)).collect();
    let is_new = |object: &&OsTreeObject| !known.contains_key(&(object.kind, object.checksum));
    let of_kind = |kind| objects(wanted).iter().filter(move |object| object.kind == kind).filter(is_new);
    let mut difference = OsTreeDifference {
        dirmetas: of_kind(OsTreeKind::DirMeta).map(|object| wanted.ostree_bytes(object).to_vec()).collect(),
        dirtrees: carried_dirtrees(wanted, &of_kind(OsTreeKind::DirTree).collect::<Vec<_>>(), |bytes| {
            compress(base.ostree_metadata(), bytes)
        })?,
        ..OsTreeDifference::default()
    };
    let commit_of = difference.add_commits(base, wanted, &known).map_err(|error| error.to_string())?;
    difference.refs = wanted
        .refs()
        .iter()
        .filter_map(|edited| edited.ostree.as_ref())
        .map(|own| EditedCommitRef {
            commit: commit_of.get(&own.commit).copied().unwrap_or(0),
            collection: own.collection.clone(),
        })
        .collect();
    Ok(Some((difference, new_files)))
}

/// Returns the dirtrees of `wanted` that the base does not have, in the order of `wanted`, in the form in which a difference stores them.
fn carried_dirtrees(
    wanted: &Index,
    carried: &[&OsTreeObject],
    compress: impl FnOnce(&[u8]) -> Result<Vec<u8>, String>,
) -> Result<DirTrees, String> {
    if carried.is_empty() {
        return Ok(DirTrees::default());
    }
    let numbers: BTreeMap<&Checksum, u32> = carried.iter().map(|object| &object.checksum).zip(0..).collect();
    let find = |checksum: &Checksum| {
        let number = *numbers.get(checksum)?;
        Some((number, dirtree(wanted, carried[at(number)])))
    };
    let (mut met, mut blanked) = (BTreeSet::new(), Vec::with_capacity(carried.len()));
    for (own, object) in (0..).zip(carried) {
        // A dirtree that no other names is a commit's root.
        if !met.contains(&own) {
            blanked.extend(blank(own, &find, dirtree(wanted, object), &mut met));
        }
    }
    blanked.sort_unstable_by_key(|(own, _)| *own);
    let lens = blanked.iter().map(|(_, bytes)| number(bytes.len())).collect::<Result<_, _>>();
    let lens = lens.map_err(|error| error.to_string())?;
    let bytes: Vec<u8> = blanked.into_iter().flat_map(|(_, bytes)| bytes).collect();
    Ok(DirTrees { lens, frame: compress(&bytes)? })
}

impl OsTreeDifference {
    /// Adds the commits and their commitmetas. Returns the position of each commit, by the number of its object.
    fn add_commits(
        &mut self,
        base: &Index,
        wanted: &Index,
        known: &BTreeMap<(OsTreeKind, Checksum), u32>,
    ) -> Result<BTreeMap<u32, u32>, Error> {
        let mut commit_of = BTreeMap::new();
        for (own, object) in (0..).zip(objects(wanted)) {
            let bytes = wanted.ostree_bytes(object);
            let known = known.get(&(object.kind, object.checksum)).copied();
            match object.kind {
                OsTreeKind::Commit => {
                    commit_of.insert(own, number(self.commits.len())?);
                    let commit = known.map_or_else(|| CommitObject::Carried(bytes.to_vec()), CommitObject::Base);
                    self.commits.push(EditedCommit { commit, beside: Beside::Nothing });
                }
                OsTreeKind::CommitMeta => {
                    let is_known = known.is_some_and(|known| base.ostree_bytes(&objects(base)[at(known)]) == bytes);
                    if let Some(commit) = self.commits.last_mut() {
                        // The commitmeta of a carried commit is carried as well.
                        let is_of_base = is_known && matches!(commit.commit, CommitObject::Base(_));
                        commit.beside = if is_of_base { Beside::OfBase } else { Beside::Carried(bytes.to_vec()) };
                    }
                }
                OsTreeKind::DirTree | OsTreeKind::DirMeta => {}
            }
        }
        Ok(commit_of)
    }
}

/// Returns whether two files have the same attributes, and the same target or objects that are the same according to `is_same_object`.
pub(in crate::difference) fn is_same_file(
    base: &Index,
    old: &OsTreeFile,
    wanted: &Index,
    new: &OsTreeFile,
    is_same_object: impl Fn(Row<Object>, Row<Object>) -> bool,
) -> bool {
    base.is_same_content(old.kind, wanted, new.kind, is_same_object)
        && base.ostree_attributes(old) == wanted.ostree_attributes(new)
}
