//! The numbers of metadata objects, by type and checksum.

use super::OsTreeKind;
use crate::digest_map::DigestMap;
use crate::ostree::Checksum;

/// A map for each type.
#[derive(Default)]
pub(crate) struct Numbers([DigestMap; 4]);

impl Numbers {
    pub(crate) fn get(&self, kind: OsTreeKind, checksum: &Checksum) -> Option<u32> {
        self.0[place(kind)].get(checksum)
    }

    /// Returns the number that the object had before.
    pub(crate) fn insert(&mut self, kind: OsTreeKind, checksum: Checksum, number: u32) -> Option<u32> {
        self.0[place(kind)].insert(checksum, number)
    }
}

fn place(kind: OsTreeKind) -> usize {
    match kind {
        OsTreeKind::DirTree => 0,
        OsTreeKind::DirMeta => 1,
        OsTreeKind::Commit => 2,
        OsTreeKind::CommitMeta => 3,
    }
}
