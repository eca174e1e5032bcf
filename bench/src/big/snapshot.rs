//! The contents of a tree, read without the code under test.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Directory,
    File(blake3::Hash),
    Symlink(PathBuf),
    Other,
}

/// Every path below a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(pub(crate) BTreeMap<PathBuf, (Item, Stamp)>);

/// Mode, owner, group, links, size, and modification time.
pub(crate) type Stamp = (u32, u32, u32, u64, u64, i64, i64);

impl Snapshot {
    pub(crate) fn take(dir: &Path) -> Result<Self> {
        let mut items = BTreeMap::new();
        let metadata = fs::symlink_metadata(dir).with_context(|| format!("cannot look at {}", dir.display()))?;
        items.insert(PathBuf::new(), (Item::Directory, stamp(&metadata)));
        let mut pending = vec![PathBuf::new()];
        while let Some(below) = pending.pop() {
            for entry in fs::read_dir(dir.join(&below)).with_context(|| format!("cannot list {}", below.display()))? {
                let entry = entry?;
                let (metadata, path) = (entry.metadata()?, below.join(entry.file_name()));
                let item = if metadata.is_dir() {
                    pending.push(path.clone());
                    Item::Directory
                } else if metadata.is_symlink() {
                    Item::Symlink(fs::read_link(entry.path())?)
                } else if metadata.is_file() {
                    Item::File(blake3::hash(&fs::read(entry.path())?))
                } else {
                    Item::Other
                };
                items.insert(path, (item, stamp(&metadata)));
            }
        }
        Ok(Self(items))
    }

    fn get(&self, path: &Path) -> Option<&Item> {
        self.0.get(path).map(|(item, _)| item)
    }

    /// Returns what in this tree is neither as in `old` nor as in `new`. A name may be missing only if one of them lacks it, or has another file type
    /// there.
    pub(crate) fn neither(&self, old: &Self, new: &Self) -> Option<String> {
        let kind = |item: &Item| std::mem::discriminant(item);
        for (path, (item, _)) in &self.0 {
            if [old.get(path), new.get(path)].into_iter().flatten().all(|known| known != item) {
                return Some(format!("{} is neither the old nor the new file", path.display()));
            }
        }
        for (path, (item, _)) in &old.0 {
            let stays = new.get(path).is_some_and(|new| kind(new) == kind(item));
            if stays && !self.0.contains_key(path) {
                return Some(format!("{} is missing, and both trees have it", path.display()));
            }
        }
        None
    }

    /// Returns the first path that differs in anything.
    pub(crate) fn first_difference(&self, other: &Self) -> Option<PathBuf> {
        let mut paths = self.0.keys().chain(other.0.keys());
        paths.find(|path| self.0.get(*path) != other.0.get(*path)).cloned()
    }

    /// Returns the same, but ignores link counts, which other users can change.
    pub(crate) fn first_difference_but_links(&self, other: &Self) -> Option<PathBuf> {
        let without = |snapshot: &Self| {
            let mut items = snapshot.0.clone();
            items.values_mut().for_each(|(_, stamp)| stamp.3 = 0);
            Self(items)
        };
        without(self).first_difference(&without(other))
    }
}

fn stamp(metadata: &Metadata) -> Stamp {
    // A directory's size and link count depend on its past contents.
    let (size, links) = if metadata.is_dir() { (0, 0) } else { (metadata.len(), metadata.nlink()) };
    (metadata.mode(), metadata.uid(), metadata.gid(), links, size, metadata.mtime(), metadata.mtime_nsec())
}
