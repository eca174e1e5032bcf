//! Parses section 11 of an index: first its fields, and then how the objects refer to each other.

use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest as _, Sha256};

use super::{Numbers, OsTree, OsTreeFile, OsTreeKind, OsTreeObject, OsTreeRef};
use crate::attributes::{Attributes, FileType};
use crate::bytes::Reader;
use crate::digest_map::DigestMap;
use crate::index::rows::{number, parse_symlinks, row_fault};
use crate::index::{InodeKind, Object, Symlink};
use crate::name::is_collection_id;
use crate::num::{at, fit};
use crate::ostree::file::FileObjectHasher;
use crate::ostree::{Checksum, Commit, Dictionary, DirTree, Malformed, dirmeta};
use crate::{Error, Part, Row};

/// The fields of section 11, before references are resolved.
pub(in crate::index) struct Section<'a> {
    bytes: &'a [u8],
    objects: Vec<OsTreeObject>,
    file_rows: Vec<Row<Attributes>>,
    pub(in crate::index) file_objects: Vec<Option<Row<Object>>>,
    pub(in crate::index) targets: Vec<Symlink>,
    commits: Vec<u32>,
    collections: Vec<String>,
}

/// Reads the attribute rows of the files. Returns them, and how many of the files are symbolic links; the others are regular files.
pub(crate) fn parse_file_rows(
    reader: &mut Reader<'_>,
    attributes: &[Attributes],
) -> Result<(Vec<Row<Attributes>>, usize), Error> {
    let count = reader.count32()?;
    let (mut rows, mut symlinks) = (Vec::with_capacity(count), 0);
    for (own, number) in reader.planes::<4>(count)?.u32s().enumerate() {
        let row = Row::new(number);
        match row.and_then(|row| row.get(attributes)).map(Attributes::file_type) {
            Some(FileType::Regular) => {}
            Some(FileType::Symlink) => symlinks += 1,
            _ => return Err(row_fault("an OSTree file is neither a regular file nor a symbolic link", own)),
        }
        rows.extend(row);
    }
    Ok((rows, symlinks))
}

/// Reads a collection id, which may be empty.
pub(crate) fn parse_collection(reader: &mut Reader<'_>) -> Result<String, Error> {
    let len = reader.u8()?;
    match core::str::from_utf8(reader.take(len.into())?) {
        Ok(id) if id.is_empty() || is_collection_id(id) => Ok(String::from(id)),
        _ => Err(reader.malformed("invalid collection id")),
    }
}

impl<'a> Section<'a> {
    /// Reads the section's fields, for `refs` refs of kind 1.
    pub(in crate::index) fn parse(
        mut reader: Reader<'a>,
        bytes: &'a [u8],
        attributes: &[Attributes],
        refs: usize,
    ) -> Result<Self, Error> {
        let count = reader.count32()?;
        let kinds = reader.take(count)?;
        let lens: Vec<u32> = reader.planes::<4>(count)?.u32s().collect();
        let mut objects = Vec::with_capacity(count);
        for (row, (code, len)) in kinds.iter().zip(lens).enumerate() {
            let Some(kind) = OsTreeKind::ALL.into_iter().find(|kind| kind.code() == *code) else {
                return Err(row_fault("a metadata object has another type than OSTree's", row));
            };
            let start = number(reader.position())?;
            let object = reader.take(at(len))?;
            // A commitmeta gets the checksum of its commit later.
            let checksum = if kind == OsTreeKind::CommitMeta { [0; 32] } else { Sha256::digest(object).into() };
            objects.push(OsTreeObject { kind, checksum, at: start, len });
        }
        let (file_rows, symlinks) = parse_file_rows(&mut reader, attributes)?;
        let file_objects = reader.planes::<4>(file_rows.len() - symlinks)?.u32s().map(Row::of_column).collect();
        let targets = parse_symlinks(&mut reader, symlinks)?;
        let commits = reader.planes::<4>(refs)?.u32s().collect();
        let mut collections = Vec::with_capacity(refs);
        for _ in 0..refs {
            collections.push(parse_collection(&mut reader)?);
        }
        reader.finish()?;
        Ok(Self { bytes, objects, file_rows, file_objects, targets, commits, collections })
    }

    /// Returns the attribute rows of the files, which follow those of the inodes.
    pub(in crate::index) fn file_rows(&self) -> &[Row<Attributes>] {
        &self.file_rows
    }

    /// Follows the references from the commits, and checks that each object is in its place. `kinds` gives the object or link of each file.
    pub(in crate::index) fn resolve(self, kinds: &[InodeKind], attributes: &[Attributes]) -> Result<Resolved, Error> {
        let mut walk = Walk {
            section: &self,
            next: 0,
            known: Numbers::default(),
            files: DigestMap::default(),
            trees: self.objects.iter().map(|_| Tree::default()).collect(),
            metas: Vec::new(),
            roots: alloc::vec![None; self.objects.len()],
            commit_of: Vec::new(),
        };
        let mut commits = Vec::with_capacity(self.commits.len());
        for column in &self.commits {
            let commit = match column.checked_sub(1) {
                None => walk.next_commit()?,
                Some(known) if walk.roots.get(at(known)).is_some_and(Option::is_some) => known,
                Some(known) => return Err(at_object("a ref names no commit that came before", known)),
            };
            commits.push(commit);
        }
        if walk.next != self.objects.len() {
            return Err(row_fault("unreferenced metadata object", walk.next));
        }
        let mut checksums: Vec<Option<Checksum>> = alloc::vec![None; self.file_rows.len()];
        for (checksum, file) in walk.files.iter() {
            if let Some(place) = usize::try_from(*file).ok().and_then(|file| checksums.get_mut(file)) {
                *place = Some(*checksum);
            }
        }
        let mut files = Vec::with_capacity(checksums.len());
        let mut targets = self.targets.iter();
        for (at, ((checksum, own_row), kind)) in checksums.into_iter().zip(&self.file_rows).zip(kinds).enumerate() {
            let Some(checksum) = checksum else {
                return Err(row_fault("unreferenced OSTree file", at));
            };
            if let InodeKind::Symlink(_) = kind {
                let target = targets.next().map_or(&[][..], |link| slice(self.bytes, (link.at, link.len)));
                let target = core::str::from_utf8(target).ok();
                let found = target.map(|target| FileObjectHasher::new(&attributes[own_row.at()], target).finish());
                if found != Some(checksum) {
                    return Err(row_fault("an OSTree symbolic link does not match its checksum", at));
                }
            }
            files.push(OsTreeFile { checksum, attributes: *own_row, kind: *kind });
        }
        let (trees, roots, metas, commit_of) = (walk.trees, walk.roots, walk.metas, walk.commit_of);
        let mut objects = self.objects;
        for (meta, commit) in commit_of {
            let checksum = objects.get(at(commit)).map(|commit| commit.checksum);
            if let (Some(object), Some(checksum)) = (objects.get_mut(at(meta)), checksum) {
                object.checksum = checksum;
            }
        }
        let refs = commits.into_iter().zip(&self.commits).zip(self.collections);
        let refs = refs.map(|((commit, column), collection)| OsTreeRef { commit, is_known: *column > 0, collection });
        Ok(Resolved {
            refs: refs.collect(),
            ostree: OsTree { objects, files, of_parents: Default::default() },
            trees,
            roots,
            metas,
        })
    }
}

fn slice(bytes: &[u8], (start, len): (u32, u32)) -> &[u8] {
    bytes.get(at(start)..at(start).saturating_add(at(len))).unwrap_or_default()
}

fn at_object(what: &'static str, object: u32) -> Error {
    Error::Row { part: Part::Index, what, row: object.into() }
}

fn malformed(object: u32) -> impl Fn(Malformed) -> Error {
    move |malformed| at_object(malformed.reason(), object)
}

/// A parsed dirtree: positions and lengths of names, with the numbers of files, or of dirtrees and dirmetas.
#[derive(Debug, Default)]
pub(in crate::index) struct Tree {
    pub(in crate::index) files: Vec<((u32, u8), u32)>,
    pub(in crate::index) directories: Vec<((u32, u8), u32, u32)>,
}

impl Tree {
    /// Returns how many names it has.
    pub(in crate::index) fn len(&self) -> usize {
        self.files.len() + self.directories.len()
    }
}

/// Section 11, with references resolved.
pub(in crate::index) struct Resolved {
    pub(in crate::index) refs: Vec<OsTreeRef>,
    pub(in crate::index) ostree: OsTree,
    /// For each object, its names if it is a dirtree.
    pub(in crate::index) trees: Vec<Tree>,
    /// For each object, the dirtree and the dirmeta of its root if it is a commit.
    pub(in crate::index) roots: Vec<Option<(u32, u32)>>,
    /// For each dirmeta, its number and attributes.
    pub(in crate::index) metas: Vec<(u32, Attributes)>,
}

/// Visits the objects in the order of ostree 4.
struct Walk<'s, 'a> {
    section: &'s Section<'a>,
    /// The first object that was not reached yet.
    next: usize,
    known: Numbers,
    files: DigestMap,
    trees: Vec<Tree>,
    metas: Vec<(u32, Attributes)>,
    roots: Vec<Option<(u32, u32)>>,
    /// For each commitmeta, its commit.
    commit_of: Vec<(u32, u32)>,
}

impl<'a> Walk<'_, 'a> {
    fn bytes(&self, object: u32) -> &'a [u8] {
        let object = self.section.objects.get(at(object));
        object.map_or(&[], |object| slice(self.section.bytes, (object.at, object.len)))
    }

    /// Returns the next object, if it has this type and, if one is given, this checksum.
    fn take_next(&mut self, kind: OsTreeKind, checksum: Option<&Checksum>) -> Option<u32> {
        let object = self.section.objects.get(self.next)?;
        let fits = object.kind == kind && checksum.is_none_or(|checksum| object.checksum == *checksum);
        if !fits || self.known.get(kind, &object.checksum).is_some() {
            return None;
        }
        let found = u32::try_from(self.next).ok()?;
        if kind != OsTreeKind::CommitMeta {
            self.known.insert(kind, object.checksum, found);
        }
        self.next += 1;
        Some(found)
    }

    /// Returns the object with this checksum, and whether it is new.
    fn take(&mut self, kind: OsTreeKind, checksum: &Checksum) -> Result<(u32, bool), Error> {
        if let Some(known) = self.known.get(kind, checksum) {
            return Ok((known, false));
        }
        let taken = self.take_next(kind, Some(checksum)).map(|object| (object, true));
        taken.ok_or_else(|| {
            row_fault("a metadata object is missing here, or stands twice or in another place", self.next)
        })
    }

    /// Visits the next commit, with everything that belongs to it and to those of its parents that are carried. Returns its number.
    fn next_commit(&mut self) -> Result<u32, Error> {
        let first = self.take_next(OsTreeKind::Commit, None);
        let first = first.ok_or_else(|| row_fault("a ref's commit is missing here, or stands twice", self.next))?;
        let mut number = first;
        loop {
            let commit = Commit::parse(self.bytes(number)).map_err(malformed(number))?;
            if let Some(meta) = self.take_next(OsTreeKind::CommitMeta, None) {
                Dictionary::parse(self.bytes(meta)).map_err(malformed(meta))?;
                self.commit_of.push((meta, number));
            }
            let meta = self.dirmeta(commit.root_meta)?;
            let tree = self.dirtree(commit.root_tree)?;
            self.roots[at(number)] = Some((tree, meta));
            let parent = commit.parent.and_then(|parent| self.take_next(OsTreeKind::Commit, Some(parent)));
            match parent {
                Some(parent) => number = parent,
                None => return Ok(first),
            }
        }
    }

    fn dirmeta(&mut self, checksum: &Checksum) -> Result<u32, Error> {
        let (object, is_new) = self.take(OsTreeKind::DirMeta, checksum)?;
        if is_new {
            self.metas.push((object, dirmeta::parse(self.bytes(object)).map_err(malformed(object))?));
        }
        Ok(object)
    }

    /// Visits a dirtree and everything below it. Returns its number.
    fn dirtree(&mut self, checksum: &Checksum) -> Result<u32, Error> {
        let (root, is_new) = self.take(OsTreeKind::DirTree, checksum)?;
        // Dirtrees whose directories are not all visited: the dirtree, how many of its directories are, and the checksums of all.
        let mut open: Vec<(u32, usize, Vec<Checksum>)> = Vec::new();
        if is_new {
            open.push((root, 0, self.enter(root)?));
        }
        while let Some((tree, done, below)) = open.last_mut() {
            let Some(checksum) = below.get(*done).copied() else {
                open.pop();
                continue;
            };
            let (own, index) = (*tree, *done);
            *done += 1;
            let (child, is_new) = self.take(OsTreeKind::DirTree, &checksum)?;
            if let Some(directory) = self.trees.get_mut(at(own)).and_then(|tree| tree.directories.get_mut(index)) {
                directory.1 = child;
            }
            if is_new {
                open.push((child, 0, self.enter(child)?));
            }
        }
        Ok(root)
    }

    /// Numbers the files of a new dirtree, and visits the dirmetas of its directories. Returns the checksums of their dirtrees.
    fn enter(&mut self, object: u32) -> Result<Vec<Checksum>, Error> {
        let parsed = DirTree::parse(self.bytes(object)).map_err(malformed(object))?;
        let start = self.section.bytes.as_ptr().addr();
        let span = |name: &[u8]| -> Result<_, Error> {
            Ok((number(name.as_ptr().addr() - start)?, fit(name.len(), "the length of a name")?))
        };
        let mut tree = Tree::default();
        for (name, checksum) in &parsed.files {
            let next = number(self.files.len())?;
            let file = self.files.get_or_insert(**checksum, next);
            if at(file) >= self.section.file_rows.len() {
                return Err(at_object("a dirtree names more files than there are", object));
            }
            tree.files.push((span(name)?, file));
        }
        let mut below = Vec::with_capacity(parsed.directories.len());
        for (name, dirtree, dirmeta) in &parsed.directories {
            let meta = self.dirmeta(dirmeta)?;
            tree.directories.push((span(name)?, 0, meta));
            below.push(**dirtree);
        }
        self.trees[at(object)] = tree;
        Ok(below)
    }
}
