//! The spool: the bundle's file while it is being made; chunks first, the head last, then one rename.

use sealift_format::num;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use crate::Error;
use sealift_store::fs::parent::{parent_of, shown_directory};
use sealift_store::fs::partial::PartialFile;
use sealift_store::fs::unnamed::unnamed_file;

/// Where a bundle is written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// A file, which appears when it is complete and replaces an existing one.
    File(PathBuf),
    /// A file that must not exist yet, which appears when it is complete.
    New(PathBuf),
    /// Standard output; meanwhile the chunks are spooled in the temporary directory.
    Stdout,
    /// Nothing is written; the bundle is only computed.
    Nowhere,
}

impl Output {
    /// Writes a file whose content is complete in memory; it appears when it is complete.
    ///
    /// # Errors
    /// Returns an error if it cannot be written, or if a new file exists already.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        Spool::create(self)?.finish(&[bytes]).map(|_| ())
    }

    /// Returns a folder with room for what packing keeps aside: that of the file, or that for temporary files.
    pub(crate) fn folder(&self) -> PathBuf {
        match self {
            Self::File(target) | Self::New(target) => parent_of(target).to_owned(),
            Self::Stdout | Self::Nowhere => std::env::temp_dir(),
        }
    }

    /// Checks that the file can be written, before its content takes long to make: creates it and removes it again.
    pub fn check(&self) -> Result<(), Error> {
        Spool::create(self).map(drop)
    }
}

/// The chunks of a bundle whose head is not known yet.
#[derive(Debug)]
pub(crate) struct Spool {
    file: SpoolFile,
    /// Bytes reserved for the head before the chunks.
    room: u64,
}

/// The file of a spool.
#[derive(Debug)]
enum SpoolFile {
    /// On the output's file system.
    Output(PartialFile),
    /// In the temporary directory, without a name: it is copied to standard output.
    Unnamed(File),
    /// The null device.
    Null(File),
}

impl Spool {
    /// Opens a spool on the output's file system.
    pub(crate) fn create(output: &Output) -> Result<Self, Error> {
        let file = match output {
            Output::File(target) => SpoolFile::Output(PartialFile::create(target, true)?),
            Output::New(target) => SpoolFile::Output(PartialFile::create(target, false)?),
            Output::Stdout => SpoolFile::Unnamed(temporary()?),
            Output::Nowhere => {
                let null = Path::new("/dev/null");
                let file = File::options().write(true).open(null).map_err(|error| Error::io("open", null, error))?;
                SpoolFile::Null(file)
            }
        };
        Ok(Self { file, room: 0 })
    }

    fn file(&self) -> &File {
        match &self.file {
            SpoolFile::Output(partial) => partial.file(),
            SpoolFile::Unnamed(file) | SpoolFile::Null(file) => file,
        }
    }

    /// Opens a file on the same file system, for what is appended later; it has no name.
    pub(crate) fn aside(&self) -> Result<File, Error> {
        match &self.file {
            SpoolFile::Output(partial) => {
                let directory = parent_of(partial.path());
                let failed = |error| Error::io("create a file in", shown_directory(directory), error);
                unnamed_file(directory).map_err(failed)
            }
            SpoolFile::Unnamed(_) => temporary(),
            SpoolFile::Null(file) => file.try_clone().map_err(|error| self.failed(error)),
        }
    }

    /// Appends such a file.
    pub(crate) fn append(&mut self, aside: &mut File) -> Result<(), Error> {
        if matches!(self.file, SpoolFile::Null(_)) {
            return Ok(());
        }
        // The kernel reflinks or copies by itself where it can.
        let copied = aside.seek(SeekFrom::Start(0)).and_then(|_| std::io::copy(aside, &mut self.file()));
        copied.map(drop).map_err(|error| self.failed(error))
    }

    /// Reserves room for a head of known length, before the first chunk is written.
    pub(crate) fn leave_room(&mut self, len: u64) -> Result<(), Error> {
        self.room = len;
        self.file().seek(SeekFrom::Start(len)).map(drop).map_err(|error| self.failed(error))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file().write_all(bytes).map_err(|error| self.failed(error))
    }

    /// Writes the parts of what precedes the chunks before them, and puts the output in place. Returns whether the chunks were copied for it.
    pub(crate) fn finish(self, front: &[&[u8]]) -> Result<bool, Error> {
        let mut partial = match self.file {
            SpoolFile::Output(partial) => partial,
            SpoolFile::Unnamed(chunks) => return copy_to_stdout(front, chunks, self.room).map(|()| true),
            SpoolFile::Null(_) => return Ok(false),
        };
        let len = num::wide(front.iter().map(|part| part.len()).sum());
        // ext4 and xfs insert room at the start without copying what follows.
        let has_room = self.room > 0 || fallocate(partial.file(), FallocateFlags::INSERT_RANGE, 0, len).is_ok();
        match has_room {
            true => write_front(front, partial.file()).map_err(|error| Error::io("write", partial.path(), error))?,
            false => copy_behind(front, &mut partial)?,
        }
        partial.finish().map(|()| !has_room)
    }

    pub(crate) fn failed(&self, error: std::io::Error) -> Error {
        match &self.file {
            SpoolFile::Output(partial) => Error::io("write", partial.path(), error),
            SpoolFile::Unnamed(_) | SpoolFile::Null(_) => Error::io("write", std::env::temp_dir(), error),
        }
    }
}

/// Creates a file without a name in the temporary directory.
fn temporary() -> Result<File, Error> {
    let directory = std::env::temp_dir();
    unnamed_file(&directory).map_err(|error| Error::io("create a file in", &directory, error))
}

/// Writes the parts from the start of the file.
fn write_front(front: &[&[u8]], mut file: &File) -> std::io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    front.iter().try_for_each(|part| file.write_all(part))
}

/// Writes the front into a second file, and copies the chunks after it; the kernel reflinks them where it can.
fn copy_behind(front: &[&[u8]], partial: &mut PartialFile) -> Result<(), Error> {
    let mut chunks = partial.begin_again()?;
    let mut file = partial.file();
    let copied = write_front(front, file)
        .and_then(|()| chunks.seek(SeekFrom::Start(0)))
        // This uses copy_file_range(2), which reflinks on btrfs and xfs.
        .and_then(|_| std::io::copy(&mut chunks, &mut file));
    copied.map(drop).map_err(|error| Error::io("write", partial.path(), error))
}

/// Writes the front, and the chunks that begin at `start` in their file.
fn copy_to_stdout(front: &[&[u8]], mut chunks: File, start: u64) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    let failed = |error| Error::io("write", "standard output", error);
    let unread = |error| Error::io("read", std::env::temp_dir(), error);
    front.iter().try_for_each(|part| out.write_all(part)).map_err(failed)?;
    chunks.seek(SeekFrom::Start(start)).map_err(unread)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match chunks.read(&mut buffer).map_err(unread)? {
            0 => return out.flush().map_err(failed),
            len => out.write_all(&buffer[..len]).map_err(failed)?,
        }
    }
}
