//! A store of composefs-rs: its path, the hash that names its contents, and whether all of them are sealed.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use ::composefs::erofs::format::{FormatConfig, FormatVersion};
use ::composefs::fsverity::Algorithm as StoreAlgorithm;
use ::composefs::repository::{FeatureCheck, REPO_METADATA_FILENAME, RepoMetadata};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode as Permissions, OFlags, flock, fstat, fsync, mkdir, mkdirat, renameat,
    unlinkat,
};
use rustix::io::Errno;
use sealift_format::hex;
use sealift_format::verity::{Algorithm, FileDigest, Parameters};
use sealift_verify::fsverity;

use crate::fs::confined::{names_in, open_beneath, open_name, open_user_dir};
use crate::fs::own_store::{check_own_folders, check_own_store};
use crate::seal::seal_open;
use crate::{Error, check_own};

/// An open store. Nothing is removed from it while it is open.
#[derive(Debug)]
pub(crate) struct Repo {
    path: PathBuf,
    root: OwnedFd,
    /// The folder of its objects, if it has one.
    objects: Option<OwnedFd>,
    parameters: Parameters,
    is_sealed: bool,
}

/// The maximum bytes read of `meta.json`.
const META_LEN_MAX: u64 = 1 << 16;

/// The name of `meta.json` while it is written.
const META_STAGED: &str = "meta.json.sealift";

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);

/// Returns the parameters: blocks of 4096 bytes, no salt.
pub(crate) fn parameters(algorithm: Algorithm) -> Parameters {
    Parameters::new(algorithm, 4096, &[]).unwrap_or_default() // both hashes support such blocks
}

impl Repo {
    /// Opens a store; `None` if there is none yet, and one may be created.
    ///
    /// # Errors
    /// Returns an error if it is not a store, if this version does not support it, or if it is in use.
    pub(crate) fn open(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |error: Errno| Error::io("open", path, error);
        let root = match open_user_dir(path) {
            Err(Errno::NOENT) => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let unfit = |problem: String| Error::Store { path: path.to_owned(), problem };
        match flock(&root, FlockOperation::NonBlockingLockShared) {
            Err(Errno::WOULDBLOCK) => return Err(Error::Busy { path: path.to_owned() }),
            locked => locked.map_err(failed)?,
        }
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let meta = match open_name(root.as_fd(), REPO_METADATA_FILENAME.as_bytes(), flags, Permissions::empty()) {
            Err(Errno::NOENT) => {
                // A run that was killed while it created the store had begun with this file.
                let names = names_in(root.as_fd()).map_err(failed)?;
                if names.iter().all(|(name, _)| name == META_STAGED.as_bytes()) {
                    return Ok(None);
                }
                let what =
                    "it has no meta.json: it is not a composefs store, or one of an old version, which cfsctl upgrades";
                return Err(unfit(what.into()));
            }
            opened => File::from(opened.map_err(failed)?),
        };
        let mut bytes = Vec::new();
        let read = meta.try_clone().and_then(|meta| meta.take(META_LEN_MAX).read_to_end(&mut bytes));
        read.map_err(|error| Error::io("read", path.join(REPO_METADATA_FILENAME), error))?;
        let meta_data = RepoMetadata::from_json(&bytes).map_err(|error| unfit(format!("its meta.json: {error:#}")))?;
        let algorithm = match meta_data.algorithm {
            StoreAlgorithm::Sha256 { lg_blocksize: 12 } => Algorithm::Sha256,
            StoreAlgorithm::Sha512 { lg_blocksize: 12 } => Algorithm::Sha512,
            other => {
                return Err(unfit(format!(
                    "it names its objects by {other}, which this version of sealift does not support"
                )));
            }
        };
        if meta_data.version > ::composefs::repository::REPO_FORMAT_VERSION {
            return Err(unfit(format!(
                "it has version {}, which this version of sealift does not support",
                meta_data.version
            )));
        }
        match meta_data.features.check() {
            Ok(FeatureCheck::ReadWrite) => {}
            Ok(FeatureCheck::ReadOnly(unknown)) => {
                return Err(unfit(format!("writing to it requires support for {}", unknown.join(", "))));
            }
            Err(error) => return Err(unfit(error.to_string())),
        }
        let is_sealed = fsverity::measure(&meta).is_ok();
        Self::of_parts(path, root, parameters(algorithm), is_sealed).map(Some)
    }

    fn of_parts(path: &Path, root: OwnedFd, parameters: Parameters, is_sealed: bool) -> Result<Self, Error> {
        let failed = |error: Errno| Error::io("open", path.join("objects"), error);
        let objects = match open_name(root.as_fd(), b"objects", DIRECTORY, Permissions::empty()) {
            Err(Errno::NOENT) => None,
            opened => Some(opened.map_err(failed)?),
        };
        Ok(Self { path: path.to_owned(), root, objects, parameters, is_sealed })
    }

    /// Creates a store that only its owner may enter, as cfsctl does. If it is sealed, composefs programs require all of it to be.
    pub(crate) fn create(path: &Path, algorithm: Algorithm, is_sealed: bool) -> Result<Self, Error> {
        let failed = |error: Errno| Error::io("create", path, error);
        match mkdir(path, Permissions::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let root = open_user_dir(path).map_err(failed)?;
        check_own(root.as_fd(), path)?;
        let (own, all) = (store_algorithm(algorithm), FormatConfig::single(FormatVersion::V1));
        let meta = RepoMetadata::new_with_formats(own, &all).to_json();
        let meta = meta.map_err(|error| Error::Store { path: path.to_owned(), problem: format!("{error:#}") })?;
        let meta_path = path.join(REPO_METADATA_FILENAME);
        let failed = |error: std::io::Error| Error::io("write", &meta_path, error);
        match unlinkat(&root, META_STAGED, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error.into())),
        }
        let (flags, mode) = (OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, Permissions::from_raw_mode(0o644));
        let open = |flags| open_name(root.as_fd(), META_STAGED.as_bytes(), flags, mode).map(File::from);
        let mut file = open(flags).map_err(|error| failed(error.into()))?;
        file.write_all(&meta).and_then(|()| file.sync_all()).map_err(failed)?;
        drop(file);
        if is_sealed {
            let file = open(OFlags::RDONLY).map_err(|error| failed(error.into()))?;
            seal_open(file.as_fd(), &parameters(algorithm), None).map_err(|error| Error::kernel(&meta_path, error))?;
        }
        let named = renameat(&root, META_STAGED, &root, REPO_METADATA_FILENAME).and_then(|()| fsync(&root));
        named.map_err(|error| failed(error.into()))?;
        drop(root);
        let made = Self::open(path)?.ok_or_else(|| failed(Errno::NOENT.into()))?;
        made.check_own().map(|()| made)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Returns the folder of the objects; `None` if nothing was imported yet.
    pub(crate) fn objects(&self) -> Option<BorrowedFd<'_>> {
        self.objects.as_ref().map(|objects| objects.as_fd())
    }

    pub(crate) fn algorithm(&self) -> Algorithm {
        self.parameters.algorithm()
    }

    pub(crate) fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Returns whether the store declares all of its objects sealed.
    pub(crate) fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    pub(crate) fn object_path(&self, digest: &FileDigest) -> PathBuf {
        self.path.join("objects").join(object_name(digest))
    }

    /// Opens an object for reading, with its size. Returns `None` if there is none, or something that is not a file.
    pub(crate) fn open_object(&self, digest: &FileDigest) -> Result<Option<(File, u64)>, Error> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let failed = |error: Errno| Error::io("open", self.object_path(digest), error);
        let Some(objects) = self.objects() else { return Ok(None) };
        let file = match open_beneath(objects, object_name(digest).as_bytes(), flags, Permissions::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let stat = fstat(&file).map_err(failed)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let size = stat.st_size.cast_unsigned();
        Ok(is_file.then(|| (File::from(file), size)))
    }

    /// Creates a directory of the store with its parents, and opens it. Links are not followed.
    ///
    /// # Errors
    /// Returns an error if something else has its name, or if it cannot be created.
    pub(crate) fn make_directories(&self, path: &str, mode: u32) -> Result<OwnedFd, Errno> {
        let mut at = open_beneath(self.root(), b"", DIRECTORY, Permissions::empty())?;
        for name in path.split('/') {
            at = make_directory(at.as_fd(), name, mode)?;
        }
        Ok(at)
    }

    /// Checks that no other user owns the folders of names in the store, or can write to them.
    pub(crate) fn check_own_names(&self, names: &[String]) -> Result<(), Error> {
        let paths: Vec<String> = names.iter().map(|name| format!("images/refs/{name}")).collect();
        check_own_folders(self.root(), &paths, &self.path)
    }

    /// Checks that no other user owns the store or can write to it.
    pub(crate) fn check_own(&self) -> Result<(), Error> {
        check_own_store(self.root(), &["images", "images/refs", "sealift", "sealift/state", "sealift/tmp"], &self.path)
    }
}

/// Opens a directory without following a link, and creates it unless it exists. A new one is durable on return.
pub(crate) fn make_directory(at: BorrowedFd<'_>, name: &str, mode: u32) -> Result<OwnedFd, Errno> {
    match mkdirat(at, name, Permissions::from_raw_mode(mode)) {
        Ok(()) => fsync(at)?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    open_name(at, name.as_bytes(), DIRECTORY, Permissions::empty())
}

/// Returns the path of an object below `objects`.
pub(crate) fn object_name(digest: &FileDigest) -> String {
    let name = hex(digest.as_bytes());
    let (first, rest) = name.split_at(2.min(name.len()));
    format!("{first}/{rest}")
}

fn store_algorithm(algorithm: Algorithm) -> StoreAlgorithm {
    match algorithm {
        Algorithm::Sha256 => StoreAlgorithm::SHA256,
        Algorithm::Sha512 => StoreAlgorithm::SHA512,
    }
}
