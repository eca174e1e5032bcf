//! Selects the extended attributes to pack, and reads them.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, BorrowedFd};

use nix::sched::{CloneFlags, unshare};
use rustix::fs::{Access, XattrFlags, access, fgetxattr, flistxattr, lgetxattr, llistxattr, lsetxattr};
use rustix::io::Errno;
use rustix::process::fchdir;
use sealift_format::num;
use sealift_format::{Index, Xattr, XattrRef};

/// The maximum length of a list of names in Linux (linux/limits.h).
const XATTR_LIST_MAX: usize = 65_536;

/// Names of extended attributes to pack, with `*` for any bytes.
#[derive(Clone, Debug)]
pub struct XattrFilter {
    patterns: Vec<Vec<u8>>,
    names: Names,
}

/// Literal names, sorted and concatenated in `bytes`: an index may have very many.
#[derive(Clone, Debug, Default)]
struct Names {
    bytes: Vec<u8>,
    spans: Vec<(u32, u8)>,
}

impl Names {
    fn get(bytes: &[u8], (at, len): (u32, u8)) -> &[u8] {
        let at = num::at(at);
        &bytes[at..at + usize::from(len)]
    }

    fn add<'a>(&mut self, names: impl Iterator<Item = &'a [u8]>) {
        for name in names {
            // Skips what cannot occur: a name longer than any file system allows, or more names than an index can hold.
            let (Ok(at), Ok(len)) = (u32::try_from(self.bytes.len()), u8::try_from(name.len())) else { continue };
            self.bytes.extend(name);
            self.spans.push((at, len));
        }
        let bytes = &self.bytes;
        self.spans.sort_unstable_by(|a, b| Self::get(bytes, *a).cmp(Self::get(bytes, *b)));
        self.spans.dedup_by(|a, b| Self::get(bytes, *a) == Self::get(bytes, *b));
    }

    fn has(&self, name: &[u8]) -> bool {
        self.spans.binary_search_by(|span| Self::get(&self.bytes, *span).cmp(name)).is_ok()
    }
}

impl Default for XattrFilter {
    /// Attributes that belong to the file and not to its host: capabilities, POSIX ACLs, and the user's own.
    fn default() -> Self {
        let names: [&[u8]; 4] =
            [b"security.capability", b"system.posix_acl_access", b"system.posix_acl_default", b"user.*"];
        Self { patterns: names.iter().map(|name| name.to_vec()).collect(), names: Names::default() }
    }
}

impl XattrFilter {
    /// The default, and all that a file of `index` has.
    pub(crate) fn of(index: &Index) -> Self {
        let mut filter = Self::default();
        filter.add_names_of(index);
        filter
    }

    /// Also packs those that match `pattern`.
    pub fn add(&mut self, pattern: &[u8]) {
        self.patterns.push(pattern.to_vec());
    }

    /// Also packs those whose names a file of `index` has.
    pub fn add_names_of(&mut self, index: &Index) {
        let Self { patterns, names } = self;
        let is_new = |name: &&[u8]| !patterns.iter().any(|pattern| matches(pattern, name));
        names.add(
            index.attribute_rows().iter().flat_map(|row| row.xattrs.iter()).map(|xattr| xattr.name).filter(is_new),
        );
    }

    /// Returns whether an attribute of this name is packed.
    #[must_use]
    pub fn takes(&self, name: &[u8]) -> bool {
        self.names.has(name) || self.patterns.iter().any(|pattern| matches(pattern, name))
    }

    /// Reads the attributes of an open file that this filter accepts.
    pub(crate) fn read(&self, file: BorrowedFd<'_>) -> Result<Vec<Xattr>, Errno> {
        self.read_by(|names| flistxattr(file, names), |name, value| fgetxattr(file, name, value))
    }

    /// Reads the attributes of a file that must not be opened: a symbolic link, a device, a fifo.
    pub(crate) fn read_link(&self, directory: BorrowedFd<'_>, name: &CStr) -> Result<Vec<Xattr>, Errno> {
        at_path(directory, name.to_bytes(), |path| {
            self.read_by(|names| llistxattr(path, names), |name, value| lgetxattr(path, name, value))
        })
    }

    fn read_by(
        &self,
        list: impl Fn(&mut [u8]) -> Result<usize, Errno>,
        get: impl Fn(&[u8], &mut [u8]) -> Result<usize, Errno>,
    ) -> Result<Vec<Xattr>, Errno> {
        // Most files have none: one call, and nothing is allocated.
        let mut few = [0; 1024];
        let names = match list(&mut few) {
            Ok(len) => few[..len].to_vec(),
            Err(Errno::NOTSUP) => return Ok(Vec::new()),
            Err(Errno::RANGE) => {
                let mut many = vec![0; XATTR_LIST_MAX];
                let len = list(&mut many)?;
                many.truncate(len);
                many
            }
            Err(other) => return Err(other),
        };
        let mut xattrs = Vec::new();
        for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty() && self.takes(name)) {
            let mut value = vec![0; 65_536];
            match get(name, &mut value) {
                Ok(len) => value.truncate(len),
                Err(Errno::NODATA) => continue, // removed since it was listed
                Err(other) => return Err(other),
            }
            xattrs.push(Xattr { name: name.to_vec(), value });
        }
        Ok(xattrs)
    }
}

/// Sets an extended attribute of a file that must not be opened.
pub(crate) fn set_link(directory: BorrowedFd<'_>, name: &[u8], xattr: XattrRef<'_>) -> Result<(), Errno> {
    at_path(directory, name, |path| lsetxattr(path, xattr.name, xattr.value, XattrFlags::empty()))
}

/// Calls `call` with a path to a name in an open directory: until Linux 6.13, no call reaches the attributes of a link by a descriptor.
fn at_path<T: Send>(
    directory: BorrowedFd<'_>,
    name: &[u8],
    call: impl Fn(&[u8]) -> Result<T, Errno> + Sync,
) -> Result<T, Errno> {
    let mut path = format!("/proc/self/fd/{}/", directory.as_raw_fd()).into_bytes();
    path.extend(name);
    match call(&path) {
        // Without /proc.
        Err(Errno::NOENT) if access("/proc/self/fd", Access::EXISTS).is_err() => {
            in_directory(directory, || call(&[b"./", name].concat()))
        }
        called => called,
    }
}

/// Runs `call` on a thread that has `directory` as its own current directory.
fn in_directory<T: Send>(
    directory: BorrowedFd<'_>,
    call: impl FnOnce() -> Result<T, Errno> + Send,
) -> Result<T, Errno> {
    let run = || {
        unshare(CloneFlags::CLONE_FS)
            .map_err(std::io::Error::from)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        fchdir(directory)?;
        call()
    };
    std::thread::scope(|scope| match std::thread::Builder::new().spawn_scoped(scope, run) {
        Ok(thread) => thread.join().unwrap_or(Err(Errno::IO)),
        Err(_) => Err(Errno::AGAIN),
    })
}

/// Returns whether `name` matches a pattern in which `*` stands for any bytes.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // The last star, and the end of its match in the name: only that one may need to be extended.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(byte) if *byte == name[n] => (p, n) = (p + 1, n + 1),
            _ => match &mut star {
                Some((at, end)) => {
                    *end += 1;
                    (p, n) = (*at + 1, *end);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_leaves_the_host_behind() {
        let filter = XattrFilter::default();
        assert!(filter.takes(b"user.note") && filter.takes(b"security.capability"));
        assert!(!filter.takes(b"security.selinux") && !filter.takes(b"trusted.overlay.opaque"));
    }

    #[test]
    fn what_a_file_has_is_read() {
        let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file can be made");
        let set = |name: &str, value: &[u8]| rustix::fs::fsetxattr(&file, name, value, XattrFlags::empty());
        if set("user.note", b"yes").is_err() {
            return sealift_desk::skipped("needs extended attributes on this file system");
        }
        for number in 0..50 {
            set(&format!("user.a_name_that_makes_the_list_of_names_long.{number}"), b"").expect("there is room");
        }
        let read = XattrFilter::default().read(std::os::fd::AsFd::as_fd(&file)).expect("they can be read");
        assert_eq!(read.len(), 51);
        assert!(read.contains(&Xattr { name: b"user.note".to_vec(), value: b"yes".to_vec() }));
    }

    #[test]
    fn a_link_is_reached_from_its_directory_without_its_path() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        std::os::unix::fs::symlink("nowhere", scratch.path().join("-link")).expect("a link");
        let directory = crate::fs::confined::open_user_dir(scratch.path()).expect("it is there");
        let before = std::env::current_dir().expect("it is known");
        let found = in_directory(std::os::fd::AsFd::as_fd(&directory), || llistxattr("./-link", &mut [0_u8; 1024][..]));
        found.expect("it is there");
        assert_eq!(std::env::current_dir().expect("it is known"), before, "only that thread moved");
    }

    #[test]
    fn patterns() {
        assert!(matches(b"*", b"") && matches(b"a*c", b"abbc") && matches(b"trusted.*", b"trusted.x"));
        assert!(!matches(b"a*c", b"abd") && !matches(b"a", b"ab"));
        assert!(
            matches(b"*a*b*", b"xaxbx") && matches(b"a*ab", b"aab") && !matches(b"a*ab", b"ab") && !matches(b"*a", b"")
        );
    }

    #[test]
    fn many_stars_take_no_time() {
        assert!(!matches(&b"*a".repeat(100), &[&[b'a'; 250][..], b"b"].concat()));
    }

    #[test]
    fn names_of_an_index_are_no_patterns() {
        let mut filter = XattrFilter::default();
        filter.names.add([&b"trusted.*"[..], b"trusted.b", b"trusted.a", b"trusted.b"].into_iter());
        assert_eq!(filter.names.spans.len(), 3);
        assert!(filter.takes(b"trusted.a") && filter.takes(b"trusted.b") && !filter.takes(b"trusted.c"));
    }
}
