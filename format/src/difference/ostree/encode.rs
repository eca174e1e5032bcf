//! Writes section 14 of a difference.

use alloc::vec::Vec;

use crate::bytes::{Widths, put_planes, put_u32s};

use super::super::Difference;
use super::super::reference::ReferenceRows;
use super::{Beside, CommitObject, NewContent, OsTreeDifference};

fn put_blobs<'a>(out: &mut Vec<u8>, widths: &mut Widths, blobs: impl Iterator<Item = &'a Vec<u8>> + Clone) {
    let lens: Vec<u32> = blobs.clone().map(|bytes| widths.fit(bytes.len(), "the length of an OSTree object")).collect();
    put_u32s(out, lens.into_iter());
    blobs.for_each(|bytes| out.extend(bytes));
}

impl OsTreeDifference {
    pub(in crate::difference) fn encode(
        &self,
        whole: &Difference,
        object_rows: ReferenceRows,
        out: &mut Vec<u8>,
        widths: &mut Widths,
    ) {
        let le =
            |count: usize, widths: &mut Widths| widths.fit::<u32>(count, "the number of OSTree objects").to_le_bytes();
        out.extend(le(self.commits.len(), widths));
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
        put_blobs(out, widths, carried);
        let beside = self.commits.iter().filter_map(|commit| match &commit.beside {
            Beside::Carried(bytes) => Some(bytes),
            Beside::Nothing | Beside::OfBase => None,
        });
        put_blobs(out, widths, beside);

        out.extend(le(self.dirmetas.len(), widths));
        put_blobs(out, widths, self.dirmetas.iter());

        out.extend(le(self.dirtrees.lens.len(), widths));
        put_u32s(out, self.dirtrees.lens.iter().copied());
        out.extend(le(self.dirtrees.frame.len(), widths));
        out.extend(&self.dirtrees.frame);

        out.extend(le(self.files.len(), widths));
        put_u32s(out, self.files.iter().map(|file| file.attributes.number()));
        let objects = self.files.iter().filter_map(|file| match file.content {
            NewContent::Regular(object) => Some(object),
            _ => None,
        });
        object_rows.put(out, objects);
        let targets = self.files.iter().filter_map(|file| match file.content {
            NewContent::Symlink(symlink) => Some(whole.symlink_target(symlink)),
            _ => None,
        });
        let lens: Vec<u16> =
            targets.clone().map(|target| widths.fit(target.len(), "the length of a symbolic link's target")).collect();
        put_planes(out, lens.iter().map(|len| len.to_le_bytes()));
        targets.for_each(|target| out.extend(target));

        put_u32s(out, self.refs.iter().map(|own| own.commit));
        for own in &self.refs {
            out.push(widths.fit(own.collection.len(), "the length of a collection"));
            out.extend(own.collection.as_bytes());
        }
    }
}
