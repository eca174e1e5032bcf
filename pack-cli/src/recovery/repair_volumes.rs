//! Makes lost and damaged volumes of a bundle whole again.

use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use parking_lot::Mutex;
use sealift_format::num::{size, wide};
use sealift_format::{Error as FormatError, Geometry, Head, Volume};
use sealift_store::fs::found::is_directory;
use sealift_store::fs::partial::PartialFile;
use sealift_store::{OpenVolume, VolumeFault};

use super::RepairOptions;
use super::body::{self, Body, Lost, Part, Slice, suspects};
use super::file::Digested;
use super::readable;
use super::set::Set;
use super::written::Written;
use crate::volume::verify_volume;
use crate::volume_name::file_name;
use crate::{Error, Phase, Progress, RecoveryFault};

/// The result of repairing volumes.
#[derive(Debug)]
#[non_exhaustive]
pub struct RepairVolumesStats {
    /// The bundle's head.
    pub head: Head,
    /// How many volumes the bundle was split into.
    pub count: u16,
    /// Those that were lost or damaged, and are whole now, in order.
    pub volumes: Vec<RepairedVolume>,
    /// The numbers of recovery volumes that are missing or cannot be used.
    pub missing_recovery: Vec<u16>,
    /// Files that were of no use, and why.
    pub unused: Vec<(PathBuf, Error)>,
}

/// A volume that was made whole again.
#[derive(Debug)]
#[non_exhaustive]
pub struct RepairedVolume {
    /// Its file, which is new.
    pub path: PathBuf,
    /// The damaged file, if there was one.
    pub source: Option<PathBuf>,
    /// Its header.
    pub header: Volume,
    /// The length of its file in bytes.
    pub file_bytes: u64,
    /// Bytes that were lost, and are made again, in whole shards.
    pub repaired_bytes: u64,
    /// Those of them that the system could not read, or that are missing; the others had changed.
    pub unreadable_bytes: u64,
    /// The first ranges of the damaged file that could not be read.
    pub unreadable: Vec<Range<u64>>,
}

/// Makes volumes again that are lost or damaged, from the others and from recovery volumes. `paths` are files, and directories with volumes of one
/// bundle; what is whole is not copied. The new files appear in `directory` when each of their bytes is checked.
///
/// # Errors
/// Returns an error if there is too little recovery for a volume, after it has made the others, if there are volumes of several bundles, if what is
/// made is not the bundle, or if a file exists already that is none of the damaged ones, or cannot be written.
pub fn repair_volumes(
    paths: &[PathBuf],
    directory: &Path,
    options: &RepairOptions,
    progress: &Progress,
) -> Result<RepairVolumesStats, Error> {
    let mut set = Set::find(paths, &options.limits)?;
    let slice_at = Volume::slice_at(&set.front.head);
    let mut outputs = Vec::new();
    let mut slices = Vec::new();
    for (header, source) in set.headers.iter().zip(std::mem::take(&mut set.sources)) {
        let (source, file) = source.unzip();
        let name = source.as_deref().and_then(Path::file_name);
        let path = directory.join(name.map_or_else(|| file_name(&set.front.head, header).into(), PathBuf::from));
        outputs.push(Output { path, source, header: header.clone(), partial: OnceLock::new(), making: Mutex::new(()) });
        slices.push(Slice { range: header.offset..header.end(), file, at: slice_at });
    }
    let geometry = set.recovery.first().map(|file| file.recovery().geometry.clone());
    let Some(geometry) = geometry else { return Err(Error::unexpected(directory, "has no recovery volumes")) };
    let place = paths.first().map_or(directory, PathBuf::as_path);
    let work = Work {
        front: set.front.encode(),
        written: Written::new(&geometry, set.front.head.file_len())?,
        slices: &slices,
        outputs: &outputs,
        replaces: options.replaces,
    };
    refuse_too_few(place, &set, &slices, geometry.run)?;
    let is_new = !is_directory(directory)?;
    if is_new {
        std::fs::create_dir(directory).map_err(|error| Error::io("create", directory, error))?;
    }
    let done = work.repair(&set, &geometry, options, progress);
    let done = done.and_then(|lost| finish(place, &set, &slices, outputs, &lost));
    if is_new {
        let _ = std::fs::remove_dir(directory); // it stays if it has a file
    }
    let volumes = done?;
    let Some(first) = set.recovery.first() else { return Err(Error::unexpected(directory, "has no recovery volumes")) };
    let is_missing = |number: &u16| set.recovery.iter().all(|file| file.recovery().number != *number);
    let missing_recovery = (1..=first.recovery().count).filter(is_missing).collect();
    let count = set.headers.first().map_or(0, |header| header.count);
    Ok(RepairVolumesStats { head: set.front.head, count, volumes, missing_recovery, unused: set.unused })
}

/// Refuses a set of which more volumes are lost than it has recovery for, before all of it is read.
fn refuse_too_few(place: &Path, set: &Set, slices: &[Slice], run: u32) -> Result<(), Error> {
    let Some(first) = set.recovery.first() else { return Ok(()) };
    let starts = &first.recovery().geometry.starts;
    if !starts.iter().copied().eq(slices.iter().map(|slice| slice.range.start)) {
        return Ok(());
    }
    let len = |slice: &Slice| slice.range.end - slice.range.start;
    let longest = slices.iter().map(len).max().unwrap_or(0);
    let parity: usize = set.recovery.iter().map(|file| file.recovery().shards().count()).sum();
    let most = wide(parity) / u64::from(run.max(1));
    let lost = slices.iter().zip(&set.headers).filter(|(slice, _)| slice.file.is_none());
    let lost: Vec<(u16, u64)> = lost.map(|(_, header)| (header.number, header.len)).collect();
    let mut lens: Vec<u64> = lost.iter().map(|(_, len)| *len).collect();
    lens.sort_unstable_by(|one, other| other.cmp(one));
    // A codeword in which all of these have shards: what they lack of the longest column, together, is less than all codewords.
    let lacking: u64 = lens.iter().take(size(most) + 1).map(|len| longest - len).sum();
    if wide(lens.len()) <= most || lacking >= longest {
        return Ok(());
    }
    Err(unrepairable(place, set, lost, Vec::new()))
}

/// Returns the error for volumes of which too much is lost.
fn unrepairable(place: &Path, set: &Set, lost: Vec<(u16, u64)>, made: Vec<u16>) -> Error {
    let made = match &made[..] {
        [] => "nothing was written".to_owned(),
        [one] => format!("volume {one} was made whole"),
        many => format!("{} other volumes were made whole", many.len()),
    };
    let fault = VolumeFault::Unrepairable { bundle: set.bundle(), lost, made };
    Error::Volumes { path: place.to_owned(), fault: Box::new(fault) }
}

/// A volume, and its new file once it is known to be damaged.
struct Output {
    path: PathBuf,
    source: Option<PathBuf>,
    header: Volume,
    partial: OnceLock<PartialFile>,
    /// Held while the file is made.
    making: Mutex<()>,
}

/// What all threads share.
struct Work<'a> {
    /// Head and layout.
    front: Vec<u8>,
    /// The runs that were written to all volumes that have bytes of them.
    written: Written<'a>,
    slices: &'a [Slice],
    outputs: &'a [Output],
    replaces: bool,
}

impl Work<'_> {
    /// Writes the volumes that are lost or damaged. Returns what was lost.
    fn repair(
        &self,
        set: &Set,
        geometry: &Geometry,
        options: &RepairOptions,
        progress: &Progress,
    ) -> Result<Lost, Error> {
        for (slice, output) in self.slices.iter().zip(self.outputs) {
            if !self.has_sound_front(slice, output) {
                self.begin(output)?;
            }
        }
        let run = |suspects: &[Range<u64>]| -> Result<Lost, Error> {
            self.written.clear();
            progress.enter(Phase::Copying, set.front.head.file_len(), 0);
            let body = Body { files: &set.recovery, geometry, slices: self.slices, suspects };
            let lost = body.repair(options.jobs, progress, &|part| self.write(part))?;
            self.copy_rest(geometry, progress)?;
            Ok(lost)
        };
        let mut lost = run(&[])?;
        let mut checked = self.check(set, &lost, options, progress);
        let is_wrong = checked.as_ref().is_err_and(|error| error.kind().is_some());
        if is_wrong && !lost.unknown.is_empty() {
            // Shards without a checksum have changed: whole chunks tell.
            lost = run(&suspects(self.slices, &set.front, progress)?)?;
            checked = self.check(set, &lost, options, progress);
        }
        checked.map_err(|error| match (error.kind(), set.recovery.first()) {
            (Some(_), Some(first)) => {
                let source = match error {
                    Error::Bundle { source, .. } => source, // its path is that of a partial file
                    error => Box::new(error),
                };
                RecoveryFault::Wrong { path: first.path().to_owned(), source }.into()
            }
            _ => error,
        })?;
        Ok(lost)
    }

    /// Returns whether a volume's file is there, has the right length, and begins with the right header, head and layout.
    fn has_sound_front(&self, slice: &Slice, output: &Output) -> bool {
        let Some(file) = &slice.file else { return false };
        let len = slice.at.saturating_add(output.header.len);
        if !file.metadata().is_ok_and(|metadata| metadata.len() == len) {
            return false;
        }
        let header = output.header.encode();
        let mut buffer = vec![0; 1 << 20];
        let (mut at, mut parts) = (0, header.chunks(1 << 20).chain(self.front.chunks(1 << 20)));
        parts.all(|part| {
            let read = buffer.get_mut(..part.len()).unwrap_or_default();
            let unread = readable::read(file, read, at);
            at += wide(part.len());
            unread.is_empty() && *read == *part
        })
    }

    /// Makes the new file of a volume, if there is none yet.
    fn begin<'a>(&self, output: &'a Output) -> Result<&'a PartialFile, Error> {
        let _making = output.making.lock();
        if let Some(partial) = output.partial.get() {
            return Ok(partial);
        }
        let partial =
            PartialFile::create(&output.path, self.replaces || is_same(&output.path, output.source.as_deref()))?;
        let bytes = [&output.header.encode()[..], &self.front].concat();
        let written = partial.file().write_all_at(&bytes, 0);
        written.map_err(|error| Error::io("write", &output.path, error))?;
        Ok(output.partial.get_or_init(|| partial))
    }

    /// Returns the volumes that have bytes of the bundle from `offset` on, up to `len`.
    fn of_range(&self, offset: u64, len: usize) -> impl Iterator<Item = (&Slice, &Output)> {
        let end = offset.saturating_add(wide(len));
        let after = self.slices.partition_point(|slice| slice.range.end <= offset);
        let volumes = self.slices.iter().zip(self.outputs).skip(after);
        volumes.take_while(move |(slice, _)| slice.range.start < end)
    }

    /// Writes a part to the volumes that are damaged.
    fn write(&self, part: Part<'_>) -> Result<(), Error> {
        match part {
            Part::Run { column, offset, bytes, is_damaged } => {
                let mut is_whole = true;
                for (slice, output) in self.of_range(offset, bytes.len()) {
                    if is_damaged {
                        self.begin(output)?;
                    }
                    is_whole &= write_to(slice, output, offset, bytes)?;
                }
                if is_whole && !bytes.is_empty() {
                    self.written.note(column, offset);
                }
            }
            Part::Made { offset, bytes } => {
                for (slice, output) in self.of_range(offset, bytes.len()) {
                    write_to(slice, output, offset, bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Copies what was read of damaged volumes before they were known to be.
    fn copy_rest(&self, geometry: &Geometry, progress: &Progress) -> Result<(), Error> {
        let file_len = self.slices.last().map_or(0, |slice| slice.range.end);
        let mut bytes = Vec::new();
        for column in 0..geometry.starts.len() {
            for codeword in 0..geometry.codewords(file_len) {
                let (range, _) = geometry.run_of(codeword, column, file_len);
                if range.is_empty() || self.written.has(column, range.start) {
                    continue;
                }
                let len = size(range.end - range.start);
                if self.of_range(range.start, len).all(|(_, output)| output.partial.get().is_none()) {
                    continue;
                }
                progress.check()?;
                bytes.resize(len, 0);
                if let Some(unread) = body::read(self.slices, &mut bytes, range.start).first() {
                    let at = range.start.saturating_add(wide(unread.start));
                    let volume = self.of_range(at, 1).find_map(|(_, output)| output.source.as_deref());
                    let path = volume.unwrap_or(Path::new(""));
                    return Err(Error::unexpected(path, format!("can no longer be read at byte {at} of the bundle")));
                }
                for (slice, output) in self.of_range(range.start, len) {
                    write_to(slice, output, range.start, &bytes)?;
                }
            }
        }
        Ok(())
    }

    /// Checks each new volume, and chunks of the others for which there were no checksums.
    fn check(&self, set: &Set, lost: &Lost, options: &RepairOptions, progress: &Progress) -> Result<(), Error> {
        for (output, gone) in self.outputs.iter().zip(&lost.gone) {
            let Some(partial) = output.partial.get().filter(|_| *gone == 0) else { continue };
            let volume = OpenVolume::open(partial.path())?;
            let volume = volume.ok_or_else(|| Error::unexpected(&output.path, "is no volume"))?;
            verify_volume(&volume, &options.limits, progress)?;
        }
        if lost.unknown.is_empty() {
            return Ok(());
        }
        let mut unknown = lost.unknown.clone();
        unknown.sort_unstable_by_key(|range| range.start);
        let is_unknown = |range: &Range<u64>| {
            let after = unknown.partition_point(|unknown| unknown.end <= range.start);
            unknown.get(after).is_some_and(|unknown| unknown.start < range.end)
        };
        let mut stored = Vec::new();
        for Digested { range, digest } in set.front.digests()? {
            let len = size(range.end - range.start);
            let is_new = self.of_range(range.start, len).any(|(_, output)| output.partial.get().is_some());
            if is_new || !is_unknown(&range) {
                continue;
            }
            progress.check()?;
            stored.resize(len, 0);
            body::read(self.slices, &mut stored, range.start);
            if *blake3::hash(&stored).as_bytes() != digest {
                return Err(FormatError::Digest { part: sealift_format::Part::Recovery }.into());
            }
        }
        Ok(())
    }
}

/// Gives the new volumes their names. Those of which too much is lost are left out.
fn finish(
    place: &Path,
    set: &Set,
    slices: &[Slice],
    outputs: Vec<Output>,
    lost: &Lost,
) -> Result<Vec<RepairedVolume>, Error> {
    let (mut gone, mut made, mut files) = (Vec::new(), Vec::new(), Vec::new());
    for (number, (output, slice)) in outputs.into_iter().zip(slices).enumerate() {
        let of = |bytes: &[u64]| bytes.get(number).copied().unwrap_or(0);
        let Some(partial) = output.partial.into_inner() else { continue };
        if of(&lost.gone) > 0 {
            gone.push((output.header.number, of(&lost.gone)));
            continue;
        }
        files.push(partial);
        let mut unreadable: Vec<_> = lost.ranges.iter().filter_map(|range| slice.part(range)).collect();
        unreadable.sort_unstable_by_key(|(_, at)| *at);
        made.push(RepairedVolume {
            path: output.path,
            source: output.source,
            file_bytes: slice.at.saturating_add(output.header.len),
            header: output.header,
            repaired_bytes: of(&lost.bytes),
            unreadable_bytes: of(&lost.unreadable),
            unreadable: unreadable.into_iter().map(|(part, at)| at..at + (part.end - part.start)).collect(),
        });
    }
    files.iter().try_for_each(PartialFile::sync)?;
    files.into_iter().try_for_each(PartialFile::finish)?;
    if gone.is_empty() {
        return Ok(made);
    }
    Err(unrepairable(place, set, gone, made.iter().map(|volume| volume.header.number).collect()))
}

/// Writes what a volume has of these bytes to its new file. Returns whether there is one.
fn write_to(slice: &Slice, output: &Output, offset: u64, bytes: &[u8]) -> Result<bool, Error> {
    let Some(partial) = output.partial.get() else { return Ok(false) };
    let Some((part, at)) = slice.part(&(offset..offset.saturating_add(wide(bytes.len())))) else { return Ok(true) };
    let own = bytes.get(size(part.start - offset)..size(part.end - offset)).unwrap_or_default();
    let written = partial.file().write_all_at(own, at);
    written.map_err(|error| Error::io("write", &output.path, error))?;
    Ok(true)
}

/// Returns whether both paths name one file.
fn is_same(path: &Path, source: Option<&Path>) -> bool {
    let of = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
    source.and_then(of).is_some_and(|source| of(path) == Some(source))
}
