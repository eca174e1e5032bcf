//! What a repository asks of a commit before a ref names it: its remotes' settings, as `ostree pull` honours them.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};
use sealift_format::ostree::{Commit, Dictionary};

use super::carried::Tip;
use super::config::Remote;
use super::fault::RepoFault;
use super::object::{ObjectType, hex};
use super::refs::{RefName, RefPlace};
use super::repo::Repo;
use crate::Error;

/// Keys that count for remotes without a keyring of their own (ostree(1)), unless the environment names another folder.
const TRUSTED: &str = "/usr/share/ostree/trusted.gpg.d";

/// Whether the commit may be what `name` stands for.
///
/// # Errors
/// The commit names other refs or another collection, the repository has no such remote, or a signature that the remote asks for is missing.
pub(super) fn check(repo: &Repo, name: &RefName, tip: &Tip<'_>) -> Result<(), Error> {
    let refused =
        |why: String| repo.fault(RepoFault::Refused { commit: hex(&tip.checksum), name: name.to_string(), why });
    let commit = Commit::parse(tip.bytes).map_err(|fault| repo.wrong(ObjectType::Commit, &tip.checksum, fault))?;
    if !commit.ref_bindings.is_empty() && !commit.ref_bindings.contains(&tip.reference) {
        return Err(refused(format!("it is bound to {}", commit.ref_bindings.join(", "))));
    }
    let collection = match name.place() {
        RefPlace::Heads => None,
        RefPlace::Mirror(collection) => Some(collection.as_str()),
        RefPlace::Remote(remote) => {
            let remote = repo.config().remotes.iter().find(|known| known.name == *remote);
            let remote = remote.ok_or_else(|| refused("the repository has no such remote".into()))?;
            check_signatures(repo, remote, tip, &refused)?;
            remote.collection_id.as_deref()
        }
    };
    match collection {
        Some(wanted) if commit.collection_binding != Some(wanted) => {
            let found = commit.collection_binding.unwrap_or("none");
            Err(refused(format!("it is of the collection {found}, and {wanted} is asked for")))
        }
        _ => Ok(()),
    }
}

fn check_signatures(
    repo: &Repo,
    remote: &Remote,
    tip: &Tip<'_>,
    refused: &dyn Fn(String) -> Error,
) -> Result<(), Error> {
    if let Some(kinds) = remote.sign_verify.as_deref().filter(|kinds| *kinds != "false") {
        return Err(refused(format!(
            "the remote asks for signatures that sealift does not verify yet (sign-verify={kinds})"
        )));
    }
    if !remote.gpg_verify {
        return Ok(());
    }
    let beside = tip.beside.map(Dictionary::parse).transpose();
    let beside = beside.map_err(|fault| repo.wrong(ObjectType::CommitMeta, &tip.checksum, fault))?;
    let signatures =
        beside.as_ref().and_then(|beside| beside.value("ostree.gpgsigs")).and_then(|value| value.byte_strings());
    let signatures = signatures.unwrap_or_default();
    if signatures.is_empty() {
        return Err(refused("the remote asks for an OpenPGP signature, and it has none".into()));
    }
    let keyrings = keyrings(repo, remote);
    for signature in signatures {
        if is_good(&keyrings, signature, tip.bytes)? {
            return Ok(());
        }
    }
    Err(refused("no key of the remote's has signed it".into()))
}

/// The files of keys that count for a remote: its own or, if it has none, those for all.
fn keyrings(repo: &Repo, remote: &Remote) -> Vec<PathBuf> {
    let own = repo.path().join(format!("{}.trustedkeys.gpg", remote.name));
    if own.exists() {
        return vec![own];
    }
    let folder = std::env::var_os("OSTREE_GPG_HOME").map_or_else(|| PathBuf::from(TRUSTED), PathBuf::from);
    let shared = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    shared.filter(|path| path.extension().is_some_and(|extension| extension == "gpg")).collect()
}

/// Asks gpgv: libraries for OpenPGP are larger than all of this, and it is wherever apt is.
fn is_good(keyrings: &[PathBuf], signature: &[u8], signed: &[u8]) -> Result<bool, Error> {
    let failed = |error| Error::io("run", "gpgv", error);
    if keyrings.is_empty() {
        return Ok(false);
    }
    // It passes to gpgv as it is open, and lies nowhere.
    let file = memfd_create("signature", MemfdFlags::empty()).map_err(|error| failed(error.into()))?;
    let mut file = File::from(file);
    file.write_all(signature).map_err(failed)?;
    let mut command = Command::new("gpgv");
    for keyring in keyrings {
        let keyring = std::fs::canonicalize(keyring).map_err(|error| Error::io("read", keyring, error))?;
        command.arg("--keyring").arg(keyring);
    }
    command.args(["--status-fd", "1", "--"]).arg(format!("/proc/self/fd/{}", file.as_raw_fd())).arg("-");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Error::Usage("the remote asks for OpenPGP signatures: install gpgv".into()),
        _ => failed(error),
    })?;
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(signed));
    let output = child.wait_with_output().map_err(failed)?;
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(failed(error)),
        _ => {}
    }
    // It ends well, too, where the key or the signature has expired or the key is revoked, and says so in place of this.
    let is_good = output.stdout.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"[GNUPG:] GOODSIG "));
    Ok(is_good && output.status.success())
}
