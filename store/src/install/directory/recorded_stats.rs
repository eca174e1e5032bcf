//! Records the sizes, times and inode numbers of a tree that is now complete: the next run recognizes its files by them.

use crate::fs::stat_cache::{FileStat, FileTime, StatCache};
use parking_lot::Mutex;
use rustix::io::Errno;
use sealift_format::{Directory, Entry, Index, InodeKind, Row};

use super::apply::Update;
use super::plan::Selection;
use super::recheck::{self, Recheck};
use crate::directory::target::{Target, TargetWalk};
use crate::threads::parallel::for_each_with;
use crate::{Error, Keeps};

/// What is already known of the files that an update leaves unchanged.
#[derive(Debug)]
pub(super) enum Kept<'a> {
    /// They were compared with their record, which has this index.
    Rechecked(&'a Recheck, &'a Index),
    /// They were not checked, and are assumed to match this record.
    Believed(Option<&'a StatCache>),
    /// All of them were read after this time.
    Read(FileTime),
}

/// Directories per batch of a thread.
const BATCH: usize = 64;

/// Returns the stats of a target after an update that ended before `since`.
pub(super) fn recorded_stats(update: &Update<'_>, kept: &Kept<'_>, since: FileTime) -> Result<StatCache, Error> {
    let index = update.target.index;
    let changes = &update.changes;
    let mut is_made = vec![false; index.entries().len()];
    let made = changes.build.iter().copied().chain(changes.metadata.iter().map(|place| place.entry));
    for entry in made {
        is_made[entry.at()] = true;
    }
    // Another process may have added a name to a directory between its check and the change by this update, which altered its times as well. If the
    // record has to prove that directories hold nothing else, such a directory is left unknown: the next update lists it.
    let mut is_to_be_listed = vec![false; index.entries().len()];
    for &directory in changes.directories.keys().chain(&changes.new_directories) {
        if index.directory(directory).parent.is_some() {
            let entry = index.directory(directory).entry.at();
            (is_made[entry], is_to_be_listed[entry]) = (true, update.may_delete);
        }
    }
    // Another directory may have its name by now, and must not be taken for it by the next update.
    let is_own = |entry: Row<Entry>, stat: &FileStat| match index.inode(index.entry(entry).inode).kind {
        InodeKind::Directory(directory) => update.is_own_directory(directory, stat.inode),
        _ => true,
    };
    let stat_of = |entry: Row<Entry>, look: Look<'_>| match kept {
        // Its inode is recorded with an impossible time: it is ours, and what it holds is unknown.
        _ if is_to_be_listed[entry.at()] => {
            let found = look().filter(|stat| is_own(entry, stat));
            (found.map(|stat| FileStat { ctime: FileTime::default(), ..stat }), Some(since))
        }
        _ if is_made[entry.at()] => (look().filter(|stat| is_own(entry, stat)), Some(since)),
        Kept::Read(begun) => (look(), Some(*begun)),
        Kept::Rechecked(recheck, installed) => {
            let Some(old) = changes.installed(entry) else { return (None, None) };
            match recheck.stat(old) {
                // Its file may have lost another name since, which alters its change time.
                Some(known) if recheck.linked.contains(&installed.entry(old).inode) => {
                    (look().filter(|found| FileStat { ctime: known.ctime, ..*found } == known), Some(since))
                }
                known => (known, None),
            }
        }
        Kept::Believed(cache) => {
            (changes.installed(entry).and_then(|entry| cache.and_then(|cache| cache.get(entry.at()))), None)
        }
    };
    let keeps = update.privilege.keeps();
    let mut cache = of_tree(&update.target, update.of, update.selection, keeps, stat_of, update.jobs)?;
    cache.is_exact = update.may_delete;
    Ok(cache)
}

/// Returns the stats of a tree that was made before `since` out of reach of other users. Entries that are not in `finished` are examined.
pub(super) fn of_new(
    target: &Target<'_>,
    of: [u8; 32],
    selection: &Selection,
    keeps: &Keeps,
    finished: &[Option<FileStat>],
    since: FileTime,
    jobs: usize,
) -> Result<StatCache, Error> {
    let stat_of =
        |entry: Row<Entry>, look: Look<'_>| (finished.get(entry.at()).copied().flatten().or_else(look), Some(since));
    let mut cache = of_tree(target, of, selection, keeps, stat_of, jobs)?;
    cache.is_exact = true;
    Ok(cache)
}

/// Examines an entry.
type Look<'l> = &'l mut dyn FnMut() -> Option<FileStat>;

/// Returns the stats of a tree as `stat_of` gives them. Those that come with a time are recorded only if their last change was before it.
fn of_tree(
    target: &Target<'_>,
    of: [u8; 32],
    selection: &Selection,
    keeps: &Keeps,
    stat_of: impl Fn(Row<Entry>, Look<'_>) -> (Option<FileStat>, Option<FileTime>) + Sync,
    jobs: usize,
) -> Result<StatCache, Error> {
    let index = target.index;
    let user = rustix::process::geteuid().as_raw();
    let mut is_selected = vec![false; index.entries().len()];
    let directories = selection.directories.iter().map(|number| index.directory(*number));
    let directories = directories.filter(|row| row.parent.is_some()).map(|row| row.entry);
    selection.entries().chain(directories).for_each(|entry| is_selected[entry.at()] = true);
    let cache = Mutex::new(StatCache::new(of, user, index.entries().len()));
    let batches: Vec<&[Row<Directory>]> = selection.directories.chunks(BATCH).collect();
    for_each_with(jobs, &batches, TargetWalk::default, |walk, batch| {
        let mut found = Vec::new();
        for &directory in *batch {
            for entry in index.directory(directory).entries().filter(|entry| is_selected[entry.at()]) {
                // The next run reads what cannot be examined.
                let mut look = || look(target, walk, directory, entry).ok().flatten();
                let (stat, since) = stat_of(entry, &mut look);
                found.push((entry, stat, since));
            }
        }
        let mut cache = cache.lock();
        for (entry, stat, since) in found {
            match (stat, since) {
                (Some(stat), Some(since)) if is_as_made(index, entry, &stat, keeps) => {
                    cache.set(entry.at(), stat, since);
                }
                (_, Some(_)) => {}
                (stat, None) => cache.copy(entry.at(), stat),
            }
        }
        Ok(())
    })?;
    Ok(cache.into_inner())
}

/// Returns the current stats of an entry, if it has the expected type.
fn look(
    target: &Target<'_>,
    walk: &mut TargetWalk,
    directory: Row<Directory>,
    entry: Row<Entry>,
) -> Result<Option<FileStat>, Errno> {
    let index = target.index;
    let row = index.entry(entry);
    let inode = index.inode(row.inode);
    let stat = recheck::stat_of(walk.go(target, directory)?, index.name(row))?;
    let is_kind = u32::from(stat.stx_mode) & 0o170_000 == u32::from(index.attributes(inode).mode) & 0o170_000;
    Ok(is_kind.then(|| FileStat::from(&stat)))
}

/// Returns whether an entry has the size and time that were set. The owner could have written to it since and reset its time: detecting that takes
/// reading its content.
fn is_as_made(index: &Index, entry: Row<Entry>, stat: &FileStat, keeps: &Keeps) -> bool {
    let inode = index.inode(index.entry(entry).inode);
    match inode.kind {
        InodeKind::Regular(object) => {
            let time = keeps.time((inode.mtime, inode.mtime_ns));
            stat.size == index.object(object).size && time.is_none_or(|time| time == stat.mtime)
        }
        _ => true,
    }
}
