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
use std::path::Path;
use std::time::{Duration, Instant};

use sealift_format::num::{self, wide};
use sealift_format::{
    Chunk, Codec, Difference, Index, Large, Layout, Object, Piece, Request, RootBase, Row, Rows, pieces, verity,
};

use super::compress::Compressor;
use super::contents::{PackedRows, holes_of, index_bytes};
use super::estimate::{DeltaEstimate, Estimate, nanos, scaled, spread};
use super::recipe::{BaseViews, BundleKind, Candidates, Containers, Numbers, Over, add_recipes, view_of};
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
use sealift_store::contents::tasks::{Item, Part, Plan};
use sealift_store::source::{OpenCache, Source};

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

/// A target, and what is known of it.
enum Target {
    /// Targets that hold all of these bases, and the containers in them, if the sources were taken apart knowing them.
    Bases(Bases, Option<BaseViews>),
    /// The target that made the request.
    Request(Request, Vec<Base>),
}

impl Target {
    /// What a base makes is kept in a file without a name in `folder`.
    fn new(target: DeltaFor, folder: &Path, options: &PackOptions) -> Result<Self, Error> {
        Ok(match target {
            DeltaFor::Bases(bases) => Self::Bases(kept(bases, folder, options)?, None),
            DeltaFor::Request(request, at_hand) => Self::Request(request, at_hand),
        })
    }

    /// Takes the containers in the sources apart, if the options have recipes: in what the bases have, nothing has to be proved.
    fn with_containers(
        target: DeltaFor,
        ordered: &Ordered<'_>,
        folder: &Path,
        options: &PackOptions,
        progress: &Progress,
    ) -> Result<(Self, Option<Containers>), Error> {
        match Self::new(target, folder, options)? {
            Self::Bases(bases, _) if options.recipes => {
                let candidates = Candidates::find(&ordered.sources, options.jobs.max(1), progress)?;
                if candidates.is_empty() {
                    return Ok((Self::Bases(bases, None), None));
                }
                let views = BaseViews::find(&bases, &candidates.ids(), progress)?;
                let bundle = BundleKind::Over(&views, bases.by_id().into_keys().collect());
                let found = Containers::find(&ordered.sources, &candidates, folder, options, bundle, progress)?;
                Ok((Self::Bases(bases, Some(views)), found))
            }
            other => {
                let found = ordered.containers(folder, options, BundleKind::Delta, progress)?;
                Ok((other, found))
            }
        }
    }
}

/// Returns bases that keep what they make in a file without a name in `folder`.
fn kept(bases: Vec<Base>, folder: &Path, options: &PackOptions) -> Result<Bases, Error> {
    let bases = Bases::new(bases);
    bases.keep_made(folder, options.jobs.max(1))?;
    Ok(bases)
}

/// Sources that were read, from which deltas for several targets are packed.
pub struct ReadSources<'a> {
    /// Sorted by name.
    refs: Vec<PackRef<'a>>,
    sources: Vec<&'a Source>,
    packed: Sequenced,
    /// What is read first.
    hot: Vec<Part>,
    order: OrderStats,
    /// Number of the sources' files, and their bytes.
    read: (u64, u64),
    index: Index,
    /// The packed objects in the order of the index.
    rows: PackedRows,
    containers: Option<&'a Containers>,
    options: &'a PackOptions,
    progress: &'a Progress,
}

impl<'a> ReadSources<'a> {
    fn new(
        ordered: Ordered<'a>,
        containers: Option<&'a Containers>,
        options: &'a PackOptions,
        progress: &'a Progress,
    ) -> Result<Self, Error> {
        let read = ordered.size();
        let Ordered { refs, mut sources, mut order } = ordered;
        if let Some(containers) = containers {
            containers.add_leaves(&mut order, sources.len(), options.chunk_len);
            sources.push(&containers.leaves);
        }
        let AccessOrder { parts, hot_end, stats: order } = order;
        progress.enter(Phase::Packing, read.1, read.0);
        let hot = parts[..hot_end].to_vec();
        let plan = Plan::new(parts, hot_end, options.chunk_len);
        let packed = pipeline::Pipeline::new(&sources, plan, None, HashSet::new(), options, progress);
        let (packed, _) = packed.run(options.jobs.max(1))?;
        let (index, rows) = index_bytes(&refs, &packed)?;
        let index = Index::parse(index, u64::MAX)?;
        Ok(Self { refs, sources, packed, hot, order, read, index, rows, containers, options, progress })
    }

    /// Packs what the sources have and a target lacks into a delta bundle, as [`pack_delta`] does. A base with an order of access has them read again,
    /// unless the options have one: it changes which contents come first.
    ///
    /// # Errors
    /// Returns an error as [`pack_delta`] does.
    pub fn pack_delta(
        &self,
        target: DeltaFor,
        output: &Output,
        sign: &SigningFn<'_>,
    ) -> Result<Outcome<PackStats>, Error> {
        match target.order() {
            Some(_) if self.options.order.is_none() => {
                pack_delta(&self.refs, target, output, self.options, sign, self.progress)
            }
            _ => self.pack_over(Target::new(target, &output.folder(), self.options)?, output, sign),
        }
    }

    fn pack_over(&self, target: Target, output: &Output, sign: &SigningFn<'_>) -> Result<Outcome<PackStats>, Error> {
        let prepared = match Prepared::new(&output.folder(), self, target)? {
            Outcome::New(prepared) => prepared,
            Outcome::Unchanged(base) => return Ok(Outcome::Unchanged(base)),
        };
        let Self { sources, packed, order, index, options, progress, .. } = self;
        let in_order = order::are_pieces_in_order(sources);
        let mut writer = ChunkWriter::new(output, in_order, options.zone)?;
        let places = prepared.encode(&prepared.planned, &mut writer)?;

        progress.enter(Phase::Finishing, 0, 0);
        let (mut layout, spool) = prepared.layout(&places, writer)?;
        let Prepared { named, difference, limits, .. } = &prepared;
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
}

/// What is known of a delta bundle before its chunks are encoded.
struct Prepared<'a> {
    from: &'a ReadSources<'a>,
    bases: Bases,
    /// The bases as the root names them.
    named: Vec<RootBase>,
    difference: Difference,
    carried: Carried,
    limits: Limits,
    planned: Vec<Planned>,
    containers: Option<OverBases<'a>>,
}

/// The containers of a delta bundle.
struct OverBases<'a> {
    containers: &'a Containers,
    views: BaseViews,
    over: Over,
    base_objects: u32,
}

impl<'a> Prepared<'a> {
    /// Chooses the prefix of each chunk from the bases. What a base makes is kept in a file without a name in `folder`.
    fn new(folder: &Path, from: &'a ReadSources<'a>, target: Target) -> Result<Outcome<Self>, Error> {
        let ReadSources { sources, packed, index, options, progress, .. } = from;
        let (bases, views) = match target {
            Target::Bases(bases, views) => (bases, views),
            Target::Request(request, at_hand) => {
                (kept(vec![Base::of_request(&request, at_hand, index)?], folder, options)?, None)
            }
        };
        let indexes = bases.indexes();
        let Some((first, others)) = indexes.split_first() else {
            return Err(Error::Usage("a delta bundle needs a base".into()));
        };
        let digest = verity::digest(index.bytes());
        let named = bases.named();
        if let Some(base) = named.iter().find(|base| base.index_digest == digest) {
            return Ok(Outcome::Unchanged(base.clone()));
        }
        let level = options.level.max(DIRTREES_LEVEL);
        let compress = |prefix: &[u8], bytes: &[u8]| over_prefix::compress(level, bytes, prefix);
        let difference = Difference::between(first, others, index, compress).map_err(Error::Usage)?;
        let mut carried = Carried::new(&from.rows, index, &difference);
        let (mut bases, mut over_bases) = (bases, None);
        if let Some(containers) = from.containers {
            let base_objects = difference.base_objects();
            let views = match views {
                Some(views) => views,
                None => {
                    let known = index.objects().iter().map(|object| object.id).collect();
                    BaseViews::find(&bases, &known, progress)?
                }
            };
            let by_id = bases.by_id();
            let over = containers.take_from(sources, packed, &carried.objects, &views, &by_id, progress)?;
            carried.objects.retain(|object| !over.segments.contains_key(object));
            carried.objects.extend(over.leaves.iter().filter(|leaf| !over.segments.contains_key(leaf)));
            carried.objects.sort_unstable();
            bases = bases.with_views(views.all(packed, base_objects)?);
            over_bases = Some(OverBases { containers, views, over, base_objects });
        }
        let views = over_bases.as_ref().map(|over| (&over.views, over.base_objects));
        let choice = choose::choose(sources, packed, &carried.objects, &bases, views, options, progress)?;
        let limits = Limits::new(options);
        let wishes = carried.in_order(&from.hot, packed, options.chunk_len);
        let planned = plan::plan(packed, &wishes, &carried.objects, &choice, &bases, &limits);
        let containers = over_bases;
        Ok(Outcome::New(Self { from, bases, named, difference, carried, limits, planned, containers }))
    }

    /// Encodes `planned`: all or some of the chunks, in their order.
    fn encode(&self, planned: &[Planned], writer: &mut ChunkWriter) -> Result<Vec<Option<StoredPiece>>, Error> {
        let Self { from: ReadSources { sources, packed, options, progress, .. }, bases, limits, .. } = self;
        progress.enter(Phase::Encoding, planned.iter().map(|chunk| chunk.len).sum(), 0);
        Encoder { sources, packed, bases, limits, options, progress }.run(planned, writer)
    }

    /// Builds the layout, which numbers the objects as the difference does.
    fn layout(&self, places: &[Option<StoredPiece>], mut writer: ChunkWriter) -> Result<(Layout, Spool), Error> {
        let Self { from: ReadSources { sources, packed, .. }, carried, limits, planned, .. } = self;
        let containers = self.containers.as_ref();
        let hot = writer.close()?;
        let mut row_of: Vec<Option<Row<Object>>> = vec![None; packed.objects.len()];
        let leaves = containers.map_or(&[][..], |containers| &containers.over.leaves);
        let of_row = [&carried.of_row[..], leaves].concat();
        for (row, object) in Rows::new(0..u32::MAX).zip(&of_row) {
            row_of[object.at()] = Some(row);
        }
        let made = |object: &Row<PackedObject>| {
            containers.is_some_and(|containers| containers.over.segments.contains_key(object))
        };
        let mut pieces: HashMap<Row<PackedObject>, BTreeMap<u64, Piece>> = HashMap::new();
        for (chunk, place) in planned.iter().zip(places) {
            if let (Some((object, number)), Some(place)) = (chunk.piece, place) {
                let chunk = place.job.map(|job| writer.chunk_of_job[job]);
                pieces.entry(object).or_default().insert(number, Piece { chunk, chaining_value: place.chaining_value });
            }
        }
        let mut layout = Layout {
            landmark: Some(hot).filter(|hot| !hot.is_empty()),
            grouped: writer.grouped.iter().filter_map(|object| row_of[object.at()]).collect(),
            chunks: writer.chunks,
            ranges: writer.ranges,
            ..Layout::default()
        };
        let piece_len = limits.piece_len();
        for (object, from) in Rows::new(0..u32::MAX).zip(&of_row) {
            if made(from) {
                let size = row(packed, *from).size();
                if size > piece_len {
                    let values = chaining_values(sources, row(packed, *from).first, piece_len)?;
                    let first_piece = num::fit(layout.pieces.len(), "the number of pieces")?;
                    layout.large.push(Large { object, first_piece });
                    layout.pieces.extend(values.iter().map(|value| Piece { chunk: None, chaining_value: *value }));
                }
                continue;
            }
            if let Some(own) = pieces.remove(from) {
                let first_piece = num::fit(layout.pieces.len(), "the number of pieces")?;
                layout.large.push(Large { object, first_piece });
                layout.pieces.extend(own.into_values());
            }
            holes_of(&mut layout, object, row(packed, *from))?;
        }
        if let Some(over) = containers {
            over.add_to(&mut layout, packed, &carried.of_row, &row_of)?;
        }
        Ok((layout, writer.spool))
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
    let folder = output.folder();
    let ordered = Ordered::new(refs, options, target.order().as_ref())?;
    let (target, containers) = Target::with_containers(target, &ordered, &folder, options, progress)?;
    ReadSources::new(ordered, containers.as_ref(), options, progress)?.pack_over(target, output, sign)
}

/// Reads `refs` once, and hands them to `run`, which may pack the deltas for any number of targets from them.
///
/// # Errors
/// Returns an error if a file cannot be read or changes meanwhile, if an option is out of range, or if something exceeds a limit; and those of `run`.
pub fn read_for_deltas(
    refs: &[PackRef<'_>],
    folder: &Path,
    options: &PackOptions,
    progress: &Progress,
    run: &mut dyn FnMut(&ReadSources<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let ordered = Ordered::new(refs, options, None)?;
    let containers = ordered.containers(folder, options, BundleKind::Delta, progress)?;
    run(&ReadSources::new(ordered, containers.as_ref(), options, progress)?)
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
    let ordered = Ordered::new(refs, options, target.order().as_ref())?;
    let folder = std::env::temp_dir();
    let (target, containers) = Target::with_containers(target, &ordered, &folder, options, progress)?;
    let sources = ReadSources::new(ordered, containers.as_ref(), options, progress)?;
    let prepared = match Prepared::new(&folder, &sources, target)? {
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
    prepared.encode(&sample, &mut writer)?;
    let encoding = nanos(start.elapsed());
    let stored = writer.chunks.iter().map(|chunk| u64::from(chunk.stored_len)).sum();
    let len = |chunks: &[Planned]| chunks.iter().map(|chunk| chunk.len).sum::<u64>();
    let (all, sampled) = (len(&prepared.planned), len(&sample));

    let threads = |chunks: usize| wide(options.jobs.clamp(1, chunks.max(1)));
    let spent = encoding.saturating_mul(threads(sample.len())) / threads(chunks.len());
    let (files, bytes) = sources.read;
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

impl OverBases<'_> {
    /// Adds the recipes, and the views that they and the prefixes use. `carried` are the objects before the leaves.
    fn add_to(
        &self,
        layout: &mut Layout,
        packed: &Sequenced,
        carried: &PackedRows,
        row_of: &[Option<Row<Object>>],
    ) -> Result<(), Error> {
        let Self { views, over, base_objects, .. } = self;
        let of_prefixes = layout.ranges.iter().filter_map(|range| view_of(range.object, *base_objects));
        let used = views.used(over, of_prefixes);
        let mut numbers = Numbers { packed, row_of, views: HashMap::new() };
        for (number, view) in Rows::new(0..u32::MAX).zip(&used) {
            numbers.views.insert(*view, number);
        }
        for range in &mut layout.ranges {
            let view = view_of(range.object, *base_objects).and_then(|view| numbers.views.get(&view));
            if let Some(view) = view {
                range.object = Row::new(base_objects.saturating_add(view.number())).unwrap_or(range.object);
            }
        }
        layout.recipes = views.recipes(&used, &numbers, *base_objects)?;
        layout.recipes.first_leaf = num::fit(carried.len(), "the number of objects")?;
        layout.recipes.leaves = over.leaves.iter().map(|leaf| row(packed, *leaf).row()).collect();
        add_recipes(layout, self.containers, &over.segments, &numbers)
    }
}

/// Returns the chaining values of the pieces of a content.
fn chaining_values(sources: &[&Source], item: Item, piece_len: u64) -> Result<Vec<[u8; 32]>, Error> {
    let content = sources[item.source].open(item.content, &mut OpenCache::default())?;
    let (mut values, mut place, mut bytes) = (Vec::new(), 0, Vec::new());
    while place < item.len {
        bytes.resize(num::size(piece_len.min(item.len - place)), 0);
        content.read_at(&mut bytes, place)?;
        values.push(pieces::chaining_value(place, std::iter::once(&bytes[..])));
        place += wide(bytes.len());
    }
    content.finish()?;
    Ok(values)
}
