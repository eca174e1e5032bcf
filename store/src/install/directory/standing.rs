//! Which directories of a target an update may give rights to: owner, mode and extended attributes are set only on a directory that the run made, or
//! that the install record names by inode and owner. Who may rename in the directory above can put any other one in its place, such as one that only
//! root may enter.

use std::collections::HashMap;

use rustix::fs::Statx;
use sealift_format::{Directory, Index, InodeKind, Limits, Ref, Row};

use super::plan::Selection;
use crate::directory::state::{self, TreeRecord};
use crate::fs::Aspect;
use crate::install_record::is_damage;
use crate::{Error, Site, StatCache};

/// The directories that the install record has, by the numbers of the wanted index.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    directories: HashMap<Row<Directory>, Option<Known>>,
    /// Whether any other directory is not ours: otherwise, nothing is known of it.
    is_whole: bool,
    /// Whether the owners in the index were set.
    has_owners: bool,
}

/// The inode that is recorded for a directory.
#[derive(Clone, Copy, Debug)]
struct Known {
    inode: u64,
    owner: u32,
}

impl Recorded {
    /// Reads the record of the target at `site`. A missing or damaged record names nothing.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read, or is another user's.
    pub(super) fn of(site: &Site, wanted: &Index, selection: &Selection) -> Result<Self, Error> {
        let record = match TreeRecord::of(site, Limits::NONE) {
            Err(error) if is_damage(&error) => None,
            record => record?,
        };
        let Some(record) = record else { return Ok(Self::default()) };
        let (Some(tree), true) = (record.tree(), record.is_of(site)?) else { return Ok(Self::default()) };
        let index = &record.installed.index;
        let of = record.installed.head.root().contents.index_digest;
        let stats = state::kept_stats(site, of, index.entries().len())?;
        Ok(Self::new(index, tree, stats.as_ref(), record.part.keeps.has(Aspect::Owners), wanted, selection))
    }

    /// Matches the directories of the selection with those of the installed tree.
    pub(super) fn new(
        index: &Index,
        tree: &Ref,
        stats: Option<&StatCache>,
        keeps_owners: bool,
        wanted: &Index,
        selection: &Selection,
    ) -> Self {
        let mut directories = HashMap::new();
        let mut installed: HashMap<Row<Directory>, Row<Directory>> = HashMap::new();
        for &number in &selection.directories {
            let row = wanted.directory(number);
            let old = match row.parent {
                None => Some(tree.directory),
                Some(parent) => installed.get(&parent).and_then(|parent| {
                    let (_, entry) =
                        index.find_entry(index.directory(*parent), wanted.name(wanted.entry(row.entry)))?;
                    match index.inode(entry.inode).kind {
                        InodeKind::Directory(old) => Some(old),
                        _ => None,
                    }
                }),
            };
            let Some(old) = old else { continue };
            installed.insert(number, old);
            let row = index.directory(old);
            let known = stats.and_then(|stats| {
                let owner = if keeps_owners { index.attributes(index.inode(row.inode)).uid } else { stats.user };
                stats.get(row.entry.at()).map(|stat| Known { inode: stat.inode, owner })
            });
            directories.insert(number, known);
        }
        Self { directories, is_whole: true, has_owners: keeps_owners }
    }

    /// Treats what the record does not have as unknown: a run that was killed may have made it.
    pub(super) fn of_killed_run(self) -> Self {
        Self { is_whole: false, ..self }
    }

    /// Returns whether the record names owners: an unchanged directory has the one that its index has.
    pub(super) fn has_owners(&self) -> bool {
        self.has_owners
    }

    /// Returns whether the record has this inode for a directory.
    pub(super) fn is_known(&self, number: Row<Directory>, inode: u64) -> bool {
        self.directories.get(&number).is_some_and(|known| known.is_some_and(|known| known.inode == inode))
    }

    /// Returns whether a directory that was found may be given the rights of the wanted one of this number. It `is_safe` if only this user and root
    /// can have put it there.
    pub(super) fn may_give(&self, number: Row<Directory>, found: &Statx, is_safe: bool) -> bool {
        match self.directories.get(&number) {
            Some(Some(known)) => known.inode == found.stx_ino && (known.owner == found.stx_uid || is_safe),
            Some(None) => is_safe,
            None => is_safe && !self.is_whole,
        }
    }
}
