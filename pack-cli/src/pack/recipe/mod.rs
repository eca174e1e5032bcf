//! Finds containers in the sources, and how they are made of their members: recipes (recipes 3).

mod base_views;
mod bodies;
mod deflate;
mod dissect;
mod draft;
mod layout;
#[cfg(all(test, feature = "recipes"))]
mod made_again;
mod over;
mod prove;
mod worth;
mod xz;
mod zstd;

use std::collections::{HashMap, HashSet};
use std::io;
use std::ops::Range;
use std::path::Path;

use sealift_container::{Anatomy, Blocks, ContainerFault, Content, Kind, Limits, Part as MemberPart, ReadAt};
use sealift_format::DEPTH_MAX;
use sealift_format::num::{self, at, up_to, wide};
use sealift_store::contents::tasks::{Item, Part};
use sealift_store::source::{LeafSource, OpenCache, OpenContent, Source};
use sealift_store::threads::parallel::map_with;

use super::PackOptions;
use super::order::AccessOrder;
use super::sequence::Sequenced;
use crate::{Error, Progress};
pub(super) use base_views::BaseViews;
use dissect::{Dissection, STRUCTURE, spool};
use draft::{Draft, DraftPart, DraftSegment, Drafted};
pub(super) use layout::{Numbers, add_recipes, view_of};
pub(super) use over::Over;
use over::SegmentsOf;
use prove::Prover;
use worth::Worth;

/// The shortest content that is taken apart, in bytes.
const LEN_MIN: u64 = 512;
/// The bytes at the start that tell what a container is.
const HEAD_LEN: usize = 34 << 10;
/// The part of a container that must be of its members, as a divisor: a recipe of little else is not worth its bytes.
const WORTH: u64 = 8;

/// The containers in the sources.
#[derive(Debug)]
pub(super) struct Containers {
    /// The source of their leaves.
    pub(super) leaves: Source,
    drafts: Vec<Draft>,
    /// The contents that are made, leaves among them.
    made: Vec<Drafted>,
    /// For each container of a source, by source and content, the numbers of its leaves.
    leaves_of: HashMap<(usize, u32), Range<u32>>,
}

/// The contents that begin like containers, each with its BLAKE3, in order.
pub(super) struct Candidates(Vec<(Item, [u8; 32])>);

/// The bundle that containers are for.
pub(super) enum BundleKind<'a> {
    Full,
    /// A delta over bases that are not known yet, or over several in turn.
    Delta,
    /// A delta over bases with these containers, and the ids of their objects.
    Over(&'a BaseViews, HashSet<[u8; 32]>),
}

/// Looks for containers.
struct Finder<'a> {
    leaves: LeafSource,
    /// The ids of the leaves.
    ids: Vec<[u8; 32]>,
    /// The first leaf of each content.
    first: HashMap<[u8; 32], usize>,
    /// The bytes of containers that are of no member.
    scratch: LeafSource,
    drafts: Vec<Draft>,
    /// The draft of each leaf that has one.
    of_leaf: Vec<(u32, usize)>,
    /// For each content that was looked at, by its id: its draft, if it has one.
    known: HashMap<[u8; 32], Option<usize>>,
    prover: Prover<'a>,
    /// Decides what is stored as it is; `None` if everything that can be made is.
    worth: Option<Worth<'a>>,
    jobs: usize,
    progress: &'a Progress,
}

impl Containers {
    /// Takes the containers in the sources apart. Their leaves are in a file without a name in `folder`. A full bundle stores a container as it is where
    /// that takes less space; a delta bundle does not, since a base may have the leaves. What bases are known to have is not made to prove it, and their
    /// objects are not taken apart.
    ///
    /// # Errors
    /// Returns an error if a content cannot be read, or `folder` has too little space.
    pub(super) fn find(
        sources: &[&Source],
        Candidates(candidates): &Candidates,
        folder: &Path,
        options: &PackOptions,
        bundle: BundleKind<'_>,
        progress: &Progress,
    ) -> Result<Option<Self>, Error> {
        let jobs = options.jobs.max(1);
        let paths = paths_of(sources, candidates);
        let is_full = matches!(bundle, BundleKind::Full);
        // New files may resemble what a container of a base has, even if there is no new container.
        let has_views = matches!(&bundle, BundleKind::Over(views, _) if views.files().next().is_some());
        let (bases, known) = match bundle {
            BundleKind::Full | BundleKind::Delta => (None, HashMap::new()),
            BundleKind::Over(views, ids) => (Some(views), ids.into_iter().map(|id| (id, None)).collect()),
        };
        let worth = || Worth::new(sources, options.level, jobs, progress);
        let mut finder = Finder {
            leaves: LeafSource::new(folder)?,
            ids: Vec::new(),
            first: HashMap::new(),
            scratch: LeafSource::new(folder)?,
            drafts: Vec::new(),
            of_leaf: Vec::new(),
            known,
            prover: Prover::new(bases),
            worth: is_full.then(worth),
            jobs,
            progress,
        };
        let (mut made, mut leaves_of) = (Vec::new(), HashMap::new());
        for (item, id) in candidates.iter().copied() {
            let content = Contained {
                content: sources[item.source].open(item.content, &mut OpenCache::default())?,
                len: item.len,
            };
            let path = paths.get(&(item.source, item.content)).cloned().unwrap_or_default();
            let first = num::fit(finder.leaves.count(), "the number of leaves")?;
            let draft = finder.draft(&content, id, &path, 1)?;
            content.content.finish()?;
            made.extend(draft.map(|draft| Drafted { item, draft }));
            let end = num::fit(finder.leaves.count(), "the number of leaves")?;
            leaves_of.insert((item.source, item.content), first..end);
        }
        let Finder { leaves, drafts, of_leaf, .. } = finder;
        if drafts.is_empty() && !has_views {
            return Ok(None);
        }
        let leaf = |(content, draft): (u32, usize)| {
            let item = Item { source: sources.len(), content, len: leaves.len_of(content) };
            Drafted { item, draft }
        };
        made.extend(of_leaf.into_iter().map(leaf));
        Ok(Some(Self { leaves: Source::Leaves(leaves), drafts, made, leaves_of }))
    }

    /// Returns the contents that are made, by source and number: their bytes are not stored.
    pub(super) fn made(&self) -> HashSet<(usize, u32)> {
        self.made.iter().map(|made| (made.item.source, made.item.content)).collect()
    }

    /// Returns how each object is made that is.
    pub(super) fn segments(&self, packed: &Sequenced) -> SegmentsOf {
        let object = |made: &Drafted| packed.object_of[made.item.source][at(made.item.content)];
        self.made.iter().map(|made| (object(made), self.drafts[made.draft].segments.clone())).collect()
    }

    /// Adds the leaves of each container to an order of access, after its first part. `source` is the number of their source.
    pub(super) fn add_leaves(&self, order: &mut AccessOrder, source: usize, piece_len: u64) {
        let (mut parts, mut hot_end) = (Vec::with_capacity(order.parts.len()), order.hot_end);
        let mut left = self.leaves_of.clone();
        for (number, part) in std::mem::take(&mut order.parts).into_iter().enumerate() {
            let leaves = left.remove(&(part.item.source, part.item.content));
            parts.push(part);
            let Some(leaves) = leaves else { continue };
            let before = parts.len();
            parts.extend(leaves.map(|content| {
                let item = Item { source, content, len: self.leaves.content_len(content) };
                Part { item, pieces: 0..item.pieces(piece_len) }
            }));
            if number < order.hot_end {
                hot_end += parts.len() - before;
            }
        }
        (order.parts, order.hot_end) = (parts, hot_end);
    }
}

impl Candidates {
    /// Looks for the contents that begin like containers.
    ///
    /// # Errors
    /// Returns an error if a content cannot be read.
    pub(super) fn find(sources: &[&Source], jobs: usize, progress: &Progress) -> Result<Self, Error> {
        let mut items = Vec::new();
        for (source, from) in sources.iter().enumerate().filter(|(_, from)| !matches!(from, Source::Ostree(_))) {
            let all = from.contents().map(|content| Item { source, content, len: from.content_len(content) });
            items.extend(all.filter(|item| item.len >= LEN_MIN));
        }
        let found = map_with(jobs, &items, OpenCache::default, |cache, item| {
            progress.check()?;
            let content = Contained { content: sources[item.source].open(item.content, cache)?, len: item.len };
            let mut head = vec![0; up_to(item.len, HEAD_LEN)];
            content.content.read_at(&mut head, 0)?;
            let id = match Kind::of(&head) {
                Some(_) => Some(hash(&content).map_err(|error| failed(b"a file", error))?),
                None => None,
            };
            content.content.finish()?;
            Ok(id)
        })?;
        Ok(Self(items.into_iter().zip(found).filter_map(|(item, id)| Some((item, id?))).collect()))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns their BLAKE3.
    pub(super) fn ids(&self) -> HashSet<[u8; 32]> {
        self.0.iter().map(|(_, id)| *id).collect()
    }
}

impl Finder<'_> {
    /// Returns the draft of a content, at this level of containers in each other; `None` if it is stored as it is.
    fn draft(&mut self, bytes: &dyn ReadAt, id: [u8; 32], path: &[u8], level: u8) -> Result<Option<usize>, Error> {
        if let Some(known) = self.known.get(&id) {
            return Ok(*known);
        }
        let (leaves, drafts, of_leaf) = (self.leaves.count(), self.drafts.len(), self.of_leaf.len());
        let made = match self.dissect(bytes, path, level) {
            Ok(Some(draft)) if !self.is_worth(bytes, path, (leaves, of_leaf), &draft)? => {
                tracing::info!(path = %String::from_utf8_lossy(path), "stored as it is: that takes less space");
                None
            }
            Ok(draft) => draft,
            Err(Fault::Container(ContainerFault::Io(error))) => return Err(failed(path, error)),
            Err(Fault::Other(error)) => return Err(error),
            Err(Fault::Container(fault)) => {
                tracing::info!(path = %String::from_utf8_lossy(path), %fault, "stored as it is");
                None
            }
        };
        let found = match made {
            Some(draft) => {
                self.drafts.push(draft);
                Some(self.drafts.len() - 1)
            }
            None => {
                self.leaves.truncate(leaves)?;
                for id in self.ids.drain(leaves..) {
                    if self.first.get(&id).is_some_and(|first| *first >= leaves) {
                        self.first.remove(&id);
                    }
                }
                self.drafts.truncate(drafts);
                self.of_leaf.truncate(of_leaf);
                self.known.retain(|_, draft| draft.is_none_or(|draft| draft < drafts));
                None
            }
        };
        self.known.insert(id, found);
        Ok(found)
    }

    fn dissect(&mut self, bytes: &dyn ReadAt, path: &[u8], level: u8) -> Result<Option<Draft>, Fault> {
        let Some(anatomy) = Anatomy::of(bytes, &Limits::default())? else { return Ok(None) };
        let mut dissection = Dissection::new(bytes, &anatomy, &self.prover, self.jobs, self.progress)?;
        let whole: Vec<_> =
            anatomy.members.iter().filter(|member| member.len > 0 && dissection.is_usable(&member.parts)).collect();
        let stored = |part: &MemberPart| if let MemberPart::Stored { len, .. } = part { *len } else { 0 };
        let of_members: u64 = whole.iter().flat_map(|member| &member.parts).map(stored).sum();
        let len = bytes.byte_len()?;
        if dissection.made_len().saturating_add(of_members) < len / WORTH {
            return Ok(None);
        }
        let (blocks, mut height) = (Blocks::new(bytes, &anatomy), 1);
        let mut ids = HashMap::new();
        for member in whole {
            let own_path = [path, b"//", &member.path].concat();
            let content = Content::new(&blocks, member);
            let id = spool(&content, &mut self.leaves)?;
            let leaf = self.leaves.finish_leaf(own_path)?;
            self.note(id);
            dissection.add_member(leaf, &member.parts);
            ids.insert(DraftPart::Leaf(leaf), id);
            let is_of_base = self.prover.bases.is_some_and(|bases| bases.by_id.contains_key(&id));
            let inner = if level < DEPTH_MAX && !is_of_base {
                let own_path = self.leaves.path_of(leaf).to_vec();
                self.draft(&content, id, &own_path, level + 1)?
            } else {
                self.known.get(&id).copied().flatten()
            };
            if let Some(draft) = inner {
                height = height.max(self.drafts[draft].height + 1);
                self.of_leaf.push((leaf, draft));
            }
        }
        if level - 1 + height > DEPTH_MAX {
            return Ok(None);
        }
        self.scratch.truncate(0)?;
        let mut segments = dissection.cut(&mut self.scratch, self.progress)?;
        let used: HashSet<DraftPart> = segments.iter().flat_map(DraftSegment::ranges).map(|range| range.of).collect();
        let used: HashSet<&[u8; 32]> = used.iter().filter_map(|leaf| ids.get(leaf)).collect();
        if !ids.values().all(|id| used.contains(id)) {
            tracing::info!(path = %String::from_utf8_lossy(path), "stored as it is: its members share parts of each other");
            return Ok(None);
        }
        if self.scratch.pending_len() > 0 {
            let leaf = self.keep_structure([path, LeafSource::STRUCTURE].concat())?;
            segments.iter_mut().for_each(|segment| name_structure(segment, leaf));
        }
        Ok(Some(Draft { segments, height }))
    }

    /// Notes the id of the next leaf.
    fn note(&mut self, id: [u8; 32]) {
        self.first.entry(id).or_insert(self.ids.len());
        self.ids.push(id);
    }

    /// Makes what is of no member a leaf.
    fn keep_structure(&mut self, path: Vec<u8>) -> Result<u32, Error> {
        let all = self.scratch.finish_leaf(Vec::new())?;
        let (len, mut place) = (self.scratch.len_of(all), 0);
        let mut hasher = blake3::Hasher::new();
        let mut buffer = vec![0; up_to(len, HEAD_LEN)];
        while place < len {
            let part = &mut buffer[..up_to(len - place, HEAD_LEN)];
            self.scratch.read_at(all, part, place)?;
            self.leaves.write(part)?;
            hasher.update(part);
            place += wide(part.len());
        }
        self.note(*hasher.finalize().as_bytes());
        self.leaves.finish_leaf(path)
    }

    /// Returns whether a bundle is smaller with the leaves that a draft has beyond these numbers of leaves and of leaves with a draft.
    fn is_worth(
        &mut self,
        bytes: &dyn ReadAt,
        path: &[u8],
        (leaves, of_leaf): (usize, usize),
        draft: &Draft,
    ) -> Result<bool, Error> {
        let Some(worth) = &mut self.worth else { return Ok(true) };
        // Bytes that are only moved take as much space elsewhere.
        if !draft.segments.iter().any(|segment| matches!(segment, DraftSegment::Encoded { .. })) {
            return Ok(true);
        }
        let own = worth::stored(&self.ids, leaves, &self.first, &self.of_leaf[of_leaf..]);
        worth.is_less(bytes, path, (&self.leaves, &own), draft.segments.len())
    }
}

/// Gives the structure its number.
fn name_structure(segment: &mut DraftSegment, leaf: u32) {
    for range in segment.ranges_mut() {
        if range.of == STRUCTURE {
            range.of = DraftPart::Leaf(leaf);
        }
    }
}

/// Why a container is not taken apart.
enum Fault {
    Container(ContainerFault),
    Other(Error),
}

impl From<ContainerFault> for Fault {
    fn from(fault: ContainerFault) -> Self {
        Self::Container(fault)
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Container(error.into())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Other(error)
    }
}

/// A content of a source, as a container reads it.
struct Contained<'a> {
    content: OpenContent<'a>,
    len: u64,
}

impl ReadAt for Contained<'_> {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(wide(buffer.len())).filter(|end| *end <= self.len);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.content.read_at(buffer, offset).map_err(io::Error::other)
    }
}

fn hash(bytes: &dyn ReadAt) -> io::Result<[u8; 32]> {
    let (len, mut place, mut hasher) = (bytes.byte_len()?, 0, blake3::Hasher::new());
    let mut buffer = vec![0; up_to(len, 1 << 20)];
    while place < len {
        let part = &mut buffer[..up_to(len - place, 1 << 20)];
        bytes.read_exact_at(part, place)?;
        hasher.update(part);
        place += wide(part.len());
    }
    Ok(*hasher.finalize().as_bytes())
}

fn failed(path: &[u8], error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::io("read", String::from_utf8_lossy(path).into_owned(), error),
    }
}

/// Returns the first path of each of these contents, by source and number.
fn paths_of(sources: &[&Source], of: &[(Item, [u8; 32])]) -> HashMap<(usize, u32), Vec<u8>> {
    let mut found: HashMap<(usize, u32), Vec<u8>> =
        of.iter().map(|(item, _)| ((item.source, item.content), Vec::new())).collect();
    for (source, from) in sources.iter().enumerate() {
        super::order::for_each_path(from, |path, content| {
            if let Some(known) = found.get_mut(&(source, content))
                && (known.is_empty() || path < &known[..])
            {
                *known = path.to_vec();
            }
        });
    }
    found
}
