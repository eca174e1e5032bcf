//! The spool: the bundle's file while it is being made; chunks first, the head last, then one rename.

use sealift_format::num;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate};

use crate::Error;
use sealift_store::fs::partial::{
    create_locked, partial_path, refuse_existing, remove_stale, rename_to_new, sync_parent,
};
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
        Spool::create(self)?.finish(bytes).map(|_| ())
    }

    /// Checks that the file can be written, before its content takes long to make: creates it and removes it again.
    ///
    /// # Errors
    /// As [`Output::write`].
    pub fn check(&self) -> Result<(), Error> {
        Spool::create(self).map(drop)
    }

    /// Returns the file's path, unless it is written elsewhere.
    fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) | Self::New(path) => Some(path),
            Self::Stdout | Self::Nowhere => None,
        }
    }
}

/// The chunks of a bundle whose head is not known yet.
#[derive(Debug)]
pub(crate) struct Spool {
    output: Output,
    file: File,
    /// The spool's path, removed when the spool is dropped.
    path: Option<PathBuf>,
    /// Bytes reserved for the head before the chunks.
    room: u64,
}

impl Drop for Spool {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // An error cannot be reported here; its name marks the file as a leftover.
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Spool {
    /// Opens a spool on the output's file system.
    pub(crate) fn create(output: &Output) -> Result<Self, Error> {
        let path = match output {
            Output::Nowhere => {
                let null = Path::new("/dev/null");
                let file = File::options().write(true).open(null).map_err(|error| Error::io("open", null, error))?;
                return Ok(Self { output: Output::Nowhere, file, path: None, room: 0 });
            }
            Output::File(path) | Output::New(path) => partial_path(path)?,
            Output::Stdout => std::env::temp_dir().join(format!("sealift-{}.partial", std::process::id())),
        };
        if let Output::New(target) = output {
            refuse_existing(target)?; // before hours of work
        }
        if let Some(target) = output.path() {
            remove_stale(target)?;
        }
        let file = create_locked(&path).map_err(|error| match (error, output.path()) {
            // Names the user's file, not the partial one.
            (Error::Io { doing, source, .. }, Some(target)) => Error::io(doing, target, source),
            (error, _) => error,
        })?;
        let mut spool = Self { output: output.clone(), file, path: Some(path), room: 0 };
        if *output == Output::Stdout {
            // There is no later rename, so the name can be removed at once.
            spool.remove_name();
        }
        Ok(spool)
    }

    /// Opens a file on the same file system, for what is appended later; it has no name.
    pub(crate) fn aside(&self) -> Result<File, Error> {
        let directory = match self.output.path().map(|path| path.parent().unwrap_or(path)) {
            None if self.output == Output::Nowhere => return self.file.try_clone().map_err(|error| self.failed(error)),
            None => std::env::temp_dir(),
            Some(parent) if parent.as_os_str().is_empty() => ".".into(),
            Some(parent) => parent.to_owned(),
        };
        unnamed_file(&directory).map_err(|error| Error::io("create a file in", &directory, error))
    }

    /// Appends such a file.
    pub(crate) fn append(&mut self, aside: &mut File) -> Result<(), Error> {
        if self.output == Output::Nowhere {
            return Ok(());
        }
        // The kernel reflinks or copies by itself where it can.
        let copied = aside.seek(SeekFrom::Start(0)).and_then(|_| std::io::copy(aside, &mut self.file));
        copied.map(drop).map_err(|error| self.failed(error))
    }

    /// Reserves room for a head of known length, before the first chunk is written.
    pub(crate) fn leave_room(&mut self, len: u64) -> Result<(), Error> {
        self.room = len;
        self.file.seek(SeekFrom::Start(len)).map(drop).map_err(|error| self.failed(error))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|error| self.failed(error))
    }

    /// Writes the head before the chunks and puts the output in place. Returns whether the chunks were copied for it.
    pub(crate) fn finish(mut self, head: &[u8]) -> Result<bool, Error> {
        let target = match self.output.clone() {
            Output::File(target) | Output::New(target) => target,
            Output::Stdout => return self.copy_to_stdout(head).map(|()| true),
            Output::Nowhere => return Ok(false),
        };
        let copied = self.room == 0 && !self.insert(head)?;
        if self.room > 0 {
            self.file.write_all_at(head, 0).map_err(|error| self.failed(error))?;
        }
        if copied {
            self.copy_behind(head)?;
        }
        self.file.sync_all().map_err(|error| self.failed(error))?;
        if let Some(path) = &self.path {
            match self.output {
                Output::New(_) => rename_to_new(path, &target)?,
                _ => std::fs::rename(path, &target).map_err(|error| Error::io("rename to", &target, error))?,
            }
        }
        self.path = None;
        sync_parent(&target).map(|()| copied)
    }

    /// Inserts room at the file's start: ext4 and xfs move whole blocks without copying them.
    fn insert(&mut self, head: &[u8]) -> Result<bool, Error> {
        let len = num::wide(head.len());
        if fallocate(&self.file, FallocateFlags::INSERT_RANGE, 0, len).is_err() {
            return Ok(false);
        }
        self.file.write_all_at(head, 0).map_err(|error| self.failed(error))?;
        Ok(true)
    }

    /// Writes the head into a second file, and copies the chunks after it; the kernel reflinks them where it can.
    fn copy_behind(&mut self, head: &[u8]) -> Result<(), Error> {
        let Some(old) = self.path.clone() else { return Ok(()) };
        let path = old.with_extension("assembled");
        let mut file = create_locked(&path)?;
        self.path = Some(path.clone());
        let _ = std::fs::remove_file(&old); // the open file keeps its data
        let mut chunks = std::mem::replace(&mut self.file, file.try_clone().map_err(|e| Error::io("open", &path, e))?);
        let copied = file
            .write_all(head)
            .and_then(|()| chunks.seek(SeekFrom::Start(0)))
            // This uses copy_file_range(2), which reflinks on btrfs and xfs.
            .and_then(|_| std::io::copy(&mut chunks, &mut file));
        copied.map(|_| ()).map_err(|error| Error::io("write", &path, error))
    }

    fn copy_to_stdout(&mut self, head: &[u8]) -> Result<(), Error> {
        let mut out = std::io::stdout().lock();
        let failed = |error| Error::io("write", "standard output", error);
        out.write_all(head).map_err(failed)?;
        self.file.seek(SeekFrom::Start(self.room)).map_err(|error| Error::io("read", std::env::temp_dir(), error))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            let len = self.file.read(&mut buffer).map_err(|error| Error::io("read", std::env::temp_dir(), error))?;
            if len == 0 {
                return out.flush().map_err(failed);
            }
            out.write_all(&buffer[..len]).map_err(failed)?;
        }
    }

    fn remove_name(&mut self) {
        if let Some(path) = self.path.take() {
            let _ = std::fs::remove_file(path);
        }
    }

    pub(crate) fn failed(&self, error: std::io::Error) -> Error {
        Error::io("write", self.path.clone().unwrap_or_else(std::env::temp_dir), error)
    }
}
