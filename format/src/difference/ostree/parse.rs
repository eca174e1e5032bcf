//! Reading section 14.

use alloc::string::String;
use alloc::vec::Vec;

use crate::attributes::{Attributes, FileType};
use crate::bytes::Reader;
use crate::frame::check_frame_with_prefix;
use crate::index::{RepositoryFile, parse_symlinks, row_fault};
use crate::name::is_collection_id;
use crate::num::at;
use crate::ostree::{Commit, Dictionary, Malformed, dirmeta};
use crate::{Error, Part, Row};

use super::dirtrees::{DirTrees, WINDOW_LOG};
use super::{
    Beside, CommitObject, Content, EditedCommit, EditedCommitRef, NewOsTreeFile, OsTreeDifference, Reference, number,
};

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
    /// Reads the section of a difference with so many refs of kind 1, to a wanted index of `index_len` bytes.
    pub(in crate::difference) fn parse(
        mut reader: Reader<'_>,
        attributes: &[Attributes],
        refs: usize,
        index_len: u64,
    ) -> Result<Self, Error> {
        let mut difference = OsTreeDifference { commits: parse_commits(&mut reader)?, ..OsTreeDifference::default() };
        let count = reader.count32()?;
        difference.dirmetas = blobs(&mut reader, count)?;
        for (own, bytes) in difference.dirmetas.iter().enumerate() {
            dirmeta::parse(bytes).map_err(malformed(own))?;
        }
        difference.dirtrees = parse_dirtrees(&mut reader, index_len)?;
        let (object_steps, symlinks, targets) = difference.parse_files(&mut reader, attributes)?;
        difference.parse_refs(&mut reader, refs)?;
        difference.parse_repository_files(&mut reader)?;
        reader.finish()?;
        Ok(Self { difference, object_steps, symlinks, targets })
    }
}

fn parse_commits(reader: &mut Reader<'_>) -> Result<Vec<EditedCommit>, Error> {
    let count = reader.count32()?;
    let of_base: Vec<Option<u32>> = reader.planes::<4>(count)?.u32s().map(|commit| commit.checked_sub(1)).collect();
    let beside = reader.take(count)?;
    let carried = of_base.iter().filter(|commit| commit.is_none()).count();
    let mut carried = blobs(reader, carried)?.into_iter();
    let mut carried_beside = blobs(reader, beside.iter().filter(|beside| **beside == 2).count())?.into_iter();
    let mut commits = Vec::with_capacity(count);
    for (own, (of_base, beside)) in of_base.into_iter().zip(beside).enumerate() {
        let commit = match of_base {
            Some(known) => CommitObject::Base(known),
            None => {
                let bytes = carried.next().unwrap_or_default();
                Commit::parse(&bytes).map_err(malformed(own))?;
                CommitObject::Carried(bytes)
            }
        };
        let beside = match beside {
            0 => Beside::Nothing,
            1 if matches!(commit, CommitObject::Base(_)) => Beside::OfBase,
            2 => {
                let bytes = carried_beside.next().unwrap_or_default();
                Dictionary::parse(&bytes).map_err(malformed(own))?;
                Beside::Carried(bytes)
            }
            _ => return Err(row_fault("the commitmeta of a commit is of no kind that there is", own)),
        };
        commits.push(EditedCommit { commit, beside });
    }
    Ok(commits)
}

/// The steps of the regular files' objects, where each target lies, and the targets.
type Targets = (Vec<u32>, Vec<(u32, u32)>, Vec<u8>);

/// Reads the dirtrees, which decode to `index_len` bytes at most.
fn parse_dirtrees(reader: &mut Reader<'_>, index_len: u64) -> Result<DirTrees, Error> {
    let count = reader.count32()?;
    let lens: Vec<u32> = reader.planes::<4>(count)?.u32s().collect();
    let len = lens.iter().map(|len| u64::from(*len)).sum();
    if len > index_len {
        return Err(reader.malformed("the dirtrees are longer than the index"));
    }
    let stored = reader.u32()?;
    let frame = reader.take(at(stored))?.to_vec();
    if count == 0 && frame.is_empty() {
        return Ok(DirTrees::default());
    }
    check_frame_with_prefix(Part::Index, &frame, len, WINDOW_LOG)?;
    match count {
        0 => Err(reader.malformed("a frame is there without a dirtree")),
        _ => Ok(DirTrees { lens, frame }),
    }
}

impl OsTreeDifference {
    /// Reads the files, but for their objects, of which it returns the steps.
    fn parse_files(&mut self, reader: &mut Reader<'_>, attributes: &[Attributes]) -> Result<Targets, Error> {
        let count = reader.count32()?;
        let rows = reader.planes::<4>(count)?.u32s();
        let (mut regulars, mut symlinks) = (0, 0);
        for (own, row) in rows.enumerate() {
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
            self.files.push(NewOsTreeFile { attributes: row, content });
        }
        let steps = reader.planes::<4>(regulars)?.u32s().collect();
        let mut lens = reader.clone();
        lens.planes::<2>(symlinks)?;
        let start = lens.position();
        let (mut spans, before) = (parse_symlinks(reader, symlinks)?, number(start)?);
        spans.iter_mut().for_each(|span| span.0 -= before);
        let len = reader.position() - start;
        Ok((steps, spans, lens.take(len)?.to_vec()))
    }

    fn parse_refs(&mut self, reader: &mut Reader<'_>, refs: usize) -> Result<(), Error> {
        let commits: Vec<u32> = reader.planes::<4>(refs)?.u32s().collect();
        for (own, commit) in commits.into_iter().enumerate() {
            if at(commit) >= self.commits.len() {
                return Err(row_fault("a ref names no commit", own));
            }
            let len = reader.u8()?;
            let collection = match core::str::from_utf8(reader.take(len.into())?) {
                Ok(id) if id.is_empty() || is_collection_id(id) => String::from(id),
                _ => return Err(reader.malformed("a collection id has another form than allowed")),
            };
            self.refs.push(EditedCommitRef { commit, collection });
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
                _ => Content::Regular(objects.next().unwrap_or(Reference::Base(Row::FIRST))),
            };
        }
    }
}
