//! Writes section 11 of an index.

use alloc::vec::Vec;

use crate::bytes::{Widths, put_planes, put_u32s};

use super::OsTreeKind;
use crate::Row;
use crate::attributes::Attributes;
use crate::index::Object;

/// The section's columns, as far as they are built.
#[derive(Debug, Default)]
pub(in crate::index) struct Columns {
    kinds: Vec<u8>,
    lens: Vec<u32>,
    bytes: Vec<u8>,
    file_rows: Vec<Row<Attributes>>,
    regulars: Vec<Option<Row<Object>>>,
    target_lens: Vec<u16>,
    targets: Vec<u8>,
    commits: Vec<u32>,
    collections: Vec<u8>,
}

impl Columns {
    pub(in crate::index) fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    pub(in crate::index) fn add_ref(&mut self, commit: Option<u32>, collection: &str, widths: &mut Widths) {
        self.commits.push(commit.map_or(0, |commit| commit + 1));
        self.collections.push(widths.fit(collection.len(), "the length of a collection"));
        self.collections.extend(collection.as_bytes());
    }

    pub(in crate::index) fn add_object(&mut self, kind: OsTreeKind, bytes: &[u8], widths: &mut Widths) -> u32 {
        let number = widths.fit(self.kinds.len(), "the number of OSTree objects");
        self.kinds.push(kind.code());
        self.lens.push(widths.fit(bytes.len(), "the length of an OSTree object"));
        self.bytes.extend(bytes);
        number
    }

    pub(in crate::index) fn add_regular(&mut self, row: Row<Attributes>, object: Option<Row<Object>>) {
        self.file_rows.push(row);
        self.regulars.push(object);
    }

    pub(in crate::index) fn add_symlink(&mut self, row: Row<Attributes>, target: &[u8], widths: &mut Widths) {
        self.file_rows.push(row);
        self.target_lens.push(widths.fit(target.len(), "the length of a symbolic link's target"));
        self.targets.extend(target);
    }

    pub(in crate::index) fn encode(&self, out: &mut Vec<u8>, widths: &mut Widths) {
        let mut count = |len: usize| widths.fit::<u32>(len, "the number of OSTree objects").to_le_bytes();
        out.extend(count(self.kinds.len()));
        out.extend(&self.kinds);
        put_u32s(out, self.lens.iter().copied());
        out.extend(&self.bytes);
        out.extend(count(self.file_rows.len()));
        put_u32s(out, self.file_rows.iter().map(|row| row.number()));
        put_u32s(out, self.regulars.iter().map(|object| Row::column(*object)));
        put_planes(out, self.target_lens.iter().map(|len| len.to_le_bytes()));
        out.extend(&self.targets);
        put_u32s(out, self.commits.iter().copied());
        out.extend(&self.collections);
    }
}
