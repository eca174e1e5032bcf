//! Resumes an interrupted run: what it left in the stage is hashed, and what is not as expected is removed.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::os::fd::OwnedFd;

use rustix::fs::{FallocateFlags, FileType, Mode, OFlags, fallocate, fstat};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::{Directory, Entry, InodeKind, Object, Row, pieces};

use super::files::Builder;
use super::plan::PlannedName;
use crate::Error;
use crate::directory::stage::{StageKind, StagedFile};
use crate::directory::walk::Walk;
use crate::fs::confined::{known_type, names_in, remove_tree};
use crate::threads::parallel::map_with;

/// Work that need not be repeated.
#[derive(Debug, Default)]
pub(super) struct Reused {
    /// Entries of complete regular files.
    pub(super) entries: HashSet<Row<Entry>>,
    /// Pieces of large objects whose first file is incomplete.
    pub(super) pieces: BTreeSet<(Row<Object>, u64)>,
}

/// What a file was found to contain.
pub(super) enum Content {
    /// The object.
    Whole,
    /// These correct pieces of it.
    Pieces(Vec<u64>),
    Other,
}

/// Checks everything that the stage holds.
pub(super) fn reuse(builder: &Builder<'_>) -> Result<Reused, Error> {
    let candidates = match builder.stage.layout() {
        StageKind::Tree => sort_out_tree(builder)?,
        StageKind::Files => sort_out_files(builder)?,
    };
    let start = || (Walk::default(), Vec::new());
    let found = map_with(builder.options.jobs, &candidates, start, |(hand, buffer), &place| {
        builder.progress.check()?;
        reuse_file(builder, hand, buffer, place)
    })?;
    let mut reused = Reused::default();
    for (place, content) in candidates.iter().zip(found) {
        match content {
            Content::Whole => _ = reused.entries.insert(place.entry),
            Content::Pieces(right) => reused.pieces.extend(right.into_iter().map(|piece| (place.object, piece))),
            Content::Other => {}
        }
    }
    complete(builder, &mut reused)?;
    Ok(reused)
}

/// Removes what does not match the bundle, and returns the files that may be as expected.
fn sort_out_tree(builder: &Builder<'_>) -> Result<Vec<PlannedName>, Error> {
    let (index, selection) = (&builder.bundle.index, builder.selection);
    let place_of: HashMap<Row<Entry>, PlannedName> =
        selection.regulars.iter().map(|place| (place.entry, *place)).collect();
    let wanted: HashSet<Row<Directory>> = selection.directories.iter().copied().collect();
    let mut candidates = Vec::new();
    builder.stage.visit(index, &selection.directories, |number, directory| {
        let row = index.directory(number);
        let failed = builder.failed_directory("read", number);
        for (name, file_type) in names_in(directory).map_err(&failed)? {
            let entry = index.find_entry(row, &name);
            let kind = entry.map(|(number, entry)| (number, index.inode(entry.inode).kind));
            let file_type = known_type(directory, &name, file_type).map_err(&failed)?;
            match kind {
                Some((_, InodeKind::Directory(below)))
                    if file_type == FileType::Directory && wanted.contains(&below) => {}
                Some((number, InodeKind::Regular(_)))
                    if file_type == FileType::RegularFile && place_of.contains_key(&number) =>
                {
                    candidates.extend(place_of.get(&number));
                }
                _ => remove_tree(directory, &name).map_err(&failed)?,
            }
        }
        Ok(())
    })?;
    Ok(candidates)
}

/// As [`sort_out_tree`], for a stage whose files are named by number.
fn sort_out_files(builder: &Builder<'_>) -> Result<Vec<PlannedName>, Error> {
    let place_of: HashMap<Row<Entry>, PlannedName> =
        builder.selection.regulars.iter().map(|place| (place.entry, *place)).collect();
    let mut candidates = Vec::new();
    for StagedFile { entry, name, file_type } in builder.stage.files()? {
        match entry.and_then(|entry| place_of.get(&entry)) {
            Some(place) if file_type == FileType::RegularFile => candidates.push(*place),
            _ => {
                let removed = remove_tree(builder.stage.root(), &name);
                removed.map_err(|error| Error::io("remove", builder.stage.path_of(&name), error))?;
            }
        }
    }
    Ok(candidates)
}

fn reuse_file(
    builder: &Builder<'_>,
    hand: &mut Walk,
    buffer: &mut Vec<u8>,
    place: PlannedName,
) -> Result<Content, Error> {
    let failed = builder.failed("read", place);
    let flags = OFlags::RDWR | OFlags::NONBLOCK;
    let content = match builder.open(hand, place, flags, Mode::empty())? {
        // It is ours but unreadable: it is rebuilt.
        Err(Errno::ACCESS) => Content::Other,
        // Sealed: that run had finished, or nearly.
        Err(Errno::PERM) => reuse_sealed(builder, hand, buffer, place)?,
        opened => {
            let file = opened.map_err(&failed)?;
            let content = check_content(builder, &file, buffer, place)?;
            match content {
                Content::Whole => builder.finish_again(&file, place)?,
                Content::Pieces(ref right)
                    if !is_first(builder, place) || !clear_rest(builder, &file, place, right) =>
                {
                    return discard(builder, hand, place);
                }
                _ => {}
            }
            content
        }
    };
    if matches!(content, Content::Other) {
        return discard(builder, hand, place);
    }
    Ok(content)
}

/// Checks a sealed file, which is either correct as a whole or useless.
fn reuse_sealed(
    builder: &Builder<'_>,
    hand: &mut Walk,
    buffer: &mut Vec<u8>,
    place: PlannedName,
) -> Result<Content, Error> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let Ok(file) = builder.open(hand, place, flags, Mode::empty())? else { return Ok(Content::Other) };
    match check_content(builder, &file, buffer, place) {
        Ok(Content::Whole) => builder.finish_again(&file, place).map(|()| Content::Whole),
        // The kernel refuses to return damaged data.
        Ok(_) | Err(Error::Io { .. }) => Ok(Content::Other),
        Err(error) => Err(error),
    }
}

fn discard(builder: &Builder<'_>, hand: &mut Walk, place: PlannedName) -> Result<Content, Error> {
    builder.remove(hand, place)?;
    Ok(Content::Other)
}

/// Returns whether the place is the first file of its object; pieces of a large object go there.
fn is_first(builder: &Builder<'_>, place: PlannedName) -> bool {
    builder.selection.places_of(place.object).first() == Some(&place)
}

/// Replaces incorrect pieces with zeros: stale data must not show through a hole.
fn clear_rest(builder: &Builder<'_>, file: &OwnedFd, place: PlannedName, right: &[u64]) -> bool {
    let size = builder.bundle.index.object(place.object).size;
    let piece_len = builder.bundle.head.root().maxima.piece_len();
    let right: HashSet<u64> = right.iter().copied().collect();
    (0..size.div_ceil(piece_len)).filter(|piece| !right.contains(piece)).all(|piece| {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(file, flags, piece * piece_len, piece_len.min(size - piece * piece_len)).is_ok()
    })
}

/// Compares a file with its expected object.
pub(super) fn check_content(
    builder: &Builder<'_>,
    file: &OwnedFd,
    buffer: &mut Vec<u8>,
    place: PlannedName,
) -> Result<Content, Error> {
    let failed = builder.failed("read", place);
    let object = builder.bundle.index.object(place.object);
    let stat = fstat(file).map_err(&failed)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || u64::try_from(stat.st_size) != Ok(object.size)
    {
        return Ok(Content::Other);
    }
    let piece_len = builder.bundle.head.root().maxima.piece_len();
    if object.size <= piece_len {
        let whole = read_at(file, buffer, 0, object.size).map_err(&failed)?;
        let is_right = blake3::hash(whole).as_bytes() == &object.id;
        return Ok(if is_right { Content::Whole } else { Content::Other });
    }
    let mut values = Vec::new();
    for piece in 0..object.size.div_ceil(piece_len) {
        builder.progress.check()?;
        let start = piece * piece_len;
        let bytes = read_at(file, buffer, start, piece_len.min(object.size - start)).map_err(&failed)?;
        values.push(pieces::chaining_value(start, std::iter::once(bytes)));
    }
    if !builder.bundle.layout.is_stored(place.object) {
        let is_right = pieces::object_id(&values) == Some(object.id);
        return Ok(if is_right { Content::Whole } else { Content::Other });
    }
    let rows = builder.bundle.layout.pieces_of(place.object);
    let right = (0..).zip(rows.iter().zip(&values)).filter(|(_, (row, value))| row.chaining_value == **value);
    let right: Vec<u64> = right.map(|(piece, _)| piece).collect();
    Ok(if right.len() == rows.len() { Content::Whole } else { Content::Pieces(right) })
}

/// Reads `len` bytes, or fewer if the file became shorter.
fn read_at<'b>(file: &OwnedFd, buffer: &'b mut Vec<u8>, start: u64, len: u64) -> Result<&'b [u8], Errno> {
    let len = num::size(len);
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    let mut got = 0;
    while got < len {
        match rustix::io::pread(file, &mut buffer[got..len], start + num::wide(got)) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(&buffer[..got])
}

/// Makes the remaining files of objects of which one file is already complete.
fn complete(builder: &Builder<'_>, reused: &mut Reused) -> Result<(), Error> {
    let (mut hand, mut from) = (Walk::default(), Walk::default());
    for places in builder.selection.regulars.chunk_by(|a, b| a.object == b.object) {
        let is_done = |place: &&PlannedName| reused.entries.contains(&place.entry);
        let Some(&first) = places.iter().find(is_done) else { continue };
        let pending: Vec<PlannedName> = places.iter().filter(|place| !is_done(place)).copied().collect();
        if pending.is_empty() {
            continue;
        }
        let opened = builder.open(&mut from, first, OFlags::RDONLY, Mode::empty())?;
        let file = opened.map_err(builder.failed("read", first))?;
        for &place in &pending {
            builder.remove(&mut hand, place)?;
        }
        builder.copy_file(&mut hand, &file, first, &pending)?;
        reused.entries.extend(pending.iter().map(|place| place.entry));
        reused.pieces.retain(|(object, _)| *object != first.object);
    }
    Ok(())
}
