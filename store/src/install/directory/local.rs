//! Files of an update whose content the target already has, under the same name or another.

use std::collections::{HashMap, HashSet};

use parking_lot::Mutex;

use rustix::fs::{FileType, Mode, OFlags, fstat};
use sealift_format::num;
use sealift_format::{Directory, Entry, Index, Object, Ref, Row};

use super::files::Builder;
use super::plan::{PlannedName, Selection};
use super::staged::{Content, check_content};
use crate::Error;
use crate::directory::target::{Target, TargetWalk};
use crate::directory::walk::Walk;
use crate::fs::confined::open_name;
use crate::progress::Phase;
use crate::threads::parallel::for_each_with;

/// What a thread reuses.
#[derive(Default)]
struct Copier {
    walk: TargetWalk,
    hand: Walk,
    buffer: Vec<u8>,
}

/// A directory of the installed tree, and a file there.
type Source = (Row<Directory>, Row<Entry>);

/// The places that need an object, and where the installed tree has it.
type Task<'a> = (&'a [PlannedName], &'a [Source]);

/// Builds what it can of the selection from the installed tree, which stays unchanged. Each copy is hashed after it was made. Returns the entries
/// that were built.
pub(super) fn copy_local(builder: &Builder<'_>, target: &Target<'_>, tree: &Ref) -> Result<HashSet<Row<Entry>>, Error> {
    let at = places_by_object(&builder.bundle.index, builder.selection, target.index, tree);
    let tasks: Vec<Task<'_>> = builder
        .selection
        .regulars
        .chunk_by(|a, b| a.object == b.object)
        .filter_map(|places| Some((places, &at.get(&places.first()?.object)?[..])))
        .collect();
    if tasks.is_empty() {
        return Ok(HashSet::new());
    }
    let size =
        |places: &[PlannedName]| places.first().map_or(0, |place| builder.bundle.index.object(place.object).size);
    let bytes = tasks.iter().map(|(places, _)| size(places)).sum();
    builder.progress.enter(Phase::Copying, bytes, tasks.iter().map(|(places, _)| num::wide(places.len())).sum());
    let made: Mutex<HashSet<Row<Entry>>> = Mutex::default();
    for_each_with(builder.options.jobs, &tasks, Copier::default, |copier, (places, sources)| {
        for &source in *sources {
            builder.progress.check()?;
            if copy(builder, copier, target, source, places)? {
                builder.progress.add(size(places), 0);
                made.lock().extend(places.iter().map(|place| place.entry));
                break;
            }
        }
        Ok(())
    })?;
    Ok(made.into_inner())
}

/// Returns entries of regular files whose content the installed tree should have.
pub(super) fn local_entries(
    wanted: &Index,
    selection: &Selection,
    installed: &Index,
    tree: &Ref,
) -> HashSet<Row<Entry>> {
    let at = places_by_object(wanted, selection, installed, tree);
    selection.regulars.iter().filter(|place| at.contains_key(&place.object)).map(|place| place.entry).collect()
}

/// How many files of equal content are tried in turn.
const SOURCES: usize = 4;

/// Returns, for each selected non-empty object, the directories and entries of the installed tree that have it.
fn places_by_object(
    wanted: &Index,
    selection: &Selection,
    installed: &Index,
    tree: &Ref,
) -> HashMap<Row<Object>, Vec<Source>> {
    let objects = selection.regulars.iter().map(|place| place.object);
    let by_id: HashMap<[u8; 32], _> = objects
        .map(|object| (wanted.object(object), object))
        .filter(|(row, _)| row.size > 0)
        .map(|(row, object)| (row.id, object))
        .collect();
    let mut places: HashMap<_, Vec<_>> = HashMap::new();
    for (directory, entry, object) in installed.regulars(tree) {
        let Some(object) = by_id.get(&installed.object(object).id) else { continue };
        let sources = places.entry(*object).or_default();
        if sources.len() < SOURCES {
            sources.push((directory, entry));
        }
    }
    places
}

/// Builds all files of an object from one file of the installed tree. Returns `false`, and leaves no file, if that one has changed.
fn copy(
    builder: &Builder<'_>,
    copier: &mut Copier,
    target: &Target<'_>,
    (directory, entry): Source,
    places: &[PlannedName],
) -> Result<bool, Error> {
    let Some((&first, others)) = places.split_first() else { return Ok(false) };
    let name = target.index.name(target.index.entry(entry));
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let opened = copier.walk.go(target, directory).and_then(|at| open_name(at, name, flags, Mode::empty()));
    // Another process changed the tree: the content is then taken from elsewhere.
    let Ok(old) = opened else { return Ok(false) };
    let Ok(stat) = fstat(&old) else { return Ok(false) };
    let size = builder.bundle.index.object(first.object).size;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || u64::try_from(stat.st_size) != Ok(size) {
        return Ok(false);
    }
    let file = match builder.create(&mut copier.hand, first) {
        // An interrupted run wrote pieces of it.
        Err(Error::FoldedName { .. }) => return Ok(false),
        created => created?,
    };
    let copied = builder.copy_content(&old, &file, first);
    let content = copied.and_then(|()| check_content(builder, &file, &mut copier.buffer, first));
    match content {
        Ok(Content::Whole) => {}
        // It shrank while it was copied, or has changed.
        Ok(_) | Err(Error::Io { .. }) => {
            builder.remove(&mut copier.hand, first)?;
            return Ok(false);
        }
        Err(error) => return Err(error),
    }
    builder.copy_file(&mut copier.hand, &file, first, others)?;
    builder.finish_file(&file, first)?;
    Ok(true)
}
