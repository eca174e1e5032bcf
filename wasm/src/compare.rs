//! The changes from one bundle to another, according to their indexes.

use js_sys::{Array, Reflect};
use sealift_format::walk::{TreeOrder, pairs};
use sealift_format::{Directory, Index, Inode, InodeKind, Opened, Row};
use sealift_verify::escape;
use wasm_bindgen::JsValue;

use crate::listing::index;
use crate::number::rounded;
use crate::object::object;

/// Counts all changes from one index to another, and lists the first of them.
struct Changes<'a> {
    older: &'a Index,
    newer: &'a Index,
    counts: [u32; 4],
    rows: Array,
    limit: u32,
}

/// Returns the changes from an older bundle to a newer one. A new or removed directory counts once, with everything below it.
pub(crate) fn compare(older: &Opened, newer: &Opened, limit: u32) -> Result<JsValue, JsValue> {
    indexes(index(older)?, index(newer)?, limit)
}

/// The same, for two indexes.
pub(crate) fn indexes(older: &Index, newer: &Index, limit: u32) -> Result<JsValue, JsValue> {
    let changes = Changes::between(older, newer, limit);
    let found = counts(changes.counts);
    Reflect::set(&found, &"rows".into(), &changes.rows)?;
    Ok(found)
}

/// Counts the changes of each kind.
pub(crate) fn count(older: &Index, newer: &Index) -> JsValue {
    counts(Changes::between(older, newer, 0).counts)
}

/// Returns the counts as an object.
pub(crate) fn counts([added, changed, metadata, removed]: [u32; 4]) -> JsValue {
    object(&[
        ("added", added.into()),
        ("changed", changed.into()),
        ("metadata", metadata.into()),
        ("removed", removed.into()),
    ])
}

impl<'a> Changes<'a> {
    fn between(older: &'a Index, newer: &'a Index, limit: u32) -> Self {
        let mut changes = Self { older, newer, counts: [0; 4], rows: Array::new(), limit };
        let mut names: Vec<&str> =
            older.refs().iter().chain(newer.refs()).map(|reference| &reference.name[..]).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let root = |index: &Index| index.find_ref(name).map(|reference| reference.directory);
            let (old, new) = (root(older), root(newer));
            let inode = |index: &'a Index, directory| Some(index.inode(index.directory(directory?).inode));
            changes.judge(name, b".", inode(older, old), inode(newer, new));
            if let (Some(old), Some(new)) = (old, new) {
                changes.walk(name, old, new);
            }
        }
        changes
    }

    /// Compares what is below two directories.
    fn walk(&mut self, reference: &str, old: Row<Directory>, new: Row<Directory>) {
        let (older, newer) = (self.older, self.newer);
        let mut order = TreeOrder::new((old, new));
        while let Some((old, new)) = order.pop() {
            for (_, before, after) in pairs(older.names_in(old), newer.names_in(new)) {
                let path = after.map(|entry| newer.path(new, entry));
                let path = path.or_else(|| Some(older.path(old, before?))).unwrap_or_default();
                let before = before.map(|entry| older.inode(older.entry(entry).inode));
                let after = after.map(|entry| newer.inode(newer.entry(entry).inode));
                self.judge(reference, &path, before, after);
                if let (Some(before), Some(after)) = (before, after)
                    && let (InodeKind::Directory(old), InodeKind::Directory(new)) = (before.kind, after.kind)
                {
                    order.push((old, new));
                }
            }
        }
    }

    fn judge(&mut self, reference: &str, path: &[u8], before: Option<&Inode>, after: Option<&Inode>) {
        // The numbers are positions in `counts`.
        let (count, word) = match (before, after) {
            (None, Some(_)) => (0, "added"),
            (Some(before), Some(after)) if !self.is_same_content(before, after) => (1, "changed"),
            (Some(before), Some(after)) if !self.is_same_metadata(before, after) => (2, "metadata"),
            (Some(_), None) => (3, "removed"),
            _ => return,
        };
        self.counts[count] += 1;
        if self.rows.length() < self.limit {
            let size = |index: &Index, inode: Option<&Inode>| match inode.map(|inode| inode.kind) {
                Some(InodeKind::Regular(object)) => rounded(index.object(object).size).into(),
                _ => JsValue::UNDEFINED,
            };
            let shown = after.map(|inode| self.newer.attributes(inode));
            let shown = shown.or(before.map(|inode| self.older.attributes(inode)));
            self.rows.push(&object(&[
                ("kind", word.into()),
                ("ref", reference.into()),
                ("name", escape::bytes(path).into()),
                ("path", escape::percent(path).into()),
                ("type", shown.map_or("", |attributes| attributes.file_type().word()).into()),
                ("before", size(self.older, before)),
                ("after", size(self.newer, after)),
            ]));
        }
    }
    /// Whether the type is the same, and so is the content, target or device number.
    fn is_same_content(&self, before: &Inode, after: &Inode) -> bool {
        self.older.is_same_content(before.kind, self.newer, after.kind, |old, new| {
            self.older.object(old).id == self.newer.object(new).id
        })
    }

    fn is_same_metadata(&self, before: &Inode, after: &Inode) -> bool {
        let moment = |inode: &Inode| (inode.mtime, inode.mtime_ns);
        self.older.attributes(before) == self.newer.attributes(after) && moment(before) == moment(after)
    }
}
