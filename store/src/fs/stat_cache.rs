//! The stat data of installed files: sizes, times and inode numbers. They show that a file is unchanged without reading it, as in git's index.
//!
//! One compact file, written and read as a whole: numbers are little-endian.
//!
//! | bytes | |
//! |---|---|
//! | 16 | `sealift stats 2\n` |
//! | 32 | identifies what the files are numbered by, such as the digest of an index |
//! | 4 | the user who installed them |
//! | 4 | 1 if their directories held nothing else, 0 if that is unknown |
//! | 4 | the number of files |
//! | 40 each | inode, size, seconds and nanoseconds of the last content change, then of the last change of anything; all zero if unknown |
//! | 32 | BLAKE3 of everything before it |

use sealift_format::Error as FormatError;
use sealift_format::num;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::fs::{Stat, Statx, fstat};
use rustix::io::Errno;

use crate::fs::unnamed::unnamed_in;

/// A time of a file, by the clock of its file system: seconds and nanoseconds.
pub type FileTime = (i64, u32);

/// The properties that change with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStat {
    /// Its inode number.
    pub inode: u64,
    /// Its size in bytes.
    pub size: u64,
    /// When its content changed last, or the time that was set instead.
    pub mtime: FileTime,
    /// When anything of it changed last, which nobody can set.
    pub ctime: FileTime,
}

impl From<&Statx> for FileStat {
    fn from(stat: &Statx) -> Self {
        Self {
            inode: stat.stx_ino,
            size: stat.stx_size,
            mtime: (stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            ctime: (stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
        }
    }
}

impl From<&Stat> for FileStat {
    fn from(stat: &Stat) -> Self {
        let nanoseconds = |of| u32::try_from(of).unwrap_or(0);
        Self {
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            mtime: (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            ctime: (stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
        }
    }
}

/// The stats of numbered files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatCache {
    /// What the files are numbered by.
    pub of: [u8; 32],
    /// The user who installed the files: another user may be able to set more or less.
    pub user: u32,
    /// Whether the directories held nothing except these files: an unchanged one still holds nothing else.
    pub is_exact: bool,
    stats: Vec<Option<FileStat>>,
}

const MAGIC: &[u8; 16] = b"sealift stats 2\n";
const HEAD_LEN: usize = MAGIC.len() + 32 + 4 + 4 + 4;
const STAT_LEN: usize = 40;
const CHECK_LEN: usize = 32;

/// Returns the time that a change to a file in `directory` would now get.
///
/// # Errors
/// Returns an error if no file can be created there.
pub fn now(directory: BorrowedFd<'_>) -> Result<FileTime, Errno> {
    Ok(FileStat::from(&fstat(unnamed_in(directory)?)?).ctime)
}

/// Returns the first time that is later than all previous changes.
pub fn next_moment(directory: BorrowedFd<'_>) -> Result<FileTime, Errno> {
    let first = now(directory)?;
    // A clock tick is at most 10 ms; if the clock does not advance, the last changes stay unknown.
    for _ in 0..20 {
        let next = now(directory)?;
        if next > first {
            return Ok(next);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(first)
}

impl StatCache {
    /// Creates a cache of `files` files, numbered from 0, with nothing known of them or of what is beside them.
    #[must_use]
    pub fn new(of: [u8; 32], user: u32, files: usize) -> Self {
        Self { of, user, is_exact: false, stats: vec![None; files] }
    }

    /// Returns the maximum encoded length for so many files.
    #[must_use]
    pub fn encoded_len(files: usize) -> u64 {
        let len = files.saturating_mul(STAT_LEN).saturating_add(HEAD_LEN + CHECK_LEN);
        num::wide(len)
    }

    /// Returns the number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.stats.len()
    }

    /// Returns whether it has no files.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stats.is_empty()
    }

    /// Returns what is known of a file.
    #[must_use]
    pub fn get(&self, file: usize) -> Option<FileStat> {
        self.stats.get(file).copied().flatten()
    }

    /// Returns whether a file is known and unchanged.
    #[must_use]
    pub fn is_unchanged(&self, file: usize, stat: &FileStat) -> bool {
        self.get(file).is_some_and(|known| known == *stat)
    }

    /// Records a file as it was found after `since`, a time from [`now`]. A file that changed at that very moment is left unknown: it could change
    /// again and show the same time.
    pub fn set(&mut self, file: usize, stat: FileStat, since: FileTime) {
        if let Some(slot) = self.stats.get_mut(file) {
            *slot = Some(stat).filter(|stat| stat.ctime < since && stat.inode != 0);
        }
    }

    /// Records a file as another cache knows it.
    pub fn copy(&mut self, file: usize, stat: Option<FileStat>) {
        if let Some(slot) = self.stats.get_mut(file) {
            *slot = stat;
        }
    }

    /// Encodes the cache.
    ///
    /// # Errors
    /// Returns an error if there are more files than the count can hold.
    pub fn encode(&self) -> Result<Vec<u8>, FormatError> {
        let mut bytes = Vec::with_capacity(HEAD_LEN + self.stats.len() * STAT_LEN + CHECK_LEN);
        bytes.extend(MAGIC);
        bytes.extend(self.of);
        bytes.extend(self.user.to_le_bytes());
        bytes.extend(u32::from(self.is_exact).to_le_bytes());
        bytes.extend(num::fit::<u32>(self.stats.len(), "the number of files")?.to_le_bytes());
        for stat in &self.stats {
            bytes.extend(stat.map_or([0; STAT_LEN], encode_stat));
        }
        let check = blake3::hash(&bytes);
        bytes.extend(check.as_bytes());
        Ok(bytes)
    }

    /// Decodes a cache, if the bytes are exactly as written.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (body, check) = bytes.split_last_chunk::<CHECK_LEN>()?;
        if blake3::hash(body) != *check {
            return None;
        }
        let body = body.strip_prefix(MAGIC)?;
        let (of, body) = body.split_first_chunk::<32>()?;
        let (user, body) = body.split_first_chunk::<4>()?;
        let (exact, body) = body.split_first_chunk::<4>()?;
        let (count, body) = body.split_first_chunk::<4>()?;
        let (stats, rest) = body.as_chunks::<STAT_LEN>();
        if !rest.is_empty() || u32::try_from(stats.len()) != Ok(u32::from_le_bytes(*count)) {
            return None;
        }
        let stats = stats.iter().map(decode_stat).collect();
        let is_exact = u32::from_le_bytes(*exact) == 1;
        Some(Self { of: *of, user: u32::from_le_bytes(*user), is_exact, stats })
    }
}

fn encode_stat(stat: FileStat) -> [u8; STAT_LEN] {
    let mut bytes = [0; STAT_LEN];
    bytes[0..8].copy_from_slice(&stat.inode.to_le_bytes());
    bytes[8..16].copy_from_slice(&stat.size.to_le_bytes());
    bytes[16..24].copy_from_slice(&stat.mtime.0.to_le_bytes());
    bytes[24..28].copy_from_slice(&stat.mtime.1.to_le_bytes());
    bytes[28..36].copy_from_slice(&stat.ctime.0.to_le_bytes());
    bytes[36..40].copy_from_slice(&stat.ctime.1.to_le_bytes());
    bytes
}

/// Decodes an entry; no file has inode 0.
fn decode_stat(bytes: &[u8; STAT_LEN]) -> Option<FileStat> {
    let wide = |at: usize| <[u8; 8]>::try_from(&bytes[at..at + 8]).unwrap_or_default();
    let narrow = |at: usize| <[u8; 4]>::try_from(&bytes[at..at + 4]).unwrap_or_default();
    let time = |at: usize| (i64::from_le_bytes(wide(at)), u32::from_le_bytes(narrow(at + 8)));
    let inode = u64::from_le_bytes(wide(0));
    let stat = FileStat { inode, size: u64::from_le_bytes(wide(8)), mtime: time(16), ctime: time(28) };
    (inode != 0).then_some(stat)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;

    use super::*;

    fn stat(inode: u64) -> FileStat {
        FileStat { inode, size: 7, mtime: (-1, 999_999_999), ctime: (1 << 40, 5) }
    }

    fn filled() -> StatCache {
        let mut cache = StatCache::new([3; 32], 1000, 3);
        cache.set(0, stat(11), (i64::MAX, 0));
        cache.set(2, stat(u64::MAX), (i64::MAX, 0));
        cache
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let cache = filled();
        let bytes = cache.encode().expect("they are few");
        assert_eq!(u64::try_from(bytes.len()), Ok(StatCache::encoded_len(3)));
        let read = StatCache::parse(&bytes).expect("it is whole");
        assert_eq!(read, cache);
        assert!(read.is_unchanged(0, &stat(11)) && !read.is_unchanged(0, &stat(12)));
        assert!(!read.is_unchanged(1, &stat(11)) && !read.is_unchanged(3, &stat(11)), "nothing is known of them");
    }

    #[test]
    fn each_flip_and_cut_is_noticed() {
        let bytes = filled().encode().expect("they are few");
        for at in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1;
            assert!(StatCache::parse(&flipped).is_none(), "a flip at {at}");
            assert!(StatCache::parse(&bytes[..at]).is_none(), "a cut at {at}");
        }
    }

    #[test]
    fn a_wrong_count_is_refused_though_the_check_fits() {
        let bytes = filled().encode().expect("they are few");
        let mut body = bytes[..bytes.len() - CHECK_LEN].to_vec();
        body[HEAD_LEN - 4] = 2;
        let check = blake3::hash(&body);
        body.extend(check.as_bytes());
        assert!(StatCache::parse(&body).is_none());
    }

    #[test]
    fn what_changed_in_the_same_moment_is_left_unknown() {
        let mut cache = StatCache::new([0; 32], 0, 2);
        cache.set(0, stat(1), stat(1).ctime);
        cache.set(1, stat(1), (stat(1).ctime.0, stat(1).ctime.1 + 1));
        assert_eq!((cache.get(0), cache.get(1)), (None, Some(stat(1))));
    }

    #[test]
    fn each_field_counts() {
        let cache = filled();
        let same = stat(11);
        for other in [
            FileStat { size: 8, ..same },
            FileStat { mtime: (-1, 0), ..same },
            FileStat { ctime: (1 << 40, 6), ..same },
            FileStat { ctime: (0, 5), ..same },
        ] {
            assert!(!cache.is_unchanged(0, &other), "{other:?}");
        }
    }

    #[test]
    fn now_is_no_earlier_than_what_was_made_before() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let path = scratch.path().join("file");
        std::fs::write(&path, "x").expect("a file");
        let directory = crate::fs::confined::open_user_dir(scratch.path()).expect("it is there");
        let now = now(directory.as_fd()).expect("a file can be made");
        let made = std::os::unix::fs::MetadataExt::ctime(&path.metadata().expect("it is there"));
        assert!(now.0 >= made);
        let next = next_moment(directory.as_fd()).expect("a file can be made");
        assert!(next > now, "{next:?} {now:?}");
    }
}
