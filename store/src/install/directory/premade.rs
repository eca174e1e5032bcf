//! The hot set of a new directory. Its files are created before anything is written, in the order of access, and where possible their space is
//! reserved together: then it does not matter which thread writes which file, or when.

use std::collections::HashSet;

use sealift_format::{Entry, Row};

use super::files::Builder;
use super::job::Job;
use super::plan::PlannedName;
use super::stretch::Stretch;
use crate::Error;
use crate::directory::stage::StageKind;
use crate::directory::walk::Walk;
use crate::kept_order::KeptOrder;

/// The longest file that gets its space beforehand. Reading a longer one takes longer than seeking to it, and exchanging its blocks takes the kernel
/// long, since it does so page by page.
const LEN_MAX: u64 = 8 << 20;

/// Creates the files of the hot set, with contiguous space, and returns their entries; none where that is not possible. Nothing else is written
/// meanwhile, so that space which is briefly reserved twice does not run short elsewhere.
///
/// # Errors
/// Returns an error if a file cannot be created, or if the run was cancelled.
pub(super) fn make_hot_set(
    job: &Job<'_>,
    builder: &Builder<'_>,
    hand: &mut Walk,
) -> Result<HashSet<Row<Entry>>, Error> {
    let (places, mut made) = (hot_places(job, builder), HashSet::new());
    let len_of = |place: &PlannedName| job.bundle.index.object(place.object).size;
    let bytes = places.iter().map(len_of).fold(0, u64::saturating_add);
    let is_worth_it = places.len() > 1 && job.site.free_space().is_ok_and(|room| bytes <= room.bytes / 2);
    let reserve = || Stretch::reserve(builder.stage.root(), places.iter().map(len_of));
    let Some(mut stretch) = is_worth_it.then(reserve).flatten() else { return Ok(made) };
    for place in &places {
        job.progress.check()?;
        let file = builder.create(hand, *place)?;
        made.insert(place.entry);
        if !stretch.give(&file, len_of(place)) {
            break;
        }
    }
    tracing::debug!(files = made.len(), bytes, "reserved space for the hot set");
    Ok(made)
}

/// Returns the files of the hot set that get space, in the order of access.
fn hot_places(job: &Job<'_>, builder: &Builder<'_>) -> Vec<PlannedName> {
    let (index, layout, stage) = (&job.bundle.index, &job.bundle.layout, builder.stage);
    // In a resumed run, files of the earlier one already have their places.
    let is_new = stage.layout() == StageKind::Tree && !stage.is_resumed();
    let parts = job.order.filter(|_| is_new).into_iter().flat_map(KeptOrder::parts);
    let whole = parts.filter(|part| part.ranges.is_empty()).map(|part| part.object);
    let gets_space =
        |object: &Row<_>| (1..=LEN_MAX).contains(&index.object(*object).size) && layout.holes_of(*object).is_empty();
    let places = whole.filter(gets_space).flat_map(|object| match builder.selection.places_of(object) {
        // The others become hard links to the first where possible.
        [first, ..] if job.options.tree.hardlink_duplicates => std::slice::from_ref(first),
        places => places,
    });
    places.copied().collect()
}
