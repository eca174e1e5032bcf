//! A block device, or a file that is taken for one, as a source: a directory that holds its content as one regular file.
//!
//! Owner, mode and time are always the same, so that equal contents give equal bytes wherever they are.

use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, SeekFrom, fstat, fsync, openat, seek, statat};
use rustix::io::{Errno, retry_on_intr};
use sealift_format::num;

use super::directory::ListedIdentity;
use super::file::{check_type, is_device};
use crate::fs::block_device::{Written, writable_mount};
use crate::fs::sparse;
use crate::{Error, Metadata, NewNode, Tree};

/// A device or a file that has been opened but not read.
#[derive(Debug)]
pub struct ImageSource {
    pub(super) tree: Tree,
    path: PathBuf,
    file: File,
    state: State,
}

/// What changes when the content does.
#[derive(Debug, PartialEq, Eq)]
struct State {
    len: u64,
    identity: ListedIdentity,
    /// How much was written to a device.
    written: Option<Written>,
}

impl State {
    fn of(file: &File) -> Result<Self, Errno> {
        let stat = fstat(file)?;
        Ok(match is_device(&stat) {
            // Its inode has no length.
            true => Self {
                len: seek(file, SeekFrom::End(0))?,
                identity: ListedIdentity::of(&stat),
                written: Written::to(stat.st_rdev),
            },
            false => Self { len: stat.st_size.cast_unsigned(), identity: ListedIdentity::of(&stat), written: None },
        })
    }
}

impl ImageSource {
    /// Opens the block device or regular file at `path`. The file in the tree is called `name`, or else as `path` is; for a device, with `.img`
    /// behind it. A symbolic link is followed; the name is the link's.
    ///
    /// # Errors
    /// Returns an error if it cannot be read or is neither, or if a file system on the device may be written to.
    pub fn open(path: &Path, name: Option<&OsStr>) -> Result<Self, Error> {
        let failed = |error: Errno| Error::io("read", path, error);
        let found = retry_on_intr(|| statat(CWD, path, AtFlags::empty())).map_err(failed)?;
        check_type(path, &found)?;
        if is_device(&found)
            && let Some(place) = writable_mount(found.st_rdev)?
        {
            return Err(Error::Mounted { path: path.to_owned(), place });
        }
        // NONBLOCK: a fifo that replaced a file does not block the run. A drive that is opened so does not look at its medium.
        let waits = if is_device(&found) { OFlags::empty() } else { OFlags::NONBLOCK };
        let opened = retry_on_intr(|| openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC | waits, Mode::empty()));
        let file: File = opened.map_err(failed)?.into();
        if is_device(&found) {
            // What was written before is not to be counted from now on. A device that cannot be flushed has nothing to write.
            let _ = fsync(&file);
        }
        let stat = fstat(&file).map_err(failed)?;
        if (stat.st_mode, stat.st_rdev, stat.st_dev, stat.st_ino)
            != (found.st_mode, found.st_rdev, found.st_dev, found.st_ino)
        {
            return Err(Error::Changed { path: path.to_owned() });
        }
        let state = State::of(&file).map_err(failed)?;
        if is_device(&found) && state.len == 0 {
            return Err(Error::unexpected(path, "is a block device without content, such as a drive without a medium"));
        }
        let name = match (name, path.file_name()) {
            (Some(name), _) => name.as_bytes().to_vec(),
            (None, Some(own)) if is_device(&found) => [own.as_bytes(), b".img"].concat(),
            (None, Some(own)) => own.as_bytes().to_vec(),
            (None, None) => return Err(Error::unexpected(path, "has no name for the file in the tree")),
        };
        let mut tree = Tree::new(Metadata { permissions: 0o755, ..Metadata::default() });
        let metadata = Metadata { permissions: 0o644, ..Metadata::default() };
        let added = tree.add(0, &name, metadata, NewNode::Regular { content: 0 });
        added.map_err(|fault| Error::unexpected(path, format!("has a name for the tree that {fault}")))?;
        Ok(Self { tree, path: path.to_owned(), file, state })
    }

    pub(super) fn content_len(&self) -> u64 {
        self.state.len
    }

    pub(super) fn open_content(&self) -> ImageContent<'_> {
        ImageContent { source: self }
    }
}

/// The content of an [`ImageSource`].
#[derive(Debug)]
pub struct ImageContent<'a> {
    source: &'a ImageSource,
}

impl ImageContent<'_> {
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        let ImageSource { path, file, .. } = self.source;
        match sparse::read_exact_at(file, buffer, offset) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Err(Error::Changed { path: path.clone() }),
            Err(error) => {
                let offset = first_unreadable(file, buffer, offset);
                Err(Error::Unreadable { path: path.clone(), offset, source: error })
            }
        }
    }

    pub(super) fn finish(self) -> Result<(), Error> {
        let ImageSource { path, file, state, .. } = self.source;
        let now = State::of(file).map_err(|error| Error::io("read", path, error))?;
        if now == *state { Ok(()) } else { Err(Error::Changed { path: path.clone() }) }
    }
}

/// Returns the offset of the first block from `offset` on that cannot be read; `offset` itself if all can be, at the second attempt.
fn first_unreadable(file: &File, buffer: &mut [u8], offset: u64) -> u64 {
    const BLOCK: usize = 4096;
    let mut at = offset;
    for block in buffer.chunks_mut(BLOCK) {
        if file.read_exact_at(block, at).is_err() {
            return at;
        }
        at += num::wide(block.len());
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{OpenCache, Source};

    fn open(path: &Path, name: Option<&str>) -> Result<Source, Error> {
        ImageSource::open(path, name.map(OsStr::new)).map(Source::Image)
    }

    #[test]
    fn a_file_is_the_same_whoever_owns_it_and_whatever_its_time() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let path = scratch.path().join("disk.img");
        std::fs::write(&path, b"content").expect("written");
        let source = open(&path, None).expect("a source");
        let mut found = Vec::new();
        source.tree().visit(|visited| found.push((visited.path, visited.metadata)));
        let of = |permissions| Metadata { permissions, ..Metadata::default() };
        assert_eq!(found, [(Vec::new(), of(0o755)), (b"disk.img".to_vec(), of(0o644))]);
        assert_eq!((source.content_count(), source.content_len(0)), (1, 7));
        let content = source.open(0, &mut OpenCache::default()).expect("opened");
        let mut bytes = [0; 4];
        content.read_at(&mut bytes, 3).expect("read");
        assert_eq!(&bytes, b"tent");
        assert!(content.finish().is_ok());
        let content = source.open(0, &mut OpenCache::default()).expect("opened");
        std::fs::write(&path, b"changed content").expect("written");
        assert!(matches!(content.finish(), Err(Error::Changed { .. })));
    }

    #[test]
    fn the_file_gets_the_name_that_was_given() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        let path = scratch.path().join("disk.img");
        std::fs::write(&path, b"content").expect("written");
        let mut names = Vec::new();
        open(&path, Some("root.img")).expect("a source").tree().visit(|visited| names.push(visited.path));
        assert_eq!(names, [b"".to_vec(), b"root.img".to_vec()]);
        assert!(matches!(open(&path, Some("..")), Err(Error::Unexpected { .. })));
    }

    #[test]
    fn what_is_no_image_is_refused() {
        for path in ["/dev/null", "/", "/proc/self"] {
            assert!(matches!(open(Path::new(path), None), Err(Error::Unexpected { .. })), "{path}");
        }
        assert!(matches!(open(Path::new("/nowhere"), None), Err(Error::Io { .. })));
    }
}
