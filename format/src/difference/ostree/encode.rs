//! Writing section 14.

use alloc::vec::Vec;

use crate::bytes::put_planes;

use super::super::Difference;
use super::{Beside, CommitObject, Content, OsTreeDifference, TreeOp, number};

/// Codes of [`TreeOp`], spec 6.7.5.
pub(super) mod code {
    pub(in super::super) const REMOVED: u8 = 0;
    pub(in super::super) const FILE_ADDED: u8 = 1;
    pub(in super::super) const FILE_REPLACED: u8 = 2;
    pub(in super::super) const DIRECTORY_ADDED: u8 = 3;
    pub(in super::super) const DIRECTORY_REPLACED: u8 = 4;
    pub(in super::super) const TREE_CHANGED: u8 = 5;
    pub(in super::super) const META_CHANGED: u8 = 6;
    pub(in super::super) const BOTH_CHANGED: u8 = 7;
}

impl TreeOp {
    fn code(self) -> u8 {
        match self {
            Self::Removed => code::REMOVED,
            Self::FileAdded(_) => code::FILE_ADDED,
            Self::FileReplaced(_) => code::FILE_REPLACED,
            Self::DirectoryAdded { .. } => code::DIRECTORY_ADDED,
            Self::DirectoryReplaced { .. } => code::DIRECTORY_REPLACED,
            Self::DirectoryChanged { meta: None, .. } => code::TREE_CHANGED,
            Self::DirectoryChanged { tree: None, .. } => code::META_CHANGED,
            Self::DirectoryChanged { .. } => code::BOTH_CHANGED,
        }
    }
}

fn put_u32s(out: &mut Vec<u8>, column: impl Iterator<Item = u32> + Clone) {
    put_planes(out, column.map(u32::to_le_bytes));
}

fn put_blobs<'a>(out: &mut Vec<u8>, blobs: impl Iterator<Item = &'a Vec<u8>> + Clone) {
    put_u32s(out, blobs.clone().map(|bytes| number(bytes.len())));
    blobs.for_each(|bytes| out.extend(bytes));
}

impl OsTreeDifference {
    pub(in crate::difference) fn encode(&self, whole: &Difference, out: &mut Vec<u8>) {
        let le = |count: usize| number(count).to_le_bytes();
        out.extend(self.base_objects.to_le_bytes());
        out.extend(self.base_files.to_le_bytes());

        out.extend(le(self.commits.len()));
        let base_commits = self.commits.iter().map(|commit| match commit.commit {
            CommitObject::Base(commit) => commit.saturating_add(1),
            CommitObject::Carried { .. } => 0,
        });
        put_u32s(out, base_commits);
        out.extend(self.commits.iter().map(|commit| match commit.beside {
            Beside::Nothing => 0,
            Beside::OfBase => 1,
            Beside::Carried(_) => 2,
        }));
        let carried: Vec<_> = self
            .commits
            .iter()
            .filter_map(|commit| match &commit.commit {
                CommitObject::Carried { bytes, meta, tree } => Some((bytes, *meta, *tree)),
                CommitObject::Base(_) => None,
            })
            .collect();
        put_blobs(out, carried.iter().map(|commit| commit.0));
        let beside = self.commits.iter().filter_map(|commit| match &commit.beside {
            Beside::Carried(bytes) => Some(bytes),
            Beside::Nothing | Beside::OfBase => None,
        });
        put_blobs(out, beside);

        out.extend(le(self.dirmetas.len()));
        put_blobs(out, self.dirmetas.iter());

        out.extend(le(self.trees.len()));
        put_u32s(out, self.trees.iter().map(|tree| tree.like.map_or(0, |like| like.saturating_add(1))));
        put_u32s(out, self.trees.iter().map(|tree| tree.edits));
        out.extend(self.edits.iter().map(|edit| edit.op.code()));
        out.extend(&self.names);

        out.extend(le(self.files.len()));
        out.extend(self.files.iter().flat_map(|file| file.checksum));
        put_u32s(out, self.files.iter().map(|file| file.attributes));
        let objects = self.files.iter().filter_map(|file| match file.content {
            Content::Regular(object) => Some(object),
            _ => None,
        });
        whole.object_rows().put(out, objects);
        let targets = self.files.iter().filter_map(|file| match file.content {
            Content::Symlink(symlink) => Some(whole.symlink_target(symlink)),
            _ => None,
        });
        let len = |target: &[u8]| u16::try_from(target.len()).unwrap_or(u16::MAX);
        put_planes(out, targets.clone().map(|target| len(target).to_le_bytes()));
        targets.for_each(|target| out.extend(target));

        let ops = || self.edits.iter().map(|edit| edit.op);
        self.file_rows().put(out, ops().filter_map(TreeOp::file));
        self.tree_rows().put(out, carried.iter().map(|commit| commit.2).chain(ops().filter_map(TreeOp::tree)));
        self.meta_rows().put(out, carried.iter().map(|commit| commit.1).chain(ops().filter_map(TreeOp::meta)));

        put_u32s(out, self.refs.iter().map(|own| own.commit));
        out.extend(self.refs.iter().map(|own| u8::from(own.is_known)));
        for own in &self.refs {
            out.push(u8::try_from(own.collection.len()).unwrap_or(u8::MAX));
            out.extend(own.collection.as_bytes());
        }
        out.push(u8::try_from(self.repository_files.len()).unwrap_or(u8::MAX));
        for (file, bytes) in &self.repository_files {
            out.push(file.code());
            out.extend(le(bytes.len()));
            out.extend(bytes);
        }
    }
}
