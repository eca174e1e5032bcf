//! The file of an archive: the file itself, or a copy of a pipe.

use sealift_format::num;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;

use super::{ArchiveFault, ArchiveFormat, Stored};
use crate::Error;
use crate::fs::parent::shown_directory;
use crate::fs::unnamed::unnamed_file;
use crate::source::SourceOptions;
use crate::source::directory::ListedIdentity;

/// Bytes per read of a pipe.
const PIPE_BUFFER_LEN: usize = 256 * 1024;
/// Bytes per read when two contents are compared.
const COMPARED_LEN: usize = 64 * 1024;

/// A file that is read at offsets.
#[derive(Debug)]
pub(in crate::source) struct Archive {
    file: File,
    len: u64,
    /// The name that the user gave.
    path: PathBuf,
    /// The identity of a file that others may write to.
    identity: Option<ListedIdentity>,
}

impl Archive {
    /// Uses a regular file directly.
    pub(in crate::source) fn of_file(file: File, path: &Path, format: &ArchiveFormat) -> Result<Self, Error> {
        let stat = fstat(&file).map_err(|error| Error::io("read", path, error))?;
        let archive = Self {
            file,
            len: stat.st_size.cast_unsigned(),
            path: path.to_owned(),
            identity: Some(ListedIdentity::of(&stat)),
        };
        let mut begin = [0; 512];
        let len = num::up_to(archive.len, begin.len());
        archive.read_at(&mut begin[..len], 0)?;
        refuse_compressed(&begin[..len], path, format)?;
        Ok(archive)
    }

    /// Copies a pipe to a file without a name in the options' `spool_dir`.
    pub(in crate::source) fn of_pipe(
        mut pipe: impl Read,
        path: &Path,
        format: &ArchiveFormat,
        options: &SourceOptions,
    ) -> Result<Self, Error> {
        let usual = std::env::temp_dir();
        let directory = if options.spool_dir.as_os_str().is_empty() { &usual } else { &options.spool_dir };
        let shown = shown_directory(directory);
        let mut file = unnamed_file(directory).map_err(|error| Error::io("create a file in", &shown, error))?;
        let mut buffer = vec![0; PIPE_BUFFER_LEN];
        let mut len = 0;
        loop {
            let filled = fill(&mut pipe, &mut buffer).map_err(|error| Error::io("read", path, error))?;
            if len == 0 {
                refuse_compressed(&buffer[..filled], path, format)?;
            }
            if filled == 0 {
                return Ok(Self { file, len, path: path.to_owned(), identity: None });
            }
            let written = file.write_all(&buffer[..filled]);
            written.map_err(|error| Error::io("copy the archive to a file in", &shown, error))?;
            let filled = num::wide(filled);
            len += filled;
            options.advance(filled, 0)?;
        }
    }

    pub(in crate::source) fn len(&self) -> u64 {
        self.len
    }

    pub(in crate::source) fn fault(&self, offset: u64, fault: impl Into<ArchiveFault>) -> Error {
        Error::Archive { path: self.path.clone(), offset, fault: Box::new(fault.into()) }
    }

    pub(in crate::source) fn changed(&self) -> Error {
        Error::Changed { path: self.path.clone() }
    }

    /// Fills `buffer` with bytes that existed when the archive was opened.
    pub(in crate::source) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        self.file.read_exact_at(buffer, offset).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.changed(),
            _ => Error::io("read", &self.path, error),
        })
    }

    /// Returns whether two contents that are stored whole have equal bytes.
    pub(in crate::source) fn have_equal_bytes(&self, one: &Stored, other: &Stored) -> Result<bool, Error> {
        let (Stored::Whole { offset, len }, Stored::Whole { offset: other, len: other_len }) = (one, other) else {
            return Ok(false);
        };
        let mut buffers = [vec![0; COMPARED_LEN], vec![0; COMPARED_LEN]];
        let mut at = 0;
        while at < *len && len == other_len {
            let part = num::up_to(len - at, COMPARED_LEN);
            let [mine, others] = &mut buffers;
            self.read_at(&mut mine[..part], offset + at)?;
            self.read_at(&mut others[..part], other + at)?;
            if mine[..part] != others[..part] {
                return Ok(false);
            }
            at += num::wide(part);
        }
        Ok(len == other_len)
    }

    /// Checks that the file is still the one that was opened.
    pub(in crate::source) fn check_unchanged(&self) -> Result<(), Error> {
        let Some(identity) = self.identity else { return Ok(()) };
        let stat = fstat(&self.file).map_err(|error| Error::io("read", &self.path, error))?;
        let same = ListedIdentity::of(&stat) == identity && u64::try_from(stat.st_size) == Ok(self.len);
        if same { Ok(()) } else { Err(self.changed()) }
    }
}

fn fill(reader: &mut impl Read, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(len) => filled += len,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

fn refuse_compressed(begin: &[u8], path: &Path, format: &ArchiveFormat) -> Result<(), Error> {
    let Some(program) = compressor(begin) else { return Ok(()) };
    let fault = Box::new(ArchiveFault::Compressed { program, scheme: format.scheme });
    Err(Error::Archive { path: path.to_owned(), offset: 0, fault })
}

/// Returns the program that decompresses data with this beginning.
pub(in crate::source) fn compressor(begin: &[u8]) -> Option<&'static str> {
    let table: [(&[u8], &str); 7] = [
        (b"\x1f\x8b", "gzip"),
        (b"\xfd7zXZ\0", "xz"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"BZh", "bzip2"),
        (b"\x04\x22\x4d\x18", "lz4"),
        (b"LZIP", "lzip"),
        (b"\x1f\x9d", "gzip"), // compress(1), which gzip reads
    ];
    table.iter().find(|(magic, _)| begin.starts_with(magic)).map(|(_, program)| *program)
}
