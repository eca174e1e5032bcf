//! Edits the keys that this device trusts: `trust add`, `trust revoke` and `trust export`. The files remain in OpenSSH's form, and existing
//! lines are kept byte for byte.

mod add;
mod export;
mod file;
mod key;
mod revoke;

pub use add::{Added, add_signer};
pub use export::{Exported, export_signers};
pub use key::GivenKey;
pub use revoke::{Revoked, Withdrawn, revoke_key};

use std::io;
use std::path::{Path, PathBuf};

use sealift_verify::trust::{AllowedSigners, RevocationList};

use super::{TrustOptions, TrustPaths};
use crate::{Error, FileFault};
use sealift_store::fs::read_own_file;
use sealift_store::trust::{REVOKED, SIGNERS};

/// The two files that decide which keys are trusted.
struct Files {
    signers: PathBuf,
    revoked: PathBuf,
}

impl Files {
    fn of(options: &TrustOptions, places: &TrustPaths) -> Result<Self, Error> {
        Self::in_folder(options, places.config()?)
    }

    /// Returns the same for the first key: if no folder has a file yet, a user's file is created in the user's own folder.
    fn to_begin(options: &TrustOptions, places: &TrustPaths) -> Result<Self, Error> {
        Self::in_folder(options, places.config_to_begin()?)
    }

    fn in_folder(options: &TrustOptions, folder: &Path) -> Result<Self, Error> {
        let path = |given: &Option<PathBuf>, usual| given.clone().unwrap_or_else(|| folder.join(usual));
        Ok(Self { signers: path(&options.signers, SIGNERS), revoked: path(&options.revoked, REVOKED) })
    }

    /// Reads the allowed signers. Only the default file may be missing, and counts as empty then.
    fn read_signers(&self, options: &TrustOptions) -> Result<AllowedSigners, Error> {
        parse_signers(&self.signers, &read(&self.signers, options.signers.is_some())?)
    }

    /// Reads the revocation list; the same applies.
    fn read_revoked(&self, options: &TrustOptions) -> Result<RevocationList, Error> {
        parse_revoked(&self.revoked, &read(&self.revoked, options.revoked.is_some())?)
    }
}

fn read(path: &Path, must_exist: bool) -> Result<Vec<u8>, Error> {
    match read_own_file(path)? {
        None if must_exist => Err(Error::io("read", path, io::Error::from(io::ErrorKind::NotFound))),
        read => Ok(read.unwrap_or_default()),
    }
}

fn parse_signers(path: &Path, bytes: &[u8]) -> Result<AllowedSigners, Error> {
    AllowedSigners::parse(bytes).map_err(|fault| Error::file(path, FileFault::Trust(fault)))
}

fn parse_revoked(path: &Path, bytes: &[u8]) -> Result<RevocationList, Error> {
    RevocationList::parse(bytes).map_err(|fault| Error::file(path, FileFault::Trust(fault)))
}
