//! Which columns an edit has rows in, depending on its op and its type (delta 5.4).

use alloc::vec::{IntoIter, Vec};

use crate::attributes::{Attributes, FileType};
use crate::bytes::Reader;
use crate::index::{Device, Symlink, row_fault, use_attributes};
use crate::{Error, Row, Rows};

use super::encode::{code, type_code};
use super::used::Used;
use super::{Changed, Edit, NewContent, NewFile, Op, Reference};

/// An edit before its content is read.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    op: u8,
    file_type: Option<FileType>,
    attributes: Option<Row<Attributes>>,
    mtime: Option<(i64, u32)>,
}

impl Shape {
    fn is_new(&self) -> bool {
        matches!(self.op, code::ADDED | code::REPLACED)
    }

    pub(super) fn is_link(&self) -> bool {
        matches!(self.op, code::LINKED | code::RELINKED)
    }

    fn has_content(&self) -> bool {
        self.is_new() || is_changed(self.op) && self.op & code::CONTENT != 0
    }

    /// Returns its type, if it has content.
    fn content_type(&self) -> Option<FileType> {
        self.file_type.filter(|_| self.has_content())
    }

    pub(super) fn has_block(&self) -> bool {
        self.op == code::WITHIN || self.file_type == Some(FileType::Directory)
    }

    pub(super) fn has_regular(&self) -> bool {
        self.content_type() == Some(FileType::Regular)
    }

    pub(super) fn has_symlink(&self) -> bool {
        self.content_type() == Some(FileType::Symlink)
    }

    pub(super) fn has_device(&self) -> bool {
        matches!(self.content_type(), Some(FileType::CharDevice | FileType::BlockDevice))
    }
}

pub(super) fn count(shapes: &[Shape], has: impl Fn(&Shape) -> bool) -> usize {
    shapes.iter().filter(|shape| has(shape)).count()
}

/// Returns whether the code is that of a kept file of which something changes.
fn is_changed(op: u8) -> bool {
    (code::CHANGED + 1..code::CHANGED + 8).contains(&op)
}

pub(super) fn parse_changes(
    mut reader: Reader<'_>,
    ops: &[u8],
    attributes: &[Attributes],
    used: &mut Used,
) -> Result<Vec<Shape>, Error> {
    if let Some(own) = ops.iter().position(|op| *op > code::RELINKED && !is_changed(*op)) {
        return Err(row_fault("unknown kind of edit", own));
    }
    let is_new = |op: u8| matches!(op, code::ADDED | code::REPLACED);
    let has = |op: u8, part: u8| is_new(op) || is_changed(op) && op & part != 0;
    let has_attributes = |op: &u8| has(*op, code::ATTRIBUTES);
    let has_mtime = |op: &u8| has(*op, code::MTIME);
    let rows = |has: &dyn Fn(&u8) -> bool| ops.iter().filter(|op| has(op)).count();
    let types = reader.take(rows(&|op| is_changed(*op) && !has_attributes(op)))?;
    let mut types = types.iter();
    let mut attribute_rows = reader.planes::<4>(rows(&has_attributes))?.u32s();
    let mtimes = rows(&has_mtime);
    let mut mtimes = reader.planes::<8>(mtimes)?.i64s().zip(reader.planes::<4>(mtimes)?.u32s());
    reader.finish()?;
    let mut shapes = Vec::with_capacity(ops.len());
    for (own, op) in ops.iter().enumerate() {
        let mut shape = Shape { op: *op, file_type: None, attributes: None, mtime: None };
        if has_attributes(op) {
            let row = attribute_rows.next().and_then(Row::new);
            let row = use_attributes(&mut used.attributes, row, attributes, own)?;
            shape.file_type = Some(attributes[row.at()].file_type());
            shape.attributes = Some(row);
        } else if is_changed(*op) {
            let code = types.next().copied().unwrap_or(0);
            let found = FileType::of_mode(u16::from(code) << 12).filter(|found| type_code(*found) == code);
            if found.is_none() {
                return Err(row_fault("unknown type of a changed file", own));
            }
            shape.file_type = found;
        }
        if has_mtime(op) {
            let (seconds, ns) = mtimes.next().unwrap_or_default();
            if ns >= 1_000_000_000 {
                return Err(row_fault("an edit's nanoseconds reach a second", own));
            }
            shape.mtime = Some((seconds, ns));
        }
        let changes = is_changed(*op) && op & code::CONTENT != 0;
        if changes && matches!(shape.file_type, Some(FileType::Directory | FileType::Fifo | FileType::Socket)) {
            return Err(row_fault("the content of a file changes that has none", own));
        }
        shapes.push(shape);
    }
    Ok(shapes)
}

/// The rows of sections 5 to 9 that were not assigned yet.
pub(super) struct Contents {
    pub(super) block_lens: IntoIter<u32>,
    pub(super) regulars: IntoIter<Reference>,
    pub(super) symlinks: Rows<Symlink>,
    pub(super) devices: IntoIter<Device>,
    pub(super) links: IntoIter<u32>,
}

impl Contents {
    /// Returns the op of an edit of this shape. Each column was read with as many rows as there are edits that need it.
    pub(super) fn op(&mut self, shape: &Shape) -> Op {
        let content = shape.content_type().map(|file_type| self.content(file_type));
        let file = NewFile {
            attributes: shape.attributes.unwrap_or(Row::FIRST),
            mtime: shape.mtime.unwrap_or_default(),
            content: content.unwrap_or(NewContent::Plain),
        };
        match shape.op {
            code::WITHIN => Op::Within,
            code::NAMED => Op::Named,
            code::REMOVED => Op::Removed,
            code::ADDED => Op::Added(file),
            code::REPLACED => Op::Replaced(file),
            code::LINKED => Op::Linked(self.link()),
            code::RELINKED => Op::Relinked(self.link()),
            _ => Op::Changed(Changed {
                file_type: shape.file_type.unwrap_or(FileType::Regular),
                attributes: shape.attributes,
                mtime: shape.mtime,
                content,
            }),
        }
    }

    /// Returns the edit that the next link names. An invalid number becomes the first edit, which is a ref's root: a link to it is refused later.
    fn link(&mut self) -> Row<Edit> {
        self.links.next().and_then(Row::new).unwrap_or(Row::FIRST)
    }

    fn content(&mut self, file_type: FileType) -> NewContent {
        match file_type {
            FileType::Directory => NewContent::Directory,
            FileType::Regular => NewContent::Regular(self.regulars.next().unwrap_or(Reference::Carried(Row::FIRST))),
            FileType::Symlink => NewContent::Symlink(self.symlinks.next().unwrap_or(Row::FIRST)),
            FileType::CharDevice | FileType::BlockDevice => {
                NewContent::Device(self.devices.next().unwrap_or(Device { major: 0, minor: 0 }))
            }
            FileType::Fifo | FileType::Socket => NewContent::Plain,
        }
    }
}
