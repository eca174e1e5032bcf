//! Comparing the commits of two indexes.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::index::{Index, InodeKind, OsTree, OsTreeFile, OsTreeKind, OsTreeObject};
use crate::num::at;
use crate::ostree::{Checksum, Commit, DirTree};
use crate::walk::pairs;

use super::super::names::put_name;
use super::{
    Beside, CommitObject, EditedCommit, EditedCommitRef, EditedTree, OsTreeDifference, Reference, TreeEdit, TreeOp,
    number,
};

/// By checksum, where each object is.
struct Places {
    trees: BTreeMap<Checksum, Reference>,
    metas: BTreeMap<Checksum, Reference>,
    files: BTreeMap<Checksum, Reference>,
    /// The base's commits.
    commits: BTreeMap<Checksum, u32>,
    /// The base's commitmetas, by the checksum of the commit.
    beside: BTreeMap<Checksum, u32>,
}

fn objects(index: &Index) -> &[OsTreeObject] {
    index.ostree().map_or(&[], OsTree::objects)
}

fn files(index: &Index) -> &[OsTreeFile] {
    index.ostree().map_or(&[], OsTree::files)
}

/// Returns the dirtree of that number. An index has been parsed, and its dirtrees with it.
fn dirtree<'a>(index: &'a Index, object: &OsTreeObject) -> DirTree<'a> {
    DirTree::parse(index.ostree_bytes(object)).unwrap_or_default()
}

/// What is in a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named<'a> {
    File(&'a Checksum),
    Directory(&'a Checksum, &'a Checksum),
}

fn names<'a>(tree: &DirTree<'a>) -> BTreeMap<&'a [u8], Named<'a>> {
    let files = tree.files.iter().map(|(name, file)| (*name, Named::File(file)));
    files.chain(tree.directories.iter().map(|(name, tree, meta)| (*name, Named::Directory(tree, meta)))).collect()
}

/// Returns what makes the commits of `wanted` of those of `base`, if it has commits. `from` gives for each ref of `wanted` the one of
/// the base that it is relative to, `object_of` for each object where it is, and `is_same` says whether two files are the same but for
/// their checksum. The content of new files is left to the caller: `files` are their numbers in the wanted index.
pub(in crate::difference) fn between(
    base: &Index,
    wanted: &Index,
    from: &[Option<u16>],
    is_same: impl Fn(&OsTreeFile, &OsTreeFile) -> bool,
) -> Option<(OsTreeDifference, Vec<OsTreeFile>)> {
    wanted.ostree()?;
    let mut difference = OsTreeDifference {
        base_objects: number(objects(base).len()),
        base_files: number(files(base).len()),
        ..OsTreeDifference::default()
    };
    let mut places = Places {
        trees: BTreeMap::new(),
        metas: BTreeMap::new(),
        files: BTreeMap::new(),
        commits: BTreeMap::new(),
        beside: BTreeMap::new(),
    };
    for (number, object) in (0..).zip(objects(base)) {
        let reference = Reference::Base(number);
        match object.kind {
            OsTreeKind::DirTree => drop(places.trees.insert(object.checksum, reference)),
            OsTreeKind::DirMeta => drop(places.metas.insert(object.checksum, reference)),
            OsTreeKind::Commit => drop(places.commits.insert(object.checksum, number)),
            OsTreeKind::CommitMeta => drop(places.beside.insert(object.checksum, number)),
        }
    }
    let base_files: BTreeMap<&Checksum, u32> = (0..).zip(files(base)).map(|(at, file)| (&file.checksum, at)).collect();
    let mut new_files = Vec::new();
    for file in files(wanted) {
        let known = base_files.get(&file.checksum).copied();
        let known = known.filter(|known| is_same(&files(base)[at(*known)], file)).map(Reference::Base);
        let place = known.unwrap_or_else(|| {
            new_files.push(*file);
            Reference::Carried(number(new_files.len() - 1))
        });
        places.files.insert(file.checksum, place);
    }
    let mut new_trees = Vec::new();
    for object in objects(wanted) {
        match object.kind {
            OsTreeKind::DirTree if !places.trees.contains_key(&object.checksum) => {
                places.trees.insert(object.checksum, Reference::Carried(number(new_trees.len())));
                new_trees.push(dirtree(wanted, object));
            }
            OsTreeKind::DirMeta if !places.metas.contains_key(&object.checksum) => {
                places.metas.insert(object.checksum, Reference::Carried(number(difference.dirmetas.len())));
                difference.dirmetas.push(wanted.ostree_bytes(object).to_vec());
            }
            _ => {}
        }
    }
    let commit_of = difference.add_commits(base, wanted, &places);
    let likes = find_likes(base, wanted, from, &places, &new_trees);
    for (tree, like) in new_trees.iter().zip(likes) {
        difference.add_tree(base, tree, like, &places);
    }
    difference.refs = wanted
        .refs()
        .iter()
        .filter_map(|edited| edited.ostree.as_ref())
        .map(|own| EditedCommitRef {
            commit: commit_of.get(&own.commit).copied().unwrap_or(0),
            is_known: own.is_known,
            collection: own.collection.clone(),
        })
        .collect();
    difference.repository_files = wanted.repository_files().map(|(file, bytes)| (file, bytes.to_vec())).collect();
    // What an index had in order is in order.
    difference.find_places().ok()?;
    Some((difference, new_files))
}

impl OsTreeDifference {
    /// Adds the commits and what is beside them. Returns for the number of each commit's object the commit's own.
    fn add_commits(&mut self, base: &Index, wanted: &Index, places: &Places) -> BTreeMap<u32, u32> {
        let mut commit_of = BTreeMap::new();
        for (own, object) in (0..).zip(objects(wanted)) {
            let bytes = wanted.ostree_bytes(object);
            match object.kind {
                OsTreeKind::Commit => {
                    commit_of.insert(own, number(self.commits.len()));
                    let known = places.commits.get(&object.checksum).copied().map(CommitObject::Base);
                    let commit = known.or_else(|| {
                        let commit = Commit::parse(bytes).ok()?;
                        let meta = *places.metas.get(commit.root_meta)?;
                        let tree = *places.trees.get(commit.root_tree)?;
                        Some(CommitObject::Carried { bytes: bytes.to_vec(), meta, tree })
                    });
                    self.commits.extend(commit.map(|commit| EditedCommit { commit, beside: Beside::Nothing }));
                }
                OsTreeKind::CommitMeta => {
                    let known = places.beside.get(&object.checksum).map(|known| &objects(base)[at(*known)]);
                    let is_known = known.is_some_and(|known| base.ostree_bytes(known) == bytes);
                    if let Some(commit) = self.commits.last_mut() {
                        // What is beside a carried commit is carried.
                        let is_of_base = is_known && matches!(commit.commit, CommitObject::Base(_));
                        commit.beside = if is_of_base { Beside::OfBase } else { Beside::Carried(bytes.to_vec()) };
                    }
                }
                OsTreeKind::DirTree | OsTreeKind::DirMeta => {}
            }
        }
        commit_of
    }

    fn add_tree(&mut self, base: &Index, tree: &DirTree<'_>, like: Option<u32>, places: &Places) {
        let first_edit = number(self.edits.len());
        let old = like.map(|like| names(&dirtree(base, &objects(base)[at(like)]))).unwrap_or_default();
        let new = names(tree);
        let place = |places: &BTreeMap<Checksum, Reference>, checksum: &Checksum| {
            places.get(checksum).copied().unwrap_or(Reference::Base(0))
        };
        let file = |checksum| place(&places.files, checksum);
        let tree = |checksum| place(&places.trees, checksum);
        let meta = |checksum| place(&places.metas, checksum);
        for (name, old, new) in
            pairs(old.iter().map(|(name, old)| (*name, old)), new.iter().map(|(name, new)| (*name, new)))
        {
            let op = match (old, new) {
                (old, new) if old == new => continue,
                (_, None) => TreeOp::Removed,
                (None, Some(Named::File(own))) => TreeOp::FileAdded(file(own)),
                (Some(_), Some(Named::File(own))) => TreeOp::FileReplaced(file(own)),
                (None, Some(Named::Directory(own, own_meta))) => {
                    TreeOp::DirectoryAdded { tree: tree(own), meta: meta(own_meta) }
                }
                (Some(Named::File(_)), Some(Named::Directory(own, own_meta))) => {
                    TreeOp::DirectoryReplaced { tree: tree(own), meta: meta(own_meta) }
                }
                (Some(Named::Directory(old, old_meta)), Some(Named::Directory(own, own_meta))) => {
                    TreeOp::DirectoryChanged {
                        tree: (own != old).then(|| tree(own)),
                        meta: (own_meta != old_meta).then(|| meta(own_meta)),
                    }
                }
            };
            let (name_at, name_len) = (number(self.names.len()), u8::try_from(name.len()).unwrap_or(u8::MAX));
            put_name(&mut self.names, name);
            self.edits.push(TreeEdit { name_at, name_len, op });
        }
        let edits = number(self.edits.len()) - first_edit;
        self.trees.push(EditedTree { like, first_edit, edits, named_by: None });
    }
}

/// For each new dirtree the base's that stands at the same path, where that is not taken yet.
fn find_likes(
    base: &Index,
    wanted: &Index,
    from: &[Option<u16>],
    places: &Places,
    new_trees: &[DirTree<'_>],
) -> Vec<Option<u32>> {
    let mut likes = alloc::vec![None; new_trees.len()];
    let mut is_taken = alloc::vec![false; objects(base).len()];
    let root = |index: &Index, commit: u32| {
        let commit = objects(index).get(at(commit)).map(|object| index.ostree_bytes(object))?;
        Commit::parse(commit).ok().map(|commit| *commit.root_tree)
    };
    let place = |checksum: &Checksum| places.trees.get(checksum).copied();
    for (edited, from) in wanted.refs().iter().zip(from) {
        let (Some(own), Some(from)) = (&edited.ostree, from) else { continue };
        let Some(old) = &base.refs()[usize::from(*from)].ostree else { continue };
        let roots = root(base, old.commit).zip(root(wanted, own.commit));
        let mut pending = Vec::new();
        pending.extend(roots.and_then(|(old, new)| place(&old).zip(place(&new))));
        while let Some((old, new)) = pending.pop() {
            let (Reference::Base(old), Reference::Carried(new)) = (old, new) else { continue };
            if likes[at(new)].is_some() || is_taken[at(old)] {
                continue;
            }
            (likes[at(new)], is_taken[at(old)]) = (Some(old), true);
            let old = dirtree(base, &objects(base)[at(old)]);
            for (name, tree, _) in &new_trees[at(new)].directories {
                let same = old.directories.binary_search_by_key(name, |directory| directory.0);
                let same = same.ok().and_then(|same| place(old.directories[same].1));
                pending.extend(same.zip(place(tree)));
            }
        }
    }
    likes
}

/// Returns whether a file has the same attributes and target, or one of the objects that `is_same_object` takes for the same.
pub(in crate::difference) fn is_same_file(
    (base, old): (&Index, &OsTreeFile),
    (wanted, new): (&Index, &OsTreeFile),
    is_same_object: impl Fn(u32, u32) -> bool,
) -> bool {
    let is_same_content = match (old.kind, new.kind) {
        (InodeKind::Regular(old), InodeKind::Regular(new)) => is_same_object(old, new),
        (InodeKind::Symlink(old), InodeKind::Symlink(new)) => base.symlink_target(old) == wanted.symlink_target(new),
        _ => false,
    };
    is_same_content && base.ostree_attributes(old) == wanted.ostree_attributes(new)
}
