//! A bundle as a file or a pipe.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealift_format::num;
use sealift_format::{Bundle, Chunk, Error as FormatError, Head, Limits, Opened, Opener, Step};

use crate::Error;
use crate::fs::unnamed::unnamed_file;
use crate::origin::{At, Origin, Patience, VolumeSet, copies, is_address, without_secrets};

/// The source of a bundle's bytes.
pub struct Input {
    path: PathBuf,
    from: From,
}

/// A bundle of which only the head was read.
#[derive(Debug)]
pub struct Unopened {
    input: Input,
    opener: Opener,
    head: Head,
}

enum From {
    Origin(Arc<Origin>),
    Pipe { pipe: Box<dyn Read + Send>, at: u64 },
}

impl std::fmt::Debug for Input {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Bytes per read of the parts before the chunks.
const READ_LEN: u64 = 1 << 20;

impl Input {
    /// Opens a file; a directory with the volumes of one bundle; a volume, with the others beside it; or an address of http or https. A fifo, a socket or a
    /// terminal is read as a pipe, and so is what a server sends only as a whole.
    ///
    /// # Errors
    /// Returns an error if it cannot be opened, or if volumes are missing, damaged or of several bundles.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, Patience::Long)
    }

    /// Opens one of several places that have the same bundle: as [`Self::open`], but a server that does not answer is given up sooner.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_mirror(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, Patience::Short)
    }

    fn open_with(path: &Path, patience: Patience) -> Result<Self, Error> {
        if is_address(path) {
            let path = without_secrets(path);
            return match Origin::at(&path, patience).map_err(|error| Error::io("read", &path, error))? {
                At::Origin(origin) => Ok(Self { path, from: From::Origin(Arc::new(origin)) }),
                At::Pipe(pipe) => Ok(Self { path, from: From::Pipe { pipe, at: 0 } }),
            };
        }
        let file = File::open(path).map_err(|error| Error::io("read", path, error))?;
        let from = match Origin::of(path, &file)? {
            Some(origin) => From::Origin(Arc::new(origin)),
            None => From::Pipe { pipe: Box::new(file), at: 0 },
        };
        Ok(Self { path: path.to_owned(), from })
    }

    /// Opens the volumes of one bundle, which lie in these files in any order. `path` denotes them in messages.
    #[must_use]
    pub fn volumes(path: &Path, volumes: VolumeSet) -> Self {
        Self { path: path.to_owned(), from: From::Origin(Arc::new(Origin::volumes(volumes))) }
    }

    /// Opens files that hold the same bundle, to be read as one: what is damaged in one of them is read from the next. The head is that of the first
    /// file in which it is whole. An address among them that cannot be read, or sends something else, is left: [`Origin::copies`] says why.
    ///
    /// # Errors
    /// Returns an error if a file cannot be opened, is a pipe, or holds another bundle, or if none has a head.
    pub fn open_copies(paths: &[PathBuf], limits: &Limits) -> Result<Self, Error> {
        let path = paths.first().cloned().unwrap_or_default();
        Ok(Self { path, from: From::Origin(Arc::new(copies::open(paths, limits)?)) })
    }

    /// Reads a bundle from a pipe; `name` denotes it in messages.
    #[must_use]
    pub fn pipe(name: &str, pipe: Box<dyn Read + Send>) -> Self {
        Self { path: name.into(), from: From::Pipe { pipe, at: 0 } }
    }

    /// Reads only the head, to show a bundle: this needs no trust.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read or does not begin with a bundle's head.
    pub fn read_head(&mut self, limits: Limits) -> Result<Head, Error> {
        self.start(limits).map(|(_, head)| head)
    }

    /// Reads the head, so that the rest can be read after it.
    pub fn begin(mut self, limits: Limits) -> Result<Unopened, Error> {
        let (opener, head) = self.start(limits)?;
        Ok(Unopened { input: self, opener, head })
    }

    /// Reads head, layout and index of a bundle that needs no base: only for showing it, since it is not trusted.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read, is not a bundle, or is a delta bundle.
    pub fn open_bundle(&mut self, limits: Limits) -> Result<Bundle, Error> {
        let opened = self.open_any(limits)?;
        self.whole(opened)
    }

    /// Reads head, layout and index, or the delta in the index's place: only for showing it, since it is not trusted.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read or is not a bundle.
    pub fn open_any(&mut self, limits: Limits) -> Result<Opened, Error> {
        let (opener, _) = self.start(limits)?;
        self.go_on(opener)
    }

    fn start(&mut self, limits: Limits) -> Result<(Opener, Head), Error> {
        let mut opener = self.opener(limits);
        while opener.head().is_none() && self.supply(&mut opener)? {}
        match opener.head().cloned() {
            Some(head) => Ok((opener, head)),
            None => Err(opener.finish().expect_err("the head is missing").into()), // the error says where the input is truncated
        }
    }

    fn go_on(&mut self, mut opener: Opener) -> Result<Opened, Error> {
        while self.supply(&mut opener)? {}
        let opened = opener.finish()?;
        if let From::Origin(origin) = &self.from
            && let Some(volumes) = origin.volume_set()
        {
            volumes.check_cuts(opened.head(), &opened.layout().chunks)?;
        }
        Ok(opened)
    }

    fn whole(&self, opened: Opened) -> Result<Bundle, Error> {
        match opened {
            Opened::Whole(bundle) => Ok(bundle),
            Opened::Delta(delta) => Err(Error::is_delta(&self.path, &delta)),
        }
    }

    fn opener(&self, limits: Limits) -> Opener {
        let len = match &self.from {
            From::Origin(origin) => Some(origin.len()),
            From::Pipe { .. } => None,
        };
        Opener::new(len, limits)
    }

    /// Gives the opener some of what it needs. Returns whether there was any input left.
    fn supply(&mut self, opener: &mut Opener) -> Result<bool, Error> {
        let Step::Need(range) = opener.step() else { return Ok(false) };
        let wanted = (range.end - range.start).min(READ_LEN);
        let mut buffer = vec![0; num::size(wanted)];
        let got = self.read_some(&mut buffer, range.start)?;
        opener.supply(range.start, &buffer[..got])?;
        Ok(got > 0)
    }

    fn read_some(&mut self, buffer: &mut [u8], offset: u64) -> Result<usize, Error> {
        loop {
            let result = match &mut self.from {
                From::Origin(origin) => origin.read_at(buffer, offset),
                From::Pipe { pipe, at } => pipe.read(buffer).inspect(|len| *at += num::wide(*len)),
            };
            match result {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // A pipe of ours has errors of ours.
                Err(error) => {
                    let other = |error| Error::io("read", &self.path, error);
                    return Err(error.downcast::<Error>().unwrap_or_else(other));
                }
                Ok(len) => return Ok(len),
            }
        }
    }

    /// Reads a chunk's stored bytes into `stored`. From a pipe, chunks must be read in ascending order; bytes in between are skipped.
    ///
    /// # Errors
    /// Returns an error if the input cannot be read or is truncated.
    pub fn read_chunk(&mut self, head: &Head, chunk: &Chunk, stored: &mut Vec<u8>) -> Result<(), Error> {
        let start = head.chunks_at() + chunk.offset;
        self.skip_to(start, head)?;
        stored.resize(num::at(chunk.stored_len), 0);
        self.read_exact_at(stored, start, head)
    }

    fn read_exact_at(&mut self, mut buffer: &mut [u8], mut offset: u64, head: &Head) -> Result<(), Error> {
        while !buffer.is_empty() {
            let got = self.read_some(buffer, offset)?;
            if got == 0 {
                return Err(FormatError::Truncated { len: offset, expected: Some(head.file_len()) }.into());
            }
            buffer = &mut buffer[got..];
            offset += num::wide(got);
        }
        Ok(())
    }

    fn skip_to(&mut self, start: u64, head: &Head) -> Result<(), Error> {
        let From::Pipe { at, .. } = &self.from else { return Ok(()) };
        let mut at = *at;
        let mut passed = vec![0; num::size((start - at).min(READ_LEN))];
        while at < start {
            let len = num::up_to(start - at, passed.len());
            self.read_exact_at(&mut passed[..len], at, head)?;
            at += num::wide(len);
        }
        Ok(())
    }

    /// Reads a pipe to the bundle's end, and checks that nothing follows. A file's length was checked when the bundle was opened.
    ///
    /// # Errors
    /// Returns an error if the input is truncated, or continues after the bundle's end.
    pub fn finish(&mut self, head: &Head) -> Result<(), Error> {
        let expected = head.file_len();
        self.skip_to(expected, head)?;
        if matches!(self.from, From::Pipe { .. }) && self.read_some(&mut [0], expected)? > 0 {
            return Err(FormatError::Trailing { expected }.into());
        }
        Ok(())
    }

    /// Passes everything after the head to `take`, and checks that the input ends where the bundle does. Nothing after the head may have been read
    /// before.
    ///
    /// # Errors
    /// Returns an error if the input is truncated, if it continues after the bundle's end, or if `take` fails.
    pub fn read_behind(&mut self, head: &Head, mut take: impl FnMut(&[u8]) -> Result<(), Error>) -> Result<(), Error> {
        let (mut at, end) = (head.head_len(), head.file_len());
        if let From::Origin(origin) = &self.from
            && origin.len() > end
        {
            return Err(FormatError::Trailing { expected: end }.into());
        }
        let mut buffer = vec![0; num::size((end - at).min(READ_LEN))];
        while at < end {
            let len = num::up_to(end - at, buffer.len());
            self.read_exact_at(&mut buffer[..len], at, head)?;
            take(&buffer[..len])?;
            at += num::wide(len);
        }
        self.finish(head)
    }

    /// Copies the chunks of a pipe, at which it stands, to a file without a name in the directory for temporary files, so that they can be read in any
    /// order. A file stays what it is.
    ///
    /// # Errors
    /// Returns an error if the pipe ends too early, continues after the bundle's end, or that directory has too little space.
    pub fn keep_chunks(&mut self, head: &Head) -> Result<(), Error> {
        if matches!(self.from, From::Origin(_)) {
            return Ok(());
        }
        let folder = std::env::temp_dir();
        let file = unnamed_file(&folder).map_err(|error| Error::io("create a file in", &folder, error))?;
        let (mut at, end) = (head.chunks_at(), head.file_len());
        self.skip_to(at, head)?;
        let mut buffer = vec![0; num::size((end - at).min(READ_LEN))];
        while at < end {
            let len = num::up_to(end - at, buffer.len());
            self.read_exact_at(&mut buffer[..len], at, head)?;
            file.write_all_at(&buffer[..len], at).map_err(|error| Error::io("write to a file in", &folder, error))?;
            at += num::wide(len);
        }
        self.finish(head)?;
        self.from = From::Origin(Arc::new(Origin::file(file, end)));
        Ok(())
    }

    /// Returns what can be read at any offset, for threads that read directly; none for a pipe.
    #[must_use]
    pub fn origin(&self) -> Option<&Arc<Origin>> {
        match &self.from {
            From::Origin(origin) => Some(origin),
            From::Pipe { .. } => None,
        }
    }

    /// Returns the same bytes from their start, without opening them again; none for a pipe.
    #[must_use]
    pub fn again(&self) -> Option<Self> {
        let origin = self.origin()?;
        Some(Self { path: self.path.clone(), from: From::Origin(Arc::clone(origin)) })
    }

    /// Returns the name for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Unopened {
    /// Returns the preamble, root and envelopes.
    #[must_use]
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// Returns the input's name for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.input.path()
    }

    /// Reads the layout and the index, or the delta in the index's place.
    pub fn open_any(mut self) -> Result<(Input, Opened), Error> {
        let opened = self.input.go_on(self.opener)?;
        Ok((self.input, opened))
    }

    /// Reads layout and index of a bundle that needs no base.
    pub fn open_bundle(self) -> Result<(Input, Bundle), Error> {
        let (input, opened) = self.open_any()?;
        let bundle = input.whole(opened)?;
        Ok((input, bundle))
    }
}
