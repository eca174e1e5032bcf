//! Records which files of a mount are read, in the order of their first reads.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use sealift_format::{Directory, Entry, Index, Inode, InodeKind, Row};
use sealift_store::kept_order::united;

use crate::order::{OrderEntry, OrderProfile};

/// What was read of a mount so far, from any thread.
#[derive(Clone, Debug, Default)]
pub struct Recording(Arc<Mutex<Files>>);

#[derive(Debug, Default)]
struct Files {
    /// In the order of their first reads.
    read: Vec<File>,
    place_of: HashMap<Row<Inode>, usize>,
}

#[derive(Debug)]
struct File {
    path: Vec<u8>,
    ranges: Vec<Range<u64>>,
    size: u64,
}

impl Recording {
    /// Returns the profile: the files that were read, by their first names, and the ranges that were read of large ones.
    #[must_use]
    pub fn profile(&self) -> OrderProfile {
        let files = self.0.lock();
        let entries = files.read.iter().map(|file| {
            let File { path, ranges, size } = file;
            OrderEntry::of_reads(path.clone(), ranges.clone(), Some(*size))
        });
        OrderProfile::new(entries.collect())
    }
}

/// Records for a [`Recording`].
#[derive(Debug)]
pub(super) struct Recorder {
    recording: Recording,
    /// For each inode, its first name in the mounted refs.
    names: Vec<Option<(Row<Directory>, Row<Entry>)>>,
}

impl Recorder {
    pub(super) fn new(recording: Recording, index: &Index, refs: &[String]) -> Self {
        let mut names = vec![None; index.inodes().len()];
        for tree in refs.iter().filter_map(|name| index.find_ref(name)) {
            for (directory, entry, _) in index.regulars(tree) {
                names[index.entry(entry).inode.at()].get_or_insert((directory, entry));
            }
        }
        Self { recording, names }
    }

    /// Notes that a range of a file was read.
    pub(super) fn note(&self, index: &Index, inode: Row<Inode>, range: Range<u64>) {
        let (InodeKind::Regular(object), Some((directory, entry))) = (index.inode(inode).kind, self.names[inode.at()])
        else {
            return;
        };
        let Files { read, place_of } = &mut *self.recording.0.lock();
        let place = *place_of.entry(inode).or_insert_with(|| {
            let path = index.path(directory, entry);
            read.push(File { path, ranges: Vec::new(), size: index.object(object).size });
            read.len() - 1
        });
        let ranges = &mut read[place].ranges;
        if ranges.len() == ranges.capacity() {
            // So the list does not grow when the same ranges are read again and again.
            *ranges = united(std::mem::take(ranges));
        }
        ranges.push(range);
    }
}
