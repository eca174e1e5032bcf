//! Packs a delta bundle: what a target with certain bases lacks (delta 3).
//!
//! The sources are read twice: first all contents, to find the objects that no base has; then those, each with what resembles it in the
//! bases.

mod byte_difference;
mod choose;
mod encode;
mod over_prefix;
mod plan;
mod similar;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::time::{Duration, Instant};

use sealift_format::num::{self, wide};
use sealift_format::{Chunk, Codec, Difference, Index, Large, Layout, Piece, Request, RootBase, Row, Rows, verity};

use super::compress::Compressor;
use super::contents::{PackedRows, holes_of, index_bytes};
use super::estimate::{DeltaEstimate, Estimate, nanos, scaled, spread};
use super::sequence::{PackedObject, Sequenced};
use super::writer::ChunkWriter;
use super::{
    AccessOrder, DeltaStats, OrderStats, Ordered, Outcome, PackOptions, PackRef, PackStats, Prologue, PrologueBases,
    SigningFn, Zone, images, order, pipeline,
};
use crate::Phase;
use crate::order::OrderProfile;
use crate::output::{Output, Spool};
use crate::{Error, Progress};
use encode::{Encoder, StoredPiece};
use plan::{Limits, Planned, Wish};
use sealift_store::base::{Base, Bases};
use sealift_store::contents::CommonFiles;
use sealift_store::contents::tasks::{Part, Plan};
use sealift_store::source::Source;

/// The default memory for decoding a chunk, in bytes: its prefix, its stored bytes, and its decoded bytes.
pub(super) const MEMORY: u64 = 128 << 20;

/// Chunks encoded for an estimate.
const PARTS: usize = 16;
/// The lowest level at which OSTree's dirtrees are compressed: there are few, and the checksums in them separate the matches.
const DIRTREES_LEVEL: i32 = 12;
/// Layout bytes for a chunk and its objects.
const LAYOUT_BYTES: u64 = 100;

/// Total stored bytes from which it is worth avoiding to copy the chunks.
const WORTH_ALIGNING: u64 = 16 << 20;

/// The target of a delta bundle.
#[derive(Debug)]
pub enum DeltaFor {
    /// Targets that hold all of these bases. The delta is relative to the first.
    Bases(Vec<Base>),
    /// The target that made the request. What it declares to hold need not be available here; what is available among these bases is used.
    Request(Request, Vec<Base>),
}

impl DeltaFor {
    /// Returns the order of the first base that has one.
    fn order(&self) -> Option<OrderProfile> {
        let (Self::Bases(bases) | Self::Request(_, bases)) = self;
        bases.iter().find_map(OrderProfile::of_base)
    }
}

/// What is known of a delta bundle before its chunks are encoded.
struct Prepared<'a> {
    sources: Vec<&'a Source>,
    packed: Sequenced,
    order: OrderStats,
    /// Number of the sources' files, and their bytes.
    read: (u64, u64),
    index: Index,
    bases: Bases,
    /// The bases as the root names them.
    named: Vec<RootBase>,
    difference: Difference,
    carried: Carried,
    limits: Limits,
    planned: Vec<Planned>,
}

impl<'a> Prepared<'a> {
    /// Reads all of the sources, and chooses the prefix of each chunk from the bases.
    fn new(
        refs: &[PackRef<'a>],
        target: DeltaFor,
        options: &PackOptions,
        progress: &Progress,
    ) -> Result<Outcome<Self>, Error> {
        let ordered = Ordered::new(refs, options, target.order().as_ref())?;
        let read = ordered.size();
        let Ordered { refs, sources, order: AccessOrder { parts, hot_end, stats: order } } = ordered;
        progress.enter(Phase::Packing, read.1, read.0);
        let hot = parts[..hot_end].to_vec();
        let plan = Plan::new(parts, hot_end, options.chunk_len);
        let packed = pipeline::Pipeline::new(&sources, plan, None, HashSet::new(), options, progress);
        let (packed, _) = packed.run(options.jobs.max(1))?;
        let (index, packed_rows) = index_bytes(&refs, &packed)?;
        let index = Index::parse(index, u64::MAX)?;

        let bases = Bases::new(match target {
            DeltaFor::Bases(bases) => bases,
            DeltaFor::Request(request, at_hand) => vec![Base::of_request(&request, at_hand, &index)?],
        });
        let indexes = bases.indexes();
        let Some((first, others)) = indexes.split_first() else {
            return Err(Error::Usage("a delta bundle needs a base".into()));
        };
        let wanted = verity::digest(index.bytes());
        let named = bases.named();
        if let Some(base) = named.iter().find(|base| base.index_digest == wanted) {
            return Ok(Outcome::Unchanged(base.clone()));
        }
        let level = options.level.max(DIRTREES_LEVEL);
        let compress = |prefix: &[u8], bytes: &[u8]| over_prefix::compress(level, bytes, prefix);
        let difference = Difference::between(first, others, &index, compress).map_err(Error::Usage)?;
        let carried = Carried::new(&packed_rows, &index, &difference);
        let choice = choose::choose(&sources, &packed, &carried.objects, &bases, options, progress)?;
        let limits = Limits::new(options);
        let wishes = carried.in_order(&hot, &packed, options.chunk_len);
        let planned = plan::plan(&packed, &wishes, &carried.objects, &choice, &bases, &limits);
        let prepared = Self { sources, packed, order, read, index, bases, named, difference, carried, limits, planned };
        Ok(Outcome::New(prepared))
    }

    /// Encodes `planned`: all or some of the chunks, in their order.
    fn encode(
        &self,
        planned: &[Planned],
        writer: &mut ChunkWriter,
        options: &PackOptions,
        progress: &Progress,
    ) -> Result<Vec<Option<StoredPiece>>, Error> {
        progress.enter(Phase::Encoding, planned.iter().map(|chunk| chunk.len).sum(), 0);
        let Self { sources, packed, bases, limits, .. } = self;
        Encoder { sources, packed, bases, limits, options, progress }.run(planned, writer)
    }
}

/// Packs what `refs` have and a target lacks into a delta bundle; writes nothing if the target already holds exactly what would be packed.
///
/// # Errors
/// Returns an error as [`super::pack`] does; also if the target declares what no index can contain.
pub fn pack_delta(
    refs: &[PackRef<'_>],
    target: DeltaFor,
    output: &Output,
    options: &PackOptions,
    sign: &SigningFn<'_>,
    progress: &Progress,
) -> Result<Outcome<PackStats>, Error> {
    let prepared = match Prepared::new(refs, target, options, progress)? {
        Outcome::New(prepared) => prepared,
        Outcome::Unchanged(base) => return Ok(Outcome::Unchanged(base)),
    };
    let in_order = order::are_pieces_in_order(&prepared.sources);
    let mut writer = ChunkWriter::new(output, in_order, options.zone)?;
    let places = prepared.encode(&prepared.planned, &mut writer, options, progress)?;

    progress.enter(Phase::Finishing, 0, 0);
    let Prepared { sources, packed, order, index, named, difference, carried, limits, planned, .. } = &prepared;
    let (mut layout, spool) = build_layout(packed, carried, planned, &places, writer)?;
    let common = CommonFiles::of(sources.iter().copied());
    layout.repository = common.files;
    let relative = PrologueBases { difference, named, piece_log2: limits.piece_log2 };
    let images = images::state(index, &packed.objects, options)?;
    let front = Prologue { index, layout: &layout, bases: Some(relative), images };
    // Copying a few chunks costs less than the padding that aligns them.
    let stored: u64 = layout.chunks.iter().map(|chunk| u64::from(chunk.stored_len)).sum();
    let (head, behind) = front.make_head(options, sign, stored > WORTH_ALIGNING)?;
    let (root, root_digest) = (head.root().clone(), head.root_digest());
    let file_bytes = head.file_len();
    let copied = spool.finish(&[&head.encode(), &behind[0], &behind[1]])?;
    let delta = Some(delta_stats(difference, &layout));
    let do_summaries_differ = common.do_summaries_differ;
    Ok(Outcome::New(PackStats { root, root_digest, file_bytes, order: *order, delta, do_summaries_differ, copied }))
}

/// Estimates the result of [`pack_delta`]: reads all of the sources, and encodes some of the carried objects.
///
/// # Errors
/// Returns an error as [`pack_delta`] does, except for errors of writing.
pub fn estimate_delta(
    refs: &[PackRef<'_>],
    target: DeltaFor,
    options: &PackOptions,
    progress: &Progress,
) -> Result<Outcome<Estimate>, Error> {
    let start = Instant::now();
    let prepared = match Prepared::new(refs, target, options, progress)? {
        Outcome::New(prepared) => prepared,
        Outcome::Unchanged(base) => return Ok(Outcome::Unchanged(base)),
    };
    let objects = prepared.difference.objects();
    let front = Compressor::for_front(options.level)?.compress(&prepared.difference.encode()?)?.len();
    let reading = start.elapsed();

    // Pieces without data cost nothing.
    let chunks: Vec<&Planned> = prepared.planned.iter().filter(|chunk| chunk.len > 0).collect();
    let sample: Vec<Planned> = spread(&chunks, PARTS).map(|chunk| (*chunk).clone()).collect();
    let mut writer = ChunkWriter::new(&Output::Nowhere, true, Zone::Start)?;
    let start = Instant::now();
    prepared.encode(&sample, &mut writer, options, progress)?;
    let encoding = nanos(start.elapsed());
    let stored = writer.chunks.iter().map(|chunk| u64::from(chunk.stored_len)).sum();
    let len = |chunks: &[Planned]| chunks.iter().map(|chunk| chunk.len).sum::<u64>();
    let (all, sampled) = (len(&prepared.planned), len(&sample));

    let threads = |chunks: usize| wide(options.jobs.clamp(1, chunks.max(1)));
    let spent = encoding.saturating_mul(threads(sample.len())) / threads(chunks.len());
    let (files, bytes) = prepared.read;
    Ok(Outcome::New(Estimate {
        files,
        bytes,
        chunks: wide(chunks.len()),
        file_bytes: scaled(stored, all, sampled)
            + wide(front)
            + LAYOUT_BYTES * wide(prepared.planned.len())
            + u64::from(options.signature_room),
        time: reading + Duration::from_nanos(scaled(spent, all, sampled)),
        sampled_bytes: sampled,
        delta: Some(DeltaEstimate {
            objects: wide(objects.len()),
            bytes: objects.iter().map(|object| object.size).fold(0, u64::saturating_add),
        }),
    }))
}

fn delta_stats(difference: &Difference, layout: &Layout) -> DeltaStats {
    let memory = |chunk: &Chunk| {
        let decoded = u64::from(chunk.len) * if chunk.codec == Codec::ByteDifference { 3 } else { 1 };
        layout.prefix_len(chunk) + u64::from(chunk.stored_len) + decoded
    };
    DeltaStats {
        objects: wide(difference.objects().len()),
        bytes: difference.objects().iter().map(|object| object.size).fold(0, u64::saturating_add),
        memory: layout.chunks.iter().map(memory).max().unwrap_or(0),
    }
}

/// The packed objects that no base has.
struct Carried {
    /// In packing order.
    objects: PackedRows,
    /// The packed object of each row of the difference.
    of_row: PackedRows,
}

impl Carried {
    /// `order` has the packed objects in the order of the wanted index.
    fn new(order: &[Row<PackedObject>], index: &Index, difference: &Difference) -> Self {
        let of_row: PackedRows = difference.carried_in(index).iter().map(|object| order[object.at()]).collect();
        let mut objects = of_row.clone();
        objects.sort_unstable();
        Self { objects, of_row }
    }

    /// Returns what is stored, in order: first the parts of the hot set.
    fn in_order(&self, hot: &[Part], packed: &Sequenced, piece_len: u64) -> Vec<Wish> {
        let first = hot.iter().filter_map(|Part { item, pieces }| {
            let object = packed.object_of[item.source][num::at(item.content)];
            let range = pieces.start * piece_len..item.len.min(pieces.end * piece_len);
            self.objects.binary_search(&object).is_ok().then_some(Wish { object, range, is_hot: true })
        });
        let all = self.objects.iter().map(|object| {
            let range = 0..row(packed, *object).size();
            Wish { object: *object, range, is_hot: false }
        });
        first.chain(all).collect()
    }
}

fn row(packed: &Sequenced, object: Row<PackedObject>) -> &PackedObject {
    &packed.objects[object.at()]
}

/// Builds the layout, which numbers the objects as the difference does.
fn build_layout(
    packed: &Sequenced,
    carried: &Carried,
    planned: &[Planned],
    places: &[Option<StoredPiece>],
    mut writer: ChunkWriter,
) -> Result<(Layout, Spool), Error> {
    let hot = writer.close()?;
    let mut row_of = vec![Row::FIRST; packed.objects.len()];
    for (row, object) in Rows::new(0..u32::MAX).zip(&carried.of_row) {
        row_of[object.at()] = row;
    }
    let mut pieces: HashMap<Row<PackedObject>, BTreeMap<u64, Piece>> = HashMap::new();
    for (chunk, place) in planned.iter().zip(places) {
        if let (Some((object, number)), Some(place)) = (chunk.piece, place) {
            let chunk = place.job.map(|job| writer.chunk_of_job[job]);
            pieces.entry(object).or_default().insert(number, Piece { chunk, chaining_value: place.chaining_value });
        }
    }
    let mut layout = Layout {
        landmark: Some(hot).filter(|hot| !hot.is_empty()),
        grouped: writer.grouped.iter().map(|object| row_of[object.at()]).collect(),
        chunks: writer.chunks,
        ranges: writer.ranges,
        ..Layout::default()
    };
    for (object, from) in Rows::new(0..u32::MAX).zip(&carried.of_row) {
        if let Some(own) = pieces.remove(from) {
            let first_piece = num::fit(layout.pieces.len(), "the number of pieces")?;
            layout.large.push(Large { object, first_piece });
            layout.pieces.extend(own.into_values());
        }
        holes_of(&mut layout, object, row(packed, *from))?;
    }
    Ok((layout, writer.spool))
}
