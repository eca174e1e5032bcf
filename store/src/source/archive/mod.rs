//! An archive as a source: one file, or a pipe, that holds a sequence of files.
//!
//! Members are applied in order, as the archive's own program unpacks them: a later one replaces an earlier one of the same path. A leading `/` and
//! `.` components are dropped, `..` is refused. A root or a parent directory without its own member has mode 0755, owner 0:0 and time 0. Owners are
//! taken from the numbers; names of users and groups are ignored.
//!
//! An archive that programs interpret differently is refused: what is signed must be what another program would have unpacked.

mod draft;
mod file;

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::Path;

use rustix::fs::{FileType, fstat, tell};

use super::SourceOptions;
use crate::{Error, Tree};
use sealift_format::num;

pub use crate::error::ArchiveFault;
pub(super) use crate::error::shown;
pub(super) use draft::{Draft, FileId, Member, MemberKind, Segment, Stored};
pub(super) use file::{Archive, compressor};

/// An archive format.
#[derive(Debug)]
pub struct ArchiveFormat {
    pub(super) scheme: &'static str,
    /// Adds an archive's members to a draft.
    pub(super) read: fn(&Archive, &SourceOptions, &mut Draft) -> Result<(), Error>,
}

impl ArchiveFormat {
    /// Returns the prefix of its sources, before a colon.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        self.scheme
    }
}

impl PartialEq for ArchiveFormat {
    fn eq(&self, other: &Self) -> bool {
        self.scheme == other.scheme
    }
}

impl Eq for ArchiveFormat {}

/// An archive whose headers have been read. Contents are read from it at their offsets.
#[derive(Debug)]
pub struct ArchiveSource {
    pub(super) tree: Tree,
    archive: Archive,
    contents: Vec<Stored>,
}

impl ArchiveSource {
    /// Reads the headers of the archive at `path`. [`super::Source::open_spec`] applies the options' changes of metadata.
    ///
    /// Input that can be read only once (a fifo, `/dev/fd/3`) is copied to a file in the options' `spool_dir`, as described at [`Self::of_pipe`].
    ///
    /// # Errors
    /// Returns an error if it cannot be read, is compressed, or is not an archive that can be packed.
    pub fn open(path: &Path, format: &ArchiveFormat, options: &SourceOptions) -> Result<Self, Error> {
        let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
        Self::of_file(file, path, format, options)
    }

    /// Reads the headers of an archive from standard input, which is copied only if it is not a file.
    pub fn of_stdin(format: &ArchiveFormat, options: &SourceOptions) -> Result<Self, Error> {
        let name = Path::new("-");
        let stdin = std::io::stdin().as_fd().try_clone_to_owned();
        let stdin = File::from(stdin.map_err(|error| Error::io("read", name, error))?);
        Self::of_file(stdin, name, format, options)
    }

    fn of_file(file: File, path: &Path, format: &ArchiveFormat, options: &SourceOptions) -> Result<Self, Error> {
        let stat = fstat(&file).map_err(|error| Error::io("read", path, error))?;
        options.begin();
        let whole = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && tell(&file) == Ok(0);
        if whole {
            return Self::read(Archive::of_file(file, path, format)?, format, options);
        }
        Self::of_pipe(file, path, format, options)
    }

    /// Reads the headers of an archive that comes through a pipe, called `path` in messages.
    ///
    /// Packing reads contents in access order, so the whole archive is first copied to a file without a name in `spool_dir`: that space is used
    /// until the source is dropped, and is freed even if the run is killed.
    ///
    /// # Errors
    /// As [`Self::open`]; also returns an error if `spool_dir` has too little space.
    pub fn of_pipe(
        pipe: impl Read,
        path: &Path,
        format: &ArchiveFormat,
        options: &SourceOptions,
    ) -> Result<Self, Error> {
        Self::read(Archive::of_pipe(pipe, path, format, options)?, format, options)
    }

    fn read(archive: Archive, format: &ArchiveFormat, options: &SourceOptions) -> Result<Self, Error> {
        let mut draft = Draft::new();
        (format.read)(&archive, options, &mut draft)?;
        let (tree, contents) = draft.finish(&options.directory)?;
        Ok(Self { tree, archive, contents })
    }

    pub(super) fn content_len(&self, content: u32) -> u64 {
        self.stored(content).len()
    }

    pub(super) fn content_count(&self) -> usize {
        self.contents.len()
    }

    pub(super) fn open_content(&self, content: u32) -> ArchiveContent<'_> {
        ArchiveContent { archive: &self.archive, stored: self.stored(content) }
    }

    fn stored(&self, content: u32) -> &Stored {
        &self.contents[num::at(content)]
    }
}

/// A member's content.
#[derive(Debug)]
pub struct ArchiveContent<'a> {
    archive: &'a Archive,
    stored: &'a Stored,
}

impl ArchiveContent<'_> {
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let wanted = u64::try_from(buffer.len()).ok().and_then(|len| offset.checked_add(len));
        if wanted.is_none_or(|end| end > self.stored.len()) {
            return Err(self.archive.changed());
        }
        match self.stored {
            Stored::Whole { offset: begin, .. } => self.archive.read_at(buffer, begin + offset),
            Stored::Sparse { segments, .. } => self.read_sparse(segments, buffer, offset),
        }
    }

    fn read_sparse(&self, segments: &[Segment], mut buffer: &mut [u8], mut offset: u64) -> Result<(), Error> {
        let mut next = segments.partition_point(|segment| segment.at + segment.len <= offset);
        while !buffer.is_empty() {
            let segment = segments.get(next);
            // Up to where the hole or the data at `offset` reaches. After the last segment, the rest is a hole.
            let run = match segment {
                None => u64::MAX,
                Some(segment) if offset < segment.at => segment.at - offset,
                Some(segment) => segment.at + segment.len - offset,
            };
            let run = num::up_to(run, buffer.len());
            let (head, rest) = std::mem::take(&mut buffer).split_at_mut(run);
            match segment {
                Some(segment) if offset >= segment.at => {
                    self.archive.read_at(head, segment.offset + (offset - segment.at))?;
                    next += 1;
                }
                _ => head.fill(0),
            }
            offset += num::wide(run);
            buffer = rest;
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        self.archive.check_unchanged()
    }
}
