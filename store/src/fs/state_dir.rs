//! State between runs: small text files in a directory that nobody else may change.
//!
//! The directory is opened once, and everything in it is reached from there without following links. Each file ends with a checksum of its
//! own, so that a flipped bit is never read as another number; files are replaced durably, by a rename.

use std::fs::DirBuilder;
use std::io::Read as _;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Access, AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::fs::FreeSpace;
use crate::fs::confined::{names_in, open_name, open_user_dir};
use crate::fs::found::is_there;
use crate::fs::parent::shown_directory;
use crate::{Error, OwnDir, Place, check_own};

/// Far more than any state needs: a longer file was not written by this program.
const FILE_MAX: u64 = 1 << 24;

/// An open directory of state files.
#[derive(Debug)]
pub struct StateDir {
    own: OwnDir,
    /// The place of its name, for the outermost one.
    place: Option<Place>,
}

/// A lock that other runs wait for until it is dropped.
#[derive(Debug)]
pub struct StateLock {
    _file: std::os::fd::OwnedFd,
}

impl StateDir {
    /// Opens the directory; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if another user owns it or may write to it, or if it cannot be opened.
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        let place = match Place::resolve(path) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            place => place?,
        };
        let own = OwnDir::open(&place)?;
        own.as_ref().map_or(Ok(()), OwnDir::check_owner)?;
        Ok(own.map(|own| Self { own, place: Some(place) }))
    }

    /// Opens the directory, or creates it with its parents, inaccessible to other users.
    ///
    /// # Errors
    /// As [`StateDir::open`]; also returns an error if it cannot be created.
    pub fn open_or_create(path: &Path) -> Result<Self, Error> {
        if let Some(dir) = Self::open(path)? {
            return Ok(dir);
        }
        let mut missing = vec![path];
        for above in path.ancestors().skip(1) {
            if above.as_os_str().is_empty() || is_there(above)? {
                break;
            }
            missing.push(above);
        }
        for above in missing.into_iter().rev() {
            match DirBuilder::new().mode(0o700).create(above) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                made => made.map_err(|error| Error::io("create", above, error))?,
            }
            Place::resolve(above)?.sync_parent()?;
        }
        Self::open(path)?.ok_or_else(|| Error::io("open", path, Errno::NOENT))
    }

    /// Opens a directory in it; `None` if there is none.
    ///
    /// # Errors
    /// As [`StateDir::open`]; a link is not accepted.
    pub fn folder(&self, name: &str) -> Result<Option<Self>, Error> {
        let own = self.own.directory(name)?;
        own.as_ref().map_or(Ok(()), OwnDir::check_owner)?;
        Ok(own.map(|own| Self { own, place: None }))
    }

    /// Opens a directory in it, or creates it.
    ///
    /// # Errors
    /// As [`StateDir::folder`]; also returns an error if it cannot be created.
    pub fn folder_or_create(&self, name: &str) -> Result<Self, Error> {
        if let Some(folder) = self.folder(name)? {
            return Ok(folder);
        }
        match rustix::fs::mkdirat(self.own.fd(), name, Mode::RWXU) {
            Ok(()) => self.own.sync()?,
            Err(Errno::EXIST) => {}
            Err(error) => return Err(Error::io("create", self.path().join(name), error)),
        }
        self.folder(name)?.ok_or_else(|| Error::Exchanged { path: self.path().join(name) })
    }

    /// Returns the directory, for files of other kinds.
    #[must_use]
    pub(crate) fn into_own(self) -> OwnDir {
        self.own
    }

    /// Returns the path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.own.path()
    }

    /// Waits for other runs that hold the lock, and takes it. If that takes longer than such a run needs it, `waiting` is called with its path.
    ///
    /// # Errors
    /// Returns an error if the lock file cannot be created or is not this user's.
    pub fn lock(&self, waiting: Option<fn(&Path)>) -> Result<StateLock, Error> {
        let path = self.path().join("lock");
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK;
        let file = open_name(self.own.fd(), b"lock", flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| Error::io("create", &path, error))?;
        check_own(file.as_fd(), &path)?;
        for _ in 0..20 {
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(50)),
                Err(error) => return Err(Error::io("lock", path, error)),
                Ok(()) => return Ok(StateLock { _file: file }),
            }
        }
        if let Some(waiting) = waiting {
            waiting(&path);
        }
        retry_on_intr(|| rustix::fs::flock(&file, FlockOperation::LockExclusive))
            .map_err(|error| Error::io("lock", path, error))?;
        Ok(StateLock { _file: file })
    }

    /// Checks that its path still leads here: otherwise, what is written here would not be found again.
    ///
    /// # Errors
    /// Returns [`Error::Exchanged`] if it does not.
    pub fn check_same(&self) -> Result<(), Error> {
        self.place.as_ref().map_or(Ok(()), |place| place.check_same(self.own.fd()))
    }

    /// Checks that a file can be written, by writing one. Call it under the lock.
    ///
    /// # Errors
    /// Returns an error if it cannot, for example because the disk is full or read-only.
    pub fn check_writable(&self) -> Result<(), Error> {
        let probe = ".probe"; // a killed run's is removed by the next run
        self.own.remove(probe)?;
        let written = self.own.write_new(probe, &[b'\n'; 4096], false);
        self.own.remove(probe)?;
        written
    }

    /// Checks the same as far as possible without writing.
    ///
    /// # Errors
    /// Returns an error if writing is known to fail.
    pub fn check_may_write(&self) -> Result<(), Error> {
        may_write(self.own.fd(), self.path())
    }

    /// Returns the text of a file, without its check; `None` if there is none.
    ///
    /// # Errors
    /// Returns [`Error::State`] if it is damaged; also returns an error if it cannot be read or is not this user's.
    pub fn read(&self, name: &str) -> Result<Option<String>, Error> {
        let path = self.path().join(name);
        let Some(file) = self.own.open_file(name)? else { return Ok(None) };
        check_own(file.as_fd(), &path)?;
        let mut bytes = Vec::new();
        file.take(FILE_MAX).read_to_end(&mut bytes).map_err(|error| Error::io("read", &path, error))?;
        match checked(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(problem) => Err(Error::State { path, problem: problem.to_owned() }),
        }
    }

    /// Replaces a file by a text with its check, and waits until both the file and its name are durable: after a crash it is old or new, never in
    /// between. Call it under the lock.
    ///
    /// # Errors
    /// Returns an error if it cannot be written. It is then unchanged.
    pub fn replace(&self, name: &str, text: &str) -> Result<(), Error> {
        self.own.replace(name, [text, &check_of(text)].concat().as_bytes(), true)
    }

    /// Removes a file durably, and returns whether it existed. Call it under the lock.
    pub fn remove(&self, name: &str) -> Result<bool, Error> {
        match rustix::fs::unlinkat(self.own.fd(), name, AtFlags::empty()) {
            Err(Errno::NOENT) => return Ok(false),
            removed => removed.map_err(|error| Error::io("remove", self.path().join(name), error))?,
        }
        self.own.sync()?;
        Ok(true)
    }

    /// Returns the names in it, in order, except those that begin with a dot, which a killed run left.
    pub fn names(&self) -> Result<Vec<Vec<u8>>, Error> {
        let names = names_in(self.own.fd()).map_err(|error| Error::io("read", self.path(), error))?;
        let mut names: Vec<Vec<u8>> =
            names.into_iter().map(|(name, _)| name).filter(|name| !name.starts_with(b".")).collect();
        names.sort();
        Ok(names)
    }
}

/// Checks, as far as possible without writing, that a state could be kept or created at `path`.
///
/// # Errors
/// As [`StateDir::open`]; also returns an error if writing is known to fail.
pub fn check_may_create(path: &Path) -> Result<(), Error> {
    if let Some(dir) = StateDir::open(path)? {
        return dir.check_may_write();
    }
    for above in path.ancestors().skip(1) {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        if is_there(above)? {
            let shown = shown_directory(above);
            let fd = open_user_dir(above).map_err(|error| Error::io("open", &shown, error))?;
            return may_write(fd.as_fd(), &shown);
        }
    }
    Ok(())
}

fn may_write(directory: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    let failed = |error: Errno| Error::io("write to", path, error);
    rustix::fs::accessat(directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).map_err(failed)?;
    if FreeSpace::of(directory).map_err(failed)?.is_full() { Err(failed(Errno::NOSPC)) } else { Ok(()) }
}

/// Returns the last line of a file.
fn check_of(text: &str) -> String {
    format!("check {}\n", blake3::hash(text.as_bytes()).to_hex())
}

/// Strips the check from a text; the error describes what is wrong with it.
fn checked(bytes: Vec<u8>) -> Result<String, &'static str> {
    let mut text = String::from_utf8(bytes).map_err(|_| "it is not text")?;
    let last = text.trim_end_matches('\n').rfind('\n').map_or(0, |newline| newline + 1);
    let (before, check) = text.split_at(last);
    if !check.starts_with("check ") {
        return Err("its last line is not a check: it was truncated, or a version before the first release wrote it");
    }
    if check != check_of(before) {
        return Err("it does not match the check in its last line");
    }
    text.truncate(last);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn scratch() -> (tempfile::TempDir, StateDir) {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let dir = StateDir::open_or_create(&scratch.path().join("a/b")).expect("it can be made");
        (scratch, dir)
    }

    #[test]
    fn what_is_written_is_read() {
        let (scratch, dir) = scratch();
        assert_eq!(dir.read("x").expect("it can be looked for"), None);
        for text in ["title\n7\n", "", "check \n"] {
            dir.replace("x", text).expect("it can be written");
            assert_eq!(dir.read("x").expect("it is sound").as_deref(), Some(text));
        }
        std::fs::write(scratch.path().join("a/b/.x.new"), "left by a killed run").expect("a file");
        dir.replace("x", "again\n").expect("it can be written");
        assert_eq!(dir.names().expect("it can be listed"), [b"x"]);
        assert!(dir.remove("x").expect("it can be removed"));
        assert!(!dir.remove("x").expect("it is gone"));
        let mode = |path: &str| scratch.path().join(path).metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode("a"), mode("a/b")), (0o700, 0o700));
        let again = StateDir::open(&scratch.path().join("a/b")).expect("it is ours");
        assert!(again.is_some());
        assert!(StateDir::open(&scratch.path().join("c/d")).expect("it is absent").is_none());
    }

    #[test]
    fn every_flip_and_cut_is_found() {
        let (scratch, dir) = scratch();
        dir.replace("x", "sealift floor 2\n7 1700000000 a b\n").expect("it can be written");
        let path = scratch.path().join("a/b/x");
        let good = std::fs::read(&path).expect("it can be read");
        for at in 0..good.len() {
            for bit in 0..8 {
                let mut bad = good.clone();
                bad[at] ^= 1 << bit;
                std::fs::write(&path, &bad).expect("it can be written");
                assert!(matches!(dir.read("x"), Err(Error::State { .. })), "bit {bit} of byte {at}");
            }
            std::fs::write(&path, &good[..at]).expect("it can be written");
            assert!(matches!(dir.read("x"), Err(Error::State { .. })), "cut at {at}");
        }
        std::fs::write(&path, [&good[..], b"\n"].concat()).expect("it can be written");
        assert!(matches!(dir.read("x"), Err(Error::State { .. })));
    }

    #[test]
    fn planted_links_are_not_followed() {
        let (scratch, dir) = scratch();
        let outside = scratch.path().join("outside");
        std::fs::write(&outside, "kept").expect("a file");
        for name in [".x.new", ".probe", "lock", "folder"] {
            std::os::unix::fs::symlink(&outside, scratch.path().join("a/b").join(name)).expect("a link");
        }
        dir.replace("x", "text\n").expect("it can be written");
        dir.check_writable().expect("it can be written to");
        assert!(dir.lock(None).is_err());
        assert!(dir.folder_or_create("folder").is_err());
        assert_eq!(std::fs::read(&outside).expect("it is there"), b"kept");
    }

    #[test]
    fn what_others_may_change_is_refused() {
        let (scratch, dir) = scratch();
        dir.replace("x", "text\n").expect("it can be written");
        let chmod = |path: &str, mode: u32| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(scratch.path().join(path), permissions).expect("it is ours");
        };
        for mode in [0o620, 0o602] {
            chmod("a/b/x", mode);
            assert!(matches!(dir.read("x"), Err(Error::Foreign { .. })));
        }
        for mode in [0o770, 0o702, 0o1777] {
            chmod("a/b", mode);
            assert!(matches!(StateDir::open(dir.path()), Err(Error::Foreign { .. })));
        }
        chmod("a/b", 0o755);
        StateDir::open(dir.path()).expect("others may read it");
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(dir.path(), Some(12345), None).expect("as root");
            assert!(matches!(StateDir::open(dir.path()), Err(Error::Foreign { .. })));
        } else {
            sealift_desk::skipped("needs root: gives files away");
        }
    }

    #[test]
    fn an_exchange_is_noticed() {
        let (scratch, dir) = scratch();
        dir.check_same().expect("it is the same");
        std::fs::rename(dir.path(), scratch.path().join("old")).expect("it can be moved");
        assert!(matches!(dir.check_same(), Err(Error::Exchanged { .. })));
        StateDir::open_or_create(dir.path()).expect("it can be made");
        assert!(matches!(dir.check_same(), Err(Error::Exchanged { .. })));
    }
}
