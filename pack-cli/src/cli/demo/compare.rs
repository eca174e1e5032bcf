//! The demo's own comparison of two trees, which shares nothing with packing and unpacking.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::Read as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{lgetxattr, llistxattr};
use sealift::Error;
use sealift::source::XattrFilter;

use super::super::interrupt;

/// What was compared, and what differed.
#[derive(Debug, Default)]
pub(super) struct Compared {
    pub(super) files: u64,
    pub(super) directories: u64,
    pub(super) others: u64,
    pub(super) bytes: u64,
    /// `path: what`, the first few.
    pub(super) differences: Vec<String>,
    pub(super) difference_count: u64,
}

/// How many differences are named.
const NAMED: usize = 10;

/// Compares types, modes, owners, times, links, extended attributes and content. Without root, owners, set-id bits, devices and
/// attributes of the system are left out, which only root can set.
///
/// # Errors
/// Something cannot be read, or a signal came.
pub(super) fn compare(left: &Path, right: &Path, root: bool, jobs: usize) -> Result<Compared, Error> {
    let mut walk = Walk { root, filter: XattrFilter::default(), found: Compared::default(), ..Walk::default() };
    walk.pair(left, right, Path::new("."))?;
    let mut pending = vec![PathBuf::new()];
    while let Some(directory) = pending.pop() {
        check()?;
        walk.directory(left, right, &directory, &mut pending)?;
    }
    let mut found = walk.found;
    for difference in contents(left, right, &walk.contents, jobs)? {
        found.add(difference);
    }
    Ok(found)
}

impl Compared {
    fn add(&mut self, difference: String) {
        self.difference_count += 1;
        if self.differences.len() < NAMED {
            self.differences.push(difference);
        }
    }
}

fn check() -> Result<(), Error> {
    if interrupt::pending() { Err(Error::Cancelled) } else { Ok(()) }
}

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    move |source| Error::Io { doing: "read", path: path.to_owned(), source }
}

#[derive(Default)]
struct Walk {
    root: bool,
    filter: XattrFilter,
    found: Compared,
    contents: Vec<PathBuf>,
    /// Inodes with several names, from either side to the other.
    links: [HashMap<(u64, u64), (u64, u64)>; 2],
}

impl Walk {
    fn directory(&mut self, left: &Path, right: &Path, at: &Path, pending: &mut Vec<PathBuf>) -> Result<(), Error> {
        let mut names = children(&left.join(at))?;
        let others = children(&right.join(at))?;
        for name in others.keys().filter(|name| !names.contains_key(*name)) {
            self.found.add(format!("{}: is new", at.join(name).display()));
        }
        if !self.root {
            names.retain(|name, is_device| !*is_device || others.contains_key(name));
        }
        for name in names.keys() {
            let path = at.join(name);
            if !others.contains_key(name) {
                self.found.add(format!("{}: is missing", path.display()));
            } else if self.pair(&left.join(&path), &right.join(&path), &path)? {
                pending.push(path);
            }
        }
        Ok(())
    }

    /// Compares what stands at one path, apart from its content. Says whether it is a directory on both sides.
    fn pair(&mut self, left: &Path, right: &Path, path: &Path) -> Result<bool, Error> {
        let a = std::fs::symlink_metadata(left).map_err(failed(left))?;
        let b = std::fs::symlink_metadata(right).map_err(failed(right))?;
        if a.file_type() != b.file_type() {
            self.found.add(format!("{}: has another type", path.display()));
            return Ok(false);
        }
        self.metadata(&a, &b, path);
        if self.xattrs(left)? != self.xattrs(right)? {
            self.found.add(format!("{}: has other extended attributes", path.display()));
        }
        if a.is_dir() {
            self.found.directories += 1;
        } else if a.is_file() {
            self.found.files += 1;
            if self.same_links(&a, &b, path) {
                self.found.bytes += a.len();
                self.contents.push(path.to_owned());
            }
        } else {
            self.found.others += 1;
            if a.is_symlink() && std::fs::read_link(left).ok() != std::fs::read_link(right).ok() {
                self.found.add(format!("{}: leads elsewhere", path.display()));
            }
        }
        Ok(a.is_dir())
    }

    fn metadata(&mut self, a: &Metadata, b: &Metadata, path: &Path) {
        let mode = if self.root { 0o7777 } else { 0o777 };
        let size = |m: &Metadata| if m.is_dir() { 0 } else { m.size() };
        let checks = [
            ("mode", a.mode() & mode == b.mode() & mode),
            ("owner", !self.root || (a.uid(), a.gid()) == (b.uid(), b.gid())),
            ("time", (a.mtime(), a.mtime_nsec()) == (b.mtime(), b.mtime_nsec())),
            ("size", size(a) == size(b)),
            ("device number", a.rdev() == b.rdev()),
        ];
        for (what, same) in checks {
            if !same {
                self.found.add(format!("{}: has another {what}", path.display()));
            }
        }
    }

    /// Whether this is an inode's first name. Names of one inode on the left must be those of one on the right.
    fn same_links(&mut self, a: &Metadata, b: &Metadata, path: &Path) -> bool {
        if a.nlink() == 1 && b.nlink() == 1 {
            return true;
        }
        let (left, right) = ((a.dev(), a.ino()), (b.dev(), b.ino()));
        let seen = (self.links[0].get(&left).copied(), self.links[1].get(&right).copied());
        match seen {
            (None, None) => {
                self.links[0].insert(left, right);
                self.links[1].insert(right, left);
                true
            }
            (Some(other), Some(_)) if other == right => false,
            _ => {
                self.found.add(format!("{}: is linked otherwise", path.display()));
                true
            }
        }
    }

    fn xattrs(&self, path: &Path) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Error> {
        let mut names = vec![0; 65_536];
        let len = match llistxattr(path, &mut names) {
            Ok(len) => len,
            Err(rustix::io::Errno::NOTSUP) => 0,
            Err(error) => return Err(failed(path)(error.into())),
        };
        let mut found = BTreeMap::new();
        let wanted = |name: &&[u8]| !name.is_empty() && self.filter.takes(name);
        for name in names[..len].split(|byte| *byte == 0).filter(wanted) {
            if !self.root && !name.starts_with(b"user.") {
                continue;
            }
            let mut value = vec![0; 65_536];
            let len = lgetxattr(path, name, &mut value).map_err(|error| failed(path)(error.into()))?;
            value.truncate(len);
            found.insert(name.to_vec(), value);
        }
        Ok(found)
    }
}

/// The names in a directory, and whether each is a device.
fn children(path: &Path) -> Result<BTreeMap<OsString, bool>, Error> {
    let mut names = BTreeMap::new();
    for entry in std::fs::read_dir(path).map_err(failed(path))? {
        let entry = entry.map_err(failed(path))?;
        let kind = entry.file_type().map_err(failed(path))?;
        names.insert(entry.file_name(), kind.is_block_device() || kind.is_char_device());
    }
    Ok(names)
}

/// Compares the bytes of files on several threads.
fn contents(left: &Path, right: &Path, paths: &[PathBuf], jobs: usize) -> Result<Vec<String>, Error> {
    let (next, result) = (AtomicUsize::new(0), Mutex::new(Ok(Vec::new())));
    let work = || {
        let mut buffers = (vec![0; 1 << 18], vec![0; 1 << 18]);
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            let equal = check().and_then(|()| same_bytes(&left.join(path), &right.join(path), &mut buffers));
            let mut result = result.lock().unwrap_or_else(PoisonError::into_inner);
            match (equal, &mut *result) {
                (Ok(true), Ok(_)) => {}
                (Ok(false), Ok(differences)) => differences.push(format!("{}: has other content", path.display())),
                (Err(error), Ok(_)) => *result = Err(error),
                (_, Err(_)) => return,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..jobs {
            scope.spawn(work);
        }
        work();
    });
    let mut differences = result.into_inner().unwrap_or_else(PoisonError::into_inner)?;
    differences.sort();
    Ok(differences)
}

fn same_bytes(left: &Path, right: &Path, buffers: &mut (Vec<u8>, Vec<u8>)) -> Result<bool, Error> {
    let mut a = File::open(left).map_err(failed(left))?;
    let mut b = File::open(right).map_err(failed(right))?;
    loop {
        let (x, y) =
            (fill(&mut a, &mut buffers.0).map_err(failed(left))?, fill(&mut b, &mut buffers.1).map_err(failed(right))?);
        if buffers.0[..x] != buffers.1[..y] {
            return Ok(false);
        }
        if x == 0 {
            return Ok(true);
        }
    }
}

/// Fills a buffer, or reads to the end.
fn fill(file: &mut File, buffer: &mut [u8]) -> std::io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match file.read(&mut buffer[len..])? {
            0 => break,
            got => len += got,
        }
    }
    Ok(len)
}
