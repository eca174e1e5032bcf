//! Packing what a target lacks that holds certain bases: a delta bundle (spec 4.6).
//!
//! The sources are read twice: first all contents, to know which objects no base has; then these, each with what resembles it in the
//! bases.

mod choose;
mod encode;
mod full;
mod names;
mod plan;
mod similar;
mod suffix;

use std::collections::HashMap;

use sealift_format::{Chunk, Codec, Difference, Large, Layout, Piece};

use super::contents::{build_index, holes_of};
use super::plan::Plan;
use super::sequence::{PackedObject, Sequenced};
use super::writer::ChunkWriter;
use super::{
    DeltaStats, Front, FrontBases, Output, PackOptions, PackRef, PackStats, Signer, Spool, check_options, order,
    pipeline,
};
use crate::base::{Base, Bases};
use crate::progress::Phase;
use crate::source::Source;
use crate::{Error, Progress};
use encode::{Encoder, PiecePlace};
pub use full::FullBundle;
use plan::Planned;

/// Bytes that it may take to decode a chunk, where nothing else is wished: its prefix, its stored bytes, and its decoded ones.
pub(super) const MEMORY: u64 = 128 << 20;

/// Stored bytes of all chunks from which on they are not copied lightly.
const WORTH_ALIGNING: u64 = 16 << 20;

/// Packs what `refs` have and `bases` lack into a delta bundle. It is relative to the first of the bases, and a target needs all of them.
/// With `full` it stands for that bundle, and can be [joined](crate::join) to it.
///
/// # Errors
/// As [`super::pack`]; or the first base holds just what is packed; or `full` holds something else, or is not what this encoder makes.
pub fn pack_delta(
    refs: &[PackRef<'_>],
    bases: Vec<Base>,
    full: Option<&FullBundle>,
    output: &Output,
    options: &PackOptions,
    sign: &Signer<'_>,
    progress: &Progress,
) -> Result<PackStats, Error> {
    check_options(refs, options)?;
    let mut refs: Vec<PackRef<'_>> = refs.to_vec();
    refs.sort_by_key(|from| from.name);
    let sources: Vec<&Source> = refs.iter().map(|from| from.source).collect();
    let (items, hot_end, order) = order::access_order(&sources, options.order.as_ref());
    let (bytes, files) = (items.iter().map(|item| item.len).sum(), items.len());
    progress.enter(Phase::Packing, bytes, u64::try_from(files).unwrap_or(0));
    let packed =
        pipeline::Pipeline::new(&sources, Plan::new(items, hot_end, options.chunk_len), None, options, progress);
    let (packed, _) = packed.run(options.jobs.max(1))?;
    let (index, _) = build_index(&refs, &packed)?;

    let bases = Bases::new(bases);
    let indexes = bases.indexes();
    let Some((first, others)) = indexes.split_first() else {
        return Err(Error::Usage("a delta bundle needs a base".into()));
    };
    if indexes.iter().any(|base| base.bytes() == index.bytes()) {
        return Err(Error::Usage("the base holds just what is packed: there is nothing to bring".into()));
    }
    let full = full.map(|full| full.describe(&index, &bases, options, progress)).transpose()?;
    let (full, full_layout) = full.unzip();
    let difference = Difference::between(first, others, &index);
    let carried = Carried::new(&packed, &difference);
    let choice = choose::choose(&sources, &packed, &carried.objects, &bases, options, progress)?;
    let limits = plan::Limits::new(options);
    let planned = plan::plan(&packed, &carried.objects, &choice, &bases, &limits);

    let bytes = planned.iter().map(|chunk| chunk.len).sum();
    progress.enter(Phase::Encoding, bytes, 0);
    let spool = Spool::create(output)?;
    let mut writer = ChunkWriter::new(spool, true);
    let places = Encoder { sources: &sources, packed: &packed, bases: &bases, limits: &limits, options, progress }
        .run(&planned, &mut writer)?;

    progress.enter(Phase::Finishing, 0, 0);
    let (mut layout, spool) = build_layout(&packed, &carried, &planned, &places, writer);
    layout.full = full_layout;
    let relative = FrontBases { difference: &difference, indexes: &indexes, piece_log2: limits.piece_log2, full };
    let front = Front { index: &index, layout: &layout, bases: Some(relative) };
    // Copying little behind the head costs less than the bytes that align it.
    let stored: u64 = layout.chunks.iter().map(|chunk| u64::from(chunk.stored_len)).sum();
    let align = stored > WORTH_ALIGNING && spool.wants_aligned_head();
    let (head, behind) = front.make_head(options, sign, align)?;
    let root = head.root().clone();
    let file_bytes = head.file_len();
    let mut front = head.encode();
    front.extend(behind);
    let copied = spool.finish(&front)?;
    let delta = Some(delta_stats(&difference, &layout));
    Ok(PackStats { root, file_bytes, order, delta, copied })
}

fn delta_stats(difference: &Difference, layout: &Layout) -> DeltaStats {
    let memory = |chunk: &Chunk| {
        let decoded = u64::from(chunk.len) * if chunk.codec == Codec::Suffix { 3 } else { 1 };
        layout.prefix_len(chunk) + u64::from(chunk.stored_len) + decoded
    };
    DeltaStats {
        objects: u64::try_from(difference.objects().len()).unwrap_or(u64::MAX),
        bytes: difference.objects().iter().map(|object| object.size).fold(0, u64::saturating_add),
        memory: layout.chunks.iter().map(memory).max().unwrap_or(0),
    }
}

/// The packed objects that no base has.
struct Carried {
    /// In the order of packing.
    objects: Vec<u32>,
    /// The packed object of each row of the difference.
    of_row: Vec<u32>,
}

impl Carried {
    fn new(packed: &Sequenced, difference: &Difference) -> Self {
        let by_id: HashMap<[u8; 32], u32> =
            (0..).zip(&packed.objects).map(|(number, object)| (object.id, number)).collect();
        let of_row: Vec<u32> =
            difference.objects().iter().map(|object| by_id.get(&object.id).copied().unwrap_or(u32::MAX)).collect();
        let mut objects = of_row.clone();
        objects.sort_unstable();
        Self { objects, of_row }
    }
}

fn row(packed: &Sequenced, object: u32) -> &PackedObject {
    &packed.objects[usize::try_from(object).unwrap_or(usize::MAX)]
}

/// Builds the layout, which numbers the objects as the difference does.
fn build_layout(
    packed: &Sequenced,
    carried: &Carried,
    planned: &[Planned],
    places: &[Option<PiecePlace>],
    writer: ChunkWriter,
) -> (Layout, Spool) {
    let number_of: HashMap<u32, u32> = (0..).zip(&carried.of_row).map(|(number, object)| (*object, number)).collect();
    let number = |object: &u32| number_of.get(object).copied().unwrap_or(u32::MAX);
    let mut pieces: HashMap<u32, Vec<Piece>> = HashMap::new();
    // Pieces stand in the plan in their order.
    for (chunk, place) in planned.iter().zip(places) {
        if let (Some((object, _)), Some(place)) = (chunk.piece, place) {
            let chunk = place.job.map(|job| writer.chunk_of_job[usize::try_from(job).unwrap_or(usize::MAX)]);
            pieces.entry(object).or_default().push(Piece { chunk, chaining_value: place.chaining_value });
        }
    }
    let mut layout = Layout {
        grouped: writer.grouped.iter().map(number).collect(),
        chunks: writer.chunks,
        ranges: writer.ranges,
        ..Layout::default()
    };
    for (object, packed_number) in (0..).zip(&carried.of_row) {
        if let Some(own) = pieces.remove(packed_number) {
            let first_piece = u32::try_from(layout.pieces.len()).unwrap_or(u32::MAX);
            layout.large.push(Large { object, first_piece });
            layout.pieces.extend(own);
        }
        holes_of(&mut layout, object, row(packed, *packed_number));
    }
    (layout, writer.spool)
}
