//! Splits a bundle into volumes, for media that are smaller than it.
//!
//! ```no_run
//! # fn main() -> Result<(), sealift::Error> {
//! # let (bundle, stick) = (std::path::Path::new("os.sealift"), std::path::Path::new("stick"));
//! use sealift::split::{SplitOptions, split};
//! use sealift::{Input, Limits, Progress};
//!
//! let options = SplitOptions { size: 4 << 30, recovery: None, jobs: 2, limits: Limits::default() };
//! let done = split(Input::open(bundle)?, stick, &options, &Progress::default())?;
//! println!("{} volumes", done.volumes.len());
//! # Ok(())
//! # }
//! ```
//!
//! Each volume has the bundle's head and layout, and whole chunks. They have their names only when all of them are complete and on the disk.

use std::fs::File;
use std::io::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sealift_format::volume::front_len;
use sealift_format::{Chunk, Error as FormatError, Head, Opened, Part, Recovery, Row, Volume, num};
use sealift_store::fs::found::is_directory;
use sealift_store::fs::partial::PartialFile;
use sealift_store::{OpenVolume, VolumeFault, named_recovery, named_volumes};
use sealift_verify::content::check_stored;

use crate::recovery::{self, Amount, LoneRecovery};
use crate::volume_name::{file_name, recovery_file_name};
use crate::{Error, Input, Limits, Origin, Phase, Progress};

/// How to split a bundle.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "a caller chooses all of it")]
pub struct SplitOptions {
    /// The most bytes that a volume may have.
    pub size: u64,
    /// How much recovery there is, if any.
    pub recovery: Option<Amount>,
    /// How many threads make it.
    pub jobs: usize,
    /// The limits of what the bundle may declare.
    pub limits: Limits,
}

/// The result of splitting.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SplitStats {
    /// The bundle, without its content.
    pub opened: Opened,
    /// The volumes, in order.
    pub volumes: Vec<Written>,
    /// The recovery volumes, in order.
    pub recovery: Vec<WrittenRecovery>,
}

/// A volume that was written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// Its path.
    pub path: PathBuf,
    /// Its header.
    pub header: Volume,
    /// The length of its file in bytes.
    pub file_bytes: u64,
}

/// A recovery volume that was written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WrittenRecovery {
    /// Its path.
    pub path: PathBuf,
    /// Its header and geometry.
    pub recovery: Recovery,
    /// The length of its file in bytes.
    pub file_bytes: u64,
}

/// Splits a bundle, or volumes of another size, into volumes in `directory`, and checks every byte meanwhile. Equal bundles and sizes give equal
/// files.
///
/// # Errors
/// Returns an error if the bundle is damaged or a pipe, if a chunk or the index is larger than a volume, if the directory has other volumes of the same
/// name and version, or if it cannot be written. No volume appears then.
pub fn split(
    mut input: Input,
    directory: &Path,
    options: &SplitOptions,
    progress: &Progress,
) -> Result<SplitStats, Error> {
    let opened = input.open_any(options.limits.clone())?;
    let Some(origin) = input.origin() else {
        return Err(Error::unexpected(input.path(), "is a pipe, but has to be read at any offset"));
    };
    let (head, chunks) = (opened.head(), &opened.layout().chunks);
    let (headers, recovery) = match options.recovery {
        Some(amount) => recovery::plan(head, chunks, options.size, amount)?,
        None => (Volume::split(head, chunks, options.size)?, Vec::new()),
    };
    let written = |header: Volume| Written {
        path: directory.join(file_name(head, &header)),
        file_bytes: header.own_len(head),
        header,
    };
    let volumes: Vec<Written> = headers.into_iter().map(written).collect();
    let written = |recovery: Recovery| WrittenRecovery {
        path: directory.join(recovery_file_name(head, &recovery)),
        file_bytes: recovery.own_len(),
        recovery,
    };
    let recovery: Vec<WrittenRecovery> = recovery.into_iter().map(written).collect();
    let source = Source { path: input.path(), origin, head, chunks };
    let is_new = !is_directory(directory)?;
    if is_new {
        std::fs::create_dir(directory).map_err(|error| Error::io("create", directory, error))?;
    } else {
        refuse_others(directory, head, &volumes)?;
        refuse_other_recovery(directory, head, &recovery, &options.limits)?;
    }
    if let Err(error) = source.write_all(&volumes, &recovery, options.jobs, progress) {
        if is_new {
            let _ = std::fs::remove_dir(directory); // it is empty, unless the first names were given
        }
        return Err(error);
    }
    Ok(SplitStats { opened, volumes, recovery })
}

/// Refuses a directory that has volumes of the same name and version which are not among those to be written: nobody could tell them apart.
fn refuse_others(directory: &Path, head: &Head, volumes: &[Written]) -> Result<(), Error> {
    let identity = &head.root().identity;
    for path in named_volumes(directory)? {
        // A damaged one that has the name of one of these is replaced.
        let Ok(Some(found)) = OpenVolume::open(&path) else { continue };
        let is_same_name = found.head().root().identity.name == identity.name
            && found.head().root().identity.version == identity.version;
        let is_own = volumes.iter().any(|volume| volume.path == path && volume.header == *found.header())
            && found.head() == head;
        if is_same_name && !is_own {
            let bundle = format!("{} version {}", identity.name, identity.version);
            return Err(Error::Volumes { path, fault: Box::new(VolumeFault::InTheWay { bundle }) });
        }
    }
    Ok(())
}

/// Refuses a directory that has recovery volumes of the same name and version which are not among those to be written: they would not help these.
fn refuse_other_recovery(
    directory: &Path,
    head: &Head,
    recovery: &[WrittenRecovery],
    limits: &Limits,
) -> Result<(), Error> {
    let identity = &head.root().identity;
    for path in named_recovery(directory)? {
        // A damaged one is replaced if it has the name of one of these.
        let Ok(Some(found)) = LoneRecovery::open(&path, limits) else { continue };
        let found = &found.head().root().identity;
        let is_same_name = found.name == identity.name && found.version == identity.version;
        if is_same_name && recovery.iter().all(|own| own.path != path) {
            let bundle = format!("{} version {}", identity.name, identity.version);
            return Err(Error::Volumes { path, fault: Box::new(VolumeFault::InTheWay { bundle }) });
        }
    }
    Ok(())
}

/// The bundle that is split.
struct Source<'a> {
    path: &'a Path,
    origin: &'a Origin,
    head: &'a Head,
    chunks: &'a [Chunk],
}

impl Source<'_> {
    /// Writes the volumes' files, and gives them their names when all are complete.
    fn write_all(
        &self,
        volumes: &[Written],
        recovery: &[WrittenRecovery],
        jobs: usize,
        progress: &Progress,
    ) -> Result<(), Error> {
        let bytes = volumes.iter().map(|volume| volume.file_bytes).sum();
        progress.enter(Phase::Copying, bytes, num::wide(volumes.len()));
        let mut partials = Vec::new();
        for volume in volumes {
            let partial = PartialFile::create(&volume.path, true)?;
            self.write(volume, partial.file(), progress)?;
            progress.add(0, 1);
            partials.push(partial);
        }
        let mut files = Vec::new();
        for recovery in recovery {
            files.push(PartialFile::create(&recovery.path, true)?);
        }
        let headers: Vec<Recovery> = recovery.iter().map(|written| written.recovery.clone()).collect();
        recovery::write_all(self.origin, self.path, &headers, &files, jobs, progress)?;
        partials.extend(files);
        progress.enter(Phase::Syncing, 0, 0);
        partials.into_iter().try_for_each(PartialFile::finish)
    }

    /// Writes a volume's file.
    fn write(&self, volume: &Written, mut file: &File, progress: &Progress) -> Result<(), Error> {
        let header = &volume.header;
        let failed = |error| Error::io("write", &volume.path, error);
        let mut put = |bytes: &[u8]| {
            progress.check()?;
            file.write_all(bytes).map_err(failed)?;
            progress.add(num::wide(bytes.len()), 0);
            Ok::<(), Error>(())
        };
        put(&header.encode())?;
        put(&self.head.encode())?;
        let contents = &self.head.root().contents;
        let (head_len, front_len, chunks_at) = (self.head.head_len(), front_len(self.head), self.head.chunks_at());
        put(&self.part(Part::Layout, head_len..front_len, &contents.layout_blake3)?)?;
        if header.number == 1 {
            put(&self.part(Part::Index, front_len..chunks_at, &contents.index_blake3)?)?;
        }
        let carried = header.chunks(self.head, self.chunks)?;
        let mut stored = Vec::new();
        for (number, chunk) in Row::all(self.chunks).skip(carried.start).take(carried.len()) {
            let offset = chunks_at + chunk.offset;
            stored.resize(num::at(chunk.stored_len), 0);
            self.read(offset, &mut stored)?;
            check_stored(number, chunk, &stored)?;
            put(&stored)?;
        }
        Ok(())
    }

    /// Reads a part, which must have this digest: the file may have changed since it was opened.
    fn part(&self, part: Part, range: Range<u64>, digest: &[u8; 32]) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; num::size(range.end - range.start)];
        self.read(range.start, &mut bytes)?;
        match blake3::hash(&bytes).as_bytes() == digest {
            true => Ok(bytes),
            false => Err(FormatError::Digest { part }.into()),
        }
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.origin.read_exact_at(buffer, offset).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                FormatError::Truncated { len: offset, expected: Some(self.head.file_len()) }.into()
            }
            _ => Error::io("read", self.path, error),
        })
    }
}
