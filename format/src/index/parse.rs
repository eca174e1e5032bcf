//! Parses an index strictly: every row is checked before it is used (core 6).

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::bytes::{Reader, SectionRule, read_sections};
use crate::name::component_fault;
use crate::num::{self, wide};
use crate::{Error, Part, Row, Table};

use super::grown::{Grown, Sizes};
use super::ostree::{OfParents, OfRefs, Section};
use super::rows::{column, number, parse_devices, parse_ref, parse_symlinks, row_fault, use_attributes};
use super::{Directory, Entry, Index, Inode, InodeKind, Object, Ref, Symlink};
use crate::attributes::{Attributes, FileType};
use crate::walk::TreeOrder;

const RULES: [SectionRule; 11] = {
    let mut rules = [SectionRule::Required; 11];
    rules[10] = SectionRule::Optional;
    rules
};

/// Returns the payload of section 9 of an index, or of a request's outline, which has the same sections.
pub(crate) fn objects_section(bytes: &[u8]) -> Result<Reader<'_>, Error> {
    let [.., objects, _, _] = read_sections(Part::Index, bytes, &RULES)?;
    objects.ok_or_else(|| Reader::new(Part::Index, bytes).malformed("a required section is missing"))
}

impl Index {
    /// Parses the decoded index, which must have matched its digest. `entries` is the root's maximum.
    ///
    /// # Errors
    /// Returns an error if it does not conform to core 6, or an OSTree commit's tree has more entries than `entries`.
    pub fn parse(bytes: Vec<u8>, entries: u64) -> Result<Self, Error> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(Error::Limit { what: "index_len", declared: wide(bytes.len()), limit: u32::MAX.into() });
        }
        let bytes = Arc::new(bytes);
        let sections = read_sections(Part::Index, &bytes, &RULES)?;
        let has_ostree = sections[10].is_some();
        let empty = || Reader::new(Part::Index, &[]);
        let [refs, names, inodes, directories, regulars, symlinks, devices, attributes, objects, verity, ostree] =
            sections.map(|section| section.unwrap_or_else(empty));

        let refs = parse_refs(refs)?;
        let commits = refs.iter().filter(|(is_commit, _)| *is_commit).count();
        if (commits > 0) != has_ostree {
            return Err(row_fault("the OSTree section is there without a commit, or a commit without it", 0));
        }
        let objects = parse_objects(objects)?;
        let mut attributes = parse_attributes(attributes, &bytes, 0)?;
        let ostree = if has_ostree { Some(Section::parse(ostree, &bytes, &attributes, commits)?) } else { None };
        let file_rows = ostree.as_ref().map_or(&[][..], Section::file_rows);
        let inode_rows = parse_inodes(inodes, file_rows, &attributes)?;
        let (links, name_spans) = parse_entries(names)?;

        let counts = Counts::of(&inode_rows, &attributes);
        let children = column(directories, counts.directories)?;
        let regulars: Vec<_> = column(regulars, counts.regulars)?.into_iter().map(Row::of_column).collect();
        let mut symlinks = parse_symlink_section(symlinks, counts.symlinks)?;
        let devices = parse_devices(devices, counts.devices)?;
        let mut verity = verity;
        let verity_digest = verity.array()?;
        verity.finish()?;

        let mut kinds = Kinds::default();
        let mut inodes = kinds.assign(&inode_rows, &attributes, &regulars, objects.len())?;
        let file_kinds = match &ostree {
            Some(section) => {
                symlinks.extend(&section.targets);
                let rows: Vec<InodeRow> = section.file_rows().iter().map(|row| (*row, 0, 0)).collect();
                kinds.assign(&rows, &attributes, &section.file_objects, objects.len())?
            }
            None => Vec::new(),
        };
        kinds.finish(objects.len())?;
        let trees = refs.len() - commits;
        let tree = tree_of(trees, &inodes, &links, &children)?;
        for (row, directory) in Row::all(&tree.directories) {
            inodes[directory.inode.at()].kind = InodeKind::Directory(row);
        }
        let mut grown = Grown {
            entries: name_entries(&bytes, &name_spans, &tree)?,
            inodes,
            directories: tree.directories,
            entries_max: entries,
        };
        let file_kinds: Vec<InodeKind> = file_kinds.into_iter().map(|inode| inode.kind).collect();
        let resolved = ostree.map(|section| section.resolve(&file_kinds, &attributes)).transpose()?;
        // Names are checked after everything else in the index, since they have another kind of failure.
        check_names(&bytes, &name_spans)?;
        let (mut roots, mut commits, ostree) = match resolved {
            None => (tree.roots, Vec::new(), None),
            Some(mut resolved) => {
                let sizes = Sizes::of(&resolved);
                let mut of_refs = OfRefs::new(&resolved.ostree);
                let roots = grown.add_trees(&bytes, &resolved, &sizes, &mut attributes, &mut of_refs)?;
                resolved.ostree.of_parents = OfParents::find(&resolved, of_refs, sizes.depth);
                (tree.roots.into_iter().chain(roots).collect(), resolved.refs, Some(resolved.ostree))
            }
        };
        let mut commit_roots = roots.split_off(trees).into_iter();
        let (mut roots, mut commits) = (roots.into_iter(), commits.drain(..));
        let named = refs.into_iter().filter_map(|(is_commit, name)| {
            let (root, ostree) = match is_commit {
                false => (roots.next()?, None),
                true => (commit_roots.next()?, Some(commits.next()?)),
            };
            Some(Ref { name, directory: root.0, directories_end: root.1, ostree })
        });
        Ok(Self {
            refs: named.collect(),
            entries: grown.entries,
            inodes: grown.inodes,
            directories: grown.directories,
            symlinks,
            devices,
            attributes,
            objects,
            verity: verity_digest,
            ostree,
            bytes,
        })
    }
}

/// Returns whether each ref is a commit, and its name.
fn parse_refs(mut reader: Reader<'_>) -> Result<Vec<(bool, String)>, Error> {
    let count = reader.u16()?;
    let mut refs = Vec::new();
    for _ in 0..count {
        let parsed = parse_ref(&mut reader, refs.last().map(|(_, last)| last))?;
        refs.push(parsed);
    }
    if refs.is_empty() {
        return Err(reader.malformed("there is no ref"));
    }
    reader.finish()?;
    Ok(refs)
}

/// `shared` has the bytes that the reader reads, of which `first` is the position of the first.
pub(crate) fn parse_attributes(
    mut reader: Reader<'_>,
    shared: &Arc<Vec<u8>>,
    first: usize,
) -> Result<Vec<Attributes>, Error> {
    let count = reader.count32()?;
    // A row has at least twelve bytes.
    let mut rows = Vec::with_capacity(count.min(reader.rest().len() / 12));
    for _ in 0..count {
        rows.push(Attributes::parse(&mut reader, shared, first)?);
    }
    reader.finish()?;
    let mut order: Vec<&Attributes> = rows.iter().collect();
    order.sort_unstable();
    match order.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => {
            let second = rows.iter().rposition(|row| row == pair[1]);
            Err(row_fault("duplicate attribute row", second.unwrap_or_default()))
        }
        None => Ok(rows),
    }
}

pub(crate) fn parse_objects(mut reader: Reader<'_>) -> Result<Vec<Object>, Error> {
    let count = reader.count()?;
    let sizes = reader.planes::<8>(count)?.u64s();
    let Some(ids_len) = count.checked_mul(32) else {
        return Err(reader.malformed("a column is longer than memory"));
    };
    let ids = reader.take(ids_len)?;
    reader.finish()?;
    let mut objects = Vec::with_capacity(count);
    for (size, id) in sizes.zip(ids.as_chunks::<32>().0) {
        if i64::try_from(size).is_err() {
            return Err(Error::Limit { what: "an object's size", declared: size, limit: i64::MAX.unsigned_abs() });
        }
        objects.push(Object { id: *id, size });
    }
    let mut order: Vec<&[u8; 32]> = ids.as_chunks::<32>().0.iter().collect();
    order.sort_unstable();
    if let Some(pair) = order.windows(2).find(|pair| pair[0] == pair[1]) {
        let second = objects.iter().rposition(|object| object.id == *pair[1]);
        return Err(row_fault("duplicate object id", second.unwrap_or_default()));
    }
    Ok(objects)
}

/// The attribute row and the time of an inode.
type InodeRow = (Row<Attributes>, i64, u32);

fn parse_inodes(
    mut reader: Reader<'_>,
    file_rows: &[Row<Attributes>],
    attributes: &[Attributes],
) -> Result<Vec<InodeRow>, Error> {
    let count = reader.count()?;
    let rows = reader.planes::<4>(count)?.u32s();
    let times = reader.planes::<8>(count)?.i64s();
    let nanoseconds = reader.planes::<4>(count)?.u32s();
    reader.finish()?;
    let mut inodes = Vec::with_capacity(count);
    let mut used = 0;
    for (at, ((row, time), ns)) in rows.zip(times).zip(nanoseconds).enumerate() {
        let row = use_attributes(&mut used, Row::new(row), attributes, at)?;
        if ns >= 1_000_000_000 {
            return Err(row_fault("an inode's nanoseconds reach a second", at));
        }
        inodes.push((row, time, ns));
    }
    for (at, row) in file_rows.iter().enumerate() {
        use_attributes(&mut used, Some(*row), attributes, at)?;
    }
    if used != attributes.len() {
        return Err(row_fault("unreferenced attributes", attributes.len()));
    }
    Ok(inodes)
}

/// Where a name lies in the index's bytes.
type NameSpan = (u32, u8);

/// The inode that an entry is another name of.
type Link = Option<Row<Inode>>;

/// Returns links and names.
fn parse_entries(mut reader: Reader<'_>) -> Result<(Vec<Link>, Vec<NameSpan>), Error> {
    let count = reader.count()?;
    let lens = reader.take(count)?;
    let links = reader.planes::<4>(count)?.u32s().map(Row::of_column).collect();
    let mut spans = Vec::with_capacity(count);
    for len in lens {
        spans.push((number(reader.position())?, *len));
        reader.take(usize::from(*len))?;
    }
    reader.finish()?;
    Ok((links, spans))
}

/// The number of inodes of each type that has a table.
#[derive(Default)]
struct Counts {
    directories: usize,
    regulars: usize,
    symlinks: usize,
    devices: usize,
}

impl Counts {
    fn of(inodes: &[InodeRow], attributes: &[Attributes]) -> Self {
        let mut counts = Self::default();
        for (row, _, _) in inodes {
            match attributes[row.at()].file_type() {
                FileType::Directory => counts.directories += 1,
                FileType::Regular => counts.regulars += 1,
                FileType::Symlink => counts.symlinks += 1,
                FileType::CharDevice | FileType::BlockDevice => counts.devices += 1,
                FileType::Fifo | FileType::Socket => {}
            }
        }
        counts
    }
}

fn parse_symlink_section(mut reader: Reader<'_>, count: usize) -> Result<Vec<Symlink>, Error> {
    let targets = parse_symlinks(&mut reader, count)?;
    reader.finish()?;
    Ok(targets)
}

/// The number of rows of each table that have been assigned.
#[derive(Default)]
struct Kinds {
    directories: usize,
    symlinks: usize,
    devices: usize,
    objects: usize,
}

impl Kinds {
    /// Assigns to each inode its row in the table of its type, and to each regular file its object. A directory's number in tree order is only
    /// known when the trees are built.
    fn assign(
        &mut self,
        rows: &[InodeRow],
        attributes: &[Attributes],
        regulars: &[Option<Row<Object>>],
        objects: usize,
    ) -> Result<Vec<Inode>, Error> {
        let mut inodes = Vec::with_capacity(rows.len());
        let Self { directories, symlinks, devices, objects: taken } = self;
        let mut regulars = regulars.iter();
        for (at, &(row, mtime, mtime_ns)) in rows.iter().enumerate() {
            let kind = match attributes[row.at()].file_type() {
                FileType::Directory => InodeKind::Directory(next(directories)?),
                FileType::Symlink => InodeKind::Symlink(next(symlinks)?),
                FileType::CharDevice => InodeKind::CharDevice(next(devices)?),
                FileType::BlockDevice => InodeKind::BlockDevice(next(devices)?),
                FileType::Fifo => InodeKind::Fifo,
                FileType::Socket => InodeKind::Socket,
                FileType::Regular => match regulars.next().copied().flatten() {
                    None if *taken < objects => InodeKind::Regular(next(taken)?),
                    None => return Err(row_fault("a file takes an object that the table does not have", at)),
                    Some(known) if known.at() < *taken => InodeKind::Regular(known),
                    Some(_) => return Err(row_fault("a file names an object that has not come before", at)),
                },
            };
            inodes.push(Inode { attributes: row, mtime, mtime_ns, kind });
        }
        Ok(inodes)
    }

    fn finish(self, objects: usize) -> Result<(), Error> {
        if self.objects == objects {
            return Ok(());
        }
        Err(row_fault("unreferenced objects", objects))
    }
}

/// Returns the next row of a table of which `taken` rows have been assigned.
fn next<T: Table>(taken: &mut usize) -> Result<Row<T>, Error> {
    *taken += 1;
    Row::after(*taken - 1)
}

/// The result of [`tree_of`].
struct Tree {
    directories: Vec<Directory>,
    /// For each entry, its inode, and whether it is the inode's first name.
    inodes: Vec<(Row<Inode>, bool)>,
    /// For each ref, its root directory and the end of its directories.
    roots: Vec<(Row<Directory>, u32)>,
}

/// Walks `trees` trees in tree order (core 6.1), and assigns to each entry its inode and to each directory its block.
fn tree_of(trees: usize, inodes: &[Inode], links: &[Link], children: &[u32]) -> Result<Tree, Error> {
    let mut tree = Tree {
        directories: Vec::with_capacity(children.len()),
        inodes: Vec::with_capacity(links.len()),
        roots: Vec::new(),
    };
    let mut next_inode = 0;
    for _ in 0..trees {
        let ref_start = next_inode;
        let Some(Inode { kind: InodeKind::Directory(row), .. }) = inodes.get(next_inode) else {
            return Err(row_fault("a ref's root is missing or not a directory", next_inode));
        };
        let root = Directory {
            inode: Row::after(next_inode)?,
            parent: None,
            entry: Row::FIRST,
            depth: 0,
            first_entry: 0,
            children: children[row.at()],
        };
        next_inode += 1;
        let root_row = Row::after(tree.directories.len())?;
        let mut order = TreeOrder::new(root);
        while let Some(mut directory) = order.pop() {
            let first = tree.inodes.len();
            let own = Row::after(tree.directories.len())?;
            directory.first_entry = number(first)?;
            tree.directories.push(directory);
            let count = num::at(directory.children);
            let Some(block) = first.checked_add(count).and_then(|end| links.get(first..end)) else {
                return Err(row_fault("a directory's block passes the end of the entries", first));
            };
            for (at, link) in (first..).zip(block) {
                if let Some(linked) = *link {
                    let fits = (ref_start..next_inode).contains(&linked.at())
                        && !matches!(linked.get(inodes), Some(Inode { kind: InodeKind::Directory(_), .. }));
                    if !fits {
                        return Err(row_fault("a hard link must name an earlier file of the same ref", at));
                    }
                    tree.inodes.push((linked, false));
                    continue;
                }
                let Some(inode) = inodes.get(next_inode) else {
                    return Err(row_fault("an entry's inode is missing", at));
                };
                if let InodeKind::Directory(row) = inode.kind {
                    order.push(Directory {
                        inode: Row::after(next_inode)?,
                        parent: Some(own),
                        entry: Row::after(at)?,
                        depth: directory.depth + 1,
                        first_entry: 0,
                        children: children[row.at()],
                    });
                }
                tree.inodes.push((Row::after(next_inode)?, true));
                next_inode += 1;
            }
        }
        tree.roots.push((root_row, number(tree.directories.len())?));
    }
    if tree.inodes.len() != links.len() {
        return Err(row_fault("entries are left after the last tree", tree.inodes.len()));
    }
    if next_inode != inodes.len() {
        return Err(row_fault("inodes are left after the last tree", next_inode));
    }
    Ok(tree)
}

fn name_at(bytes: &[u8], (at, len): NameSpan) -> &[u8] {
    let start = num::at(at);
    &bytes[start..start + usize::from(len)]
}

fn check_names(bytes: &[u8], spans: &[NameSpan]) -> Result<(), Error> {
    let mut faults = (0..).zip(spans).map(|(entry, span)| (entry, component_fault(name_at(bytes, *span))));
    match faults.find_map(|(entry, what)| Some(Error::Path { entry, what: what? })) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Checks the order of the names in each block, and joins them with the entries' inodes.
fn name_entries(bytes: &[u8], spans: &[NameSpan], tree: &Tree) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::with_capacity(spans.len());
    let mut blocks = tree.directories.iter();
    let mut block_ends_at = 0;
    let mut last: Option<&[u8]> = None;
    for (at, (&span, &(inode, first))) in spans.iter().zip(&tree.inodes).enumerate() {
        while at == block_ends_at {
            last = None;
            let Some(directory) = blocks.next() else { break };
            block_ends_at = num::at(directory.entries().numbers().end);
        }
        let name = name_at(bytes, span);
        if last.is_some_and(|last| name <= last) {
            return Err(row_fault("the names of a directory do not ascend", at));
        }
        last = Some(name);
        entries.push(Entry { name_at: span.0, name_len: span.1, first, inode });
    }
    Ok(entries)
}
