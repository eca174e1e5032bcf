//! `key generate`.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::rand::{GetRandomFlags, getrandom};
use sealift_store::fs::partial::sync_parent;
use sealift_verify::trust::sign::SigningKey;
use sealift_verify::trust::{PublicKey, SignError};
use zeroize::Zeroizing;

use crate::{Error, FileFault};

/// Generates an Ed25519 key: writes the private half to `path`, readable only by its owner, and the public half to `path` with the suffix `.pub`.
///
/// # Errors
/// Returns an error if one of the files exists, since neither is ever overwritten, or if they cannot be written.
pub fn generate_key(path: &Path, passphrase: Option<&str>, comment: &str) -> Result<PublicKey, Error> {
    if comment.contains(['\n', '\r', '\0']) {
        return Err(Error::Usage("a key comment must be a single line".to_owned()));
    }
    let refused = |fault: SignError| Error::file(path, FileFault::Key(fault));
    let mut secret = Zeroizing::new([0; 32]);
    random(&mut secret[..])?;
    let key = SigningKey::generate(&secret, comment).map_err(refused)?;
    let private = match passphrase {
        None => key.to_openssh(),
        Some(passphrase) => {
            let mut salt = [0; 16];
            random(&mut salt)?;
            key.to_openssh_encrypted(passphrase.as_bytes(), &salt)
        }
    }
    .map_err(refused)?;
    let public = format!("{} {comment}", key.public_key().to_openssh());
    // The public half first: a private key without it would be a secret that cannot be used yet.
    let public_path = public_path(path);
    create(&public_path, 0o644, format!("{}\n", public.trim_end()).as_bytes())?;
    if let Err(error) = create(path, 0o600, private.as_bytes()) {
        let _ = std::fs::remove_file(&public_path); // we created it, and nothing has used it yet
        return Err(error);
    }
    sync_parent(path)?;
    Ok(key.public_key().clone())
}

fn public_path(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(".pub");
    name.into()
}

fn create(path: &Path, mode: u32, bytes: &[u8]) -> Result<(), Error> {
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    let mut file = file.map_err(|error| Error::io("create", path, error))?;
    file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|error| {
        let _ = std::fs::remove_file(path); // a partial key is useless
        Error::io("write", path, error)
    })
}

/// Fills `bytes`; the system returns up to 256 at once.
fn random(bytes: &mut [u8]) -> Result<(), Error> {
    let failed = |error: io::Error| Error::io("read", "the system's random numbers", error);
    let wanted = bytes.len();
    match rustix::io::retry_on_intr(|| getrandom(&mut *bytes, GetRandomFlags::empty())) {
        Ok(len) if len == wanted => Ok(()),
        Ok(_) => Err(failed(io::ErrorKind::UnexpectedEof.into())),
        Err(error) => Err(failed(error.into())),
    }
}
