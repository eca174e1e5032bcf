//! Finds which ranges of a large file are read. Events do not say this, but ranges that were read are in the page cache afterwards, and so are those
//! that the kernel read ahead, which any medium has to deliver as well. Ranges that were cached before count too, since they may have been read
//! again. A file without any cached pages bypassed the page cache, and counts as a whole.

use std::ops::Range;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, lstat, openat};
use sealift_store::kept_order::united;
use sealift_store::kernel::cached;

use crate::order::profile::LARGE;

/// After a look, the next one waits for so many times its duration: looking stays cheap however often a file is used.
const REST: u32 = 100;

/// A large file that is used.
pub(super) struct Large {
    /// The file's stat at its first use.
    stat: Stat,
    /// The ranges that were in the page cache at any look.
    ranges: Vec<Range<u64>>,
    /// Whether all of it was there at the first look.
    was_cached: bool,
    /// The earliest time of the next look.
    rested: Instant,
}

/// Returns whether a file is a large one, by its size in bytes.
pub(super) fn is_large(stat: &Stat) -> bool {
    size(stat) > LARGE
}

fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

impl Large {
    /// Takes the first look at a file that is used.
    pub(super) fn new(file: impl AsFd, stat: Stat) -> Self {
        let mut large = Self { stat, ranges: Vec::new(), was_cached: false, rested: Instant::now() };
        large.look(file, &stat);
        large.was_cached = large.has(size(&stat));
        large
    }

    /// Looks at the file again, unless the last look was just now, so that pages which the kernel drops later are not missed. Returns whether the
    /// whole file is known, or the look found nothing new.
    pub(super) fn look(&mut self, file: impl AsFd, stat: &Stat) -> bool {
        let start = Instant::now();
        let has_all = self.has(size(stat));
        if has_all || start < self.rested {
            return has_all;
        }
        let known = self.ranges.clone();
        if let Ok(found) = cached(file, size(stat)) {
            self.add(found);
        }
        self.rested = start + REST * start.elapsed();
        self.ranges == known
    }

    /// Whether all of it was in the page cache when it was first used.
    pub(super) fn was_cached(&self) -> bool {
        self.was_cached
    }

    /// Looks at the file for the last time, by its path. Returns the ranges that were read, and the file's size; `None` if the file is gone or
    /// was replaced.
    pub(super) fn finish(mut self, path: &Path) -> Option<(Vec<Range<u64>>, u64)> {
        let is_same = |stat: &Stat| (stat.st_dev, stat.st_ino) == (self.stat.st_dev, self.stat.st_ino);
        // Only the same regular file is opened: opening a device can have effects.
        let is_file = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        lstat(path).ok().filter(|stat| is_same(stat) && is_file(stat))?;
        let file = openat(CWD, path, QUIETLY, Mode::empty()).ok()?;
        let stat = fstat(&file).ok().filter(is_same)?;
        if !self.has(size(&stat)) {
            self.add(cached(&file, size(&stat)).ok()?);
        }
        Some((self.ranges, size(&stat)))
    }

    fn add(&mut self, mut found: Vec<Range<u64>>) {
        self.ranges.append(&mut found);
        self.ranges = united(std::mem::take(&mut self.ranges));
    }

    /// Returns whether the ranges cover a file of so many bytes.
    fn has(&self, len: u64) -> bool {
        self.ranges.first().is_some_and(|range| range.start == 0 && range.end >= len)
    }
}

/// Opens a file without waiting, for example until a lease on it is given up, and without leaving a trace, such as a new access time.
pub(super) const QUIETLY: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NOATIME).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK);

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::FileExt as _;

    use rustix::fs::{Advice, fadvise};

    use super::*;

    #[test]
    fn of_another_file_nothing_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("large");
        let write = || fs::write(&path, vec![1; 2 << 20]).expect("written");
        let look = || {
            let file = File::open(&path).expect("opened");
            Large::new(&file, fstat(&file).expect("a size"))
        };
        write();
        let (ranges, size) = look().finish(&path).expect("it is there");
        assert!(size == 2 << 20 && ranges.len() == 1 && ranges[0] == (0..size), "{ranges:?}");
        let (gone, linked, replaced) = (look(), look(), look());
        let aside = folder.path().join("aside");
        fs::rename(&path, &aside).expect("renamed");
        assert_eq!(gone.finish(&path), None);
        std::os::unix::fs::symlink(&aside, &path).expect("linked");
        assert_eq!(linked.finish(&path), None);
        fs::remove_file(&path).expect("removed");
        write();
        assert_eq!(replaced.finish(&path), None);
    }

    /// A long recording, or little memory.
    #[test]
    fn what_the_kernel_drops_after_a_look_is_not_lost() {
        const PLACES: [u64; 2] = [3 << 20, 9 << 20];
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("large");
        fs::write(&path, vec![1; 16 << 20]).expect("written");
        let file = File::open(&path).expect("opened");
        file.sync_all().expect("synced");
        let drop_all = || fadvise(&file, 0, None, Advice::DontNeed).expect("the kernel takes it");
        drop_all();
        if !cached(&file, 16 << 20).expect("the kernel says").is_empty() {
            return sealift_desk::skipped("needs a folder for temporary files on a disk: no file is cold in memory");
        }
        let stat = fstat(&file).expect("a size");
        let mut large = Large::new(&file, stat);
        assert!(!large.was_cached() && large.ranges.is_empty());
        let found = |large: &Large, place: u64| large.ranges.iter().any(|range| range.contains(&place));
        for place in PLACES {
            file.read_exact_at(&mut [0], place).expect("read");
            while !found(&large, place) {
                large.look(&file, &stat);
            }
            drop_all();
        }
        let (ranges, size) = large.finish(&path).expect("it is there");
        let has_all = PLACES.iter().all(|place| ranges.iter().any(|range| range.contains(place)));
        assert!(has_all && size == 16 << 20, "{ranges:?}");
    }
}
