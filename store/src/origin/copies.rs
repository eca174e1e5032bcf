//! Several copies of one bundle, read as one: each part comes from a copy that has it whole.
//!
//! Copies have the same signed bytes, preamble and root, whose digests cover everything after the head. Signature areas may differ, even in length, so
//! that the same chunk may lie at different offsets. Copies on servers share what is read; one that fails or sends something else is left.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rustix::fs::Advice;
use sealift_format::{Chunk, Error as FormatError, Head, Limits, Opener, Step, num};
use serde::Serialize;

use super::{At, Origin, Patience, is_address, without_secrets};
use crate::threads::parallel;
use crate::{Error, Progress};

/// The copies, the first of which gives the head. It is read as long as it is whole.
#[derive(Debug)]
pub(crate) struct Copies {
    copies: Vec<Copy>,
    /// The head that offsets are of: that of the first copy. It is read once.
    head: Head,
    head_bytes: Vec<u8>,
    /// The numbers of the copies with a whole layout and a whole index.
    layout_from: usize,
    index_from: usize,
    /// The addresses that could not be opened.
    left: Vec<CopyStats>,
    /// The ranges that will be read, if copies are at addresses.
    wanted: Mutex<Vec<Range<u64>>>,
}

#[derive(Debug)]
struct Copy {
    path: PathBuf,
    origin: Origin,
    len: u64,
    head_len: u64,
    /// Whether it is on a server, which is not asked again after a failure.
    is_remote: bool,
    found: Mutex<Found>,
}

/// What reading a copy has shown.
#[derive(Debug, Default)]
struct Found {
    read_bytes: u64,
    damaged: Vec<DamagedRange>,
    /// Why the server is not asked again.
    left: Option<String>,
}

/// What a copy gave, and where it is damaged as far as it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CopyStats {
    /// The copy's path.
    #[serde(serialize_with = "serialize_path")]
    pub path: PathBuf,
    /// Bytes of chunks that were used from it.
    pub read_bytes: u64,
    /// Where it is damaged, in ascending order: whole chunks and other parts, since their digests show no more.
    pub damaged: Vec<DamagedRange>,
    /// For an address: why no more was read from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
}

/// Bytes that are read from one server, before the next ones are read from another.
const SHARE: u64 = 4 << 20;

/// Damaged bytes of a copy, counted from the start of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(clippy::exhaustive_structs, reason = "a range has no more")]
pub struct DamagedRange {
    /// The first byte.
    pub start: u64,
    /// The byte after the last.
    pub end: u64,
    /// Whether the system could not read it; otherwise it differs from its digest, or is missing at the end of the file.
    pub unreadable: bool,
}

fn serialize_path<S: serde::Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// Bytes per read while a part is compared with its digest.
const READ_LEN: u64 = 1 << 20;

/// Opens files that hold the same bundle, to be read as one. The head is that of the first file in which it is whole. Another whose own head is damaged
/// has to be as long, and to have the layout or the index.
///
/// # Errors
/// Returns an error if a file cannot be opened, is a pipe, or holds another bundle, or if none has a head.
pub(crate) fn open(paths: &[PathBuf], limits: &Limits) -> Result<Origin, Error> {
    let mut opened = Vec::new();
    // Servers are waited for at the same time.
    let all = parallel::map(paths.len(), paths, |path| Ok(open_origin(path)))?;
    let (mut left, mut failed) = (Vec::new(), None);
    let mut leave = |path: &Path, error: Error| {
        left.push(CopyStats { path: path.to_owned(), read_bytes: 0, damaged: Vec::new(), left: Some(why(&error)) });
        failed.get_or_insert(error);
    };
    for (path, origin) in paths.iter().zip(all) {
        match origin.map(|(origin, len)| (read_head(path, &origin, len, limits), origin, len)) {
            Err(error) | Ok((Err(error), ..)) if is_address(path) => leave(path, error),
            origin => {
                let (head, origin, len) = origin?;
                opened.push((path, origin, len, head));
            }
        }
    }
    // Offsets are those of the first copy.
    opened.sort_by_key(|(.., head)| head.is_err());
    let (mut copies, mut first): (Vec<Copy>, Option<(&Path, Head)>) = Default::default();
    for (path, origin, len, own) in opened {
        let (first_path, head) = match &first {
            Some((path, head)) => (*path, head),
            None => {
                let (_, head) = first.insert((path, own?));
                copies.push(Copy::new(path, origin, len, head.head_len()));
                continue;
            }
        };
        let (head_len, fault) = match own {
            Ok(own) if own.signed() == head.signed() => (Some(own.head_len()), None),
            Ok(_) => (None, None),
            Err(error) => (damaged_head_len(&origin, len, head), Some(error)),
        };
        let Some(head_len) = head_len else {
            let why = format!("is not a copy of {}: its signed bytes differ", first_path.display());
            let error = Error::unexpected(path, &why);
            if is_address(path) {
                leave(path, error);
                continue;
            }
            return Err(error);
        };
        let copy = Copy::new(path, origin, len, head_len);
        if let Some(error) = fault {
            copy.note(DamagedRange { start: 0, end: head_len, unreadable: matches!(error, Error::Io { .. }) });
        }
        copies.push(copy);
    }
    let Some((_, head)) = first else {
        return Err(failed.unwrap_or_else(|| Error::Usage("give the copies of a bundle".into())));
    };
    let (head_bytes, wanted) = (head.encode(), Mutex::default());
    let mut copies = Copies { copies, head_bytes, head, layout_from: 0, index_from: 0, left, wanted };
    copies.note_lengths();
    copies.layout_from = copies.first_with(&copies.layout());
    copies.index_from = copies.first_with(&copies.index());
    Ok(Origin::of_copies(copies))
}

/// Returns why an address is left, without its name.
fn why(error: &Error) -> String {
    match error {
        Error::Io { source, .. } => source.to_string(),
        Error::Unexpected { problem, .. } => problem.clone(),
        other => other.to_string(),
    }
}

/// Reads the head of a file, but judges nothing that it says.
fn read_head(path: &Path, file: &Origin, len: u64, limits: &Limits) -> Result<Head, Error> {
    let mut opener = Opener::new(Some(len), limits.clone());
    while let (None, Step::Need(range)) = (opener.head(), opener.step()) {
        let mut bytes = vec![0; num::size((range.end - range.start).min(READ_LEN))];
        file.read_exact_at(&mut bytes, range.start).map_err(|error| Error::io("read", path, error))?;
        opener.supply(range.start, &bytes)?;
    }
    match opener.head() {
        Some(head) => Ok(head.clone()),
        None => Err(FormatError::Truncated { len, expected: None }.into()),
    }
}

/// Returns whether a file whose head is damaged holds the bundle with this head: it is as long, and has the same layout or index.
///
/// # Errors
/// Returns an error if the file cannot be opened.
pub fn is_damaged_copy(path: &Path, head: &Head) -> Result<bool, Error> {
    let (file, len) = open_origin(path)?;
    Ok(damaged_head_len(&file, len, head).is_some())
}

/// Returns the length of the damaged head of a copy.
fn damaged_head_len(file: &Origin, len: u64, head: &Head) -> Option<u64> {
    let parts = Parts { head };
    let is_copy = len == head.file_len()
        && [parts.layout(), parts.index()].iter().any(|part| is_whole(file, part, 0).is_ok_and(|is_whole| is_whole));
    is_copy.then(|| head.head_len())
}

fn open_origin(path: &Path) -> Result<(Origin, u64), Error> {
    let failed = |error| Error::io("read", path, error);
    if is_address(path) {
        return match Origin::at(&without_secrets(path), Patience::Short).map_err(failed)? {
            At::Origin(origin) => {
                let len = origin.len();
                Ok((origin, len))
            }
            At::Pipe(_) => Err(Error::unexpected(
                path,
                "is sent only as a whole: one of several servers has to answer range requests",
            )),
        };
    }
    let file = File::open(path).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    match metadata.is_file() {
        true => Ok((Origin::file(file, metadata.len()), metadata.len())),
        false => Err(Error::unexpected(path, "is not a regular file: only files can be read as copies of one bundle")),
    }
}

/// The bytes of a part in the first copy, and their BLAKE3.
struct Part {
    range: Range<u64>,
    digest: [u8; 32],
}

struct Parts<'a> {
    head: &'a Head,
}

impl Parts<'_> {
    fn layout(&self) -> Part {
        let (start, contents) = (self.head.head_len(), &self.head.root().contents);
        Part { range: start..start.saturating_add(contents.layout_stored), digest: contents.layout_blake3 }
    }

    fn index(&self) -> Part {
        let contents = &self.head.root().contents;
        Part { range: self.layout().range.end..self.head.chunks_at(), digest: contents.index_blake3 }
    }
}

/// Returns whether these bytes, moved by `shift`, match their digest.
fn is_whole(file: &Origin, part: &Part, shift: i64) -> io::Result<bool> {
    let mut hasher = blake3::Hasher::new();
    let Range { mut start, end } = part.range;
    let mut buffer = vec![0; num::size((end - start).min(READ_LEN))];
    while start < end {
        let len = num::up_to(end - start, buffer.len());
        file.read_exact_at(&mut buffer[..len], start.saturating_add_signed(shift))?;
        hasher.update(&buffer[..len]);
        start += num::wide(len);
    }
    Ok(hasher.finalize().as_bytes() == &part.digest)
}

/// Copies some of these bytes from `offset` on.
fn read_from(bytes: &[u8], buffer: &mut [u8], offset: u64) -> usize {
    let rest = bytes.get(num::size(offset)..).unwrap_or_default();
    let len = rest.len().min(buffer.len());
    buffer[..len].copy_from_slice(&rest[..len]);
    len
}

impl Copies {
    fn layout(&self) -> Part {
        Parts { head: &self.head }.layout()
    }

    fn index(&self) -> Part {
        Parts { head: &self.head }.index()
    }

    /// Notes the copies that are shorter or longer than the bundle.
    fn note_lengths(&self) {
        for copy in &self.copies {
            let end = self.head.file_len().saturating_add_signed(copy.shift(&self.head));
            if copy.is_remote && copy.len != end {
                copy.found.lock().left = Some(format!("it has {} bytes, and the bundle {end}", copy.len));
                continue;
            }
            copy.note(DamagedRange { start: copy.len.min(end), end: copy.len.max(end), unreadable: false });
        }
    }

    /// Returns the number of the first copy that has this part whole, or 0: then reading it fails.
    fn first_with(&self, part: &Part) -> usize {
        self.copies.iter().position(|copy| copy.has(part, &self.head)).unwrap_or(0)
    }

    /// Returns the number of the first copy that is not left, or 0.
    fn first_left_to_ask(&self) -> usize {
        self.copies.iter().position(|copy| copy.found.lock().left.is_none()).unwrap_or(0)
    }

    pub(super) fn len(&self) -> u64 {
        self.head.file_len()
    }

    /// Reads some bytes. Those before the chunks come from a copy that has them whole, or else can be read; those of chunks from the first copy.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (layout, index) = (self.layout().range, self.index().range);
        let (first, range) = match offset {
            offset if offset < layout.start => return Ok(read_from(&self.head_bytes, buffer, offset)),
            offset if offset < layout.end => (self.layout_from, layout),
            offset if offset < index.end => (self.index_from, index.clone()),
            _ => (self.first_left_to_ask(), index.end..self.len()),
        };
        let len = num::up_to(range.end.saturating_sub(offset), buffer.len());
        let Some(copy) = self.copies.get(first) else { return Ok(0) };
        let read = |copy: &Copy, buffer: &mut [u8]| {
            copy.origin.read_at(&mut buffer[..len], offset.saturating_add_signed(copy.shift(&self.head)))
        };
        let error = match read(copy, buffer) {
            Err(error) if (offset < index.end || copy.is_remote) && error.kind() != ErrorKind::Interrupted => error,
            read => return read,
        };
        copy.note_at(&range, &Err(error.kind().into()), &self.head);
        for copy in self.copies.iter().filter(|copy| !copy.is_damaged_at(&range, &self.head)) {
            match read(copy, buffer) {
                Ok(got) if got > 0 => return Ok(got),
                Ok(_) => {}
                Err(error) => copy.note_at(&range, &Err(error), &self.head),
            }
        }
        Err(error)
    }

    /// Reads a chunk from the first copy that is not known to be damaged there. Returns the copy's number too, since whether it is the right chunk has
    /// to be seen by whoever uses it.
    pub(super) fn read_chunk(&self, buffer: &mut [u8], offset: u64) -> (usize, io::Result<()>) {
        let range = offset..offset.saturating_add(num::wide(buffer.len()));
        let whole = self.copies.iter().enumerate().filter(|(_, copy)| !copy.is_damaged_at(&range, &self.head));
        let whole: Vec<(usize, &Copy)> = whole.collect();
        let (number, copy) = match (whole.get(self.share(&whole, offset)), self.copies.first()) {
            (Some((number, copy)), _) => (*number, *copy),
            (None, Some(copy)) => (0, copy),
            (None, None) => return (0, Err(ErrorKind::UnexpectedEof.into())),
        };
        let read = copy.read(buffer, offset, &self.head);
        copy.used(num::wide(buffer.len()), read.is_ok());
        (number, read)
    }

    /// Returns which of these copies what lies at an offset is read from. Servers share it; a file here comes first.
    fn share(&self, whole: &[(usize, &Copy)], offset: u64) -> usize {
        match whole.iter().position(|(_, copy)| !copy.is_remote) {
            Some(here) => here,
            None => num::size((offset / SHARE).checked_rem(num::wide(whole.len())).unwrap_or(0)),
        }
    }

    /// Says which ranges will be read, so that each server is asked for its share, several ranges at once.
    pub(super) fn expect(&self, ranges: impl Iterator<Item = Range<u64>>) {
        if self.copies.iter().any(|copy| copy.is_remote) {
            *self.wanted.lock() = ranges.collect();
            self.distribute();
        }
    }

    /// Returns how many requests of servers it takes to read what is expected, with those that were sent already; `None` if there is no server.
    pub(super) fn requests(&self) -> Option<u64> {
        let requests: Vec<u64> = self.copies.iter().filter_map(|copy| copy.origin.requests()).collect();
        (!requests.is_empty()).then(|| requests.iter().sum())
    }

    fn distribute(&self) {
        let whole = self.copies.iter().enumerate().filter(|(_, copy)| copy.found.lock().left.is_none());
        let whole: Vec<(usize, &Copy)> = whole.collect();
        let wanted = self.wanted.lock();
        for (place, (_, copy)) in whole.iter().enumerate().filter(|(_, (_, copy))| copy.is_remote) {
            let shift = copy.shift(&self.head);
            let own = wanted.iter().filter(|range| self.share(&whole, range.start) == place);
            copy.origin.expect(
                own.map(|range| range.start.saturating_add_signed(shift)..range.end.saturating_add_signed(shift)),
            );
        }
    }

    /// Reads a chunk that was read from copy `failed` in vain, from the next one that has it whole. Returns whether there is one.
    pub(super) fn read_again(&self, buffer: &mut [u8], offset: u64, digest: &[u8; 32], failed: usize) -> bool {
        let range = offset..offset.saturating_add(num::wide(buffer.len()));
        let others = self.copies.iter().enumerate().filter(|(number, _)| *number != failed);
        for (_, copy) in others.filter(|(_, copy)| !copy.is_damaged_at(&range, &self.head)) {
            let read = copy.read(buffer, offset, &self.head);
            if copy.check(read, buffer, &range, digest, &self.head) {
                copy.used(num::wide(buffer.len()), true);
                return true;
            }
        }
        false
    }

    /// Notes that a copy did not give a chunk: `read` is how reading it ended.
    pub(super) fn note(&self, number: usize, range: Range<u64>, read: &io::Result<()>) {
        let Some(copy) = self.copies.get(number) else { return };
        if read.is_ok() {
            copy.unused(range.end - range.start);
        }
        copy.note_at(&range, read, &self.head);
        if copy.is_remote {
            self.distribute();
        }
    }

    /// Compares all of every copy with the digests, except what was read from it already.
    ///
    /// # Errors
    /// Returns an error only if the caller cancelled.
    pub(super) fn examine(&self, chunks: &[Chunk], jobs: usize, progress: &Progress) -> Result<(), Error> {
        let starts = self.head.chunks_at();
        for (number, copy) in self.copies.iter().enumerate() {
            for (part, from) in [(self.layout(), self.layout_from), (self.index(), self.index_from)] {
                // Those before the copy that gave the part were looked at.
                if number > from {
                    copy.has(&part, &self.head);
                }
            }
            parallel::for_each(jobs, chunks, |chunk| {
                progress.check()?;
                let start = starts + chunk.offset;
                let range = start..start + u64::from(chunk.stored_len);
                // A chunk comes from the first copy that has it.
                let before = self.copies.get(..number).unwrap_or_default();
                let was_read = before.iter().all(|copy| copy.is_damaged_at(&range, &self.head));
                if !was_read && !copy.is_damaged_at(&range, &self.head) {
                    let mut stored = vec![0; num::at(chunk.stored_len)];
                    let read = copy.read(&mut stored, start, &self.head);
                    copy.check(read, &stored, &range, &chunk.digest, &self.head);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    pub(super) fn stats(&self) -> Vec<CopyStats> {
        let stats = |copy: &Copy| {
            let found = copy.found.lock();
            CopyStats {
                path: copy.path.clone(),
                read_bytes: found.read_bytes,
                damaged: found.damaged.clone(),
                left: found.left.clone(),
            }
        };
        self.copies.iter().map(stats).chain(self.left.iter().cloned()).collect()
    }

    pub(super) fn len_now(&self) -> io::Result<u64> {
        let mut longest = 0;
        for copy in &self.copies {
            longest = longest.max(copy.origin.len_now()?.saturating_add_signed(-copy.shift(&self.head)));
        }
        Ok(longest)
    }

    pub(super) fn advise(&self, advice: Advice) {
        for copy in &self.copies {
            copy.origin.advise(advice);
        }
    }
}

impl Copy {
    fn new(path: &Path, origin: Origin, len: u64, head_len: u64) -> Self {
        let (path, is_remote) = (without_secrets(path), is_address(path));
        Self { path, origin, len, head_len, is_remote, found: Mutex::default() }
    }

    /// Returns by how much later what follows the head lies than in the first copy.
    fn shift(&self, head: &Head) -> i64 {
        self.head_len.cast_signed() - head.head_len().cast_signed()
    }

    fn read(&self, buffer: &mut [u8], offset: u64, head: &Head) -> io::Result<()> {
        self.origin.read_exact_at(buffer, offset.saturating_add_signed(self.shift(head)))
    }

    /// Compares a part with its digest, and notes it if it differs.
    fn has(&self, part: &Part, head: &Head) -> bool {
        let found = is_whole(&self.origin, part, self.shift(head));
        let is_whole = matches!(found, Ok(true));
        if !is_whole {
            self.note_at(&part.range, &found.map(|_| ()), head);
        }
        is_whole
    }

    /// Compares a chunk that was read with its digest, and notes it if it differs.
    fn check(&self, read: io::Result<()>, stored: &[u8], range: &Range<u64>, digest: &[u8; 32], head: &Head) -> bool {
        let is_whole = read.is_ok() && blake3::hash(stored).as_bytes() == digest;
        if !is_whole {
            self.note_at(range, &read, head);
        }
        is_whole
    }

    fn note_at(&self, range: &Range<u64>, read: &io::Result<()>, head: &Head) {
        if self.is_remote {
            let why = match read {
                Err(error) if error.kind() != ErrorKind::UnexpectedEof => error.to_string(),
                _ => format!("it sent other bytes than those that were signed, at {}", range.start),
            };
            self.found.lock().left.get_or_insert(why);
            return;
        }
        let moved = |offset: u64| offset.saturating_add_signed(self.shift(head));
        let unreadable = read.as_ref().is_err_and(|error| error.kind() != ErrorKind::UnexpectedEof);
        self.note(DamagedRange { start: moved(range.start), end: moved(range.end), unreadable });
    }

    /// Adds a range, and joins it with those that it touches.
    fn note(&self, range: DamagedRange) {
        if range.start >= range.end {
            return;
        }
        let mut found = self.found.lock();
        let at = found.damaged.partition_point(|other| other.start < range.start);
        found.damaged.insert(at, range);
        found.damaged.dedup_by(|next, before| {
            let is_same = next.start <= before.end && next.unreadable == before.unreadable || next.end <= before.end;
            if is_same {
                before.end = before.end.max(next.end);
            }
            is_same
        });
    }

    fn is_damaged_at(&self, range: &Range<u64>, head: &Head) -> bool {
        let moved = |offset: u64| offset.saturating_add_signed(self.shift(head));
        let found = self.found.lock();
        if found.left.is_some() {
            return true;
        }
        let at = found.damaged.partition_point(|other| other.end <= moved(range.start));
        found.damaged.get(at).is_some_and(|damaged| damaged.start < moved(range.end))
    }

    fn used(&self, bytes: u64, is_read: bool) {
        if is_read {
            self.found.lock().read_bytes += bytes;
        }
    }

    fn unused(&self, bytes: u64) {
        let mut found = self.found.lock();
        found.read_bytes = found.read_bytes.saturating_sub(bytes);
    }
}
