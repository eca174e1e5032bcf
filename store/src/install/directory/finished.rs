//! The stats of the files of a new tree, each taken from the descriptor through which the file was finished: looking them up by name takes longer.

use std::os::fd::BorrowedFd;

use parking_lot::Mutex;
use rustix::fs::{FileType, Stat, fstat};
use sealift_format::{Entry, Row};

use crate::fs::stat_cache::FileStat;

/// The stats of entries that have not been touched since.
#[derive(Debug, Default)]
pub(super) struct Finished(Mutex<Vec<Option<FileStat>>>);

impl Finished {
    /// Notes an open file or directory that is complete.
    pub(super) fn note(&self, entry: Row<Entry>, file: BorrowedFd<'_>) {
        // A file with several names may change again through another of them, so it is looked up by name later, as is one that cannot be examined.
        let is_lasting =
            |stat: &Stat| stat.st_nlink == 1 || FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let stat = fstat(file).ok().filter(is_lasting).map(|stat| FileStat::from(&stat));
        let mut stats = self.0.lock();
        if stats.len() <= entry.at() {
            stats.resize(entry.at() + 1, None);
        }
        stats[entry.at()] = stat;
    }

    /// Forgets an entry whose file is changed again.
    pub(super) fn forget(&self, entry: Row<Entry>) {
        if let Some(stat) = self.0.lock().get_mut(entry.at()) {
            *stat = None;
        }
    }

    /// Returns the stats, by entry.
    pub(super) fn take(&self) -> Vec<Option<FileStat>> {
        std::mem::take(&mut self.0.lock())
    }
}
