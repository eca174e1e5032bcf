//! An open repository.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode as Permissions, OFlags, fstat, statat};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::ostree::{Checksum, METADATA_LEN_MAX, Malformed};
use sealift_format::{RepositoryFile, hex};
use sha2::{Digest as _, Sha256};

use super::config::{Config, Mode};
use super::keyfile::KeyFile;
use super::object::{ObjectType, loose_path, object_name};
use super::remote::Remote;
use super::system::System;
use crate::Error;
use crate::error::RepoFault;
use crate::fs::confined::{open_beneath, open_user_dir};
use crate::fs::found::{found_at, is_missing};
use crate::fs::own_store::check_own_store;

/// A repository of a known mode.
#[derive(Debug)]
pub(crate) struct Repo {
    path: PathBuf,
    root: OwnedFd,
    objects: OwnedFd,
    config: Config,
    system: System,
    remotes: Option<PathBuf>,
}

/// Returns the name in `state` of the mark for a partial commit.
pub(crate) fn partial_mark(commit: &Checksum) -> String {
    format!("{}.commitpartial", hex(commit))
}

/// The maximum bytes read of `config`.
const CONFIG_LEN_MAX: u64 = 1 << 20;

impl Repo {
    /// Opens the repository at `path`.
    ///
    /// # Errors
    /// Returns an error if there is none, or if its version or mode is unknown.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let root = open_user_dir(path).map_err(|error| match error {
            Errno::NOENT => Error::Repository { path: path.to_owned(), fault: Box::new(RepoFault::NoDirectory) },
            error => Error::io("open", path, error),
        })?;
        Self::of(root, path)
    }

    /// Opens the repository in the open directory `root`, called `path`.
    pub(crate) fn of(root: OwnedFd, path: &Path) -> Result<Self, Error> {
        Self::within(System::default(), root, path)
    }

    /// Opens a repository of this system.
    pub(crate) fn within(system: System, root: OwnedFd, path: &Path) -> Result<Self, Error> {
        let fault = |fault| Error::Repository { path: path.to_owned(), fault: Box::new(fault) };
        let missing = |missing| {
            move |error| match error {
                Errno::NOENT | Errno::NOTDIR => fault(RepoFault::NotARepository { missing }),
                error => Error::io("open", path.join(missing), error),
            }
        };
        let config = open_beneath(root.as_fd(), b"config", OFlags::RDONLY | OFlags::NONBLOCK, Permissions::empty());
        let mut text = String::new();
        let config = File::from(config.map_err(missing("config"))?);
        config
            .take(CONFIG_LEN_MAX)
            .read_to_string(&mut text)
            .map_err(|error| Error::io("read", path.join("config"), error))?;
        let mut config = Config::parse(&text).map_err(fault)?;
        let remotes = system.remotes_of(root.as_fd())?;
        if let Some(folder) = &remotes {
            add_remotes(&mut config.remotes, folder, &fault)?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let objects = open_beneath(root.as_fd(), b"objects", flags, Permissions::empty());
        let objects = objects.map_err(missing("objects"))?;
        Ok(Self { path: path.to_owned(), root, objects, config, system, remotes })
    }

    /// Checks that no other user owns the repository or can write to it.
    pub(crate) fn check_own(&self) -> Result<(), Error> {
        let folders = ["extensions", "refs", "refs/heads", "refs/mirrors", "refs/remotes", "state", "tmp"];
        check_own_store(self.root(), &folders, &self.path)
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn system(&self) -> &System {
        &self.system
    }

    /// Returns the system's folder of remotes and their keyrings, which apply to this repository in addition to its own; `None` if they do not.
    pub(crate) fn remotes_folder(&self) -> Option<&Path> {
        self.remotes.as_deref()
    }

    /// Returns whether contents are compressed.
    pub(crate) fn is_compressed(&self) -> bool {
        self.config.mode == Mode::Archive
    }

    /// Reads a file of the repository itself, such as its summary; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if it is longer than a metadata object may be, or cannot be read.
    pub(crate) fn top_file(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let failed = |error: std::io::Error| Error::io("read", self.path.join(name), error);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = match open_beneath(self.root(), name.as_bytes(), flags, Permissions::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => File::from(opened.map_err(|error| failed(error.into()))?),
        };
        let len = file.metadata().map_err(failed)?.len();
        if len > METADATA_LEN_MAX {
            return Err(self.fault(RepoFault::TooLong { object: name.to_owned(), len }));
        }
        let mut bytes = Vec::new();
        file.take(METADATA_LEN_MAX).read_to_end(&mut bytes).map_err(failed)?;
        Ok(Some(bytes))
    }

    /// Reads the files of the repository itself that travel with its commits, in ascending order.
    pub(crate) fn top_files(&self) -> Result<Vec<(RepositoryFile, Vec<u8>)>, Error> {
        let read = |kind: RepositoryFile| Ok(self.top_file(kind.name())?.map(|bytes| (kind, bytes)));
        RepositoryFile::ALL.into_iter().filter_map(|kind| read(kind).transpose()).collect()
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    pub(crate) fn objects(&self) -> BorrowedFd<'_> {
        self.objects.as_fd()
    }

    /// Returns whether the object exists. Its bytes are not checked.
    pub(crate) fn has(&self, kind: ObjectType, checksum: &Checksum) -> Result<bool, Error> {
        let path = loose_path(kind, checksum, self.config.mode);
        match statat(&self.objects, &*path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(Error::io("look at", self.object_path(kind, checksum), error)),
        }
    }

    /// Returns whether the repository has a commit that is not marked as partial.
    pub(crate) fn has_whole_commit(&self, checksum: &Checksum) -> Result<bool, Error> {
        Ok(self.has(ObjectType::Commit, checksum)? && !self.is_partial(checksum)?)
    }

    /// Returns whether the commit is marked as partial.
    pub(crate) fn is_partial(&self, commit: &Checksum) -> Result<bool, Error> {
        let mark = format!("state/{}", partial_mark(commit));
        match open_beneath(self.root(), mark.as_bytes(), OFlags::PATH, Permissions::empty()) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(Error::io("look at", self.path.join(mark), error)),
        }
    }

    /// Reads a commit, dirtree or dirmeta, and verifies its checksum; the bytes are not parsed.
    ///
    /// # Errors
    /// Returns an error if it is missing, longer than 128 MiB, or damaged.
    pub(crate) fn load_metadata(&self, kind: ObjectType, checksum: &Checksum) -> Result<Vec<u8>, Error> {
        let object = || object_name(kind, checksum);
        let bytes = self.read_metadata(kind, checksum)?;
        let bytes = bytes.ok_or_else(|| self.fault(RepoFault::Missing { object: object() }))?;
        if Sha256::digest(&bytes)[..] == checksum[..] {
            Ok(bytes)
        } else {
            Err(self.fault(RepoFault::Damaged { object: object() }))
        }
    }

    /// Reads the detached metadata of a commit, which no checksum protects: `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if it is longer than 128 MiB, or cannot be read.
    pub(crate) fn load_commitmeta(&self, commit: &Checksum) -> Result<Option<Vec<u8>>, Error> {
        self.read_metadata(ObjectType::CommitMeta, commit)
    }

    fn read_metadata(&self, kind: ObjectType, checksum: &Checksum) -> Result<Option<Vec<u8>>, Error> {
        let failed = |error: std::io::Error| Error::io("read", self.object_path(kind, checksum), error);
        let Some(file) = self.open_object(kind, checksum).map_err(|error| failed(error.into()))? else {
            return Ok(None);
        };
        let stat = fstat(&file).map_err(|error| failed(error.into()))?;
        let len = stat.st_size.cast_unsigned();
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(self.fault(RepoFault::Damaged { object: object_name(kind, checksum) }));
        }
        if len > METADATA_LEN_MAX {
            return Err(self.fault(RepoFault::TooLong { object: object_name(kind, checksum), len }));
        }
        let mut bytes = vec![0; num::size(len)];
        File::from(file).read_exact(&mut bytes).map_err(failed)?;
        Ok(Some(bytes))
    }

    /// Opens an object's file; `None` if it does not exist.
    pub(crate) fn open_object(&self, kind: ObjectType, checksum: &Checksum) -> Result<Option<OwnedFd>, Errno> {
        let path = loose_path(kind, checksum, self.config.mode);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        match open_beneath(self.objects.as_fd(), path.as_bytes(), flags, Permissions::empty()) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn object_path(&self, kind: ObjectType, checksum: &Checksum) -> PathBuf {
        self.path.join("objects").join(loose_path(kind, checksum, self.config.mode))
    }

    pub(crate) fn fault(&self, fault: RepoFault) -> Error {
        Error::Repository { path: self.path.clone(), fault: Box::new(fault) }
    }

    /// Returns the error for reading a file object.
    pub(crate) fn unread(&self, checksum: &Checksum, error: std::io::Error) -> Error {
        match error.kind() {
            std::io::ErrorKind::InvalidData | std::io::ErrorKind::InvalidInput | std::io::ErrorKind::UnexpectedEof => {
                self.fault(RepoFault::Damaged { object: object_name(ObjectType::File, checksum) })
            }
            _ => Error::io("read", self.object_path(ObjectType::File, checksum), error),
        }
    }

    /// Returns the error for an invalid object.
    pub(crate) fn wrong(&self, kind: ObjectType, checksum: &Checksum, fault: Malformed) -> Error {
        self.fault(RepoFault::Wrong { object: object_name(kind, checksum), fault })
    }
}

/// Adds the remotes of the files of a folder. Like libostree, refuses a repository that has one of them twice.
fn add_remotes(remotes: &mut Vec<Remote>, folder: &Path, fault: &dyn Fn(RepoFault) -> Error) -> Result<(), Error> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if is_missing(&error) => return Ok(()),
        entries => entries.map_err(|error| Error::io("read", folder, error))?,
    };
    for entry in entries {
        let path = entry.map_err(|error| Error::io("read", folder, error))?.path();
        let is_named = path.as_os_str().as_encoded_bytes().ends_with(b".conf");
        if !is_named || !found_at(&path)?.is_some_and(|found| found.is_file()) {
            continue;
        }
        let text = std::fs::read_to_string(&path).map_err(|error| Error::io("read", &path, error))?;
        let file =
            KeyFile::parse(&text).map_err(|fault| Error::Repository { path: path.clone(), fault: Box::new(fault) })?;
        for remote in Remote::all(&file) {
            if remotes.iter().any(|known| known.name == remote.name) {
                let why = format!("it is configured twice, also in {}", path.display());
                return Err(fault(remote.fault(why)));
            }
            remotes.push(remote);
        }
    }
    Ok(())
}
