//! Writing section 14.

use alloc::vec::Vec;

use crate::bytes::put_planes;

use super::super::Difference;
use super::{Beside, CommitObject, Content, OsTreeDifference, number};

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
        out.extend(le(self.commits.len()));
        let base_commits = self.commits.iter().map(|commit| match commit.commit {
            CommitObject::Base(commit) => commit.wrapping_add(1),
            CommitObject::Carried(_) => 0,
        });
        put_u32s(out, base_commits);
        out.extend(self.commits.iter().map(|commit| match commit.beside {
            Beside::Nothing => 0,
            Beside::OfBase => 1,
            Beside::Carried(_) => 2,
        }));
        let carried = self.commits.iter().filter_map(|commit| match &commit.commit {
            CommitObject::Carried(bytes) => Some(bytes),
            CommitObject::Base(_) => None,
        });
        put_blobs(out, carried);
        let beside = self.commits.iter().filter_map(|commit| match &commit.beside {
            Beside::Carried(bytes) => Some(bytes),
            Beside::Nothing | Beside::OfBase => None,
        });
        put_blobs(out, beside);

        out.extend(le(self.dirmetas.len()));
        put_blobs(out, self.dirmetas.iter());

        out.extend(le(self.dirtrees.lens.len()));
        put_u32s(out, self.dirtrees.lens.iter().copied());
        out.extend(le(self.dirtrees.frame.len()));
        out.extend(&self.dirtrees.frame);

        out.extend(le(self.files.len()));
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

        put_u32s(out, self.refs.iter().map(|own| own.commit));
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
