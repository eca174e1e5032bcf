//! `--key K`: a key that signs, from its file or through ssh-agent.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use sealift_format::{Envelope, Head};
use sealift_store::fs::check_secret;
use sealift_verify::trust::sign::{SigningKey, data_to_sign, envelope};
use sealift_verify::trust::{Namespace, PublicKey, SignError};
use zeroize::Zeroizing;

use super::agent;
use crate::{Error, FileFault};

/// Returns the passphrase of a key file. The library itself never prompts.
pub type AskPassphrase<'a> = dyn Fn(&Path) -> Result<Zeroizing<String>, Error> + 'a;

/// A key that can sign.
#[derive(Debug)]
pub struct Signer {
    path: PathBuf,
    key: PublicKey,
    secret: Secret,
}

#[derive(Debug)]
enum Secret {
    File(Box<SigningKey>),
    Agent { socket: PathBuf },
}

impl Signer {
    /// Opens `--key K`: an OpenSSH private key, or a public key whose private half is in ssh-agent. The content of K decides which of the two it is,
    /// not its name. The agent is the one that `SSH_AUTH_SOCK` names.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is no such key, if other users can read or change a private key, if the passphrase is wrong, or if no agent is named.
    pub fn open(path: &Path, ask: &AskPassphrase<'_>) -> Result<Self, Error> {
        let socket = std::env::var_os("SSH_AUTH_SOCK").filter(|socket| !socket.is_empty()).map(PathBuf::from);
        Self::open_with(path, socket.as_deref(), ask)
    }

    /// Does the same as [`Signer::open`] with a given agent socket.
    pub fn open_with(path: &Path, agent: Option<&Path>, ask: &AskPassphrase<'_>) -> Result<Self, Error> {
        let failed = |error| Error::io("read", path, error);
        let mut opened = File::open(path).map_err(failed)?;
        let mut file = Zeroizing::new(Vec::new());
        opened.read_to_end(&mut file).map_err(failed)?;
        let (key, secret) = match public_key(&file).map_err(|source| refused(path, source))? {
            Some(key) => (key, Secret::Agent { socket: needed(path, agent)? }),
            None => {
                let key = private_key(path, &opened, &file, ask)?;
                (key.public_key().clone(), Secret::File(Box::new(key)))
            }
        };
        Ok(Self { path: path.to_owned(), key, secret })
    }

    /// Returns the public half.
    #[must_use]
    pub fn public_key(&self) -> &PublicKey {
        &self.key
    }

    /// Signs the bytes that [`Head::signed`] returns, or those of a channel's list.
    ///
    /// # Errors
    /// Returns an error if the agent refuses, or returns a signature that does not verify.
    pub fn sign(&self, namespace: Namespace, signed: &[u8]) -> Result<Envelope, Error> {
        let body = match &self.secret {
            Secret::File(key) => key.sign(namespace, signed),
            Secret::Agent { socket } => {
                let answer = agent::sign(socket, &self.key, &data_to_sign(namespace, signed))
                    .map_err(|problem| Error::Agent { key: self.path.clone(), problem })?;
                envelope(namespace, &self.key, &answer, signed)
            }
        };
        let body = body.map_err(|source| refused(&self.path, source))?;
        Ok(Envelope { kind: Envelope::SSH_SIGNATURE, body })
    }
}

/// Signs the head with every key. Duplicate keys sign once.
pub fn sign_head(head: &Head, keys: &[Signer]) -> Result<Vec<Envelope>, Error> {
    sign_root(head.signed(), keys)
}

/// Does the same as [`sign_head`] when packing, before there is a head.
pub fn sign_root(signed: &[u8], keys: &[Signer]) -> Result<Vec<Envelope>, Error> {
    sign_all(Namespace::Bundle, signed, keys)
}

/// Signs the signed bytes of a channel's list with every key.
#[cfg(feature = "pack")]
pub(crate) fn sign_list(signed: &[u8], keys: &[Signer]) -> Result<Vec<Envelope>, Error> {
    sign_all(Namespace::List, signed, keys)
}

fn sign_all(namespace: Namespace, signed: &[u8], keys: &[Signer]) -> Result<Vec<Envelope>, Error> {
    let mut seen = Vec::new();
    let mut envelopes = Vec::new();
    for key in keys {
        let id = key.public_key().id();
        if !seen.contains(&id) {
            seen.push(id);
            envelopes.push(key.sign(namespace, signed)?);
        }
    }
    Ok(envelopes)
}

/// Reads a public key, if the file is one.
fn public_key(file: &[u8]) -> Result<Option<PublicKey>, SignError> {
    let is_public = ["ssh-", "ecdsa-", "sk-"].iter().any(|start| file.starts_with(start.as_bytes()));
    if !is_public {
        return Ok(None);
    }
    let line = String::from_utf8_lossy(file);
    Ok(Some(PublicKey::from_openssh(line.lines().next().unwrap_or_default())?))
}

fn private_key(path: &Path, file: &File, bytes: &[u8], ask: &AskPassphrase<'_>) -> Result<SigningKey, Error> {
    let parsed = match SigningKey::from_openssh(bytes, None) {
        Err(SignError::PassphraseNeeded) => None,
        parsed => Some(parsed.map_err(|source| refused(path, source))?),
    };
    check_secret(file.as_fd(), path)?;
    match parsed {
        Some(key) => Ok(key),
        None => SigningKey::from_openssh(bytes, Some(ask(path)?.as_bytes())).map_err(|source| refused(path, source)),
    }
}

fn needed(path: &Path, agent: Option<&Path>) -> Result<PathBuf, Error> {
    agent.map(Path::to_owned).ok_or_else(|| Error::Agent {
        key: path.to_owned(),
        problem: "SSH_AUTH_SOCK does not name its socket".to_owned(),
    })
}

fn refused(path: &Path, fault: SignError) -> Error {
    Error::file(path, FileFault::Key(fault))
}
