//! OpenPGP signatures of commits, which `gpg-verify` requires: the keys that count, and gpgv, which checks with them.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};
use sealift_format::ostree::Dictionary;

use super::armor;
use crate::Error;
use crate::error::RepoFault;
use crate::fs::found::is_directory;
use crate::fs::found::is_missing;
use crate::ostree::remote::Remote;
use crate::ostree::repo::Repo;

/// The keys that a remote's commits are verified with.
#[derive(Debug, Default)]
pub(super) struct OpenPgp {
    /// Unnamed files, which gpgv inherits.
    keyrings: Vec<File>,
    /// Key files without any key that libostree would see.
    without_keys: Vec<PathBuf>,
    /// An invalid keyring: with it, GnuPG as libostree uses it sees no key at all.
    spoilt: Option<PathBuf>,
}

impl OpenPgp {
    /// Returns the keys of a remote: those of its keyring or, if it has none, of the shared keyrings, and those that `gpgkeypath` names.
    ///
    /// # Errors
    /// Returns an error if a file or folder cannot be read.
    pub(super) fn of(repo: &Repo, remote: &Remote) -> Result<Self, Error> {
        let mut keys = Self::default();
        if !keys.add_own(repo, remote)? {
            keys.add_shared(repo)?;
        }
        for path in key_paths(remote).map_err(|fault| repo.fault(fault))? {
            let unread = |error| repo.fault(remote.fault(format!("cannot read gpgkeypath {path:?}: {error}")));
            keys.add_named(Path::new(&path)).map_err(unread)?;
        }
        Ok(keys)
    }

    /// Checks that one of the signatures of a commit is valid; the inner result is the reason if not.
    ///
    /// # Errors
    /// Returns an error if gpgv cannot be run.
    pub(super) fn check(&self, beside: Option<&Dictionary<'_>>, signed: &[u8]) -> Result<Result<(), String>, Error> {
        let value = beside.and_then(|beside| beside.value("ostree.gpgsigs"));
        let signatures = value.and_then(|value| value.byte_strings()).unwrap_or_default();
        if signatures.is_empty() {
            return Ok(Err("the remote requires a GPG signature and the commit has none".into()));
        }
        if let Some(path) = &self.spoilt {
            let path = path.display();
            return Ok(Err(format!(
                "no key of the remote signed it: {path} is not a keyring as written by `gpg --export`"
            )));
        }
        // Concatenated, as in libostree: an invalid signature then invalidates those beside it.
        if self.is_one_good(&signatures.concat(), signed)? {
            return Ok(Ok(()));
        }
        let mut why = "no key of the remote signed it".to_owned();
        if !self.without_keys.is_empty() {
            let paths: Vec<_> = self.without_keys.iter().map(|path| path.display().to_string()).collect();
            why += &format!("; no keys found in {}", paths.join(", "));
        }
        Ok(Err(why))
    }

    /// Adds the remote's own keyring, if it has one.
    fn add_own(&mut self, repo: &Repo, remote: &Remote) -> Result<bool, Error> {
        let name = format!("{}.trustedkeys.gpg", remote.name);
        for folder in [Some(repo.path()), repo.remotes_folder()].into_iter().flatten() {
            let path = folder.join(&name);
            match std::fs::read(&path) {
                Ok(bytes) => {
                    self.add_keyring(&path, &bytes)?;
                    return Ok(true);
                }
                Err(error) if is_missing(&error) => {}
                Err(error) => return Err(Error::io("read", path, error)),
            }
        }
        Ok(false)
    }

    /// Adds the keyrings shared by all remotes. libostree follows no links there.
    fn add_shared(&mut self, repo: &Repo) -> Result<(), Error> {
        let folder = repo.system().keyrings();
        if !is_directory(&folder)? {
            return Ok(());
        }
        for path in regular_files(&folder).map_err(|error| Error::io("read", &folder, error))? {
            let is_keyring = path.extension().is_some_and(|extension| extension == "gpg");
            if is_keyring && !path.ends_with("trustdb.gpg") && !path.ends_with("secring.gpg") {
                let bytes = std::fs::read(&path).map_err(|error| Error::io("read", &path, error))?;
                self.add_keyring(&path, &bytes)?;
            }
        }
        Ok(())
    }

    /// Adds what `gpgkeypath` names: a key file, or all files of a folder.
    fn add_named(&mut self, path: &Path) -> std::io::Result<()> {
        let files =
            if std::fs::symlink_metadata(path)?.is_dir() { regular_files(path)? } else { vec![path.to_owned()] };
        for file in files {
            let bytes = std::fs::read(&file)?;
            let keys = if is_openpgp(&bytes) { bytes } else { armor::keys(&bytes) };
            self.add(&file, &keys)?;
        }
        Ok(())
    }

    /// Adds a keyring: concatenated keys, or a GnuPG keybox.
    fn add_keyring(&mut self, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let is_keybox = bytes.get(8..12) == Some(b"KBXf");
        if !(bytes.is_empty() || is_keybox || is_openpgp(bytes)) {
            self.spoilt.get_or_insert_with(|| path.to_owned());
        }
        self.add(path, bytes).map_err(|error| Error::io("read", path, error))
    }

    fn add(&mut self, path: &Path, keys: &[u8]) -> std::io::Result<()> {
        if keys.is_empty() {
            self.without_keys.push(path.to_owned());
            return Ok(());
        }
        self.keyrings.push(unnamed("keys", keys)?);
        Ok(())
    }

    /// Asks gpgv: OpenPGP libraries are larger than all of this, and gpgv is present wherever apt is.
    fn is_one_good(&self, signatures: &[u8], signed: &[u8]) -> Result<bool, Error> {
        let failed = |error| Error::io("run", "gpgv", error);
        if self.keyrings.is_empty() {
            return Ok(false);
        }
        let signatures = unnamed("signatures", signatures).map_err(failed)?;
        let mut command = Command::new("gpgv");
        for keyring in &self.keyrings {
            command.arg("--keyring").arg(inherited(keyring));
        }
        command.args(["--status-fd", "1", "--"]).arg(inherited(&signatures)).arg("-");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::unexpected("gpgv", "is not installed, and the remote requires GPG signatures")
            }
            _ => failed(error),
        })?;
        let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(signed));
        let output = child.wait_with_output().map_err(failed)?;
        match written {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => return Err(failed(error)),
            _ => {}
        }
        // The exit code covers all signatures, and is good even for an expired key or signature and for a revoked key, which are reported in place
        // of GOODSIG.
        let has = |word: &[u8]| output.stdout.split(|byte| *byte == b'\n').any(|line| line.starts_with(word));
        let is_done = output.status.code().is_some();
        Ok(is_done && has(b"[GNUPG:] GOODSIG ") && !has(b"[GNUPG:] NODATA "))
    }
}

/// Returns the paths in `gpgkeypath`, separated by semicolons or commas.
fn key_paths(remote: &Remote) -> Result<Vec<String>, RepoFault> {
    let Some(value) = remote.value("gpgkeypath") else { return Ok(Vec::new()) };
    match (value.contains(';'), value.contains(',')) {
        (false, false) => Ok(vec![value.to_owned()]),
        (true, false) => remote.texts("gpgkeypath", ';'),
        (false, true) => remote.texts("gpgkeypath", ','),
        (true, true) => Err(remote.fault(format!("gpgkeypath = {value:?} has both semicolons and commas"))),
    }
}

/// Returns the regular files in a folder; links are not followed.
fn regular_files(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            files.push(entry.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Returns whether the bytes are OpenPGP packets: unlike a text, a packet begins with a byte whose highest bit is set.
fn is_openpgp(bytes: &[u8]) -> bool {
    bytes.first().is_some_and(|first| first & 0x80 != 0)
}

/// Creates a file in memory, which is passed to gpgv as an open descriptor.
fn unnamed(name: &str, bytes: &[u8]) -> std::io::Result<File> {
    let mut file = File::from(memfd_create(name, MemfdFlags::empty())?);
    file.write_all(bytes)?;
    Ok(file)
}

fn inherited(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}
