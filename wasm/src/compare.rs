//! What changed from one bundle to another, as their indexes say.

use js_sys::{Array, Reflect};
use sealift_format::walk::pairs;
use sealift_format::{Directory, Index, Inode, InodeKind, Opened, Row};
use sealift_verify::escape;
use wasm_bindgen::JsValue;

use crate::listing::index;
use crate::number::rounded;
use crate::object::object;

/// One tree's side of a name: its bundle's index, and the entry's inode.
#[derive(Clone, Copy)]
struct Side<'a> {
    index: &'a Index,
    inode: &'a Inode,
}

/// Counts all changes, and lists the first of them.
struct Changes {
    counts: [u32; 4],
    rows: Array,
    limit: u32,
}

/// In the order of the counts.
#[derive(Clone, Copy)]
enum Kind {
    Added,
    Changed,
    Metadata,
    Removed,
}

/// What a newer bundle changes of an older one: names that come or go count once, with all below them.
pub(crate) fn compare(older: &Opened, newer: &Opened, limit: u32) -> Result<JsValue, JsValue> {
    indexes(index(older)?, index(newer)?, limit)
}

/// The same of their indexes.
pub(crate) fn indexes(older: &Index, newer: &Index, limit: u32) -> Result<JsValue, JsValue> {
    let changes = Changes::between(older, newer, limit);
    let found = counts(changes.counts);
    Reflect::set(&found, &"rows".into(), &changes.rows)?;
    Ok(found)
}

/// How many names change, and how.
pub(crate) fn count(older: &Index, newer: &Index) -> JsValue {
    counts(Changes::between(older, newer, 0).counts)
}

/// Returns these counts by their names.
pub(crate) fn counts([added, changed, metadata, removed]: [u32; 4]) -> JsValue {
    object(&[
        ("added", added.into()),
        ("changed", changed.into()),
        ("metadata", metadata.into()),
        ("removed", removed.into()),
    ])
}

/// The names of a directory, with what stands there.
fn names(index: &Index, directory: Row<Directory>) -> impl Iterator<Item = (&[u8], Side<'_>)> {
    let side = |entry| Side { index, inode: index.inode(index.entry(entry).inode) };
    index.names_in(directory).map(move |(name, entry)| (name, side(entry)))
}

fn below(index: &Index, directory: Row<Directory>, name: &[u8]) -> Vec<u8> {
    let mut path = index.directory_path(directory);
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend(name);
    path
}

fn side_of_directory(index: &Index, directory: Row<Directory>) -> Side<'_> {
    Side { index, inode: index.inode(index.directory(directory).inode) }
}

impl Changes {
    fn between(older: &Index, newer: &Index, limit: u32) -> Self {
        let mut changes = Self { counts: [0; 4], rows: Array::new(), limit };
        let root = |index: &Index, name: &str| index.find_ref(name).map(|reference| reference.directory);
        let mut names: Vec<&str> =
            older.refs().iter().chain(newer.refs()).map(|reference| &reference.name[..]).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let (old, new) = (root(older, name), root(newer, name));
            let side = |index, directory| Some(side_of_directory(index, directory?));
            changes.judge(name, b".", side(older, old), side(newer, new));
            if let (Some(old), Some(new)) = (old, new) {
                changes.walk(name, (older, old), (newer, new));
            }
        }
        changes
    }

    /// Compares what is below two directories.
    fn walk(&mut self, reference: &str, old: (&Index, Row<Directory>), new: (&Index, Row<Directory>)) {
        let ((older, old), (newer, new)) = (old, new);
        let mut pending = vec![(old, new)];
        while let Some((old, new)) = pending.pop() {
            for (name, before, after) in pairs(names(older, old), names(newer, new)) {
                let path = match after {
                    Some(_) => below(newer, new, name),
                    None => below(older, old, name),
                };
                self.judge(reference, &path, before, after);
                if let (Some(before), Some(after)) = (before, after)
                    && let (InodeKind::Directory(old), InodeKind::Directory(new)) =
                        (before.inode.kind, after.inode.kind)
                {
                    pending.push((old, new));
                }
            }
        }
    }

    fn judge(&mut self, reference: &str, path: &[u8], before: Option<Side<'_>>, after: Option<Side<'_>>) {
        let kind = match (before, after) {
            (None, Some(_)) => Kind::Added,
            (Some(_), None) => Kind::Removed,
            (Some(before), Some(after)) if !before.has_content_of(after) => Kind::Changed,
            (Some(before), Some(after)) if !before.has_metadata_of(after) => Kind::Metadata,
            _ => return,
        };
        let (count, word) = match kind {
            Kind::Added => (0, "added"),
            Kind::Changed => (1, "changed"),
            Kind::Metadata => (2, "metadata"),
            Kind::Removed => (3, "removed"),
        };
        self.counts[count] += 1;
        if self.rows.length() < self.limit {
            let size = |side: Option<Side<'_>>| match side.and_then(Side::size) {
                Some(size) => rounded(size).into(),
                None => JsValue::UNDEFINED,
            };
            let shown = after.or(before).map(|side| side.index.attributes(side.inode).file_type().word());
            self.rows.push(&object(&[
                ("kind", word.into()),
                ("ref", reference.into()),
                ("name", escape::bytes(path).into()),
                ("path", escape::percent(path).into()),
                ("type", shown.unwrap_or_default().into()),
                ("before", size(before)),
                ("after", size(after)),
            ]));
        }
    }
}

impl Side<'_> {
    fn size(self) -> Option<u64> {
        match self.inode.kind {
            InodeKind::Regular(object) => Some(self.index.object(object).size),
            _ => None,
        }
    }

    /// Whether the type is the same, and content, target or numbers.
    fn has_content_of(self, other: Side<'_>) -> bool {
        self.index.is_same_content(self.inode.kind, (other.index, other.inode.kind), |own, others| {
            self.index.object(own).id == other.index.object(others).id
        })
    }

    fn has_metadata_of(self, other: Side<'_>) -> bool {
        let moment = |inode: &Inode| (inode.mtime, inode.mtime_ns);
        self.index.attributes(self.inode) == other.index.attributes(other.inode)
            && moment(self.inode) == moment(other.inode)
    }
}
