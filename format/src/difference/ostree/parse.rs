//! Reading section 14.

use alloc::string::String;
use alloc::vec::Vec;

use crate::Error;
use crate::attributes::{Attributes, FileType};
use crate::bytes::Reader;
use crate::index::{RepositoryFile, parse_symlinks};
use crate::name::{component_fault, is_collection_id};
use crate::num::at;
use crate::ostree::{Commit, Dictionary, Malformed, dirmeta};

use super::super::names::Names;
use super::encode::code;
use super::{
    Beside, CommitObject, Content, EditedCommit, EditedCommitRef, EditedTree, NewOsTreeFile, OsTreeDifference,
    Reference, TreeEdit, TreeOp, number,
};
use crate::index::row_fault;

/// Section 14, and what of it belongs to the tables of the whole difference.
pub(in crate::difference) struct Section {
    pub(in crate::difference) difference: OsTreeDifference,
    /// The steps of the regular files' objects.
    pub(in crate::difference) object_steps: Vec<u32>,
    /// Where the targets of symbolic links lie in `targets`.
    pub(in crate::difference) symlinks: Vec<(u32, u32)>,
    pub(in crate::difference) targets: Vec<u8>,
}

fn malformed(row: usize) -> impl Fn(Malformed) -> Error {
    move |malformed| row_fault(malformed.reason(), row)
}

/// Reads the lengths of byte strings and those.
fn blobs(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Vec<u8>>, Error> {
    let lens = reader.planes::<4>(count)?.u32s();
    lens.map(|len| reader.take(at(len)).map(<[u8]>::to_vec)).collect()
}

impl Section {
    /// Reads the section of a difference with so many refs of kind 1.
    pub(in crate::difference) fn parse(
        mut reader: Reader<'_>,
        attributes: &[Attributes],
        refs: usize,
    ) -> Result<Self, Error> {
        let mut difference =
            OsTreeDifference { base_objects: reader.u32()?, base_files: reader.u32()?, ..OsTreeDifference::default() };
        let commits = parse_commits(&mut reader)?;
        let count = reader.count32()?;
        difference.dirmetas = blobs(&mut reader, count)?;
        for (own, bytes) in difference.dirmetas.iter().enumerate() {
            dirmeta::parse(bytes).map_err(malformed(own))?;
        }
        let ops = difference.parse_trees(&mut reader)?;
        let (object_steps, symlinks, targets) = difference.parse_files(&mut reader, attributes)?;
        difference.place(&mut reader, commits, &ops)?;
        difference.parse_refs(&mut reader, refs)?;
        difference.parse_repository_files(&mut reader)?;
        reader.finish()?;
        difference.find_places()?;
        Ok(Self { difference, object_steps, symlinks, targets })
    }
}

/// A commit before its tree is known: that of the base, or the bytes.
type ParsedCommit = (Result<u32, Vec<u8>>, Beside);

fn parse_commits(reader: &mut Reader<'_>) -> Result<Vec<ParsedCommit>, Error> {
    let count = reader.count32()?;
    let of_base: Vec<Option<u32>> = reader.planes::<4>(count)?.u32s().map(|commit| commit.checked_sub(1)).collect();
    let beside = reader.take(count)?;
    let carried = of_base.iter().filter(|commit| commit.is_none()).count();
    let mut carried = blobs(reader, carried)?.into_iter();
    let mut carried_beside = blobs(reader, beside.iter().filter(|beside| **beside == 2).count())?.into_iter();
    let mut commits = Vec::with_capacity(count);
    for (own, (of_base, beside)) in of_base.into_iter().zip(beside).enumerate() {
        let commit = match of_base {
            Some(known) => Ok(known),
            None => {
                let bytes = carried.next().unwrap_or_default();
                Commit::parse(&bytes).map_err(malformed(own))?;
                Err(bytes)
            }
        };
        let beside = match beside {
            0 => Beside::Nothing,
            1 if commit.is_ok() => Beside::OfBase,
            2 => {
                let bytes = carried_beside.next().unwrap_or_default();
                Dictionary::parse(&bytes).map_err(malformed(own))?;
                Beside::Carried(bytes)
            }
            _ => return Err(row_fault("what is beside a commit is of no kind that there is", own)),
        };
        commits.push((commit, beside));
    }
    Ok(commits)
}

/// Where each target lies, and the targets.
type Targets = (Vec<u32>, Vec<(u32, u32)>, Vec<u8>);

impl OsTreeDifference {
    /// Reads the dirtrees and the names of their edits; returns the edits' codes.
    fn parse_trees(&mut self, reader: &mut Reader<'_>) -> Result<Vec<u8>, Error> {
        let count = reader.count32()?;
        let likes = reader.planes::<4>(count)?.u32s();
        let lens = reader.planes::<4>(count)?.u32s();
        let mut first_edit = 0_u32;
        let not_alone = "a dirtree is like one that the base does not have, or that another is like";
        for (own, (like, edits)) in likes.zip(lens).enumerate() {
            let like = like.checked_sub(1);
            if like.is_some_and(|like| like >= self.base_objects) {
                return Err(row_fault(not_alone, own));
            }
            self.trees.push(EditedTree { like, first_edit, edits, named_by: None });
            let Some(next) = first_edit.checked_add(edits) else {
                return Err(reader.malformed("a count is larger than what follows it"));
            };
            first_edit = next;
        }
        // So what is made of a base is never larger than the base and the difference.
        let mut likes: Vec<u32> = self.trees.iter().filter_map(|tree| tree.like).collect();
        likes.sort_unstable();
        if let Some(pair) = likes.windows(2).find(|pair| pair[0] == pair[1]) {
            let own = self.trees.iter().rposition(|tree| tree.like == Some(pair[0]));
            return Err(row_fault(not_alone, own.unwrap_or(0)));
        }
        let ops = reader.take(at(first_edit))?.to_vec();
        let mut names = Names::default();
        let mut name_at = 0;
        for tree in &self.trees {
            let mut last: &[u8] = b"";
            for _ in 0..tree.edits {
                let own = self.edits.len();
                let name = names.take(reader)?;
                if let Some(what) = component_fault(name) {
                    return Err(Error::Path { entry: number(own), what });
                }
                // A dirtree's names are GVariant strings.
                if name <= last || core::str::from_utf8(name).is_err() {
                    return Err(row_fault("names of a dirtree's edits do not ascend or are not UTF-8", own));
                }
                last = name;
                let name_len = u8::try_from(name.len()).unwrap_or(u8::MAX);
                self.edits.push(TreeEdit { name_at, name_len, op: TreeOp::Removed });
                name_at += u32::from(name_len) + 1;
            }
        }
        self.names = names.bytes;
        if let Some(own) = ops.iter().position(|op| *op > code::BOTH_CHANGED) {
            return Err(row_fault("an edit of a dirtree is of no kind that there is", own));
        }
        for (own, tree) in self.trees.iter().enumerate() {
            let own_ops = &ops[at(tree.first_edit)..at(tree.first_edit) + at(tree.edits)];
            if tree.like.is_none() && own_ops.iter().any(|op| !matches!(*op, code::FILE_ADDED | code::DIRECTORY_ADDED))
            {
                return Err(row_fault("an edit of what the base has is in a dirtree that is like none", own));
            }
            if tree.like.is_some() && own_ops.is_empty() {
                return Err(row_fault("a dirtree is carried that the base has", own));
            }
        }
        Ok(ops)
    }

    /// Reads the files, but for their objects, of which it returns the steps.
    fn parse_files(&mut self, reader: &mut Reader<'_>, attributes: &[Attributes]) -> Result<Targets, Error> {
        let count = reader.count32()?;
        let checksums = reader.take(count.saturating_mul(32))?.as_chunks::<32>().0;
        let rows = reader.planes::<4>(count)?.u32s();
        let (mut regulars, mut symlinks) = (0, 0);
        for (own, (checksum, row)) in checksums.iter().zip(rows).enumerate() {
            let content = match attributes.get(at(row)).map(Attributes::file_type) {
                Some(FileType::Regular) => {
                    regulars += 1;
                    Content::Plain
                }
                Some(FileType::Symlink) => {
                    symlinks += 1;
                    Content::Symlink(0)
                }
                _ => return Err(row_fault("an OSTree file is neither a regular file nor a symbolic link", own)),
            };
            self.files.push(NewOsTreeFile { checksum: *checksum, attributes: row, content });
        }
        let mut sorted: Vec<&[u8; 32]> = checksums.iter().collect();
        sorted.sort_unstable();
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(row_fault("an OSTree file is carried twice", 0));
        }
        let steps = reader.planes::<4>(regulars)?.u32s().collect();
        let mut lens = reader.clone();
        lens.planes::<2>(symlinks)?;
        let start = lens.position();
        let mut spans = parse_symlinks(reader, symlinks)?;
        spans.iter_mut().for_each(|span| span.0 -= number(start));
        let len = reader.position() - start;
        Ok((steps, spans, lens.take(len)?.to_vec()))
    }

    /// Reads which files, dirtrees and dirmetas the edits and the commits name.
    fn place(&mut self, reader: &mut Reader<'_>, commits: Vec<ParsedCommit>, ops: &[u8]) -> Result<(), Error> {
        let carried = commits.iter().filter(|(commit, _)| commit.is_err()).count();
        let count = |has: fn(u8) -> bool| ops.iter().filter(|op| has(**op)).count();
        let missing = || row_fault("a file, dirtree or dirmeta is named that neither base nor difference have", 0);
        let files = reader.planes::<4>(count(|op| matches!(op, code::FILE_ADDED | code::FILE_REPLACED)))?;
        let mut files = self.file_rows().follow(files.u32s()).ok_or_else(missing)?.into_iter();
        let has_tree = |op| {
            matches!(op, code::DIRECTORY_ADDED | code::DIRECTORY_REPLACED | code::TREE_CHANGED | code::BOTH_CHANGED)
        };
        let trees = reader.planes::<4>(carried + count(has_tree))?;
        let mut trees = self.tree_rows().follow(trees.u32s()).ok_or_else(missing)?.into_iter();
        let has_meta = |op| {
            matches!(op, code::DIRECTORY_ADDED | code::DIRECTORY_REPLACED | code::META_CHANGED | code::BOTH_CHANGED)
        };
        let metas = reader.planes::<4>(carried + count(has_meta))?;
        let mut metas = self.meta_rows().follow(metas.u32s()).ok_or_else(missing)?.into_iter();
        // Each column was read with as many rows as are taken here.
        let mut file = || files.next().unwrap_or(Reference::Base(0));
        let mut tree = || trees.next().unwrap_or(Reference::Base(0));
        let mut meta = || metas.next().unwrap_or(Reference::Base(0));
        for (commit, beside) in commits {
            let commit = match commit {
                Ok(known) if known < self.base_objects => CommitObject::Base(known),
                Ok(_) => return Err(missing()),
                Err(bytes) => CommitObject::Carried { bytes, tree: tree(), meta: meta() },
            };
            self.commits.push(EditedCommit { commit, beside });
        }
        for (edit, op) in self.edits.iter_mut().zip(ops) {
            edit.op = match *op {
                code::FILE_ADDED => TreeOp::FileAdded(file()),
                code::FILE_REPLACED => TreeOp::FileReplaced(file()),
                code::DIRECTORY_ADDED => TreeOp::DirectoryAdded { tree: tree(), meta: meta() },
                code::DIRECTORY_REPLACED => TreeOp::DirectoryReplaced { tree: tree(), meta: meta() },
                code::TREE_CHANGED => TreeOp::DirectoryChanged { tree: Some(tree()), meta: None },
                code::META_CHANGED => TreeOp::DirectoryChanged { tree: None, meta: Some(meta()) },
                code::BOTH_CHANGED => TreeOp::DirectoryChanged { tree: Some(tree()), meta: Some(meta()) },
                _ => TreeOp::Removed,
            };
        }
        Ok(())
    }

    fn parse_refs(&mut self, reader: &mut Reader<'_>, refs: usize) -> Result<(), Error> {
        let commits: Vec<u32> = reader.planes::<4>(refs)?.u32s().collect();
        let is_known = reader.take(refs)?;
        for (own, (commit, is_known)) in commits.into_iter().zip(is_known).enumerate() {
            if at(commit) >= self.commits.len() || *is_known > 1 {
                return Err(row_fault("a ref names no commit", own));
            }
            let len = reader.u8()?;
            let collection = match core::str::from_utf8(reader.take(len.into())?) {
                Ok(id) if id.is_empty() || is_collection_id(id) => String::from(id),
                _ => return Err(reader.malformed("a collection id has another form than allowed")),
            };
            self.refs.push(EditedCommitRef { commit, is_known: *is_known == 1, collection });
        }
        Ok(())
    }

    fn parse_repository_files(&mut self, reader: &mut Reader<'_>) -> Result<(), Error> {
        for _ in 0..reader.u8()? {
            let code = reader.u8()?;
            let Some(kind) = RepositoryFile::ALL.into_iter().find(|kind| kind.code() == code) else {
                return Err(reader.malformed("a repository has no file of that kind"));
            };
            if self.repository_files.last().is_some_and(|(last, _)| *last >= kind) {
                return Err(reader.malformed("the repository's files do not ascend"));
            }
            let len = reader.u32()?;
            self.repository_files.push((kind, reader.take(at(len))?.to_vec()));
        }
        Ok(())
    }

    /// Gives the files their objects and the rows of their targets, of which so many come before.
    pub(in crate::difference) fn give_contents(&mut self, objects: Vec<Reference>, symlinks_before: u32) {
        let mut objects = objects.into_iter();
        let mut symlinks = symlinks_before..;
        for file in &mut self.files {
            file.content = match file.content {
                Content::Symlink(_) => Content::Symlink(symlinks.next().unwrap_or(0)),
                _ => Content::Regular(objects.next().unwrap_or(Reference::Base(0))),
            };
        }
    }
}
