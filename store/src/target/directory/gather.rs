//! Noting the sizes, times and inode numbers of a tree that is complete now: the next run knows its files by them.

use std::sync::{Mutex, PoisonError};

use crate::fs::stat_cache::{FileStat, FileTime, StatCache};
use rustix::io::Errno;
use sealift_format::InodeKind;
use sealift_format::num::at;

use super::apply::Update;
use super::plan::Selection;
use super::recheck::{Recheck, is_time, stat_of};
use crate::Error;
use crate::directory::target::{Target, TargetWalk};
use crate::threads::parallel::for_each;

/// What is known already of the files that an update leaves as they are.
#[derive(Debug)]
pub(super) enum Kept<'a> {
    /// They were compared with their record.
    Rechecked(&'a Recheck),
    /// They were not looked at, and are believed to be as this has them.
    Believed(Option<&'a StatCache>),
    /// All of them were read after this time.
    Read(FileTime),
}

/// What is done with an entry.
enum Source {
    Known(Option<FileStat>),
    /// It is looked at, and counts if nothing of it changed since.
    Look(FileTime),
}

/// Directories that a thread goes through before it takes the next ones.
const BATCH: usize = 64;

/// The stats of a target after an update, which ended before `since`.
pub(super) fn gather(update: &Update<'_>, kept: &Kept<'_>, since: FileTime) -> Result<StatCache, Error> {
    let index = update.target.index;
    let changes = &update.changes;
    let mut is_made = vec![false; index.entries().len()];
    let made = changes.build.iter().copied().chain(changes.metadata.iter().map(|(place, _)| place.entry));
    for entry in made {
        is_made[at(entry)] = true;
    }
    // Somebody may have put a name into a directory between the look at it and the change to it, which changed its time as well: it is left
    // unknown, so that the next update lists it, where what is known is to say that it holds nothing else.
    let mut is_to_be_listed = vec![false; index.entries().len()];
    for &directory in changes.directories.keys().chain(&changes.new_directories) {
        if index.directory(directory).parent.is_some() {
            let entry = at(index.directory(directory).entry);
            (is_made[entry], is_to_be_listed[entry]) = (true, update.may_delete);
        }
    }
    let source = |entry: u32| match kept {
        _ if is_to_be_listed[at(entry)] => Source::Known(None),
        _ if is_made[at(entry)] => Source::Look(since),
        Kept::Read(begun) => Source::Look(*begun),
        Kept::Rechecked(recheck) => Source::Known(changes.installed(entry).and_then(|entry| recheck.stat(entry))),
        Kept::Believed(cache) => {
            let known = |entry| cache.and_then(|cache| cache.get(entry));
            Source::Known(changes.installed(entry).and_then(known))
        }
    };
    let mut cache = of_tree(&update.target, update.of, update.selection, source, update.jobs)?;
    cache.is_exact = update.may_delete;
    Ok(cache)
}

/// The stats of a tree that was made before `since`, and that nobody else could reach.
pub(super) fn gather_new(
    target: &Target<'_>,
    of: [u8; 32],
    selection: &Selection,
    since: FileTime,
    jobs: usize,
) -> Result<StatCache, Error> {
    let mut cache = of_tree(target, of, selection, |_| Source::Look(since), jobs)?;
    cache.is_exact = true;
    Ok(cache)
}

fn of_tree(
    target: &Target<'_>,
    of: [u8; 32],
    selection: &Selection,
    source: impl Fn(u32) -> Source + Sync,
    jobs: usize,
) -> Result<StatCache, Error> {
    let index = target.index;
    let user = rustix::process::geteuid().as_raw();
    let mut is_selected = vec![false; index.entries().len()];
    let directories = selection.directories.iter().map(|number| index.directory(*number));
    let directories = directories.filter(|row| row.parent.is_some()).map(|row| row.entry);
    selection.entries().chain(directories).for_each(|entry| is_selected[at(entry)] = true);
    let cache = Mutex::new(StatCache::new(of, user, index.entries().len()));
    let batches: Vec<&[u32]> = selection.directories.chunks(BATCH).collect();
    for_each(jobs, &batches, TargetWalk::default, |walk, batch| {
        let mut found = Vec::new();
        for &directory in *batch {
            for entry in index.directory(directory).entries().filter(|entry| is_selected[at(*entry)]) {
                match source(entry) {
                    Source::Known(stat) => found.push((entry, stat, None)),
                    // What cannot be looked at is read by the next run.
                    Source::Look(since) => {
                        found.push((entry, look(target, walk, directory, entry).ok().flatten(), Some(since)));
                    }
                }
            }
        }
        let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
        for (entry, stat, since) in found {
            match (stat, since) {
                (Some(stat), Some(since)) => cache.set(entry, stat, since),
                (stat, _) => cache.copy(entry, stat),
            }
        }
        Ok(())
    })?;
    Ok(cache.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// What an entry is now, if it shows what it was given. Who owns it could have written to it since, and have set its time again: that
/// takes a look at what it holds.
fn look(target: &Target<'_>, walk: &mut TargetWalk, directory: u32, entry: u32) -> Result<Option<FileStat>, Errno> {
    let index = target.index;
    let row = index.entry(entry);
    let inode = index.inode(row.inode);
    let stat = stat_of(walk.go(target, directory)?, index.name(row))?;
    let is_right = match inode.kind {
        InodeKind::Regular(object) => stat.stx_size == index.object(object).size && is_time(&stat.stx_mtime, inode),
        _ => true,
    };
    let is_kind = u32::from(stat.stx_mode) & 0o170_000 == u32::from(index.attributes(inode).mode) & 0o170_000;
    Ok((is_right && is_kind).then(|| FileStat::from(&stat)))
}
