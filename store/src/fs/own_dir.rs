//! A directory that this or an earlier run created: held open, and writable by nobody else.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, FsWord, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, fstatfs, fsync, linkat, mkdirat, renameat,
    unlinkat,
};
use rustix::io::Errno;
use sealift_format::num;

use crate::error::path_of;
use crate::fs::confined::{names_in, open_beneath, open_name, remove_contents, remove_tree};
use crate::{Error, InodeId, Place, inode_id};

/// A directory of this program. Its owner is this user or root, and no other user may write to it: its contents are as trustworthy as this user and
/// root. Where the mount decides for all files of a file system who owns and writes them, it is as trustworthy as whom the mount admits.
#[derive(Debug)]
pub struct OwnDir {
    fd: OwnedFd,
    /// For messages.
    path: PathBuf,
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY);
/// Everybody may read what a tree was made from; nobody else may change it.
const PUBLIC: Mode = Mode::from_raw_mode(0o755);

impl OwnDir {
    /// Opens the directory at `place`; `None` if nothing is there.
    ///
    /// # Errors
    /// Returns an error if it is a link or not a directory, if another user owns it or may write to it, or if it cannot be opened.
    pub fn open(place: &Place) -> Result<Option<Self>, Error> {
        let Some(fd) = place.open_directory()? else { return Ok(None) };
        Self::checked(fd, place.path().to_owned()).map(Some)
    }

    /// Creates the directory at `place` for this user alone, or opens the existing one.
    ///
    /// # Errors
    /// As [`OwnDir::open`]; also returns an error if it cannot be created.
    pub fn create(place: &Place) -> Result<Self, Error> {
        Self::create_with(place, Mode::RWXU)
    }

    /// As [`OwnDir::create`], for everybody to read.
    pub(crate) fn create_public(place: &Place) -> Result<Self, Error> {
        Self::create_with(place, PUBLIC)
    }

    fn create_with(place: &Place, mode: Mode) -> Result<Self, Error> {
        let is_new = match mkdirat(place.parent(), place.name(), mode) {
            Err(Errno::EXIST) => false,
            made => made.map(|()| true).map_err(|error| Error::io("create", place.path(), error))?,
        };
        let opened = Self::open(place)
            .and_then(|opened| opened.ok_or_else(|| Error::Exchanged { path: place.path().to_owned() }));
        if is_new && opened.is_err() {
            // Nobody can use it, and it is empty, if it is still ours.
            let _ = unlinkat(place.parent(), place.name(), AtFlags::REMOVEDIR);
        }
        opened
    }

    /// Refuses a directory on a file system whose mount lets other users write everywhere: what it holds must not be theirs.
    ///
    /// # Errors
    /// Returns [`Error::Foreign`].
    pub(crate) fn check_owner(&self) -> Result<(), Error> {
        check_own(self.fd(), &self.path)
    }

    /// Opens the directory at `below` in an open directory, without following links; `None` if there is none. `path` is for messages.
    pub fn beneath(root: BorrowedFd<'_>, below: &str, path: &Path) -> Result<Option<Self>, Error> {
        match open_beneath(root, below.as_bytes(), DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            opened => Self::checked(opened.map_err(|error| Error::io("open", path, error))?, path.to_owned()).map(Some),
        }
    }

    /// Returns it with another path for messages: that of its final place.
    #[must_use]
    pub fn shown_as(self, path: PathBuf) -> Self {
        Self { path, ..self }
    }

    fn checked(fd: OwnedFd, path: PathBuf) -> Result<Self, Error> {
        let failed = |error| Error::io("look at", &path, error);
        match check_own(fd.as_fd(), &path) {
            Err(Error::Foreign { .. })
                if has_one_owner_and_mode(&fd, &fstat(&fd).map_err(failed)?).map_err(failed)? => {}
            checked => checked?,
        }
        Ok(Self { fd, path })
    }

    /// Returns the open directory.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Returns its path, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its inode_id, which no other directory has.
    pub fn inode_id(&self) -> Result<InodeId, Error> {
        inode_id(&self.fd).map_err(|error| Error::io("look at", &self.path, error))
    }

    /// Opens a directory in it; `None` if there is none of that name.
    pub fn directory(&self, name: &str) -> Result<Option<Self>, Error> {
        let path = self.path.join(name);
        match open_name(self.fd(), name.as_bytes(), DIRECTORY, Mode::empty()) {
            Err(Errno::NOENT) => Ok(None),
            opened => Self::checked(opened.map_err(|error| Error::io("open", &path, error))?, path).map(Some),
        }
    }

    /// Creates a world-readable directory in it. An existing one of that name is removed.
    ///
    /// # Errors
    /// Returns an error if the old one cannot be removed or the new one cannot be created.
    pub fn new_directory(&self, name: &str) -> Result<Self, Error> {
        self.remove(name)?;
        let path = self.path.join(name);
        let made = mkdirat(&self.fd, name, PUBLIC);
        made.map_err(|error| Error::io("create", &path, error))?;
        self.directory(name)?.ok_or(Error::Exchanged { path })
    }

    /// Opens a regular file in it; `None` if there is none of that name.
    ///
    /// # Errors
    /// Returns an error if it is a link or another kind of file, or cannot be opened.
    pub fn open_file(&self, name: &str) -> Result<Option<File>, Error> {
        let failed = |error: io::Error| Error::io("read", self.path.join(name), error);
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let file = match open_name(self.fd(), name.as_bytes(), flags, Mode::empty()) {
            Err(Errno::NOENT) => return Ok(None),
            opened => File::from(opened.map_err(|error| failed(error.into()))?),
        };
        let metadata = file.metadata().map_err(failed)?;
        if metadata.is_file() { Ok(Some(file)) } else { Err(failed(Errno::INVAL.into())) }
    }

    /// Reads at most `len_max` bytes of a file in it, and one more if it is longer; `None` if there is none of that name.
    ///
    /// # Errors
    /// As [`OwnDir::open_file`]; also returns an error if it cannot be read.
    pub fn read(&self, name: &str, len_max: u64) -> Result<Option<Vec<u8>>, Error> {
        let Some(file) = self.open_file(name)? else { return Ok(None) };
        let mut bytes = Vec::new();
        let read = || {
            bytes.try_reserve_exact(num::size(file.metadata()?.len().min(len_max)))?;
            file.take(len_max.saturating_add(1)).read_to_end(&mut bytes)
        };
        read().map_err(|error| Error::io("read", self.path.join(name), error))?;
        Ok(Some(bytes))
    }

    /// Returns whether the name exists.
    pub fn has(&self, name: &str) -> Result<bool, Error> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(false),
            stat => stat.map(|_| true).map_err(|error| Error::io("look at", self.path.join(name), error)),
        }
    }

    /// Writes a new file; with `durable`, its content is durable on return, and its name after [`OwnDir::sync`].
    ///
    /// # Errors
    /// Returns an error if the name exists or the file cannot be written.
    pub fn write_new(&self, name: &str, bytes: &[u8], durable: bool) -> Result<(), Error> {
        let (flags, mode) = (OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, Mode::from_raw_mode(0o644));
        let opened = open_name(self.fd(), name.as_bytes(), flags, mode).map_err(io::Error::from);
        let written = opened.and_then(|fd| {
            let mut file = File::from(fd);
            file.write_all(bytes)?;
            if durable { file.sync_all() } else { Ok(()) }
        });
        written.map_err(|error| Error::io("write", self.path.join(name), error))
    }

    /// Replaces a file atomically; with `durable`, it is durable on return.
    ///
    /// # Errors
    /// Returns an error if it cannot be written. The old file then stays.
    pub fn replace(&self, name: &str, bytes: &[u8], durable: bool) -> Result<(), Error> {
        // None of our names begins with a dot: a killed run's leftover can be overwritten.
        let partial = format!(".{name}.new");
        self.remove(&partial)?;
        self.write_new(&partial, bytes, durable)?;
        renameat(&self.fd, &*partial, &self.fd, name)
            .map_err(|error| Error::io("rename to", self.path.join(name), error))?;
        if durable { self.sync() } else { Ok(()) }
    }

    /// Gives it the files of `new`, each by one rename, and removes those that `new` does not have: for a directory that cannot be renamed itself.
    /// The file `last` is taken last. `new` keeps its files, so that this can be repeated after a kill in between.
    ///
    /// # Errors
    /// Returns an error if a file cannot be linked or copied, renamed or removed.
    pub(crate) fn take_files(&self, new: &Self, last: &str, durable: bool) -> Result<(), Error> {
        let names = |dir: &Self| names_in(dir.fd()).map_err(|error| Error::io("read", &dir.path, error));
        let mut wanted = names(new)?;
        wanted.sort_by_key(|(name, _)| name == last.as_bytes());
        for (name, _) in &wanted {
            let partial = [b".", &name[..], b".new"].concat();
            let failed = |error: Errno| Error::io("write", self.path.join(path_of(name)), error);
            remove_tree(self.fd(), &partial).map_err(failed)?;
            match linkat(new.fd(), &name[..], self.fd(), &partial[..], AtFlags::empty()) {
                Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::XDEV | Errno::MLINK | Errno::ACCESS) => {
                    copy(new.fd(), name, self.fd(), &partial, durable)
                        .map_err(|error| Error::io("write", self.path.join(path_of(name)), error))?;
                }
                linked => linked.map_err(failed)?,
            }
            renameat(&self.fd, &partial[..], &self.fd, &name[..]).map_err(failed)?;
            // A rename does nothing if both are names of one file: an earlier run was killed in between.
            remove_tree(self.fd(), &partial).map_err(failed)?;
        }
        for (name, _) in names(self)? {
            if !wanted.iter().any(|(wanted, _)| *wanted == name) {
                let failed = |error| Error::io("remove", self.path.join(path_of(&name)), error);
                remove_tree(self.fd(), &name).map_err(failed)?;
            }
        }
        if durable { self.sync() } else { Ok(()) }
    }

    /// Waits until the names in it are durable.
    pub fn sync(&self) -> Result<(), Error> {
        fsync(&self.fd).map_err(|error| Error::io("sync", &self.path, error))
    }

    /// Removes a file in it, or a directory with everything below. It need not exist.
    pub fn remove(&self, name: &str) -> Result<(), Error> {
        remove_tree(self.fd(), name.as_bytes()).map_err(|error| Error::io("remove", self.path.join(name), error))
    }

    /// Removes it and everything in it, if `place` still leads to it.
    ///
    /// # Errors
    /// Returns [`Error::Exchanged`] if `place` leads elsewhere: the directory is then empty, and what is at `place` is left alone.
    pub fn remove_from(self, place: &Place) -> Result<(), Error> {
        let failed = |error| Error::io("remove", &self.path, error);
        remove_contents(self.fd()).map_err(failed)?;
        place.check_same(self.fd())?;
        // Anything that appears under the name in between is removed only if it is an empty directory.
        unlinkat(place.parent(), place.name(), AtFlags::REMOVEDIR).map_err(failed)
    }
}

/// Copies a file to a new one.
fn copy(from: BorrowedFd<'_>, name: &[u8], to: BorrowedFd<'_>, new: &[u8], durable: bool) -> Result<(), io::Error> {
    let mut from = File::from(open_name(from, name, OFlags::RDONLY, Mode::empty())?);
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut to = File::from(open_name(to, new, flags, Mode::from_raw_mode(0o644))?);
    io::copy(&mut from, &mut to)?;
    if durable { to.sync_all() } else { Ok(()) }
}

/// The magic numbers of FAT, exFAT and FUSE (statfs(2), linux/magic.h).
const FAT: FsWord = 0x4d44;
const EXFAT: FsWord = 0x2011_bab0;
const FUSE: FsWord = 0x6573_5546;

/// Returns whether a directory is on a file system that has one owner and one mode for all directories, as its mount says. One in user space may be
/// any: there it is tried whether a change has an effect.
fn has_one_owner_and_mode(fd: &OwnedFd, stat: &Stat) -> Result<bool, Errno> {
    let is_writable = stat.st_mode & 0o022 != 0;
    match fstatfs(fd)?.f_type {
        FAT | EXFAT => Ok(true),
        FUSE => Ok((!is_writable || !can_change_mode(fd, stat)?) && !can_change_owner(fd, stat)?),
        _ => Ok(false),
    }
}

/// Tries to take the rights of others from a directory, and gives them back. A user who may not is told nothing by that: then it is decisive
/// whether the directory above has the same owner and mode.
fn can_change_mode(fd: &OwnedFd, stat: &Stat) -> Result<bool, Errno> {
    let bits = |mode: u32| Mode::from_raw_mode(mode & 0o7777);
    let user = rustix::process::geteuid();
    if !user.is_root() && user.as_raw() != stat.st_uid {
        let above = fstat(open_name(fd.as_fd(), b"..", OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?)?;
        return Ok((above.st_uid, above.st_mode) != (stat.st_uid, stat.st_mode));
    }
    if fchmod(fd, bits(stat.st_mode & !0o022)).is_err() || fstat(fd)?.st_mode == stat.st_mode {
        return Ok(false);
    }
    fchmod(fd, bits(stat.st_mode))?;
    Ok(true)
}

/// Tries to take a directory over from another user, and gives it back.
fn can_change_owner(fd: &OwnedFd, stat: &Stat) -> Result<bool, Errno> {
    let user = rustix::process::geteuid();
    if stat.st_uid == 0 || stat.st_uid == user.as_raw() {
        return Ok(false); // it need not be changed
    }
    if !user.is_root() {
        return Ok(true);
    }
    if fchown(fd, Some(Uid::ROOT), None).is_err() || fstat(fd)?.st_uid == stat.st_uid {
        return Ok(false);
    }
    fchown(fd, Some(Uid::from_raw(stat.st_uid)), None)?;
    Ok(true)
}

/// Checks that an open file or directory belongs to this user or root, and that no other user may write to it.
///
/// # Errors
/// Returns [`Error::Foreign`].
pub fn check_own(fd: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    let stat = fstat(fd).map_err(|error| Error::io("look at", path, error))?;
    check_owner(stat.st_uid, path)?;
    let mode = stat.st_mode & 0o7777;
    if mode & write_bits(stat.st_gid) != 0 {
        return Err(Error::foreign(path, format!("is writable by other users (mode {mode:04o})")));
    }
    Ok(())
}

/// Returns whether this user and root alone can change what has these permissions.
pub(crate) fn is_own(stat: &Stat) -> bool {
    // Called for each directory of a tree: who this user is, is looked up only where it matters.
    let is_owner = stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw();
    is_owner && (stat.st_mode & 0o022 == 0 || stat.st_mode & write_bits(stat.st_gid) == 0)
}

/// Refuses what belongs to another user than this one or root.
pub(super) fn check_owner(owner: u32, path: &Path) -> Result<(), Error> {
    if owner == 0 || owner == rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    Err(Error::foreign(path, format!("belongs to user {owner}, who can change anything in it")))
}

/// Returns the permission bits by which other users may write to a file of this group. A user's private group, which has the user's number, has no
/// other members.
fn write_bits(group: u32) -> u32 {
    let (user, own) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let is_private = user != 0 && (user, user) == (own, group);
    if is_private { 0o002 } else { 0o022 }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn place() -> (tempfile::TempDir, Place) {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let place = Place::resolve(&scratch.path().join("own")).expect("its parent is there");
        (scratch, place)
    }

    #[test]
    fn what_is_written_is_read_and_replaced_as_a_whole() {
        let (_scratch, place) = place();
        assert!(OwnDir::open(&place).expect("a missing directory is not an error").is_none());
        let own = OwnDir::create(&place).expect("it can be made");
        own.write_new("a", b"one", true).expect("it can be written");
        assert!(own.write_new("a", b"two", true).is_err(), "it is there");
        std::fs::write(own.path().join(".a.new"), "what a killed run left").expect("it is ours");
        own.replace("a", b"three", true).expect("it can be replaced");
        assert_eq!(own.read("a", 100).expect("it can be read").as_deref(), Some(&b"three"[..]));
        assert_eq!(own.read("a", 2).expect("it can be read").as_deref(), Some(&b"thr"[..]), "one byte more shows");
        assert_eq!(own.read("none", 2).expect("it is not there"), None);
        std::os::unix::fs::symlink("a", own.path().join("link")).expect("a link");
        assert!(own.read("link", 100).is_err(), "links are not followed");
        OwnDir::create(&place).expect("it can be opened again").remove_from(&place).expect("it can be removed");
        assert!(place.is_missing().expect("it can be looked at"));
    }

    #[test]
    fn files_are_taken_one_by_one_and_again() {
        let (scratch, place) = place();
        let old = OwnDir::create(&place).expect("it can be made");
        for (name, bytes) in [("head", "old"), ("gone", "old"), (".head.new", "what a killed run left")] {
            std::fs::write(old.path().join(name), bytes).expect("it is ours");
        }
        let new = OwnDir::create(&Place::resolve(&scratch.path().join("new")).expect("its parent is there"));
        let new = new.expect("it can be made");
        for name in ["head", "index"] {
            new.write_new(name, b"new", false).expect("it can be written");
        }
        for _ in 0..2 {
            old.take_files(&new, "head", true).expect("they can be taken");
            let mut names: Vec<_> =
                names_in(old.fd()).expect("it can be listed").into_iter().map(|(name, _)| name).collect();
            names.sort();
            assert_eq!(names, [&b"head"[..], b"index"]);
            assert_eq!(old.read("head", 10).expect("it can be read").as_deref(), Some(&b"new"[..]));
        }
        assert!(new.has("head").expect("it can be looked at"), "the new directory keeps its files");
    }

    #[test]
    fn what_others_may_write_to_is_refused() {
        let (_scratch, place) = place();
        OwnDir::create(&place).expect("it can be made");
        let is_root = rustix::process::geteuid().is_root();
        for mode in [0o777, 0o702].into_iter().chain(is_root.then_some(0o770)) {
            std::fs::set_permissions(place.path(), PermissionsExt::from_mode(mode)).expect("it is ours");
            assert!(matches!(OwnDir::open(&place), Err(Error::Foreign { .. })), "{mode:o}");
        }
        std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).expect("it is ours");
        OwnDir::open(&place).expect("others may read");
        if is_root {
            std::os::unix::fs::chown(place.path(), Some(12345), None).expect("root may");
            assert!(matches!(OwnDir::open(&place), Err(Error::Foreign { .. })));
        } else {
            sealift_desk::skipped("needs root: gives files away");
        }
    }

    #[test]
    fn removing_leaves_alone_what_came_under_the_name() {
        let (scratch, place) = place();
        let own = OwnDir::create(&place).expect("it can be made");
        own.write_new("a", b"one", false).expect("it can be written");
        std::fs::rename(place.path(), scratch.path().join("moved")).expect("it can be moved");
        std::fs::create_dir(place.path()).expect("another");
        std::fs::write(place.path().join("precious"), "kept").expect("a file");
        assert!(matches!(own.remove_from(&place), Err(Error::Exchanged { .. })));
        assert!(place.path().join("precious").exists());
    }
}
