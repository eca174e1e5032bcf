//! Parses section 14 of a difference.

use alloc::vec::Vec;

use crate::attributes::{Attributes, FileType};
use crate::bytes::Reader;
use crate::frame::check_frame_with_prefix;
use crate::index::{Symlink, parse_collection, parse_file_rows, parse_targets, row_fault};
use crate::num::at;
use crate::ostree::{Commit, Dictionary, Malformed, dirmeta};
use crate::{Error, Part, Row, Rows};

use super::dirtrees::{DirTrees, WINDOW_LOG};
use super::{
    Beside, CommitObject, EditedCommit, EditedCommitRef, NewContent, NewOsTreeFile, OsTreeDifference, Reference,
};

/// Section 14, and the parts of it that belong to tables of the whole difference.
pub(in crate::difference) struct Section {
    pub(in crate::difference) difference: OsTreeDifference,
    /// The steps of the regular files' objects.
    pub(in crate::difference) object_steps: Vec<u32>,
    /// Where the targets of symbolic links lie in `targets`.
    pub(in crate::difference) symlinks: Vec<Symlink>,
    pub(in crate::difference) targets: Vec<u8>,
}

fn malformed(row: usize) -> impl Fn(Malformed) -> Error {
    move |malformed| row_fault(malformed.reason(), row)
}

/// Reads the lengths of byte strings, and the strings.
fn blobs(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Vec<u8>>, Error> {
    let lens = reader.planes::<4>(count)?.u32s();
    lens.map(|len| reader.take(at(len)).map(<[u8]>::to_vec)).collect()
}

impl Section {
    /// Parses the section of a difference with `refs` refs of kind 1 and a wanted index of `index_len` bytes.
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
            _ => return Err(row_fault("unknown kind of commitmeta", own)),
        };
        commits.push(EditedCommit { commit, beside });
    }
    Ok(commits)
}

/// The steps of the regular files' objects, the position of each target, and the targets.
type Targets = (Vec<u32>, Vec<Symlink>, Vec<u8>);

/// Reads the dirtrees, which decode to at most `index_len` bytes.
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
        0 => Err(reader.malformed("frame without a dirtree")),
        _ => Ok(DirTrees { lens, frame }),
    }
}

impl OsTreeDifference {
    /// Reads the files without their objects, and returns the steps of the objects.
    fn parse_files(&mut self, reader: &mut Reader<'_>, attributes: &[Attributes]) -> Result<Targets, Error> {
        let (rows, symlinks) = parse_file_rows(reader, attributes)?;
        let steps = reader.planes::<4>(rows.len() - symlinks)?.u32s().collect();
        self.files.extend(rows.into_iter().map(|row| NewOsTreeFile { attributes: row, content: NewContent::Plain }));
        let (symlinks, targets) = parse_targets(reader, symlinks)?;
        Ok((steps, symlinks, targets))
    }

    fn parse_refs(&mut self, reader: &mut Reader<'_>, refs: usize) -> Result<(), Error> {
        let commits: Vec<u32> = reader.planes::<4>(refs)?.u32s().collect();
        for (own, commit) in commits.into_iter().enumerate() {
            if at(commit) >= self.commits.len() {
                return Err(row_fault("a ref names no commit", own));
            }
            self.refs.push(EditedCommitRef { commit, collection: parse_collection(reader)? });
        }
        Ok(())
    }

    /// Sets the objects of the files, and the rows of their targets.
    pub(in crate::difference) fn give_contents(
        &mut self,
        attributes: &[Attributes],
        objects: Vec<Reference>,
        symlinks_before: u32,
    ) {
        let mut objects = objects.into_iter();
        let mut symlinks = Rows::new(symlinks_before..u32::MAX);
        for file in &mut self.files {
            file.content = match attributes[file.attributes.at()].file_type() {
                FileType::Symlink => NewContent::Symlink(symlinks.next().unwrap_or(Row::FIRST)),
                _ => NewContent::Regular(objects.next().unwrap_or(Reference::Base(Row::FIRST))),
            };
        }
    }
}
