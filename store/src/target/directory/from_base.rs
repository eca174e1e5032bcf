//! Files whose content a given base has, and the delta bundle does not carry.

use rustix::fs::ftruncate;
use sealift_format::num;

use super::files::Builder;
use super::plan::PlannedName;
use crate::Error;
use crate::base::{BaseReader, Bases, number_of};
use crate::delivery::write_sparse;
use crate::directory::walk::Walk;
use crate::progress::Phase;
use crate::threads::parallel::for_each_with;

/// Builds the files of the selection whose content is not in the bundle. Reading compares each with its id.
pub(super) fn copy(builder: &Builder<'_>, bases: &Bases, jobs: usize) -> Result<(), Error> {
    let (bundle, progress) = (builder.bundle, builder.progress);
    let size = |place: &PlannedName| bundle.index.object(place.object).size;
    let is_lacking = |place: &PlannedName| size(place) > 0 && !bundle.layout.is_carried(place.object);
    let places = builder.selection.regulars.chunk_by(|a, b| a.object == b.object);
    let tasks: Vec<(&PlannedName, &[PlannedName])> =
        places.filter_map(<[PlannedName]>::split_first).filter(|(first, _)| is_lacking(first)).collect();
    if tasks.is_empty() {
        return Ok(());
    }
    let by_id = bases.by_id();
    let bytes = tasks.iter().map(|(first, _)| size(first)).sum();
    progress.enter(Phase::Copying, bytes, num::wide(tasks.len()));
    let start = || (BaseReader::new(bases), Walk::default());
    for_each_with(jobs, &tasks, start, |(reader, hand), &(first, others)| {
        let row = bundle.index.object(first.object);
        let file = builder.create(hand, *first)?;
        let failed = builder.failed("write", *first);
        reader.read_in_parts(number_of(&by_id, row)?, |at, part| {
            progress.check()?;
            write_sparse(&file, part, at).map_err(&failed)
        })?;
        ftruncate(&file, row.size).map_err(&failed)?;
        for &place in others {
            builder.copy_file(hand, &file, *first, place)?;
        }
        builder.finish_file(&file, *first)?;
        progress.add(row.size, 0);
        Ok(())
    })
}
