//! The containers in bases: views of their members (recipes 3.2), and where their compressed blocks lie.

use std::collections::{HashMap, HashSet};
use std::io;

use parking_lot::Mutex;
use sealift_container::{Anatomy, Blocks, ContainerFault, Content, Kind, Limits, Part, ReadAt};
use sealift_format::num::{at, fit, size, up_to, wide};
use sealift_format::{BaseObject, CODED_MAX, DEPTH_MAX, RecipeCodec, Row, Rows};
use sealift_store::base::{BaseReader, Bases};
use sealift_store::source::LeafSource;

use super::bodies::{bodies_of, codec_of, decoded};
use super::draft::{DraftPart, DraftRange};
use super::{HEAD_LEN, LEN_MIN, hash};
use crate::{Error, Progress};

/// What is known of the containers in bases.
#[derive(Debug, Default)]
pub(in crate::pack) struct BaseViews {
    pub(super) views: Vec<BaseView>,
    /// By the BLAKE3 of their bytes.
    pub(super) by_id: HashMap<[u8; 32], u32>,
    /// The bytes that an encoder made, by their BLAKE3.
    blocks: HashMap<[u8; 32], DraftRange>,
}

/// A byte string in a container of a base.
#[derive(Debug)]
pub(super) struct BaseView {
    /// The path of the container, two slashes, and its own; `None` for a block that several members share.
    pub(super) path: Option<Vec<u8>>,
    pub(super) len: u64,
    pub(super) segments: Vec<ViewSegment>,
}

/// A part of a view.
#[derive(Debug)]
pub(super) enum ViewSegment {
    Copied(DraftRange),
    Zeros(u64),
    Decoded { codec: RecipeCodec, len: u64, from: DraftRange },
}

/// An object of a base, read at any offset.
struct BaseBytes<'r, 'a> {
    reader: &'r Mutex<BaseReader<'a>>,
    object: Row<BaseObject>,
    len: u64,
}

impl ReadAt for BaseBytes<'_, '_> {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset.checked_add(wide(buffer.len())).filter(|end| *end <= self.len);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut bytes = Vec::with_capacity(buffer.len());
        self.reader.lock().read(self.object, offset..end, &mut bytes).map_err(io::Error::other)?;
        buffer.copy_from_slice(bytes.get(..buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl BaseViews {
    /// Takes the containers in the bases apart, but for those that the new content has unchanged: `known` are its ids.
    ///
    /// # Errors
    /// Returns an error if a base cannot be read.
    pub(in crate::pack) fn find(bases: &Bases, known: &HashSet<[u8; 32]>, progress: &Progress) -> Result<Self, Error> {
        let mut views = Self::default();
        let reader = Mutex::new(BaseReader::new(bases));
        for (object, path) in gone(bases, known) {
            progress.check()?;
            let len = bases.len_of(object).unwrap_or_default();
            let bytes = BaseBytes { reader: &reader, object, len };
            let done = is_container(&bytes).map_err(ContainerFault::from).and_then(|is| {
                if is { views.add(DraftPart::Base(object), &bytes, &path, 1, progress) } else { Ok(()) }
            });
            match done {
                Err(ContainerFault::Io(error)) => return Err(super::failed(&path, error)),
                Err(fault) => tracing::info!(path = %String::from_utf8_lossy(&path), %fault, "not looked into"),
                Ok(()) => {}
            }
        }
        Ok(views)
    }

    pub(super) fn has_blocks(&self) -> bool {
        !self.blocks.is_empty()
    }

    /// Returns where a base has the bytes of a compressed block.
    pub(super) fn block(&self, stored: &[u8]) -> Option<DraftRange> {
        self.blocks.get(blake3::hash(stored).as_bytes()).copied()
    }

    /// Returns the views that files may resemble, each with its path.
    pub(in crate::pack) fn files(&self) -> impl Iterator<Item = (&[u8], u32)> {
        (0..).zip(&self.views).filter_map(|(number, view)| Some((view.path.as_deref()?, number)))
    }

    /// Adds the members of a container.
    fn add(
        &mut self,
        of: DraftPart,
        bytes: &dyn ReadAt,
        path: &[u8],
        level: u8,
        progress: &Progress,
    ) -> Result<(), ContainerFault> {
        let Some(anatomy) = Anatomy::of(bytes, &Limits::default())? else { return Ok(()) };
        let blocks = Blocks::new(bytes, &anatomy);
        let mut codecs = Vec::with_capacity(anatomy.blocks.len());
        for block in &anatomy.blocks {
            progress.check().map_err(io::Error::other)?;
            if block.stored_len > CODED_MAX {
                codecs.push(None);
                continue;
            }
            let mut stored = vec![0; size(block.stored_len)];
            bytes.read_exact_at(&mut stored, block.offset)?;
            for body in bodies_of(block.codec, &stored, 0).into_iter().flatten() {
                let bytes = stored.get(body.stored.clone()).unwrap_or_default();
                let range = DraftRange { of, offset: block.offset + wide(body.stored.start), len: wide(bytes.len()) };
                self.blocks.entry(*blake3::hash(bytes).as_bytes()).or_insert(range);
            }
            let coded = codec_of(block.codec, &stored).and_then(|(codec, range)| {
                let len = wide(decoded(block, &stored)?.len());
                let from = range.start..range.end.max(range.start);
                let from = DraftRange { of, offset: block.offset + wide(from.start), len: wide(from.len()) };
                Some((codec, len, from)).filter(|_| len > 0)
            });
            codecs.push(coded);
        }
        let (views, used) = (HashMap::new(), HashSet::new());
        let mut own = OwnBlocks { of, anatomy: &anatomy, codecs, views, used };
        let mut stored = Vec::new();
        for member in anatomy.members.iter().filter(|member| member.len > 0) {
            progress.check().map_err(io::Error::other)?;
            stored.extend(member.parts.iter().filter_map(|part| match part {
                Part::Stored { offset, len } => Some(*offset..offset + len),
                _ => None,
            }));
            let Some(segments) = own.segments(self, &member.parts)? else { continue };
            let content = Content::new(&blocks, member);
            let id = hash(&content)?;
            let own_path = [path, b"//", &member.path].concat();
            let number = self.push(Some(own_path.clone()), segments, id)?;
            if level < DEPTH_MAX && member.len >= LEN_MIN && is_container(&content)? {
                // One that lies is not looked into.
                if let Err(ContainerFault::Io(error)) =
                    self.add(DraftPart::View(number), &content, &own_path, level + 1, progress)
                {
                    return Err(error.into());
                }
            }
        }
        stored.sort_unstable_by_key(|range| range.start);
        self.add_structure(&own, stored, bytes.byte_len()?, path)
    }

    /// Adds what is of no member: its bytes between them, and blocks that no member uses, decoded.
    fn add_structure(
        &mut self,
        own: &OwnBlocks<'_>,
        stored: Vec<std::ops::Range<u64>>,
        len: u64,
        path: &[u8],
    ) -> Result<(), ContainerFault> {
        let (mut segments, mut place, mut stored) = (Vec::new(), 0, stored.into_iter().peekable());
        let copied = |range: std::ops::Range<u64>| {
            let copied = DraftRange { of: own.of, offset: range.start, len: range.end.saturating_sub(range.start) };
            (copied.len > 0).then_some(ViewSegment::Copied(copied))
        };
        for number in 0..=own.anatomy.blocks.len() {
            let block = own.anatomy.blocks.get(number);
            let end = block.map_or(len, |block| block.offset);
            while let Some(range) = stored.next_if(|range| range.start < end) {
                segments.extend(copied(place..range.start));
                place = range.end.max(place);
            }
            segments.extend(copied(place..end));
            let Some(block) = block else { break };
            place = block.end();
            if own.used.contains(&fit(number, "the number of blocks").unwrap_or(u32::MAX)) {
                continue;
            }
            match own.decoded(number) {
                Some(segment) => segments.push(segment),
                None => segments.extend(copied(block.offset..block.end())),
            }
        }
        if !segments.is_empty() {
            self.push(Some([path, LeafSource::STRUCTURE].concat()), segments, [0; 32])?;
        }
        Ok(())
    }

    fn push(&mut self, path: Option<Vec<u8>>, segments: Vec<ViewSegment>, id: [u8; 32]) -> Result<u32, ContainerFault> {
        let number = fit(self.views.len(), "the number of views").map_err(io::Error::other)?;
        let len = segments.iter().map(ViewSegment::len).sum();
        self.views.push(BaseView { path, len, segments });
        if id != [0; 32] {
            self.by_id.entry(id).or_insert(number);
        }
        Ok(number)
    }
}

impl ViewSegment {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Copied(range) => range.len,
            Self::Zeros(len) | Self::Decoded { len, .. } => *len,
        }
    }

    pub(super) fn range(&self) -> Option<&DraftRange> {
        match self {
            Self::Copied(range) | Self::Decoded { from: range, .. } => Some(range),
            Self::Zeros(_) => None,
        }
    }
}

/// The blocks of one container.
struct OwnBlocks<'a> {
    of: DraftPart,
    anatomy: &'a Anatomy,
    /// By block, how it is decoded, to what length, and of what, if there is a codec for it.
    codecs: Vec<Option<(RecipeCodec, u64, DraftRange)>>,
    /// The views of blocks of which members use parts.
    views: HashMap<u32, u32>,
    /// The blocks that members use.
    used: HashSet<u32>,
}

impl OwnBlocks<'_> {
    /// Returns the segments of a member; `None` if one of its blocks has no codec here.
    fn segments(&mut self, views: &mut BaseViews, parts: &[Part]) -> Result<Option<Vec<ViewSegment>>, ContainerFault> {
        let mut segments = Vec::new();
        for part in parts {
            segments.push(match *part {
                Part::Stored { offset, len } => ViewSegment::Copied(DraftRange { of: self.of, offset, len }),
                Part::Hole { len } => ViewSegment::Zeros(len),
                Part::Inflated { block, start, len } => {
                    let Some(decoded) = self.decoded(at(block)) else { return Ok(None) };
                    self.used.insert(block);
                    if start == 0 && decoded.len() == len {
                        decoded
                    } else {
                        let view = match self.views.get(&block) {
                            Some(view) => *view,
                            None => views.push(None, vec![decoded], [0; 32])?,
                        };
                        self.views.insert(block, view);
                        ViewSegment::Copied(DraftRange { of: DraftPart::View(view), offset: start, len })
                    }
                }
            });
        }
        Ok(Some(segments))
    }

    /// Returns what a block decodes to, if there is a codec for it.
    fn decoded(&self, number: usize) -> Option<ViewSegment> {
        let (codec, len, from) = self.codecs.get(number).copied().flatten()?;
        Some(ViewSegment::Decoded { codec, len, from })
    }
}

/// Returns the objects of the bases that the new content does not have, each with its first path.
fn gone(bases: &Bases, known: &HashSet<[u8; 32]>) -> Vec<(Row<BaseObject>, Vec<u8>)> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let mut of_bases = Rows::new(0..u32::MAX);
    for index in bases.indexes() {
        let of_index: Vec<Row<BaseObject>> = of_bases.by_ref().take(index.objects().len()).collect();
        for (directory, entry, object) in index.refs().iter().flat_map(|tree| index.regulars(tree)) {
            let (row, object) = (index.object(object), of_index[object.at()]);
            let is_wanted = row.size >= LEN_MIN && !known.contains(&row.id) && bases.is_at_hand(object);
            if is_wanted && seen.insert(object) {
                found.push((object, index.path(directory, entry)));
            }
        }
    }
    found
}

fn is_container(bytes: &dyn ReadAt) -> io::Result<bool> {
    let mut head = vec![0; up_to(bytes.byte_len()?, HEAD_LEN)];
    bytes.read_exact_at(&mut head, 0)?;
    Ok(Kind::of(&head).is_some())
}
