//! Packs sources into one bundle.
//!
//! Equal trees, options and times give equal bytes, whatever the number of threads: if a publisher fixes [`Identity::created`] (`SOURCE_DATE_EPOCH`),
//! anyone who has the tree can reproduce the bundle. The crate's front page has an example, and `examples/publish.rs` is a whole program.

mod buffers;
pub(crate) mod compress;
mod contents;
mod delta;
mod estimate;
mod holes;
mod image_wish;
#[cfg_attr(not(feature = "composefs"), path = "no_images.rs")]
mod images;
mod limits;
mod names;
mod order;
mod pipeline;
mod recipe;
pub(crate) mod scan;
mod sequence;
mod writer;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use sealift_format::num;
use sealift_format::verity;
use sealift_format::verity::Algorithm;
use sealift_format::{
    Contents, Difference, Envelope, Head, Identity, Image, Index, Layout, Limits, Objects, RecipeSums, Root, RootBase,
    RootBases, area_len_for, frame_window, maxima,
};

use crate::Phase;
use crate::order::OrderProfile;
use crate::output::Output;
use crate::{Error, Progress};
use sealift_store::contents::tasks::Item;
use sealift_store::contents::{CommonFiles, Want, hash_contents, tasks};
pub use sealift_store::source::PackRef;
use sealift_store::source::Source;

use compress::Compressor;
pub use delta::{DeltaFor, ReadSources, estimate_delta, pack_delta, read_for_deltas};
pub use estimate::{DeltaEstimate, Estimate, estimate};
use order::AccessOrder;
pub use order::OrderStats;
use recipe::{BundleKind, Candidates, Containers};
pub(crate) use sequence::choose_cut;

/// Options of packing.
#[derive(Clone, Debug)]
pub struct PackOptions {
    /// The identity of the bundle.
    pub identity: Identity,
    /// The publisher's annotations, by ascending key.
    pub annotations: Vec<(String, String)>,
    /// The fs-verity hashes for which composefs images of the trees are declared, each once; needs the feature `composefs`.
    pub images: Vec<Algorithm>,
    /// The order in which a workload reads the files. Without one, a delta keeps the order of its first base that has one.
    pub order: Option<OrderProfile>,
    /// For a full bundle: the indexes of earlier versions. What they lack is stored in chunks of its own, after the rest, so that devices that have one of
    /// them read little else.
    pub apart_from: Vec<Arc<Index>>,
    /// The zstd level.
    pub level: i32,
    /// Target size of a chunk's decoded data, and the size of pieces: a power of two from 4 KiB to 64 MiB.
    pub chunk_len: u64,
    /// Target size of chunks that are read first, at least 4 KiB; `chunk_len` if that is less. Large files keep pieces of `chunk_len`.
    pub hot_chunk_len: u64,
    /// Where in the file to store what is read first.
    pub zone: Zone,
    /// Size of the signature area in bytes, at least 64.
    pub signature_room: u32,
    /// Whether images, archives and compressed files are stored as recipes: as the files in them, from which they are made again byte by byte.
    pub recipes: bool,
    /// For a delta bundle: memory for decoding a chunk, in bytes.
    pub delta_memory: u64,
    /// The limits of readers: what exceeds them is not packed.
    pub limits: Limits,
    /// Number of threads.
    pub jobs: usize,
}

impl PackOptions {
    /// The default chunk size: small enough to read a single file from, and at the knee of the compression curve (spec/rationale.md, "Chunk size").
    pub const CHUNK_LEN: u64 = 2 << 20;
    /// The default chunk size of what is read first (spec/rationale.md, "Chunks that are read first").
    pub const HOT_CHUNK_LEN: u64 = 256 << 10;
    /// The default room for signatures: enough for five by Ed25519 keys.
    pub const SIGNATURE_ROOM: u32 = 1024;
    /// The default memory for decoding a chunk of a delta bundle.
    pub const DELTA_MEMORY: u64 = delta::MEMORY;
    /// The default level.
    pub const LEVEL: i32 = 3;

    /// Returns the defaults for this identity: no order, no annotations, no images, as many threads as the machine runs in parallel.
    #[must_use]
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            annotations: Vec::new(),
            images: Vec::new(),
            order: None,
            apart_from: Vec::new(),
            level: Self::LEVEL,
            chunk_len: Self::CHUNK_LEN,
            hot_chunk_len: Self::HOT_CHUNK_LEN,
            zone: Zone::Start,
            signature_room: Self::SIGNATURE_ROOM,
            recipes: false,
            delta_memory: Self::DELTA_MEMORY,
            limits: Limits::default(),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
        }
    }
}

/// An end of a bundle's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Zone {
    /// After layout and index, where it comes first from a stream or a pipe.
    #[default]
    Start,
    /// At the end, the fastest part of a disc that the bundle fills.
    End,
}

/// The result of packing.
#[derive(Clone, Debug)]
pub struct PackStats {
    /// The root that was written.
    pub root: Root,
    /// The digest that names the bundle (trust 2).
    pub root_digest: [u8; 32],
    /// Size of the whole file in bytes.
    pub file_bytes: u64,
    /// How much of the order profile matched.
    pub order: OrderStats,
    /// For a delta bundle: what it carries.
    pub delta: Option<DeltaStats>,
    /// Whether the bundle carries no summary because those of the packed repositories differ.
    pub do_summaries_differ: bool,
    /// Whether the chunks were copied to make room for the head: peak disk use was then twice the file.
    pub copied: bool,
}

/// What a delta bundle carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeltaStats {
    /// Objects that no base has.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The most memory for decoding a chunk, in bytes: its prefix, its stored bytes and its decoded bytes.
    pub memory: u64,
}

/// Signs the signed bytes, and returns the envelopes for the signature area.
pub type SigningFn<'a> = dyn Fn(&[u8]) -> Result<Vec<Envelope>, Error> + 'a;

/// Returns the bytes that may wait between reading and writing: enough to keep the threads busy.
fn held_budget(jobs: u64, chunk_len: u64) -> u64 {
    (jobs * 4 + 8) * chunk_len
}

/// Packs `refs` into one bundle.
///
/// # Errors
/// Returns an error if a file cannot be read or changes meanwhile, if the output cannot be written, if an option is out of range, if something
/// exceeds a limit, or if signing fails. Nothing is left at the output then.
pub fn pack(
    refs: &[PackRef<'_>],
    output: &Output,
    options: &PackOptions,
    sign: &SigningFn<'_>,
    progress: &Progress,
) -> Result<PackStats, Error> {
    let mut ordered = Ordered::new(refs, options, None)?;
    ordered.set_apart(options, progress)?;
    let (files, bytes) = ordered.size();
    let containers = ordered.containers(&output.folder(), options, BundleKind::Full, progress)?;
    let Ordered { refs, mut sources, mut order } = ordered;
    if let Some(containers) = &containers {
        containers.add_leaves(&mut order, sources.len(), options.chunk_len);
        sources.push(&containers.leaves);
    }
    let AccessOrder { parts, hot_end, stats: order } = order;
    progress.enter(Phase::Packing, bytes, files);

    tracing::debug!(paths = order.paths, matched = order.matched, "in access order");
    let plan = tasks::Plan::new(parts, hot_end, options.chunk_len);
    let writer = writer::ChunkWriter::new(output, order::are_pieces_in_order(&sources), options.zone)?;
    let made = containers.as_ref().map(Containers::made).unwrap_or_default();
    let pipeline = pipeline::Pipeline::new(&sources, plan, Some(writer), made, options, progress);
    let (packed, Some(writer)) = pipeline.run(options.jobs.max(1))? else {
        return Err(Error::Usage("nothing was written".into())); // it returns what was passed to it
    };

    progress.enter(Phase::Finishing, 0, 0);
    let (index, numbers) = contents::index_bytes(&refs, &packed)?;
    let (mut layout, spool) = contents::build_layout(&packed, writer, &numbers, containers.as_ref(), hot_end > 0)?;
    let common = CommonFiles::of(sources.iter().copied());
    layout.repository = common.files;
    let mut objects = packed.objects;
    if options.images.is_empty() {
        // Parsed rows need as much memory again.
        objects = Vec::new();
    }
    drop((packed.object_of, packed.xattrs, numbers));
    // An index that the parser would refuse is not written.
    let index = Index::parse(index, u64::MAX)?;
    let images = images::state(&index, &objects, options)?;
    let front = Prologue { index: &index, layout: &layout, bases: None, images };
    let (head, behind) = front.make_head(options, sign, true)?;
    let (root, root_digest) = (head.root().clone(), head.root_digest());
    let file_bytes = head.file_len();
    let copied = spool.finish(&[&head.encode(), &behind[0], &behind[1]])?;
    if copied {
        tracing::info!("copied the chunks to put the head before them: this file system cannot insert blocks");
    }
    let do_summaries_differ = common.do_summaries_differ;
    Ok(PackStats { root, root_digest, file_bytes, order, delta: None, do_summaries_differ, copied })
}

/// What is packed, in packing order.
struct Ordered<'a> {
    /// Sorted by name.
    refs: Vec<PackRef<'a>>,
    sources: Vec<&'a Source>,
    order: AccessOrder,
}

impl<'a> Ordered<'a> {
    /// If the options have no order, keeps that of the `base`.
    fn new(refs: &[PackRef<'a>], options: &PackOptions, base: Option<&OrderProfile>) -> Result<Self, Error> {
        check_options(refs, options)?;
        limits::check_sources(refs, &options.limits)?;
        let mut refs = refs.to_vec();
        refs.sort_by_key(|from| from.name);
        let sources: Vec<&Source> = refs.iter().map(|from| from.source).collect();
        let order = order::access_order(&sources, options.order.as_ref().or(base), options.chunk_len);
        Ok(Self { refs, sources, order })
    }

    /// Moves what earlier versions lack behind what all of them have; what none has comes last. Apart from that, the order stays.
    fn set_apart(&mut self, options: &PackOptions, progress: &Progress) -> Result<(), Error> {
        if options.apart_from.is_empty() {
            return Ok(());
        }
        let rows = || options.apart_from.iter().flat_map(|index| index.objects());
        let sizes: HashSet<u64> = rows().map(|object| object.size).collect();
        let ids_of = |index: &Arc<Index>| index.objects().iter().map(|object| object.id).collect::<HashSet<_>>();
        let known: Vec<HashSet<[u8; 32]>> = options.apart_from.iter().map(ids_of).collect();
        let mut lacking: Vec<Vec<usize>> = Vec::new();
        for source in &self.sources {
            let has_size = |content| sizes.contains(&source.content_len(content));
            let want = |content| if has_size(content) { Want::Id } else { Want::Nothing };
            let wanted: Vec<Want> = source.contents().map(want).collect();
            let found = hash_contents(source, &wanted, options.jobs.max(1), progress)?;
            let lacks =
                |id: Option<[u8; 32]>| known.iter().filter(|ids| id.is_none_or(|id| !ids.contains(&id))).count();
            lacking.push(found.into_iter().map(|info| lacks(info.id)).collect());
        }
        let count = |item: &Item| lacking.get(item.source).and_then(|of| of.get(num::at(item.content))).copied();
        self.order.parts[self.order.hot_end..].sort_by_key(|part| count(&part.item));
        Ok(())
    }

    /// Takes the containers in the sources apart, if the options have recipes. Their parts are kept in a file without a name in `folder`.
    fn containers(
        &self,
        folder: &Path,
        options: &PackOptions,
        bundle: BundleKind<'_>,
        progress: &Progress,
    ) -> Result<Option<Containers>, Error> {
        if !options.recipes {
            return Ok(None);
        }
        let candidates = Candidates::find(&self.sources, options.jobs.max(1), progress)?;
        if candidates.is_empty() {
            return Ok(None);
        }
        Containers::find(&self.sources, &candidates, folder, options, bundle, progress)
    }

    /// Returns the number of contents, and their bytes.
    fn size(&self) -> (u64, u64) {
        let lens = |from: &Source| from.contents().map(|content| from.content_len(content)).sum::<u64>();
        let files = self.sources.iter().map(|from| num::wide(from.content_count())).sum();
        (files, self.sources.iter().map(|from| lens(from)).sum())
    }
}

fn check_options(refs: &[PackRef<'_>], options: &PackOptions) -> Result<(), Error> {
    if !options.chunk_len.is_power_of_two() || !(1 << 12..=1 << 26).contains(&options.chunk_len) {
        return Err(Error::Usage(format!(
            "a chunk size of {} is not a power of two from 4096 to 67108864",
            options.chunk_len
        )));
    }
    if options.hot_chunk_len < 1 << 12 {
        return Err(Error::Usage(format!(
            "a chunk size of {} for the files that are read first is less than 4096",
            options.hot_chunk_len
        )));
    }
    if options.zone == Zone::End && refs.iter().any(|from| matches!(from.source, Source::Ostree(_))) {
        // The pieces of such a file must lie in order, so no single ones can be moved to the end.
        return Err(Error::Usage("the files of OSTree commits cannot be put at the end of a bundle".into()));
    }
    images::check(&options.images)?;
    let mut names: Vec<&str> = refs.iter().map(|from| from.name).collect();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::SameRef { name: pair[0].to_owned() });
    }
    match names.iter().find(|name| !sealift_format::name::is_ref_name(name)) {
        Some(name) => Err(Error::Usage(format!(
            "{name} is not a ref's name: use letters, digits, '_', '.' and '-', in parts joined by '/'"
        ))),
        None => Ok(()),
    }
}

/// What precedes the chunks.
struct Prologue<'a> {
    index: &'a Index,
    /// In a delta, with the numbers of the carried objects.
    layout: &'a Layout,
    /// For a delta bundle.
    bases: Option<PrologueBases<'a>>,
    images: Vec<Image>,
}

/// What a delta bundle is relative to, and its own piece size.
struct PrologueBases<'a> {
    difference: &'a Difference,
    named: &'a [RootBase],
    piece_log2: u8,
}

impl Prologue<'_> {
    /// Builds the head, and the stored bytes of the layout and the index, or difference, that follow it. If it is to `align`, they end at a multiple
    /// of 4096 bytes, so that a file system can put them before the chunks without copying these; also for a pipe, so that the bytes are the same.
    fn make_head(
        &self,
        options: &PackOptions,
        sign: &SigningFn<'_>,
        align: bool,
    ) -> Result<(Head, [Vec<u8>; 2]), Error> {
        let wide = |len: usize| num::wide(len);
        let layout_bytes = self.layout.encode()?;
        let mut compressor = Compressor::for_front(options.level)?;
        let layout_stored = compressor.frame(&layout_bytes)?;
        let difference = self.bases.as_ref().map(|bases| bases.difference.encode()).transpose()?;
        let index_bytes = self.index.bytes();
        let index_stored = compressor.frame(difference.as_deref().unwrap_or(index_bytes))?;
        let contents = Contents {
            index_digest: verity::digest(index_bytes),
            index_len: wide(index_bytes.len()),
            index_stored: wide(index_stored.len()),
            index_blake3: *blake3::hash(&index_stored).as_bytes(),
            layout_len: wide(layout_bytes.len()),
            layout_stored: wide(layout_stored.len()),
            layout_blake3: *blake3::hash(&layout_stored).as_bytes(),
        };
        // Each chunk is one segment, so its window is its length.
        let windows = [frame_window(&layout_stored), frame_window(&index_stored), largest_chunk(self.layout)];
        let window_log = log2_ceil(windows.into_iter().flatten().max().unwrap_or(0));
        let usual_log2 = u8::try_from(options.chunk_len.trailing_zeros()).unwrap_or(u8::MAX);
        let piece_log2 = self.bases.as_ref().map_or(usual_log2, |bases| bases.piece_log2);
        let (maxima, objects) = match &self.bases {
            None => (maxima(self.index, self.layout, piece_log2, window_log)?, Objects::from(self.index)),
            Some(bases) => {
                let objects = num::fit(self.index.objects().len(), "the number of objects")?;
                let whole = self.layout.clone().renumbered(bases.difference.carried_in(self.index), objects);
                (maxima(self.index, &whole, piece_log2, window_log)?, Objects::from(bases.difference))
            }
        };
        let root = Root {
            identity: options.identity.clone(),
            contents,
            maxima,
            annotations: options.annotations.clone(),
            bases: self
                .bases
                .as_ref()
                .map(|bases| self.root_bases(bases, wide(difference.as_ref().map_or(0, Vec::len))))
                .transpose()?,
            images: self.images.clone(),
            recipes: self.recipe_sums()?,
        };
        limits::check_root(&root, &options.limits)?;
        let parsed = Root::parse(&root.encode()?)?;
        // Parses the layout as a reader will; one that is refused is not written.
        Layout::parse(&layout_bytes, &objects, piece_log2)?;
        let behind = wide(layout_stored.len() + index_stored.len());
        let head = sign_head(parsed, options.signature_room, behind, sign, align)?;
        Ok((head, [layout_stored, index_stored]))
    }

    /// Returns what making objects takes, if there are recipes.
    fn recipe_sums(&self) -> Result<Option<RecipeSums>, Error> {
        if self.layout.recipes.is_empty() {
            return Ok(None);
        }
        let own = self.bases.as_ref().map_or(self.index.objects(), |bases| bases.difference.objects());
        Ok(Some(RecipeSums::of(&self.layout.recipes, own)?))
    }

    fn root_bases(&self, bases: &PrologueBases<'_>, difference_len: u64) -> Result<RootBases, Error> {
        let prefix_len = self.layout.chunks.iter().map(|chunk| self.layout.prefix_len(chunk)).max().unwrap_or(0);
        let too_large =
            sealift_format::Error::TooLarge { what: "the length of a prefix", len: prefix_len, max: u32::MAX.into() };
        let prefix_len = u32::try_from(prefix_len).map_err(|_| too_large)?;
        Ok(RootBases { difference_len, prefix_len, bases: bases.named.to_vec() })
    }
}

/// The result of packing what a target lacks.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "there is something new or there is not")]
pub enum Outcome<T> {
    /// The target lacks something.
    New(T),
    /// This base already has exactly what would be packed, so nothing is written.
    Unchanged(RootBase),
}

/// Signs the root, in an area with at least `room` bytes for signatures. `behind` bytes lie between the head and the chunks, which `align` aligns.
fn sign_head(root: Root, room: u32, behind: u64, sign: &SigningFn<'_>, align: bool) -> Result<Head, Error> {
    let head = Head::new(root.clone(), Vec::new(), room)?;
    let envelopes = sign(head.signed())?;
    let mut room = room.max(area_len_for(&envelopes)?);
    if align {
        let front = num::wide(head.signed().len()) + u64::from(room) + behind;
        room += u32::try_from(front.next_multiple_of(4096) - front).unwrap_or(0);
    }
    Ok(Head::new(root, envelopes, room)?)
}

fn largest_chunk(layout: &Layout) -> Option<u64> {
    layout.chunks.iter().map(|chunk| u64::from(chunk.len)).max()
}

/// Returns log2 of the smallest window with room for `len` bytes; 10 is the format's minimum.
fn log2_ceil(len: u64) -> u8 {
    let log2 = len.checked_next_power_of_two().map_or(64, u64::trailing_zeros);
    u8::try_from(log2).unwrap_or(u8::MAX).max(10)
}
