//! Files whose content a given base has, and the delta bundle does not carry.

use std::collections::HashMap;

use rustix::fs::ftruncate;
use sealift_format::{Object, Row, num};

use super::files::Builder;
use super::plan::PlannedName;
use crate::Error;
use crate::base::{BaseReader, Bases, number_of};
use crate::delivery::write_sparse;
use crate::directory::walk::Walk;
use crate::kept_order::KeptOrder;
use crate::progress::Phase;
use crate::threads::parallel::for_each_with;

/// The files of a content.
type Files<'a> = (&'a PlannedName, &'a [PlannedName]);

/// Returns the files of the selection whose content is not in the bundle: those of the hot set, in the order of access, and the others.
pub(super) fn lacking<'a>(builder: &'a Builder<'_>, order: Option<&KeptOrder>) -> (Vec<Files<'a>>, Vec<Files<'a>>) {
    let parts = order.map(KeptOrder::parts).unwrap_or_default();
    let ranks: HashMap<Row<Object>, usize> = parts.iter().map(|part| part.object).zip(0..).collect();
    let bundle = builder.bundle;
    let is_lacking = |object| bundle.index.object(object).size > 0 && !bundle.layout.is_stored(object);
    let files = builder.selection.regulars.chunk_by(|a, b| a.object == b.object).filter_map(<[_]>::split_first);
    let lacking = files.filter(|(first, _)| is_lacking(first.object));
    let (mut first, rest): (Vec<_>, _) = lacking.partition(|(first, _)| ranks.contains_key(&first.object));
    first.sort_unstable_by_key(|(first, _)| ranks.get(&first.object));
    (first, rest)
}

/// Builds these files. Reading compares each content with its id.
pub(super) fn copy(builder: &Builder<'_>, bases: &Bases, tasks: &[Files<'_>], jobs: usize) -> Result<(), Error> {
    if tasks.is_empty() {
        return Ok(());
    }
    let (bundle, progress, by_id) = (builder.bundle, builder.progress, bases.by_id());
    let bytes = tasks.iter().map(|(first, _)| bundle.index.object(first.object).size).sum();
    progress.enter(Phase::Copying, bytes, num::wide(tasks.len()));
    let start = || (BaseReader::new(bases), Walk::default());
    for_each_with(jobs, tasks, start, |(reader, hand), &(first, others)| {
        let row = bundle.index.object(first.object);
        let file = builder.create(hand, *first)?;
        let failed = builder.failed("write", *first);
        reader.read_in_parts(number_of(&by_id, row)?, |at, part| {
            progress.check()?;
            write_sparse(&file, part, at).map_err(&failed)
        })?;
        ftruncate(&file, row.size).map_err(&failed)?;
        builder.keep_holes(&file, *first);
        builder.copy_file(hand, &file, *first, others)?;
        builder.finish_file(&file, *first)?;
        progress.add(row.size, 0);
        Ok(())
    })
}
