//! A single file, such as a disk image, as a source: a directory that holds this file under its own name.
//!
//! The directory has mode 0755 and the file's owner and time, so that equal files give equal bytes wherever they are.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Stat, statat};

use super::directory::FoundFile;
use super::{DirectorySource, XattrFilter};
use crate::Error;
use crate::fs::confined::open_user_dir;

/// Opens the regular file at `path` as a source. A symbolic link is followed; the name is the link's.
///
/// # Errors
/// Returns an error if it cannot be read or is not a regular file.
pub fn open_file(path: &Path, xattrs: &XattrFilter) -> Result<DirectorySource, Error> {
    let failed = |error: std::io::Error| Error::io("read", path, error);
    let real = path.canonicalize().map_err(failed)?;
    let (Some(parent), Some(real_name), Some(name)) = (real.parent(), real.file_name(), path.file_name()) else {
        return Err(Error::unexpected(path, "is not a file"));
    };
    let root = open_user_dir(parent).map_err(|error| Error::io("read", parent, error))?;
    let stat = statat(&root, real_name, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| failed(error.into()))?;
    check_type(path, &stat)?;
    if is_device(&stat) {
        return Err(Error::unexpected(path, "is a block device, and not a file"));
    }
    let found = FoundFile {
        path: path.to_owned(),
        real_name: real_name.as_bytes().to_vec(),
        name: name.as_bytes().to_vec(),
        directory: (parent.to_owned(), root),
        stat,
    };
    DirectorySource::of_file(found, xattrs.clone())
}

/// Refuses what has no content that could be packed alone.
pub(super) fn check_type(path: &Path, stat: &Stat) -> Result<(), Error> {
    let fault = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::BlockDevice => return Ok(()),
        FileType::Fifo => "is a pipe, and only archives are read from one",
        FileType::CharacterDevice => "is a character device, which has no end",
        FileType::Directory => "is a directory, and an image is a file or a block device",
        _ => "is neither a directory, a regular file nor a block device",
    };
    Err(Error::unexpected(path, fault))
}

pub(super) fn is_device(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{OpenCache, Source};

    #[test]
    fn one_file_is_a_tree() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        std::fs::write(scratch.path().join("disk-1.img"), b"content").expect("written");
        std::os::unix::fs::symlink("disk-1.img", scratch.path().join("disk.img")).expect("linked");
        let source = open_file(&scratch.path().join("disk.img"), &XattrFilter::default()).expect("a source");
        let source = Source::Directory(source);
        let mut names = Vec::new();
        source.tree().visit(|visited| names.push((visited.path, visited.metadata.permissions)));
        assert_eq!(names[0], (Vec::new(), 0o755));
        assert_eq!(names[1].0, b"disk.img");
        assert_eq!((names.len(), source.content_count(), source.content_len(0)), (2, 1, 7));
        let content = source.open(0, &mut OpenCache::default()).expect("opened");
        let mut bytes = [0; 7];
        content.read_at(&mut bytes, 0).expect("read");
        assert_eq!(&bytes, b"content");
        std::fs::write(scratch.path().join("disk-1.img"), b"changed content").expect("written");
        assert!(matches!(content.finish(), Err(Error::Changed { .. })));
    }

    #[test]
    fn what_is_no_file_is_refused() {
        for path in ["/dev/null", "/", "/proc/self"] {
            assert!(
                matches!(open_file(Path::new(path), &XattrFilter::default()), Err(Error::Unexpected { .. })),
                "{path}"
            );
        }
        assert!(matches!(open_file(Path::new("/nowhere"), &XattrFilter::default()), Err(Error::Io { .. })));
    }
}
