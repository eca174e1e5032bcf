//! Maps reads of a disk image to the files of its file system, by where their content lies in it.

mod erofs;
mod ext4;
mod reads;
mod squashfs;

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use sealift_format::num::{up_to, wide};
use sealift_store::OrderFault;
use sealift_store::kept_order::UsedRanges;

use super::Fault;
use crate::Error;
use crate::order::profile::OrderEntry;
use erofs::Erofs;
use ext4::Ext4;
pub(super) use reads::Reads;
use squashfs::Squashfs;

/// The limit of what an image may cost: the bytes read of it, and [`READ_COST`] for each further piece of work. A file system of millions of files
/// stays below it.
const MOST: u64 = 2 << 30;
/// What a read costs besides its bytes.
const READ_COST: u64 = 64;
/// The most memory for the names in the directories on the way to a file.
const MOST_NAMES: u64 = 256 << 20;
/// Approximate memory of a name besides its bytes.
const NAME_COST: u64 = 64;
/// The kernel's limit.
const LONGEST_PATH: usize = 4096;

/// The part of an image that has the file system.
struct Image {
    file: File,
    start: u64,
    len: u64,
    /// What it may still cost.
    left: Cell<u64>,
}

/// Content of a file: where it lies, and which bytes of the file these are. If it is compressed, the lengths differ.
struct Span {
    place: Range<u64>,
    within: Range<u64>,
}

/// What an inode is.
enum Node {
    /// A directory: names and inodes.
    Directory(Vec<(Vec<u8>, u64)>),
    /// A regular file of so many bytes.
    File(u64),
    Other,
}

/// A file system whose inodes have numbers.
trait FileSystem {
    fn root(&self) -> u64;

    /// Reads an inode. The spans of a regular file are given to `take`, in any order.
    fn node(&mut self, inode: u64, take: &mut dyn FnMut(Span) -> Result<(), OrderFault>) -> Result<Node, Fault>;
}

/// The files that were read, and how many reads were not of any file's content.
pub(super) struct ImageReads {
    pub(super) entries: Vec<OrderEntry>,
    pub(super) elsewhere: u64,
}

/// Returns the files that were read of the file system that begins at an offset of an image.
pub(super) fn files(path: &Path, start: u64, reads: &Reads) -> Result<ImageReads, Error> {
    let found = || -> Result<ImageReads, Fault> {
        let file = File::open(path)?;
        let len = size(&file)?.saturating_sub(start);
        let image = Image { file, start, len, left: Cell::new(MOST) };
        let head = image.bytes(0, up_to(len, 2048))?;
        if ext4::is(&head) {
            walk(&image, &mut Ext4::open(&image, &head)?, reads)
        } else if erofs::is(&head) {
            walk(&image, &mut Erofs::open(&image, &head)?, reads)
        } else if squashfs::is(&head) {
            walk(&image, &mut Squashfs::open(&image, &head)?, reads)
        } else {
            Err(OrderFault::Offset { offset: start, what: "no ext4, EROFS or squashfs file system begins here" }.into())
        }
    };
    found().map_err(|fault| fault.of(path))
}

/// Returns the bytes of a file or device.
fn size(mut file: &File) -> std::io::Result<u64> {
    std::io::Seek::seek(&mut file, std::io::SeekFrom::End(0))
}

impl Image {
    fn bytes(&self, at: u64, len: usize) -> Result<Vec<u8>, Fault> {
        let end = at.checked_add(wide(len)).filter(|end| *end <= self.len);
        if end.is_none() {
            return Err(self.fault(at, "the file system extends beyond the end of the image").into());
        }
        self.pay(READ_COST + wide(len))?;
        let mut bytes = vec![0; len];
        self.file.read_exact_at(&mut bytes, self.start + at)?;
        Ok(bytes)
    }

    fn pay(&self, cost: u64) -> Result<(), OrderFault> {
        let left = self.left.get().checked_sub(cost);
        self.left
            .set(left.ok_or(OrderFault::Whole("the file system has too many files, or its tables are too large"))?);
        Ok(())
    }

    fn fault(&self, at: u64, what: &'static str) -> OrderFault {
        OrderFault::Offset { offset: self.start.saturating_add(at), what }
    }
}

/// Visits all files of a file system, each by its first name.
fn walk(image: &Image, of: &mut dyn FileSystem, reads: &Reads) -> Result<ImageReads, Fault> {
    let mut found = Vec::new();
    let mut is_used = vec![false; reads.count()];
    let mut seen = HashSet::from([of.root()]);
    let nothing = &mut |_: Span| Ok(());
    let Node::Directory(mut names) = of.node(of.root(), nothing)? else {
        return Err(OrderFault::Whole("the root of the file system is not a directory").into());
    };
    let mut held = cost(&names);
    in_turn(&mut names);
    // For each directory on the way, the names that are left in it and the length of its path.
    let mut way = vec![(names, 0)];
    let mut path: Vec<u8> = Vec::new();
    while let Some((names, len)) = way.last_mut() {
        path.truncate(*len);
        let Some((name, inode)) = names.pop() else {
            way.pop();
            continue;
        };
        held -= NAME_COST + wide(name.len());
        image.pay(READ_COST)?;
        if !is_name(&name) || path.len() + 1 + name.len() > LONGEST_PATH {
            return Err(OrderFault::Whole("the file system has an invalid name, or a path that is too long").into());
        }
        if !seen.insert(inode) {
            continue;
        }
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend(&name);
        let mut touched = Touched::default();
        let node = of.node(inode, &mut |span| touched.add(&span, image, reads, &mut is_used))?;
        match node {
            Node::Directory(mut names) => {
                in_turn(&mut names);
                held += cost(&names);
                if held > MOST_NAMES {
                    return Err(OrderFault::Whole("the directories of the file system are too large").into());
                }
                way.push((names, path.len()));
            }
            Node::File(size) => found.extend(touched.entry(&path, size)),
            Node::Other => {}
        }
    }
    // Stable, so that files of one read stay in the order of the walk.
    found.sort_by_key(|(first, _)| *first);
    let elsewhere = wide(is_used.iter().filter(|is_used| !**is_used).count());
    Ok(ImageReads { entries: found.into_iter().map(|(_, entry)| entry).collect(), elsewhere })
}

/// Sorts names in reverse, so that `pop` returns the first one.
fn in_turn(names: &mut [(Vec<u8>, u64)]) {
    names.sort_unstable();
    names.reverse();
}

fn is_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !matches!(name, b"." | b"..")
        && !name.iter().any(|byte| b"/\0".contains(byte))
}

fn cost(names: &[(Vec<u8>, u64)]) -> u64 {
    names.iter().map(|(name, _)| NAME_COST + wide(name.len())).sum()
}

/// What was read of a file.
#[derive(Default)]
struct Touched {
    first: Option<usize>,
    ranges: UsedRanges,
}

impl Touched {
    fn add(&mut self, span: &Span, image: &Image, reads: &Reads, is_used: &mut [bool]) -> Result<(), OrderFault> {
        let Span { place, within } = span;
        let is_plain = place.end - place.start == within.end - within.start;
        let place = image.start.saturating_add(place.start)..image.start.saturating_add(place.end);
        for (part, number) in reads.within(&place) {
            image.pay(READ_COST)?;
            is_used[number] = true;
            self.first = Some(self.first.map_or(number, |first| first.min(number)));
            let of_file = |at: u64| within.start + (at - place.start);
            let range = if is_plain { of_file(part.start)..of_file(part.end) } else { within.clone() };
            self.ranges.add(range, number);
        }
        Ok(())
    }

    fn entry(self, path: &[u8], size: u64) -> Option<(usize, OrderEntry)> {
        Some((self.first?, OrderEntry::of_reads(path.to_vec(), self.ranges.in_order(), Some(size))))
    }
}

/// Returns a little-endian number of a record; 0 beyond the record's end.
fn le16(record: &[u8], at: usize) -> u16 {
    record.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

fn le32(record: &[u8], at: usize) -> u32 {
    record.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

fn le64(record: &[u8], at: usize) -> u64 {
    record.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
