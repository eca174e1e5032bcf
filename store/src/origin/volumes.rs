//! The volumes of one bundle, read as the bundle (volumes 4).

use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::Advice;
use sealift_format::volume::front_len;
use sealift_format::{Chunk, Head, num};

use super::volume::OpenVolume;
use crate::Error;
use crate::error::{VolumeFault, numbers};
use crate::fs::found::found_at;
use crate::fs::parent::parent_of;

/// All volumes of a bundle, in order.
#[derive(Debug)]
pub struct VolumeSet {
    volumes: Vec<OpenVolume>,
    front_len: u64,
    file_len: u64,
}

impl VolumeSet {
    /// Opens the set in a directory.
    ///
    /// # Errors
    /// Returns an error if the directory has volumes of several sets, or of none, or if a volume is missing, there twice or damaged.
    pub fn in_directory(directory: &Path) -> Result<Self, Error> {
        let found = Found::in_directory(directory)?;
        let mut sets = found.sets.into_iter();
        match (sets.next(), sets.next(), found.fault) {
            (Some(set), None, fault) => Self::new(directory, set).map_err(|error| fault.unwrap_or(error)),
            (None, _, Some(fault)) => Err(fault),
            (None, ..) => Err(Error::volumes(directory, VolumeFault::None)),
            (Some(first), Some(second), _) => {
                let sets = [first, second].into_iter().chain(sets).map(|set| described(&set)).collect();
                Err(Error::volumes(directory, VolumeFault::Several { sets }))
            }
        }
    }

    /// Opens the set of a volume with what lies beside it.
    ///
    /// # Errors
    /// Returns an error if a volume is missing, there twice or damaged.
    pub fn of(volume: OpenVolume) -> Result<Self, Error> {
        let path = volume.path().to_owned();
        let beside = Found::in_directory(parent_of(&path))?;
        let is_it = |other: &OpenVolume| other.path().file_name() == path.file_name();
        let own = beside.sets.into_iter().find(|set| set.iter().any(|other| volume.is_of_set(other)));
        let mut set: Vec<OpenVolume> = own.into_iter().flatten().filter(|other| !is_it(other)).collect();
        push(&mut set, volume);
        Self::new(&path, set).map_err(|error| beside.fault.unwrap_or(error))
    }

    /// Opens the set that is in these files, wherever they are.
    ///
    /// # Errors
    /// Returns an error if a file is no volume or is of another set, or if a volume is missing, there twice or damaged.
    pub fn of_files(paths: &[PathBuf]) -> Result<Self, Error> {
        let mut set: Vec<OpenVolume> = Vec::new();
        for path in paths {
            let Some(volume) = OpenVolume::open(path)? else {
                return Err(Error::unexpected(path, "is no volume of a bundle"));
            };
            if let Some(first) = set.first().filter(|first| !first.is_of_set(&volume)) {
                let (other, other_label) = (first.path().to_owned(), first.label());
                return Err(Error::volumes(path, VolumeFault::OtherSet { label: volume.label(), other, other_label }));
            }
            push(&mut set, volume);
        }
        let place = paths.first().map(PathBuf::as_path).unwrap_or(Path::new(""));
        Self::new(place, set)
    }

    /// Puts volumes of one set in order. `place` is where they were looked for, for messages.
    fn new(place: &Path, mut volumes: Vec<OpenVolume>) -> Result<Self, Error> {
        volumes.sort_by(|one, other| (one.header().number, one.path()).cmp(&(other.header().number, other.path())));
        let Some(first) = volumes.first() else { return Err(Error::volumes(place, VolumeFault::None)) };
        if let Some([one, other]) =
            volumes.array_windows().find(|[one, other]| one.header().number == other.header().number)
        {
            let fault = VolumeFault::Twice { label: other.label(), other: one.path().to_owned() };
            return Err(Error::volumes(other.path(), fault));
        }
        let count = first.header().count;
        let is_there = |number: &u16| volumes.binary_search_by_key(number, |volume| volume.header().number).is_ok();
        let missing: Vec<u16> = (1..=count).filter(|number| !is_there(number)).collect();
        if !missing.is_empty() {
            return Err(Error::volumes(place, VolumeFault::Missing { bundle: first.bundle(), count, missing }));
        }
        let (front_len, file_len) = (front_len(first.head()), first.head().file_len());
        let mut at = front_len;
        for volume in &volumes {
            volume.check_len()?;
            if volume.header().offset != at {
                return Err(Error::volumes(volume.path(), VolumeFault::Gap { label: volume.label() }));
            }
            at = volume.header().end();
        }
        Ok(Self { volumes, front_len, file_len })
    }

    /// Returns the volumes, in order.
    #[must_use]
    pub fn volumes(&self) -> &[OpenVolume] {
        &self.volumes
    }

    /// Checks that each volume begins and ends where chunks do.
    ///
    /// # Errors
    /// Returns an error if one is cut elsewhere.
    pub(crate) fn check_cuts(&self, head: &Head, chunks: &[Chunk]) -> Result<(), Error> {
        self.volumes.iter().try_for_each(|volume| match volume.header().chunks(head, chunks) {
            Ok(_) => Ok(()),
            Err(error) => Err(Error::from(error).of_bundle(volume.path())),
        })
    }

    /// Returns the length of the bundle.
    pub(super) fn len(&self) -> u64 {
        self.file_len
    }

    /// Reads some bytes of the bundle, none at its end.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let (volume, end) = match offset < self.front_len {
            true => (self.volumes.first(), self.front_len),
            false => {
                let after = self.volumes.partition_point(|volume| volume.header().offset <= offset);
                let volume = after.checked_sub(1).and_then(|at| self.volumes.get(at));
                (volume, volume.map_or(0, |volume| volume.header().end()))
            }
        };
        let Some(volume) = volume.filter(|_| offset < end) else { return Ok(0) };
        let len = num::up_to(end - offset, buffer.len());
        volume.file.read_at(buffer.get_mut(..len).unwrap_or_default(), volume.place(offset))
    }

    /// Returns how many bytes of the bundle can be read from its start now.
    pub(super) fn len_now(&self) -> io::Result<u64> {
        for volume in &self.volumes {
            let (header, len) = (volume.header(), volume.file.metadata()?.len());
            if len < header.own_len(volume.head()) {
                return Ok(header.offset.saturating_add(len.saturating_sub(volume.place(header.offset))));
            }
        }
        Ok(self.file_len)
    }

    pub(super) fn advise(&self, advice: Advice) {
        for volume in &self.volumes {
            let _ = rustix::fs::fadvise(&volume.file, 0, None, advice);
        }
    }
}

/// The volumes in a directory.
struct Found {
    /// Those of each set, in the order of their names.
    sets: Vec<Vec<OpenVolume>>,
    /// What is wrong with the first that cannot be opened.
    fault: Option<Error>,
}

impl Found {
    /// Opens the files that are named like volumes.
    fn in_directory(directory: &Path) -> Result<Self, Error> {
        let mut found = Self { sets: Vec::new(), fault: None };
        for path in named_volumes(directory)? {
            match OpenVolume::open(&path) {
                Ok(Some(volume)) => found.add(volume),
                Ok(None) => {}
                Err(error) => found.fault = found.fault.or(Some(error)),
            }
        }
        Ok(found)
    }

    fn add(&mut self, volume: OpenVolume) {
        let own = self.sets.iter_mut().find(|set| set.first().is_some_and(|first| first.is_of_set(&volume)));
        match own {
            Some(set) => push(set, volume),
            None => self.sets.push(vec![volume]),
        }
    }
}

/// Returns whether a directory has files that are named like volumes or recovery volumes, and nothing else: it is then a bundle, and no tree.
///
/// # Errors
/// Returns an error if it cannot be read.
pub fn has_only_volumes(directory: &Path) -> Result<bool, Error> {
    let volumes = named_volumes(directory)?.len();
    let entries = std::fs::read_dir(directory).map_err(|error| Error::io("read", directory, error))?;
    Ok(volumes > 0 && entries.count() == volumes + named_recovery(directory)?.len())
}

/// Puts volumes of one set together, in the order in which the sets first appear. Any other file stays alone, and so does a volume that cannot be
/// opened.
#[must_use]
pub fn by_set(paths: Vec<PathBuf>) -> Vec<Vec<PathBuf>> {
    let mut groups: Vec<(Option<OpenVolume>, Vec<PathBuf>)> = Vec::new();
    for path in paths {
        // Opening a pipe would block, and opening it twice would lose what was read.
        let is_file = found_at(&path).is_ok_and(|found| found.is_some_and(|found| found.is_file()));
        let volume = if is_file { OpenVolume::open(&path).ok().flatten() } else { None };
        let own = volume.as_ref().and_then(|volume| {
            groups.iter_mut().find(|(first, _)| first.as_ref().is_some_and(|first| first.is_of_set(volume)))
        });
        match own {
            Some((_, group)) => group.push(path),
            None => groups.push((volume, vec![path])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Adds a volume to its set, which keeps one head in memory.
fn push(set: &mut Vec<OpenVolume>, mut volume: OpenVolume) {
    if let Some(first) = set.first() {
        volume.share_head(first);
    }
    set.push(volume);
}

/// Returns the files in a directory that are named like volumes, sorted.
///
/// # Errors
/// Returns an error if the directory cannot be read.
pub fn named_volumes(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    named(directory, OpenVolume::EXTENSION)
}

/// Returns the files in a directory that are named like recovery volumes, sorted.
///
/// # Errors
/// Returns an error if the directory cannot be read.
pub fn named_recovery(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    named(directory, OpenVolume::RECOVERY_EXTENSION)
}

fn named(directory: &Path, extension: &str) -> Result<Vec<PathBuf>, Error> {
    let failed = |error| Error::io("read", directory, error);
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_named = path.extension().is_some_and(|end| end.eq_ignore_ascii_case(extension));
        // Opening a pipe would block.
        if is_named && found_at(&path)?.is_some_and(|found| found.is_file()) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Returns what is there of a set, for people.
fn described(set: &[OpenVolume]) -> String {
    let Some(first) = set.first() else { return String::new() };
    let there: Vec<u16> = set.iter().map(|volume| volume.header().number).collect();
    format!("{} of {} of {}", numbers(&there), first.header().count, first.bundle())
}
