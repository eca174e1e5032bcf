//! A name in a directory that is held open.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Mode, OFlags, Stat, accessat, fstat, fsync, openat, readlinkat, statat,
};
use rustix::io::{Errno, retry_on_intr};

use crate::Error;
use crate::fs::confined::open_name;
use crate::fs::parent::{parent_of, shown_directory};

/// The location of a target, existing or not: its parent directory, which is open, and its name there. All paths to a directory, including links,
/// give the same place.
#[derive(Debug)]
pub struct Place {
    parent: OwnedFd,
    name: OsString,
    /// For messages.
    path: PathBuf,
}

/// Links followed on the way to a place, as many as the kernel follows (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// The device and the number of an inode.
pub type InodeId = (u64, u64);

/// Returns the inode_id of an open file.
pub fn inode_id(fd: impl std::os::fd::AsFd) -> Result<InodeId, Errno> {
    fstat(fd).map(|stat| (stat.st_dev, stat.st_ino))
}

impl Place {
    /// Resolves a path that the user gave; its last name need not exist. Symbolic links are followed if they belong to this user or root: another
    /// user could point theirs anywhere.
    ///
    /// # Errors
    /// Returns an error if a directory on the way cannot be opened, if a link is another user's or dangling, or if the path has no name, such as `/`.
    pub fn resolve(path: &Path) -> Result<Self, Error> {
        Resolver::new(path)?.run()
    }

    /// Returns the place of a name in an open directory, whose path is for messages.
    pub(crate) fn within(directory: BorrowedFd<'_>, name: &str, path: &Path) -> Result<Self, Error> {
        let parent = directory.try_clone_to_owned().map_err(|error| Error::io("open", path, error))?;
        Ok(Self { parent, name: name.into(), path: path.join(name) })
    }

    /// Returns the directory that holds the name.
    #[must_use]
    pub fn parent(&self) -> BorrowedFd<'_> {
        self.parent.as_fd()
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// Returns the path without links, for messages.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path without links from the root, if the current directory is known.
    pub fn absolute_path(&self) -> Result<PathBuf, Error> {
        let mut path = match self.path.is_absolute() {
            true => PathBuf::new(),
            false => std::env::current_dir().map_err(|error| Error::io("find the directory of", &self.path, error))?,
        };
        for component in self.path.components() {
            match component {
                // Neither the current directory's path nor this one contains a link.
                Component::ParentDir => {
                    path.pop();
                }
                component => path.push(component),
            }
        }
        Ok(path)
    }

    /// Returns the path of the parent directory, for messages.
    #[must_use]
    pub fn parent_path(&self) -> PathBuf {
        shown_directory(parent_of(&self.path))
    }

    /// Returns the place of `.NAME` and a suffix, in the same directory.
    ///
    /// # Errors
    /// Returns an error if the descriptor cannot be duplicated.
    pub fn sibling(&self, suffix: &str) -> Result<Self, Error> {
        let mut name = OsString::from(".");
        name.push(&self.name);
        name.push(suffix);
        let path = self.path.with_file_name(&name);
        let parent = self.parent.try_clone().map_err(|error| Error::io("open", self.parent_path(), error))?;
        Ok(Self { parent, name, path })
    }

    /// Returns the same place once more.
    pub(crate) fn again(&self) -> Result<Self, Error> {
        let parent = self.parent.try_clone().map_err(|error| Error::io("open", self.parent_path(), error))?;
        Ok(Self { parent, name: self.name.clone(), path: self.path.clone() })
    }

    /// Returns the stat of the name, without following a link; `None` if nothing is there.
    pub fn stat(&self) -> Result<Option<Stat>, Error> {
        match statat(&self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            stat => stat.map(Some).map_err(|error| Error::io("read", &self.path, error)),
        }
    }

    /// Returns whether nothing of that name exists.
    pub fn is_missing(&self) -> Result<bool, Error> {
        self.stat().map(|stat| stat.is_none())
    }

    /// Opens the directory of that name; `None` if nothing is there.
    ///
    /// # Errors
    /// Returns an error if it is a link or not a directory, or cannot be opened.
    pub fn open_directory(&self) -> Result<Option<OwnedFd>, Error> {
        match open_name(self.parent(), self.name.as_bytes(), OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
            Ok(fd) => Ok(Some(fd)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let is_link =
                    self.stat()?.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
                let problem =
                    if is_link { "is a symbolic link, which is not followed" } else { "exists and is not a directory" };
                Err(Error::Unusable { path: self.path.clone(), problem })
            }
            Err(error) => Err(Error::io("open", &self.path, error)),
        }
    }

    /// Checks that the name still leads to the file open as `fd`.
    ///
    /// # Errors
    /// Returns [`Error::Exchanged`] if it does not.
    pub fn check_same(&self, fd: BorrowedFd<'_>) -> Result<(), Error> {
        let held = inode_id(fd).map_err(|error| Error::io("look at", &self.path, error))?;
        match self.stat()? {
            Some(named) if (named.st_dev, named.st_ino) == held => Ok(()),
            _ => Err(Error::Exchanged { path: self.path.clone() }),
        }
    }

    /// Checks that this process may create names in the parent directory, as far as that can be told without creating one.
    pub fn check_writable(&self) -> Result<(), Error> {
        check_writable(self.parent(), &self.parent_path())
    }

    /// Waits until the names in the parent directory are durable.
    pub fn sync_parent(&self) -> Result<(), Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        retry_on_intr(|| openat(&self.parent, ".", flags, Mode::empty()))
            .and_then(fsync)
            .map_err(|error| Error::io("sync", self.parent_path(), error))
    }
}

/// Checks that this process may create names in a directory, as far as that can be told without creating one.
pub(crate) fn check_writable(directory: BorrowedFd<'_>, path: &Path) -> Result<(), Error> {
    let failed = |error| Error::io("write to", path, error);
    if is_writable(directory).map_err(failed)? { Ok(()) } else { Err(failed(Errno::ACCESS)) }
}

/// Returns whether this process may create names in a directory, as far as its permissions tell.
///
/// # Errors
/// As faccessat(2), but for missing permissions.
pub(crate) fn is_writable(directory: BorrowedFd<'_>) -> Result<bool, Errno> {
    match accessat(directory, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS) {
        Err(Errno::ACCESS) => Ok(false),
        asked => asked.map(|()| true),
    }
}

/// Walks a path name by name.
struct Resolver<'a> {
    given: &'a Path,
    at: OwnedFd,
    /// The path to `at`, without links.
    path: PathBuf,
    /// Names still to be resolved, the next one last.
    rest: Vec<OsString>,
    links: u32,
}

/// Directories are only passed through.
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

fn open_step(at: impl std::os::fd::AsFd, name: impl rustix::path::Arg + Copy) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| openat(&at, name, STEP, Mode::empty()))
}

impl<'a> Resolver<'a> {
    fn new(given: &'a Path) -> Result<Self, Error> {
        let at = open_step(CWD, c".").map_err(|error| Error::io("open", given, error))?;
        let mut resolver = Self { given, at, path: PathBuf::new(), rest: Vec::new(), links: 0 };
        resolver.push(given)?;
        Ok(resolver)
    }

    /// Resolves `path` next.
    fn push(&mut self, path: &Path) -> Result<(), Error> {
        if path.is_absolute() {
            self.at = open_step(CWD, c"/").map_err(|error| Error::io("open", "/", error))?;
            self.path = PathBuf::from("/");
        }
        let names = path.components().rev().filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some("..".into()),
            _ => None,
        });
        self.rest.extend(names);
        Ok(())
    }

    fn run(mut self) -> Result<Place, Error> {
        while let Some(name) = self.rest.pop() {
            if name == ".." {
                self.go_up()?;
                continue;
            }
            let path = self.path.join(&name);
            let failed = |error| Error::io("open", &path, error);
            let found = match statat(&self.at, &*name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) if self.rest.is_empty() => return Ok(Place { parent: self.at, name, path }),
                found => found.map_err(failed)?,
            };
            match FileType::from_raw_mode(found.st_mode) {
                FileType::Symlink => self.follow(&name, &path)?,
                FileType::Directory => {
                    if self.rest.is_empty() {
                        return Ok(Place { parent: self.at, name, path });
                    }
                    self.at = open_step(&self.at, &*name).map_err(failed)?;
                    self.path = path;
                }
                _ if self.rest.is_empty() => return Ok(Place { parent: self.at, name, path }),
                _ => return Err(failed(Errno::NOTDIR)),
            }
        }
        self.of_open_directory()
    }

    fn go_up(&mut self) -> Result<(), Error> {
        self.at = open_step(&self.at, c"..").map_err(|error| Error::io("open", self.given, error))?;
        // The resolved path has no links: its last name is the directory to leave.
        if self.path.file_name().is_none_or(|name| name == "..") {
            if self.path != Path::new("/") {
                self.path.push("..");
            }
        } else {
            self.path.pop();
        }
        Ok(())
    }

    fn follow(&mut self, name: &OsStr, path: &Path) -> Result<(), Error> {
        let failed = |error| Error::io("open", path, error);
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(failed(Errno::LOOP));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let link = retry_on_intr(|| openat(&self.at, name, flags, Mode::empty())).map_err(failed)?;
        let owner = fstat(&link).map_err(failed)?.st_uid;
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            return Err(Error::foreign(path, format!("is a symbolic link owned by user {owner}, and is not followed")));
        }
        let to = readlinkat(&link, c"", Vec::new()).map_err(failed)?;
        self.push(Path::new(&OsString::from_vec(to.into_bytes())))
    }

    /// Handles a path that ends in `.` or `..`, or is the current directory: the place is found from below.
    fn of_open_directory(mut self) -> Result<Place, Error> {
        let failed = |error: Errno| Error::io("open", self.given, error);
        let real = std::fs::canonicalize(self.given).map_err(|error| Error::io("open", self.given, error))?;
        let Some(name) = real.file_name() else {
            let problem = "is a file system root";
            return Err(Error::Unusable { path: self.given.to_owned(), problem });
        };
        let here = inode_id(&self.at).map_err(failed)?;
        self.at = open_step(&self.at, c"..").map_err(failed)?;
        let place = Place { parent: self.at, name: name.to_owned(), path: real.clone() };
        match place.stat()? {
            Some(named) if (named.st_dev, named.st_ino) == here => Ok(place),
            _ => Err(Error::Exchanged { path: real }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(path: &Path) -> (InodeId, OsString) {
        let place = Place::resolve(path).expect("it can be resolved");
        (inode_id(place.parent()).expect("it is open"), place.name().to_owned())
    }

    #[test]
    fn all_spellings_of_a_target_are_one_place() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let root = std::fs::canonicalize(scratch.path()).expect("it is there");
        std::fs::create_dir_all(root.join("a/real/sub")).expect("directories");
        std::os::unix::fs::symlink("a/real", root.join("link")).expect("a link");
        std::os::unix::fs::symlink(root.join("link"), root.join("a/again")).expect("a link");
        let real = resolved(&root.join("a/real"));
        for spelling in ["link", "link/", "a/again", "a/again/.", "a/../link", "a/real/sub/..", "link/sub/../"] {
            assert_eq!(resolved(&root.join(spelling)), real, "{spelling}");
        }
        assert_eq!(resolved(&root.join("link/new")).1, "new");
        assert!(Place::resolve(&root.join("none/new")).is_err(), "its parent is not there");
        assert!(Place::resolve(Path::new("/")).is_err(), "nothing is beside it");
    }

    #[test]
    fn a_link_to_nowhere_names_what_is_to_be_made() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        std::os::unix::fs::symlink("new", scratch.path().join("link")).expect("a link");
        let place = Place::resolve(&scratch.path().join("link")).expect("its parent is there");
        assert_eq!(place.name(), "new");
        std::os::unix::fs::symlink("loop", scratch.path().join("loop")).expect("a link");
        assert!(Place::resolve(&scratch.path().join("loop")).is_err());
    }

    #[test]
    fn a_link_of_another_user_is_not_followed() {
        if !rustix::process::geteuid().is_root() {
            return sealift_desk::skipped("needs root: gives files away");
        }
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let link = scratch.path().join("link");
        std::fs::create_dir(scratch.path().join("real")).expect("a directory");
        std::os::unix::fs::symlink("real", &link).expect("a link");
        std::os::unix::fs::lchown(&link, Some(12345), None).expect("it is root's");
        for path in [link.clone(), link.join("below")] {
            let error = Place::resolve(&path).expect_err("it is another's").to_string();
            assert!(error.contains("12345"), "{error}");
        }
    }

    #[test]
    fn an_exchange_is_noticed() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let target = scratch.path().join("target");
        std::fs::create_dir(&target).expect("a directory");
        let place = Place::resolve(&target).expect("it is there");
        let open = place.open_directory().expect("it can be opened").expect("it is there");
        place.check_same(open.as_fd()).expect("it is the same");
        std::fs::rename(&target, scratch.path().join("old")).expect("it can be moved");
        std::os::unix::fs::symlink("old", &target).expect("a link");
        assert!(matches!(place.check_same(open.as_fd()), Err(Error::Exchanged { .. })));
        assert!(matches!(place.open_directory(), Err(Error::Unusable { .. })));
    }
}
