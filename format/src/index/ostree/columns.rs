//! Writing section 11.

use alloc::vec::Vec;

use crate::bytes::put_planes;

use super::{OsTreeKind, RepositoryFile};

/// The section's columns as they grow.
#[derive(Debug, Default)]
pub(in crate::index) struct Columns {
    kinds: Vec<u8>,
    lens: Vec<u32>,
    bytes: Vec<u8>,
    file_rows: Vec<u32>,
    regulars: Vec<u32>,
    target_lens: Vec<u16>,
    targets: Vec<u8>,
    commits: Vec<u32>,
    collections: Vec<u8>,
    repository_files: Vec<u8>,
    repository_count: u8,
}

impl Columns {
    pub(in crate::index) fn is_empty(&self) -> bool {
        self.commits.is_empty()
    }

    pub(in crate::index) fn add_ref(&mut self, commit: Option<u32>, collection: &str) {
        self.commits.push(commit.map_or(0, |commit| commit + 1));
        self.collections.push(u8::try_from(collection.len()).unwrap_or(u8::MAX));
        self.collections.extend(collection.as_bytes());
    }

    pub(in crate::index) fn add_object(&mut self, kind: OsTreeKind, bytes: &[u8]) -> u32 {
        let number = u32::try_from(self.kinds.len()).unwrap_or(u32::MAX);
        self.kinds.push(kind.code());
        self.lens.push(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        self.bytes.extend(bytes);
        number
    }

    pub(in crate::index) fn add_regular(&mut self, row: u32, object: u32) {
        self.file_rows.push(row);
        self.regulars.push(object);
    }

    pub(in crate::index) fn add_symlink(&mut self, row: u32, target: &[u8]) {
        self.file_rows.push(row);
        self.target_lens.push(u16::try_from(target.len()).unwrap_or(u16::MAX));
        self.targets.extend(target);
    }

    pub(in crate::index) fn add_repository_file(&mut self, file: RepositoryFile, bytes: &[u8]) {
        self.repository_count += 1;
        self.repository_files.push(file.code());
        self.repository_files.extend(u32::try_from(bytes.len()).unwrap_or(u32::MAX).to_le_bytes());
        self.repository_files.extend(bytes);
    }

    pub(in crate::index) fn encode(&self, out: &mut Vec<u8>) {
        let count = |len: usize| u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes();
        let put = |out: &mut Vec<u8>, column: &[u32]| put_planes(out, column.iter().map(|value| value.to_le_bytes()));
        out.extend(count(self.kinds.len()));
        out.extend(&self.kinds);
        put(out, &self.lens);
        out.extend(&self.bytes);
        out.extend(count(self.file_rows.len()));
        put(out, &self.file_rows);
        put(out, &self.regulars);
        put_planes(out, self.target_lens.iter().map(|len| len.to_le_bytes()));
        out.extend(&self.targets);
        put(out, &self.commits);
        out.extend(&self.collections);
        out.push(self.repository_count);
        out.extend(&self.repository_files);
    }
}
