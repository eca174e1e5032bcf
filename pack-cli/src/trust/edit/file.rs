//! Adds lines to a file of the administrator.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::retry_on_intr;
use sealift_store::fs::found::{is_there, named_at};
use sealift_store::fs::parent::{parent_of, shown_directory};
use sealift_store::fs::partial::PartialFile;

use crate::Error;

/// The file, locked against other runs that change files of the same folder.
#[derive(Debug)]
pub(super) struct Editing {
    /// The path as given.
    path: PathBuf,
    /// The resolved path: a symbolic link to the file stays.
    real: PathBuf,
    before: Option<Before>,
    _lock: File,
}

#[derive(Debug)]
struct Before {
    bytes: Vec<u8>,
    owner: (u32, u32),
    mode: u32,
}

impl Editing {
    /// Opens the file; a missing one starts empty. Its folder is created if only that is missing.
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        let real = match named_at(path)? {
            Some(found) if found.is_symlink() => {
                fs::canonicalize(path).map_err(|error| Error::io("read", path, error))?
            }
            _ => path.to_owned(),
        };
        let (folder, shown) = (parent_of(&real), shown_directory(parent_of(&real)));
        make(folder)?;
        let lock = File::open(folder).map_err(|error| Error::io("open", &shown, error))?;
        let locked = retry_on_intr(|| flock(&lock, FlockOperation::LockExclusive));
        locked.map_err(|error| Error::io("lock", &shown, error))?;
        let before = match fs::metadata(&real) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(Error::unexpected(path, "is not a regular file, and cannot be changed"));
            }
            Ok(metadata) => {
                let bytes = fs::read(&real).map_err(|error| Error::io("read", path, error))?;
                Some(Before { bytes, owner: (metadata.uid(), metadata.gid()), mode: metadata.mode() & 0o777 })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io("read", path, error)),
        };
        Ok(Self { path: path.to_owned(), real, before, _lock: lock })
    }

    /// Returns the file's content.
    pub(super) fn bytes(&self) -> &[u8] {
        self.before.as_ref().map_or(&[], |before| &before.bytes)
    }

    /// Returns the file's content with a line appended.
    pub(super) fn with_line(&self, line: &str) -> Vec<u8> {
        let mut bytes = self.bytes().to_vec();
        if bytes.last().is_some_and(|last| *last != b'\n') {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        bytes
    }

    /// Replaces the file's content with `bytes`: atomically, durably, and with the same owner and mode.
    pub(super) fn replace(self, bytes: &[u8]) -> Result<(), Error> {
        let Some(name) = self.real.file_name() else {
            return Err(Error::unexpected(&self.path, "names no file"));
        };
        let mut partial = std::ffi::OsString::from(".");
        partial.push(name);
        partial.push(".new");
        let partial = parent_of(&self.real).join(partial);
        // A remainder of a killed run, since we hold the lock.
        match fs::remove_file(&partial) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io("remove", &partial, error)),
            _ => {}
        }
        let partial = PartialFile::create_at(partial, &self.real)?;
        self.write(partial.file(), bytes).map_err(|error| Error::io("write", &self.path, error))?;
        partial.finish()
    }

    fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        let mut mode = 0o644; // nothing in it is secret, and every user's verify reads it
        if let Some(before) = &self.before {
            let metadata = file.metadata()?;
            if (metadata.uid(), metadata.gid()) != before.owner {
                fchown(file, Some(before.owner.0), Some(before.owner.1))?;
            }
            mode = before.mode;
        }
        file.set_permissions(Permissions::from_mode(mode))?; // regardless of the umask
        file.write_all(bytes)
    }
}

/// Creates Sealift's own configuration folder, and above it a user's folder of all configuration. Any other missing folder is likely a typo.
fn make(folder: &Path) -> Result<(), Error> {
    if folder.file_name().is_none_or(|name| name != "sealift") || is_there(folder)? {
        return Ok(());
    }
    // The XDG specification requires this mode for a user's folders; root's are readable by everyone.
    let mode = if rustix::process::geteuid().is_root() { 0o755 } else { 0o700 };
    let made = DirBuilder::new().recursive(true).mode(mode).create(folder);
    let made = made.and_then(|()| fs::set_permissions(folder, Permissions::from_mode(mode)));
    made.map_err(|error| Error::io("create", folder, error))
}
