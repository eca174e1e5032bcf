//! Reading a difference strictly, without its base (spec 6.7).

use alloc::string::String;
use alloc::vec::Vec;

use crate::bytes::{Reader, SectionRule, read_sections, widen};
use crate::index::{Attributes, Device, FileType, parse_attributes, parse_objects, parse_symlinks};
use crate::name::{component_fault, is_ref_name};
use crate::{Error, Part};

use super::encode::{code, type_code};
use super::ostree;
use super::reference::Rows;
use super::{BaseRef, Changed, Content, Difference, Edit, EditedKind, EditedRef, NewFile, Op, Reference, TimeChange};
use super::{at, number};

const RULES: [SectionRule; 14] = [
    SectionRule::required(1),
    SectionRule::required(2),
    SectionRule::required(3),
    SectionRule::required(4),
    SectionRule::required(5),
    SectionRule::required(6),
    SectionRule::required(7),
    SectionRule::required(8),
    SectionRule::required(9),
    SectionRule::required(10),
    SectionRule::required(11),
    SectionRule::required(12),
    SectionRule::required(13),
    SectionRule::optional(14),
];

pub(super) fn row_fault(what: &'static str, row: usize) -> Error {
    Error::Row { part: Part::Index, what, row: widen(row) }
}

impl Difference {
    /// Parses a decoded difference, which is to have matched its digest. `entries` is the root's maximum.
    ///
    /// # Errors
    /// It is not as spec 6.7 says, or makes more entries than `entries`.
    pub fn parse(bytes: &[u8], entries: u64) -> Result<Self, Error> {
        // Places in it are kept in 32 bits.
        if u32::try_from(bytes.len()).is_err() {
            return Err(Error::Limit { what: "index_len", declared: widen(bytes.len()), limit: u32::MAX.into() });
        }
        let sections = read_sections(Part::Index, bytes, &RULES)?;
        let has_ostree = sections[13].is_some();
        let empty = || Reader::new(Part::Index, &[]);
        let [
            base,
            refs,
            edits,
            changes,
            directories,
            regulars,
            symlinks,
            devices,
            links,
            times,
            attributes,
            objects,
            verity,
            commits_section,
        ] = sections.map(|section| section.unwrap_or_else(empty));

        let (base_objects, base_refs) = parse_base(base)?;
        let refs = parse_refs(refs, &base_refs)?;
        let attributes = parse_attributes(attributes)?;
        let objects = parse_objects(objects)?;
        if number(objects.len()).checked_add(base_objects).is_none() {
            return Err(row_fault("base and difference have more objects than can be numbered", objects.len()));
        }
        let mut verity = verity;
        let verity_digest = verity.array()?;
        verity.finish()?;

        let commits = refs.iter().filter(|parsed| parsed.is_commit).count();
        if (commits > 0) != has_ostree {
            return Err(row_fault("the OSTree section is there without a commit, or a commit without it", 0));
        }
        let rows = EditRows::parse(edits)?;
        let mut used = Used::default();
        let shapes = parse_changes(changes, &rows.ops, &attributes, &mut used)?;
        let (symlinks, targets) = parse_targets(symlinks, count(&shapes, Shape::has_symlink))?;
        let steps = column(regulars, count(&shapes, Shape::has_regular))?;
        let object_rows = Rows { carried: number(objects.len()), base: base_objects };
        let contents = Contents {
            block_lens: column(directories, count(&shapes, Shape::has_block))?,
            regulars: used.objects(object_rows, steps)?,
            devices: parse_devices(devices, count(&shapes, Shape::has_device))?,
            links: column(links, count(&shapes, Shape::is_link))?,
        };
        let mut difference = Self {
            base_objects,
            base_refs,
            refs: Vec::new(),
            edits: Vec::new(),
            names: rows.names,
            symlinks,
            targets,
            times: parse_times(times)?,
            attributes,
            objects,
            verity: verity_digest,
            ostree: None,
        };
        if has_ostree {
            let section = ostree::Section::parse(commits_section, &difference.attributes, commits)?;
            for (own, file) in section.difference.files().iter().enumerate() {
                used.attributes(file.attributes, &difference.attributes, own)?;
            }
            let objects = used.objects(object_rows, section.object_steps)?;
            let (symlinks_before, targets_before) =
                (number(difference.symlinks.len()), number(difference.targets.len()));
            difference.symlinks.extend(section.symlinks.iter().map(|(start, len)| (start + targets_before, *len)));
            difference.targets.extend(section.targets);
            let own = difference.ostree.insert(section.difference);
            own.give_contents(objects, symlinks_before);
        }
        used.finish(&difference)?;
        difference.lay_down(refs, &rows.name_lens, &shapes, contents)?;
        difference.check_links()?;
        difference.check_entries(entries)?;
        Ok(difference)
    }

    /// Walks the trees of edits in tree order (spec 6.1).
    fn lay_down(
        &mut self,
        refs: Vec<ParsedRef>,
        name_lens: &[u8],
        shapes: &[Shape],
        contents: Contents,
    ) -> Result<(), Error> {
        let mut rows = shapes.iter().zip(name_lens);
        let mut columns = contents.into_columns();
        let mut name_at = 0;
        let mut next = |parent: Option<u32>| {
            let (shape, name_len) = rows.next()?;
            let edit = Edit {
                name_at,
                name_len: *name_len,
                parent,
                first_edit: 0,
                block_len: if shape.has_block() { columns.block_lens.next().unwrap_or(0) } else { 0 },
                op: columns.op(shape),
            };
            name_at += u32::from(*name_len) + 1;
            Some(edit)
        };
        let mut commit_refs = 0..;
        for ParsedRef { name, from, is_commit } in refs {
            if is_commit {
                let kind = EditedKind::Commit(commit_refs.next().unwrap_or(0));
                self.refs.push(EditedRef { name, from, kind });
                continue;
            }
            let root = number(self.edits.len());
            let Some(edit) = next(None) else {
                return Err(row_fault("the root of a ref is missing", self.edits.len()));
            };
            let fits = match edit.op {
                Op::Added(_) => from.is_none(),
                Op::Within | Op::Changed(_) => from.is_some(),
                _ => false,
            };
            if !fits || !edit.op.has_block() || edit.name_len != 0 {
                return Err(row_fault(
                    "a ref's root is no directory, has a name, or is not as its base says",
                    at(root),
                ));
            }
            self.edits.push(edit);
            let mut pending = alloc::vec![root];
            while let Some(parent) = pending.pop() {
                let below = pending.len();
                let first = number(self.edits.len());
                let block_len = self.edits[at(parent)].block_len;
                if block_len > 0 {
                    self.edits[at(parent)].first_edit = first;
                }
                for own in first..first.saturating_add(block_len) {
                    let Some(edit) = next(Some(parent)) else {
                        return Err(row_fault("a directory's block passes the end of the edits", at(parent)));
                    };
                    self.check_edit(own, &edit, own == first)?;
                    if edit.op.has_block() {
                        pending.push(own);
                    }
                    self.edits.push(edit);
                }
                pending[below..].reverse();
            }
            self.refs.push(EditedRef { name, from, kind: EditedKind::Tree(root) });
        }
        if self.edits.len() != shapes.len() {
            return Err(row_fault("edits are left when the last tree is laid down", self.edits.len()));
        }
        Ok(())
    }

    /// Checks an edit below a root by itself and against the one before it in its block.
    fn check_edit(&self, own: u32, edit: &Edit, is_first: bool) -> Result<(), Error> {
        let name = self.name(edit);
        if let Some(what) = component_fault(name) {
            return Err(Error::Path { entry: own, what });
        }
        let before = self.edits.last().filter(|_| !is_first);
        if before.is_some_and(|before| self.name(before) >= name) {
            return Err(row_fault("the names of a directory's edits do not ascend", at(own)));
        }
        if edit.op == Op::Within && edit.block_len == 0 {
            return Err(row_fault("a directory is named of which nothing changes", at(own)));
        }
        let parent = edit.parent.map(|parent| self.edit(parent).op);
        if edit.op.is_of_base() && parent.is_some_and(|parent| parent.new_file().is_some()) {
            return Err(row_fault("an edit of what the base has is below a new directory", at(own)));
        }
        Ok(())
    }

    /// A link is to a file of its ref that comes before, or that stays; and a file that only stays is there for a link.
    fn check_links(&self) -> Result<(), Error> {
        let mut is_linked = alloc::vec![false; self.edits.len()];
        let starts: Vec<usize> = self.trees().map(|(root, _)| at(root)).collect();
        let ends = starts.iter().skip(1).copied().chain([self.edits.len()]);
        for (start, end) in starts.iter().copied().zip(ends) {
            for own in start..end {
                let Some(link) = self.edits[own].op.link() else { continue };
                let link = at(link);
                let fits = (start..end).contains(&link)
                    && match self.edits[link].op {
                        Op::Named => true,
                        Op::Changed(changed) => changed.file_type != FileType::Directory,
                        Op::Added(file) | Op::Replaced(file) => link < own && file.content != Content::Directory,
                        _ => false,
                    };
                if !fits {
                    return Err(row_fault("a hard link is not to a file of its ref that comes or stays", own));
                }
                is_linked[link] = true;
            }
        }
        match self.edits.iter().zip(is_linked).position(|(edit, is_linked)| edit.op == Op::Named && !is_linked) {
            Some(own) => Err(row_fault("a file is named that stays and that no name is linked to", own)),
            None => Ok(()),
        }
    }

    fn check_entries(&self, entries_max: u64) -> Result<(), Error> {
        let names = self.edits.iter().filter(|edit| edit.parent.is_some() && edit.op != Op::Removed).count();
        if widen(names) > entries_max {
            return Err(Error::Maximum { what: "entries", declared: entries_max, found: widen(names) });
        }
        Ok(())
    }
}

/// A ref of the wanted index, before its root is found.
struct ParsedRef {
    name: String,
    from: Option<u16>,
    is_commit: bool,
}

/// Reads kind and name of a ref behind that of the name `last`. Whether it is a commit comes first.
fn parse_ref(reader: &mut Reader<'_>, last: Option<&String>) -> Result<(bool, String), Error> {
    let is_commit = match reader.u8()? {
        0 => false,
        1 => true,
        found => return Err(Error::Unsupported { part: Part::Index, what: "kind of ref", found: found.into() }),
    };
    let len = reader.u8()?;
    let name = match core::str::from_utf8(reader.take(len.into())?) {
        Ok(name) if is_ref_name(name) => String::from(name),
        _ => return Err(reader.malformed("a ref's name has another form than allowed")),
    };
    if last.is_some_and(|last| *last >= name) {
        return Err(reader.malformed("refs do not ascend"));
    }
    Ok((is_commit, name))
}

fn parse_base(mut reader: Reader<'_>) -> Result<(u32, Vec<BaseRef>), Error> {
    let objects = reader.u32()?;
    let mut refs: Vec<BaseRef> = Vec::new();
    for _ in 0..reader.u16()? {
        let (is_commit, name) = parse_ref(&mut reader, refs.last().map(|last| &last.name))?;
        refs.push(BaseRef { name, is_commit });
    }
    if refs.is_empty() {
        return Err(reader.malformed("there is no ref"));
    }
    reader.finish()?;
    Ok((objects, refs))
}

fn parse_refs(mut reader: Reader<'_>, base_refs: &[BaseRef]) -> Result<Vec<ParsedRef>, Error> {
    let mut refs: Vec<ParsedRef> = Vec::new();
    let mut is_taken = alloc::vec![false; base_refs.len()];
    for _ in 0..reader.u16()? {
        let (is_commit, name) = parse_ref(&mut reader, refs.last().map(|last| &last.name))?;
        let from = reader.u16()?.checked_sub(1);
        if let Some(from) = from {
            let from = usize::from(from);
            if base_refs.get(from).is_none_or(|base| base.is_commit != is_commit) {
                return Err(
                    reader.malformed("a ref is relative to one that the base does not have, or of another kind")
                );
            }
            // So what is made of a base is never larger than the base and the difference.
            if core::mem::replace(&mut is_taken[from], true) {
                return Err(reader.malformed("two refs are relative to one of the base"));
            }
        }
        refs.push(ParsedRef { name, from, is_commit });
    }
    if refs.is_empty() {
        return Err(reader.malformed("there is no ref"));
    }
    reader.finish()?;
    Ok(refs)
}

/// Section 3.
struct EditRows {
    ops: Vec<u8>,
    name_lens: Vec<u8>,
    names: Vec<u8>,
}

impl EditRows {
    fn parse(mut reader: Reader<'_>) -> Result<Self, Error> {
        let count = reader.count()?;
        let ops = reader.take(count)?.to_vec();
        let mut names = Names::default();
        for _ in 0..count {
            names.take(&mut reader)?;
        }
        reader.finish()?;
        Ok(Self { ops, name_lens: names.lens, names: names.bytes })
    }
}

/// Names as they stand in a section: each with a zero byte behind it.
#[derive(Default)]
pub(super) struct Names {
    pub(super) lens: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

impl Names {
    /// Takes the next name and returns it.
    pub(super) fn take<'a>(&mut self, reader: &mut Reader<'a>) -> Result<&'a [u8], Error> {
        let Some(len) = reader.rest().iter().take(257).position(|byte| *byte == 0) else {
            return Err(reader.malformed("a name does not end"));
        };
        let Ok(byte_len) = u8::try_from(len) else {
            return Err(Error::Path { entry: number(self.lens.len()), what: "has more than 255 bytes" });
        };
        let bytes = reader.take(len + 1)?;
        self.lens.push(byte_len);
        self.bytes.extend(bytes);
        Ok(&bytes[..len])
    }
}

/// What an edit has, before what it has is read.
#[derive(Clone, Copy)]
struct Shape {
    op: u8,
    file_type: Option<FileType>,
    attributes: Option<u32>,
    mtime: Option<(i64, u32)>,
}

impl Shape {
    fn is_new(&self) -> bool {
        matches!(self.op, code::ADDED | code::REPLACED)
    }

    fn is_link(&self) -> bool {
        matches!(self.op, code::LINKED | code::RELINKED)
    }

    fn has_content(&self) -> bool {
        self.is_new() || is_changed(self.op) && self.op & code::CONTENT != 0
    }

    /// Its type, where it has content.
    fn content_type(&self) -> Option<FileType> {
        self.file_type.filter(|_| self.has_content())
    }

    fn has_block(&self) -> bool {
        self.op == code::WITHIN || self.file_type == Some(FileType::Directory)
    }

    fn has_regular(&self) -> bool {
        self.content_type() == Some(FileType::Regular)
    }

    fn has_symlink(&self) -> bool {
        self.content_type() == Some(FileType::Symlink)
    }

    fn has_device(&self) -> bool {
        matches!(self.content_type(), Some(FileType::CharDevice | FileType::BlockDevice))
    }
}

fn count(shapes: &[Shape], has: impl Fn(&Shape) -> bool) -> usize {
    shapes.iter().filter(|shape| has(shape)).count()
}

/// Whether the code is that of a file that stays and changes in something.
fn is_changed(op: u8) -> bool {
    (code::CHANGED + 1..code::CHANGED + 8).contains(&op)
}

fn parse_changes(
    mut reader: Reader<'_>,
    ops: &[u8],
    attributes: &[Attributes],
    used: &mut Used,
) -> Result<Vec<Shape>, Error> {
    if let Some(own) = ops.iter().position(|op| *op > code::RELINKED && !is_changed(*op)) {
        return Err(row_fault("an edit is of no kind that there is", own));
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
            let row = attribute_rows.next().unwrap_or(0);
            let found = used.attributes(row, attributes, own)?;
            shape.file_type = Some(found.file_type());
            shape.attributes = Some(row);
        } else if is_changed(*op) {
            let code = types.next().copied().unwrap_or(0);
            let found = FileType::of_mode(u16::from(code) << 12).filter(|found| type_code(*found) == code);
            if found.is_none() {
                return Err(row_fault("a changed file is of no type that there is", own));
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

fn column(mut reader: Reader<'_>, count: usize) -> Result<Vec<u32>, Error> {
    let values = reader.planes::<4>(count)?.u32s().collect();
    reader.finish()?;
    Ok(values)
}

/// What of the tables of attributes and objects is used.
#[derive(Default)]
struct Used {
    attributes: u32,
    objects: Vec<u32>,
}

impl Used {
    fn attributes<'a>(&mut self, row: u32, rows: &'a [Attributes], own: usize) -> Result<&'a Attributes, Error> {
        let Some(found) = rows.get(at(row)).filter(|_| row <= self.attributes) else {
            return Err(row_fault("attributes are not used in ascending order", own));
        };
        self.attributes = self.attributes.max(row + 1);
        Ok(found)
    }

    fn objects(&mut self, rows: Rows, steps: Vec<u32>) -> Result<Vec<Reference>, Error> {
        let Some(references) = rows.follow(steps.into_iter()) else {
            return Err(row_fault("a file has an object that neither base nor difference have", 0));
        };
        self.objects.extend(references.iter().filter_map(|reference| match reference {
            Reference::Carried(object) => Some(*object),
            Reference::Base(_) => None,
        }));
        Ok(references)
    }

    fn finish(self, difference: &Difference) -> Result<(), Error> {
        if self.attributes != number(difference.attributes.len()) {
            return Err(row_fault("attributes are left that no edit has", difference.attributes.len()));
        }
        let mut is_used = alloc::vec![false; difference.objects.len()];
        self.objects.iter().for_each(|object| is_used[at(*object)] = true);
        match is_used.iter().position(|is_used| !is_used) {
            Some(object) => Err(row_fault("an object is carried that no file has", object)),
            None => Ok(()),
        }
    }
}

/// Where something begins, and its length.
type Span = (u32, u32);

/// Returns where each target lies among the targets, and those.
fn parse_targets(mut reader: Reader<'_>, count: usize) -> Result<(Vec<Span>, Vec<u8>), Error> {
    let mut lens = reader.clone();
    lens.planes::<2>(count)?;
    let (targets, start) = (lens.rest().to_vec(), number(lens.position()));
    let mut spans = parse_symlinks(&mut reader, count)?;
    reader.finish()?;
    spans.iter_mut().for_each(|(target_at, _)| *target_at -= start);
    Ok((spans, targets))
}

fn parse_devices(mut reader: Reader<'_>, count: usize) -> Result<Vec<Device>, Error> {
    let majors = reader.planes::<4>(count)?.u32s();
    let minors = reader.planes::<4>(count)?.u32s();
    reader.finish()?;
    Ok(majors.zip(minors).map(|(major, minor)| Device { major, minor }).collect())
}

fn parse_times(mut reader: Reader<'_>) -> Result<Vec<TimeChange>, Error> {
    let count = reader.count32()?;
    let mut times = || -> Result<_, Error> {
        let seconds = reader.planes::<8>(count)?.i64s();
        Ok(seconds.zip(reader.planes::<4>(count)?.u32s()))
    };
    let (from, to) = (times()?, times()?);
    reader.finish()?;
    let mut changes: Vec<TimeChange> = Vec::with_capacity(count);
    for (own, (from, to)) in from.zip(to).enumerate() {
        if from.1 >= 1_000_000_000 || to.1 >= 1_000_000_000 {
            return Err(row_fault("nanoseconds of a time reach a second", own));
        }
        if from == to || changes.last().is_some_and(|last| last.from >= from) {
            return Err(row_fault("changes of time do not ascend, or one is none", own));
        }
        changes.push(TimeChange { from, to });
    }
    Ok(changes)
}

/// The rows of sections 5 to 9.
struct Contents {
    block_lens: Vec<u32>,
    regulars: Vec<Reference>,
    devices: Vec<Device>,
    links: Vec<u32>,
}

/// The same, as they are given out.
struct Given {
    block_lens: alloc::vec::IntoIter<u32>,
    regulars: alloc::vec::IntoIter<Reference>,
    symlinks: u32,
    devices: alloc::vec::IntoIter<Device>,
    links: alloc::vec::IntoIter<u32>,
}

impl Contents {
    fn into_columns(self) -> Given {
        Given {
            block_lens: self.block_lens.into_iter(),
            regulars: self.regulars.into_iter(),
            symlinks: 0,
            devices: self.devices.into_iter(),
            links: self.links.into_iter(),
        }
    }
}

impl Given {
    /// The op of an edit of this shape. Each column was read with as many rows as there are edits that have it.
    fn op(&mut self, shape: &Shape) -> Op {
        let content = shape.content_type().map(|file_type| self.content(file_type));
        let file = NewFile {
            attributes: shape.attributes.unwrap_or(0),
            mtime: shape.mtime.unwrap_or_default(),
            content: content.unwrap_or(Content::Plain),
        };
        match shape.op {
            code::WITHIN => Op::Within,
            code::NAMED => Op::Named,
            code::REMOVED => Op::Removed,
            code::ADDED => Op::Added(file),
            code::REPLACED => Op::Replaced(file),
            code::LINKED => Op::Linked(self.links.next().unwrap_or(0)),
            code::RELINKED => Op::Relinked(self.links.next().unwrap_or(0)),
            _ => Op::Changed(Changed {
                file_type: shape.file_type.unwrap_or(FileType::Regular),
                attributes: shape.attributes,
                mtime: shape.mtime,
                content,
            }),
        }
    }

    fn content(&mut self, file_type: FileType) -> Content {
        match file_type {
            FileType::Directory => Content::Directory,
            FileType::Regular => Content::Regular(self.regulars.next().unwrap_or(Reference::Carried(0))),
            FileType::Symlink => {
                self.symlinks += 1;
                Content::Symlink(self.symlinks - 1)
            }
            FileType::CharDevice | FileType::BlockDevice => {
                Content::Device(self.devices.next().unwrap_or(Device { major: 0, minor: 0 }))
            }
            FileType::Fifo | FileType::Socket => Content::Plain,
        }
    }
}
