//! The volumes and recovery volumes of one bundle, as far as they can be read.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sealift_format::num::{at, size};
use sealift_format::volume::front_len;
use sealift_format::{Error as FormatError, Head, Recovery, RecoveryHeader, Volume};
use sealift_store::fs::found::is_directory;
use sealift_store::{OpenVolume, VolumeFault, named_recovery, named_volumes};

use super::file::{Front, RecoveryFile, most_front, read_recovery};
use super::{code, readable};
use crate::{Error, Limits};

/// What is there of a set.
#[derive(Debug)]
pub(super) struct Set {
    pub(super) front: Front,
    /// The headers of all volumes, in order.
    pub(super) headers: Vec<Volume>,
    /// The files of the volumes that are there, by their place in `headers`.
    pub(super) sources: Vec<Option<(PathBuf, File)>>,
    /// The recovery volumes that can be used: at least one.
    pub(super) recovery: Vec<RecoveryFile>,
    /// Files that cannot be used, and why.
    pub(super) unused: Vec<(PathBuf, Error)>,
}

/// A file, and what its header says.
struct Found {
    path: PathBuf,
    file: File,
    header: Header,
}

enum Header {
    Volume(Volume),
    Recovery(RecoveryHeader),
    Unknown(FormatError),
}

impl Header {
    /// Returns what names the bundle, and the lengths that all headers of a set state.
    fn set(&self) -> Option<([u8; 32], u32, u64)> {
        match self {
            Self::Volume(Volume { set, head_len, file_len, .. })
            | Self::Recovery(RecoveryHeader { set, head_len, file_len, .. }) => Some((*set, *head_len, *file_len)),
            Self::Unknown(_) => None,
        }
    }
}

/// Returns whether these are volumes, recovery volumes or directories, and not a bundle in one file.
///
/// # Errors
/// Returns an error if one cannot be opened.
pub fn are_volumes(paths: &[PathBuf]) -> Result<bool, Error> {
    for path in paths {
        if is_directory(path)? {
            return Ok(true);
        }
        let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
        let mut start = [0; 8];
        readable::read(&file, &mut start, 0);
        if start == Volume::MAGIC || number_in_name(path).is_some() {
            return Ok(true);
        }
    }
    Ok(paths.len() > 1)
}

impl Set {
    /// Finds the set that is in these files and directories.
    ///
    /// # Errors
    /// Returns an error if they are not of one set, if there is no recovery volume that can be used, or if no head and layout can be read.
    pub(super) fn find(paths: &[PathBuf], limits: &Limits) -> Result<Self, Error> {
        let place = paths.first().cloned().unwrap_or_default();
        let found = open_all(paths)?;
        let front = find_front(&place, &found, limits)?;
        let (mut volumes, mut recovery, mut unknown) = (Vec::new(), Vec::new(), Vec::new());
        for found in found {
            match found.header {
                Header::Volume(header) => volumes.push((found.path, found.file, header)),
                Header::Recovery(_) => recovery.push((found.path, found.file)),
                Header::Unknown(_) if is_named(&found.path, OpenVolume::RECOVERY_EXTENSION) => {
                    recovery.push((found.path, found.file));
                }
                Header::Unknown(error) => unknown.push((found.path, found.file, error)),
            }
        }
        let mut unused = Vec::new();
        let recovery = usable_recovery(recovery, &front, limits, &mut unused)?;
        let Some(first) = recovery.first() else {
            let why = match unused.pop() {
                Some((_, error)) => return Err(error),
                None => "has no recovery volumes, which `sealift split --recovery` makes",
            };
            return Err(Error::unexpected(&place, why));
        };
        let starts = &first.recovery().geometry.starts;
        let headers = headers(&place, &front.head, volumes.iter().map(|(_, _, header)| header), starts)?;
        let mut sources: Vec<Option<(PathBuf, File)>> = headers.iter().map(|_| None).collect();
        for (path, file, header) in volumes {
            match sources.get_mut(usize::from(header.number) - 1) {
                Some(Some((other, _))) => {
                    let label = label(&front.head, &header);
                    let fault = VolumeFault::Twice { label, other: other.clone() };
                    return Err(Error::Volumes { path, fault: Box::new(fault) });
                }
                Some(source) => *source = Some((path, file)),
                None => {}
            }
        }
        for (path, file, error) in unknown {
            // Whether it is that volume, the checksums of its shards tell.
            let free: Vec<usize> = (0..sources.len()).filter(|at| matches!(sources.get(*at), Some(None))).collect();
            let named = number_in_name(&path).and_then(|number| usize::from(number).checked_sub(1));
            let number = named.filter(|number| free.contains(number)).or(match free[..] {
                [only] => Some(only),
                _ => None,
            });
            match number.and_then(|number| sources.get_mut(number)) {
                Some(source) => *source = Some((path, file)),
                None => {
                    let why = Error::unexpected(&path, error.to_string());
                    unused.push((path, why));
                }
            }
        }
        Ok(Self { front, headers, sources, recovery, unused })
    }

    /// Returns what a volume is, for people.
    pub(super) fn bundle(&self) -> String {
        let identity = &self.front.head.root().identity;
        format!("{} version {}", identity.name, identity.version)
    }
}

/// Returns what a volume is, for people.
fn label(head: &Head, header: &Volume) -> String {
    let identity = &head.root().identity;
    format!("{} version {}, volume {} of {}", identity.name, identity.version, header.number, header.count)
}

/// Opens the files, and those in directories that are named like volumes.
fn open_all(paths: &[PathBuf]) -> Result<Vec<Found>, Error> {
    let mut files = Vec::new();
    for path in paths {
        match is_directory(path)? {
            true => files.extend([named_volumes(path)?, named_recovery(path)?].concat()),
            false => files.push(path.clone()),
        }
    }
    let mut all: Vec<Found> = Vec::new();
    for path in files {
        let file = File::open(&path).map_err(|error| Error::io("read", &path, error))?;
        let mut bytes = vec![0; at(Volume::LEN)];
        readable::read(&file, &mut bytes, 0);
        let header = match Volume::parse(&bytes) {
            Ok(header) => Header::Volume(header),
            Err(error) => RecoveryHeader::parse(&bytes).map_or(Header::Unknown(error), Header::Recovery),
        };
        let is_other = |other: &&Found| match (&other.header, &header) {
            (Header::Volume(one), Header::Volume(other)) if one.count != other.count => true,
            (one, other) => one.set().zip(other.set()).is_some_and(|(one, other)| one != other),
        };
        if let Some(other) = all.iter().find(is_other) {
            let why = format!("is not of the same set as {}: give the volumes of one bundle", other.path.display());
            return Err(Error::unexpected(&path, why));
        }
        all.push(Found { path, file, header });
    }
    Ok(all)
}

/// Returns head and layout from the first file in which they are whole, or from several of them, sector by sector.
fn find_front(place: &Path, found: &[Found], limits: &Limits) -> Result<Front, Error> {
    let known: Vec<&Found> = found.iter().filter(|found| found.header.set().is_some()).collect();
    let Some(set) = known.iter().find_map(|found| found.header.set()) else {
        return Err(Error::unexpected(place, "has no volumes whose header can be read"));
    };
    let len_of = |found: &&Found| match &found.header {
        Header::Recovery(header) => Some(header.offset),
        Header::Volume(header) if header.number == 1 => Some(header.offset),
        Header::Volume(header) => {
            let mut bytes = vec![0; at(header.head_len.min(Head::LEN_MAX))];
            readable::read(&found.file, &mut bytes, Volume::LEN.into());
            header.parse_head(&bytes).ok().map(|head| front_len(&head))
        }
        Header::Unknown(_) => None,
    };
    let Some(len) = known.iter().find_map(len_of) else {
        return Err(Error::unexpected(place, "has no volume whose head can be read"));
    };
    if len > most_front(limits) {
        let what = "the length of head and layout";
        return Err(FormatError::Limit { what, declared: len, limit: most_front(limits) }.into());
    }
    let is_it = |front: &Front| (front.head.root_digest(), front.head.file_len()) == (set.0, set.2);
    let whole = known.iter().find_map(|found| {
        let mut bytes = vec![0; size(len)];
        let unread = readable::read(&found.file, &mut bytes, Volume::LEN.into());
        Front::parse(&bytes).ok().filter(|front| unread.is_empty() && is_it(front))
    });
    let front = match whole {
        Some(front) => front,
        None => {
            let files: Vec<&File> = found.iter().map(|found| &found.file).collect();
            let why = "has head and layout damaged at the same place in all volumes";
            let front = Front::parse(&joined(&files, len)).ok().filter(is_it);
            front.ok_or_else(|| Error::unexpected(place, why))?
        }
    };
    limits.check(front.head.root())?;
    Ok(front)
}

/// Bytes that are read of each front at once, and those of a sector.
const BLOCK: u64 = 64 << 10;
const SECTOR: u64 = 2048;

/// Returns the bytes that most of the files have after the header, sector by sector.
fn joined(files: &[&File], len: u64) -> Vec<u8> {
    let (start, end) = (u64::from(Volume::LEN), u64::from(Volume::LEN).saturating_add(len));
    let mut front = Vec::new();
    let mut begin = start;
    while begin < end {
        let block = begin..end.min((begin / BLOCK + 1) * BLOCK);
        let read = |file: &&File| {
            let mut bytes = vec![0; size(block.end - block.start)];
            let unread = readable::read(file, &mut bytes, block.start);
            (bytes, unread)
        };
        let copies: Vec<(Vec<u8>, Vec<Range<usize>>)> = files.iter().map(read).collect();
        let mut sector = block.start;
        while sector < block.end {
            let next = block.end.min((sector / SECTOR + 1) * SECTOR);
            let part = size(sector - block.start)..size(next - block.start);
            let mut times: HashMap<&[u8], usize> = HashMap::new();
            for (bytes, unread) in &copies {
                if !unread.iter().any(|unread| unread.start < part.end && part.start < unread.end) {
                    *times.entry(bytes.get(part.clone()).unwrap_or_default()).or_default() += 1;
                }
            }
            let most = times.into_iter().max_by_key(|(_, times)| *times);
            front.extend(most.map_or(&vec![0; part.len()][..], |(bytes, _)| bytes));
            sector = next;
        }
        begin = block.end;
    }
    front
}

/// Returns the recovery volumes that can be used. One whose header or geometry is damaged has those of another one.
fn usable_recovery(
    files: Vec<(PathBuf, File)>,
    front: &Front,
    limits: &Limits,
    unused: &mut Vec<(PathBuf, Error)>,
) -> Result<Vec<RecoveryFile>, Error> {
    let (mut sound, mut damaged): (Vec<RecoveryFile>, Vec<(PathBuf, File, Error)>) = Default::default();
    for (path, file) in files {
        let read = read_recovery(&path, &file, limits).and_then(|read| {
            let checked = read.and_then(|recovery| recovery.check_head(&front.head).map(|()| recovery));
            checked.map_err(|error| Error::unexpected(&path, error.to_string()))
        });
        match read {
            Ok(recovery) => {
                code::memory(&recovery.geometry)?;
                let file = RecoveryFile::of(&path, file, recovery);
                match sound.first() {
                    Some(first) if !file.is_with(first) => {
                        let why = format!("is not of the same set as {}", first.path().display());
                        unused.push((path.clone(), Error::unexpected(&path, why)));
                    }
                    _ if sound.iter().any(|other| other.recovery().number == file.recovery().number) => {}
                    _ => sound.push(file),
                }
            }
            Err(error) => damaged.push((path, file, error)),
        }
    }
    for (path, file, error) in damaged {
        let Some(first) = sound.first().map(|first| first.recovery().clone()) else {
            unused.push((path, error));
            continue;
        };
        let is_free = |number: &u16| sound.iter().all(|other| other.recovery().number != *number);
        let free: Vec<u16> = (1..=first.count).filter(is_free).collect();
        let only = if let [only] = free[..] { Some(only) } else { None };
        // Whether it is that one, the checksums in its records tell.
        match number_in_name(&path).filter(|number| free.contains(number)).or(only) {
            Some(number) => sound.push(RecoveryFile::of(&path, file, Recovery { number, ..first })),
            None => unused.push((path, error)),
        }
    }
    sound.sort_by_key(|file| file.recovery().number);
    Ok(sound)
}

/// Returns the headers of all volumes, from those that are there, and from where the columns of the recovery volumes begin.
fn headers<'a>(
    place: &Path,
    head: &Head,
    known: impl Iterator<Item = &'a Volume> + Clone,
    columns: &[u64],
) -> Result<Vec<Volume>, Error> {
    let all = u16::try_from(columns.len()).unwrap_or(u16::MAX);
    let count = known.clone().next().map_or(all, |volume| volume.count);
    let mut starts: Vec<Option<u64>> = vec![None; usize::from(count) + 1];
    for volume in known {
        let number = usize::from(volume.number);
        for (at, start) in [(number - 1, volume.offset), (number, volume.end())] {
            let Some(known) = starts.get_mut(at) else { continue };
            if *known.get_or_insert(start) != start {
                let fault = VolumeFault::Gap { label: label(head, volume) };
                return Err(Error::Volumes { path: place.to_owned(), fault: Box::new(fault) });
            }
        }
    }
    let file_len = head.file_len();
    let of_columns = columns.iter().chain([&file_len]);
    let are_columns = columns.len() == usize::from(count)
        && starts.iter().zip(of_columns.clone()).all(|(known, column)| known.is_none_or(|known| known == *column));
    if are_columns {
        starts = of_columns.map(|column| Some(*column)).collect();
    }
    if let Some(first) = starts.first_mut() {
        *first = Some(front_len(head));
    }
    if let Some(last) = starts.last_mut() {
        *last = Some(file_len);
    }
    let headers = (1..=count).zip(starts.array_windows()).map(|(number, [start, end])| {
        let (offset, end) = (*start).zip(*end).filter(|(start, end)| start < end)?;
        let head_len = u32::try_from(head.head_len()).unwrap_or(u32::MAX); // at most `Head::LEN_MAX`
        Some(Volume { number, count, head_len, offset, len: end - offset, file_len, set: head.root_digest() })
    });
    let why =
        "lacks volumes, and its recovery does not say where they begin: `sealift split --recovery` makes one that does";
    headers.collect::<Option<Vec<_>>>().ok_or_else(|| Error::unexpected(place, why))
}

fn is_named(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|own| own.eq_ignore_ascii_case(extension))
}

/// Returns the number in the name of a volume or a recovery volume.
fn number_in_name(path: &Path) -> Option<u16> {
    if !is_named(path, OpenVolume::EXTENSION) && !is_named(path, OpenVolume::RECOVERY_EXTENSION) {
        return None;
    }
    let stem = path.file_stem()?.to_str()?;
    let (before, _) = stem.rsplit_once("-of-")?;
    before.rsplit(['.', '-']).next()?.parse().ok().filter(|number| *number > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_numbers() {
        let number = |name: &str| number_in_name(Path::new(name));
        assert_eq!(number("d/os-7.002-of-005.sealift-volume"), Some(2));
        assert_eq!(number("os-7.recovery-001-of-002.sealift-recovery"), Some(1));
        assert_eq!(number("os-7.000-of-002.sealift-volume"), None);
        assert_eq!(number("os-7.002-of-005.sealift"), None);
        assert_eq!(number("volume"), None);
    }
}
