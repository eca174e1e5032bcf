//! Writes a layout, and computes the numbers that the root states (core 4.3 and 7).

use alloc::vec::Vec;

use crate::bytes::{put_planes, put_section};
use crate::index::{Index, Inode, InodeKind};
use crate::num::{fit, wide};
use crate::{Error, Maxima, Row, Table as _};

use super::disk::Disk;
use super::prefixes::encode_prefixes;
use super::repository::encode_repository;
use super::rows::put_steps;
use super::{Chunk, Codec, Holds, Layout};

impl Layout {
    /// Returns the layout's bytes. Offsets of chunks are not stored, since they follow from the lengths.
    ///
    /// # Errors
    /// Returns an error if there are more chunks or holes than the format can store, or a file of the repository is longer than that.
    pub fn encode(&self) -> Result<Vec<u8>, Error> {
        let le = u32::to_le_bytes;
        let mut out = Vec::new();

        let mut chunks = fit::<u32>(self.chunks.len(), Chunk::COUNT)?.to_le_bytes().to_vec();
        chunks.extend(self.chunks.iter().map(|chunk| chunk.codec.id()));
        put_planes(&mut chunks, self.chunks.iter().map(|chunk| le(chunk.stored_len)));
        put_planes(&mut chunks, self.chunks.iter().map(|chunk| le(chunk.len)));
        put_planes(&mut chunks, self.chunks.iter().map(|chunk| le(chunk.holds.objects())));
        chunks.extend(self.chunks.iter().flat_map(|chunk| chunk.digest));
        put_section(&mut out, 1, true, &chunks);

        let mut groups = Vec::new();
        put_steps(&mut groups, self.grouped.iter().map(|object| object.number()));
        put_section(&mut out, 2, true, &groups);

        let mut pieces = Vec::new();
        put_planes(&mut pieces, self.pieces.iter().map(|piece| le(Row::column(piece.chunk))));
        pieces.extend(self.pieces.iter().flat_map(|piece| piece.chaining_value));
        put_section(&mut out, 3, true, &pieces);

        let mut holes = fit::<u32>(self.holes.len(), "the number of objects with holes")?.to_le_bytes().to_vec();
        put_planes(&mut holes, self.holes.iter().map(|holes| le(holes.object.number())));
        put_planes(&mut holes, self.holes.iter().map(|holes| le(holes.extents.end - holes.extents.start)));
        put_planes(&mut holes, self.extents.iter().map(|extent| extent.start.to_le_bytes()));
        put_planes(&mut holes, self.extents.iter().map(|extent| extent.len.to_le_bytes()));
        put_section(&mut out, 4, true, &holes);

        if let Some(hot) = &self.landmark {
            put_section(&mut out, 5, false, &[le(hot.start), le(hot.end.saturating_sub(hot.start))].concat());
        }
        if let Some(prefixes) = encode_prefixes(&self.chunks, &self.ranges) {
            put_section(&mut out, 6, true, &prefixes);
        }
        if !self.repository.is_empty() {
            put_section(&mut out, 7, false, &encode_repository(&self.repository)?);
        }
        if !self.recipes.is_empty() {
            put_section(&mut out, 8, true, &self.recipes.encode()?);
        }
        Ok(out)
    }
}

impl Codec {
    fn id(self) -> u8 {
        match self {
            Self::Raw => 0,
            Self::Zstd => 1,
            Self::ZstdPrefix => 2,
            Self::ByteDifference => 3,
        }
    }
}

impl Holds {
    pub(super) fn objects(&self) -> u32 {
        match self {
            Self::Group(range) => range.end - range.start,
            Self::Piece => 0,
        }
    }
}

/// Returns the numbers that follow from the index alone.
pub(crate) fn index_maxima(index: &Index) -> Result<Maxima, Error> {
    let mut maxima = Maxima {
        refs: fit(index.refs().len(), "the number of refs")?,
        entries: wide(index.entries().len()),
        inodes: wide(index.inodes().len()),
        objects: wide(index.objects().len()),
        ..Maxima::default()
    };
    let occupied = index.directories().iter().filter(|directory| directory.children > 0);
    maxima.depth = occupied.map(|directory| directory.depth + 1).max().unwrap_or(0);
    maxima.paths = paths_len(index);
    if let Some(ostree) = index.ostree() {
        let parents = ostree.of_parents();
        maxima.entries = maxima.entries.saturating_add(parents.entries);
        maxima.inodes = maxima.inodes.saturating_add(parents.objects);
        maxima.depth = maxima.depth.max(parents.depth);
    }
    for inode in kept_inodes(index) {
        if let InodeKind::Regular(object) = inode.kind {
            add("logical", &mut maxima.logical, index.object(object).size)?;
        }
    }
    Ok(maxima)
}

/// Returns the inodes, and an inode for each file object that belongs to no ref.
fn kept_inodes(index: &Index) -> impl Iterator<Item = &Inode> {
    let of_parents = index.ostree().map_or(&[][..], |ostree| &ostree.of_parents().inodes);
    [index.inodes(), of_parents].into_iter().flatten()
}

/// Returns the bytes of the paths of all entries.
fn paths_len(index: &Index) -> u64 {
    // A directory comes after the one that contains it.
    let mut lens: Vec<u64> = Vec::with_capacity(index.directories().len());
    let mut sum = 0_u64;
    for directory in index.directories() {
        let own = directory.parent.map_or(0, |parent| {
            let above = lens.get(parent.at()).copied().unwrap_or_default();
            above + wide(index.name(index.entry(directory.entry)).len()) + 1
        });
        lens.push(own);
        let names = directory.entries().map(|entry| wide(index.name(index.entry(entry)).len()));
        sum = names.fold(sum, |sum, len| sum.saturating_add(own).saturating_add(len));
    }
    sum
}

pub(super) fn maxima(index: &Index, layout: &Layout, piece_log2: u8, window_log: u8) -> Result<Maxima, Error> {
    let mut maxima = index_maxima(index)?;
    (maxima.piece_log2, maxima.window_log) = (piece_log2, window_log);
    add_layout(&mut maxima, layout)?;
    let disk = Disk::new(index, layout);
    // For a delta bundle, only files with carried content count.
    let is_delta = layout.carried.is_some();
    for inode in kept_inodes(index) {
        let counts = match inode.kind {
            InodeKind::Regular(object) => layout.carries(object),
            _ => !is_delta,
        };
        if counts {
            add("disk", &mut maxima.disk, disk.of(inode))?;
        }
    }
    if let Some(ostree) = index.ostree().filter(|_| !is_delta) {
        add("disk", &mut maxima.disk, ostree.of_parents().metadata_disk)?;
    }
    Ok(maxima)
}

/// Returns the numbers that follow from the layout alone.
pub(crate) fn layout_maxima(layout: &Layout) -> Result<Maxima, Error> {
    let mut maxima = Maxima::default();
    add_layout(&mut maxima, layout)?;
    Ok(maxima)
}

fn add_layout(maxima: &mut Maxima, layout: &Layout) -> Result<(), Error> {
    maxima.chunks = wide(layout.chunks.len());
    for chunk in &layout.chunks {
        add("chunks_stored", &mut maxima.chunks_stored, chunk.stored_len.into())?;
        maxima.chunk_len = maxima.chunk_len.max(chunk.len);
        maxima.chunk_stored = maxima.chunk_stored.max(chunk.stored_len);
    }
    Ok(())
}

fn add(what: &'static str, sum: &mut u64, value: u64) -> Result<(), Error> {
    *sum = sum.checked_add(value).ok_or(Error::Limit { what, declared: u64::MAX, limit: u64::MAX })?;
    Ok(())
}
