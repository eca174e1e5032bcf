//! Reads and hashes content, before it is known whether it is new.

use std::sync::Arc;

use sealift_format::num::{size, wide};
use sealift_format::verity::{FileHasher, VerityHasher, block_hashes};
use sealift_format::{BLOCK_LEN, Extent, Xattrs, data_ranges, pieces};

use super::buffers::{Buffer, Buffers};
use super::holes::{CONTEXT_LEN, find_holes, is_zero};
use super::image_wish::{ForImages, ImageWish};
use crate::Error;
use sealift_store::contents::tasks::{Item, Task};
use sealift_store::source::{OpenCache, OpenContent, Source};

/// The result of a task.
pub(super) enum Scanned {
    /// Whole small objects, with their data in one buffer.
    Batch { data: Arc<Buffer>, objects: Vec<SmallObject> },
    /// One piece of a large object.
    Piece(Box<LargePiece>),
}

impl Scanned {
    /// Returns the data that would be compressed.
    pub(super) fn data(&self) -> &[u8] {
        match self {
            Self::Batch { data, .. } => data,
            Self::Piece(piece) => &piece.data,
        }
    }

    /// Returns the number of bytes read.
    pub(super) fn read_len(&self) -> u64 {
        match self {
            Self::Batch { objects, .. } => objects.iter().map(|object| object.item.len).sum(),
            Self::Piece(piece) => piece.len,
        }
    }
}

/// A content that was read whole.
pub(super) struct SmallObject {
    pub(super) item: Item,
    pub(super) id: [u8; 32],
    pub(super) verity: [u8; 32],
    pub(super) holes: Vec<Extent>,
    pub(super) xattrs: Xattrs,
    pub(super) has_addresses: bool,
    pub(super) images: ForImages,
    /// Start of its data in the batch's buffer.
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A piece of a content.
pub(super) struct LargePiece {
    pub(super) item: Item,
    pub(super) number: u64,
    pub(super) len: u64,
    pub(super) chaining_value: [u8; 32],
    pub(super) block_hashes: Vec<[u8; 32]>,
    /// Present if requested.
    pub(super) sha512: Option<FileHasher>,
    pub(super) holes: Vec<Extent>,
    /// For the object's first piece only.
    pub(super) xattrs: Xattrs,
    /// For the object's first piece only.
    pub(super) has_addresses: bool,
    pub(super) data: Buffer,
}

/// Runs a task.
pub(super) fn scan(
    sources: &[&Source],
    task: &Task,
    piece_len: u64,
    wish: ImageWish,
    cache: &mut OpenCache,
    buffers: &Buffers,
) -> Result<Scanned, Error> {
    match task {
        Task::Batch(items) => scan_batch(sources, items, wish, cache, buffers),
        Task::Piece { item, number } => scan_piece(sources, *item, *number, piece_len, wish, cache, buffers),
    }
}

/// The magic of executables and libraries (elf(5)).
const ELF: &[u8] = b"\x7fELF";

/// Returns whether a content is full of addresses, which move together if something is inserted: machine code, or the tables of a file system.
fn has_addresses(source: &Source, content: u32, start: &[u8]) -> bool {
    let is_structure = matches!(source, Source::Leaves(leaves) if leaves.is_structure(content));
    start.starts_with(ELF) || is_structure
}

fn scan_batch(
    sources: &[&Source],
    items: &[Item],
    wish: ImageWish,
    cache: &mut OpenCache,
    buffers: &Buffers,
) -> Result<Scanned, Error> {
    let mut data = buffers.take(items.iter().map(|item| size(item.len)).sum());
    let mut objects = Vec::with_capacity(items.len());
    let mut start = 0;
    for item in items {
        let content = sources[item.source].open(item.content, cache)?;
        let bytes = &mut data.bytes_mut()[start..start + size(item.len)];
        content.read_at(bytes, 0)?;
        let xattrs = content.xattrs()?.try_into()?;
        content.finish()?;
        let id = *blake3::hash(bytes).as_bytes();
        let verity = sealift_format::verity::digest(bytes);
        let images = wish.find(bytes);
        let holes = find_holes(bytes, 0, 0, 0);
        let has_addresses = has_addresses(sources[item.source], item.content, bytes);
        let end = start + close_up(bytes, 0, &holes);
        objects.push(SmallObject { item: *item, id, verity, holes, xattrs, has_addresses, images, start, end });
        start = end;
    }
    data.truncate(start);
    Ok(Scanned::Batch { data: Arc::new(data), objects })
}

/// Removes the holes from `bytes`, which begin at byte `start` of their object: moves the data together. Returns its length.
pub(crate) fn close_up(bytes: &mut [u8], start: u64, holes: &[Extent]) -> usize {
    let end = start + wide(bytes.len());
    let mut kept = 0;
    for range in data_ranges(holes, start..end) {
        let (from, to) = (size(range.start - start), size(range.end - start));
        if from > kept {
            bytes.copy_within(from..to, kept);
        }
        kept += to - from;
    }
    kept
}

fn scan_piece(
    sources: &[&Source],
    item: Item,
    number: u64,
    piece_len: u64,
    wish: ImageWish,
    cache: &mut OpenCache,
    buffers: &Buffers,
) -> Result<Scanned, Error> {
    let content = sources[item.source].open(item.content, cache)?;
    let start = number * piece_len;
    let end = item.len.min(start + piece_len);
    let mut data = buffers.take(size(end - start));
    let bytes = data.bytes_mut();
    content.read_at(bytes, start)?;
    let (blocks, _) = bytes.as_chunks::<4096>();
    let starts_zero = blocks.first().is_some_and(|block| is_zero(block));
    let ends_zero = blocks.last().is_some_and(|block| is_zero(block));
    let before = if starts_zero { zeros_before(&content, start)? } else { 0 };
    let after = if ends_zero { zeros_after(&content, end, item.len)? } else { 0 };
    let xattrs = if number == 0 { content.xattrs()?.try_into()? } else { Xattrs::default() };
    content.finish()?;
    let holes = find_holes(bytes, start / BLOCK_LEN, before, after);
    let chaining_value = pieces::chaining_value(start, std::iter::once(&*bytes));
    let block_hashes = block_hashes(bytes);
    let sha512 = wish.hash_piece(bytes);
    let has_addresses = number == 0 && has_addresses(sources[item.source], item.content, bytes);
    let kept = close_up(bytes, start, &holes);
    data.truncate(kept);
    let len = end - start;
    Ok(Scanned::Piece(Box::new(LargePiece {
        item,
        number,
        len,
        chaining_value,
        block_hashes,
        sha512,
        holes,
        xattrs,
        has_addresses,
        data,
    })))
}

/// Returns the number of zero blocks right before `end`, as far as they matter.
fn zeros_before(content: &OpenContent<'_>, end: u64) -> Result<u64, Error> {
    let len = end.min(CONTEXT_LEN);
    let mut bytes = vec![0; size(len)];
    content.read_at(&mut bytes, end - len)?;
    let zeros = bytes.as_chunks::<4096>().0.iter().rev().take_while(|block| is_zero(*block)).count();
    Ok(wide(zeros))
}

/// Returns the number of zero blocks right after `start`, as far as they matter.
fn zeros_after(content: &OpenContent<'_>, start: u64, content_len: u64) -> Result<u64, Error> {
    let mut bytes = vec![0; size((content_len - start).min(CONTEXT_LEN))];
    content.read_at(&mut bytes, start)?;
    let zeros = bytes.as_chunks::<4096>().0.iter().take_while(|block| is_zero(*block)).count();
    Ok(wide(zeros))
}

/// Combines the pieces of a large object into its fs-verity digest.
pub(super) fn update_verity(hasher: &mut VerityHasher, piece: &LargePiece) {
    hasher.update_hashed(piece.len, &piece.block_hashes);
}
