//! Opens paths below a directory: no symbolic link is followed, and a path may be longer than PATH_MAX.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, chmod, fchmod, fstat, openat, openat2, renameat, statat,
    unlinkat,
};
use rustix::io::{Errno, retry_on_intr};

use crate::fs::mount_id::mount_id;
use crate::fs::rename::moves_no_directory;

/// Longest path given to one system call, below PATH_MAX of 4096.
pub const STEP_LEN: usize = 4000;

/// Opens `path`, made of plain components, below `root`; an empty path is `root` itself.
///
/// # Errors
/// As openat2(2); a symbolic link on the way gives ELOOP.
pub fn open_beneath(root: BorrowedFd<'_>, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut rest = path;
    let mut at: Option<OwnedFd> = None;
    while rest.len() > STEP_LEN {
        let cut = rest[..STEP_LEN].iter().rposition(|byte| *byte == b'/').ok_or(Errno::NAMETOOLONG)?;
        let from = at.as_ref().map_or(root, AsFd::as_fd);
        at = Some(open_step(
            from,
            &rest[..cut],
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::BENEATH,
        )?);
        rest = &rest[cut + 1..];
    }
    let from = at.as_ref().map_or(root, AsFd::as_fd);
    open_step(from, if rest.is_empty() { b"." } else { rest }, flags | OFlags::CLOEXEC, mode, ResolveFlags::BENEATH)
}

/// Opens a path of at most [`STEP_LEN`] bytes, made of plain components and `..`, without following a symbolic link.
pub fn open_within(from: BorrowedFd<'_>, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    open_step(from, path, flags | OFlags::CLOEXEC, mode, ResolveFlags::empty())
}

/// Opens one name without following a symbolic link or entering another file system.
///
/// # Errors
/// As openat2(2); another file system gives EXDEV.
pub fn open_on_same_device(from: BorrowedFd<'_>, name: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    open_step(from, name, flags | OFlags::CLOEXEC, mode, ResolveFlags::BENEATH | ResolveFlags::NO_XDEV)
}

fn open_step(
    from: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let resolve = resolve | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    loop {
        return match openat2(from, path, flags | OFlags::NOFOLLOW, mode, resolve) {
            Err(Errno::AGAIN | Errno::INTR) => continue, // a rename elsewhere raced with the look-up
            // Kernels before 5.6, and sandboxes that do not know the call.
            Err(error @ (Errno::NOSYS | Errno::PERM)) => {
                static ONCE: std::sync::Once = std::sync::Once::new();
                ONCE.call_once(|| tracing::info!(%error, "openat2 is missing: paths are opened name by name"));
                open_by_component(from, path, flags, mode, resolve)
            }
            other => other,
        };
    }
}

/// Opens a path as openat2(2) does: no symbolic link is followed, and with `NO_XDEV` no mount is entered.
fn open_by_component(
    from: BorrowedFd<'_>,
    path: &[u8],
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<OwnedFd, Errno> {
    let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let last = names.pop().unwrap_or(b".");
    let mut at: Option<OwnedFd> = None;
    for name in names {
        let here = at.as_ref().map_or(from, AsFd::as_fd);
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = Some(retry_on_intr(|| openat(here, name, step, Mode::empty()))?);
    }
    let here = at.as_ref().map_or(from, AsFd::as_fd);
    let opened = retry_on_intr(|| openat(here, last, flags | OFlags::NOFOLLOW, mode))?;
    // Nothing on the way to another mount leads back to this one.
    if resolve.contains(ResolveFlags::NO_XDEV) && mount_id(&opened)? != mount_id(from)? {
        return Err(Errno::XDEV);
    }
    Ok(opened)
}

/// Opens one name in a directory, as openat(2), and retries after a signal. A symbolic link is not followed.
pub fn open_name(from: BorrowedFd<'_>, name: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| openat(from, name, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, mode))
}

/// Opens with `open` a file of this process's user. If its mode denies access even to its owner, the mode is changed; the caller restores it.
///
/// # Errors
/// As `open`, or chmod(2).
pub fn open_own(flags: OFlags, open: impl Fn(OFlags) -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    match open(flags) {
        Err(Errno::ACCESS) => {
            let closed = open(flags & OFlags::DIRECTORY | OFlags::PATH)?;
            let path = format!("/proc/self/fd/{}", closed.as_raw_fd());
            chmod(&*path, Mode::RWXU)?;
            retry_on_intr(|| openat(CWD, &*path, flags | OFlags::CLOEXEC, Mode::empty()))
        }
        opened => opened,
    }
}

/// Opens by its path a regular file that this program wrote: refuses a link, and a fifo, on which opening would block.
///
/// # Errors
/// As open(2); ELOOP or EINVAL if it is not a regular file.
pub fn open_own_file(path: &std::path::Path) -> std::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(retry_on_intr(|| openat(CWD, path, flags, Mode::empty()))?);
    if file.metadata()?.is_file() { Ok(file) } else { Err(Errno::INVAL.into()) }
}

/// Opens a directory by a path that the user gave: links are followed.
pub fn open_user_dir(path: &std::path::Path) -> Result<OwnedFd, Errno> {
    retry_on_intr(|| openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()))
}

/// Names, in the directory being removed, for directories from deeper levels.
const MOVED: &str = ".sealift-removed-";

/// Removes a file, or a directory with everything in it, without following a link or entering another file system. It need not exist.
///
/// Deep directories are first moved up to `name`, so that neither depth nor open files limit it.
///
/// # Errors
/// As unlinkat(2); also returns an error if a directory cannot be opened.
pub fn remove_tree(parent: BorrowedFd<'_>, name: &[u8]) -> Result<(), Errno> {
    match unlinkat(parent, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => {}
        Err(error) => return Err(error),
    }
    remove_contents(open_to_empty(parent, name)?.as_fd())?;
    unlinkat(parent, name, AtFlags::REMOVEDIR)
}

/// Removes everything in an open directory, without following a link.
pub fn remove_contents(top: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut moved = 0_u64;
    empty(top, top, 0, &mut moved)?;
    let mut next = 0;
    while next < moved {
        let name = format!("{MOVED}{next}");
        next += 1;
        match open_to_empty(top, name.as_bytes()) {
            Ok(below) => empty(top, below.as_fd(), 0, &mut moved)?,
            Err(Errno::NOENT) => continue, // left by a killed run, counted with ours, and removed by now
            Err(error) => return Err(error),
        }
        unlinkat(top, &*name, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

/// Levels down to which a directory is emptied in place, each with an open file.
const LEVELS: u32 = 64;

/// Removes what `directory` holds; a non-empty directory in it is moved to `top` if it lies too deep.
fn empty(top: BorrowedFd<'_>, directory: BorrowedFd<'_>, level: u32, moved: &mut u64) -> Result<(), Errno> {
    for name in remove_names(directory)? {
        let below = open_to_empty(directory, &name)?;
        if level < LEVELS {
            empty(top, below.as_fd(), level + 1, moved)?;
            unlinkat(directory, &*name, AtFlags::REMOVEDIR)?;
            continue;
        }
        loop {
            let done = renameat(directory, &*name, top, format!("{MOVED}{moved}").as_bytes());
            *moved += 1;
            match done {
                // A killed run left a directory of this name, which is counted with ours.
                Err(Errno::NOTEMPTY | Errno::EXIST) => {}
                Err(error) if moves_no_directory(error) => {
                    empty_in_place(below)?;
                    break unlinkat(directory, &*name, AtFlags::REMOVEDIR)?;
                }
                other => break other?,
            }
        }
    }
    Ok(())
}

/// Removes the files and empty directories in a directory, and returns the names of the other directories.
fn remove_names(directory: BorrowedFd<'_>) -> Result<Vec<Vec<u8>>, Errno> {
    let mut left = Vec::new();
    for (name, _) in names_in(directory)? {
        match unlinkat(directory, &*name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => continue,
            Err(Errno::ISDIR | Errno::PERM) => {}
            Err(error) => return Err(error),
        }
        match unlinkat(directory, &*name, AtFlags::REMOVEDIR) {
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::ACCESS) => left.push(name),
            other => other?,
        }
    }
    Ok(left)
}

fn identity(directory: &OwnedFd) -> Result<(u64, u64), Errno> {
    fstat(directory).map(|stat| (stat.st_dev, stat.st_ino))
}

/// Removes what a directory holds, at any depth and with one open file: it goes up through `..`.
fn empty_in_place(mut at: OwnedFd) -> Result<(), Errno> {
    let mut left = remove_names(at.as_fd())?;
    // The directories above `at`, each with the name that leads down and those that are still to be emptied.
    let mut trail = Vec::new();
    loop {
        let Some(name) = left.pop() else {
            let Some((id, name, rest)) = trail.pop() else { return Ok(()) };
            at = open_within(at.as_fd(), b"..", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
            if identity(&at)? != id {
                return Err(Errno::STALE); // it was moved meanwhile
            }
            let name: Vec<u8> = name;
            unlinkat(&at, &*name, AtFlags::REMOVEDIR)?;
            left = rest;
            continue;
        };
        let below = open_to_empty(at.as_fd(), &name)?;
        let rest = std::mem::replace(&mut left, remove_names(below.as_fd())?);
        trail.push((identity(&at)?, name, rest));
        at = below;
    }
}

/// Opens a directory so that its owner can empty it. What is mounted there is not entered.
pub fn open_to_empty(parent: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let open = || open_on_same_device(parent, name, flags, Mode::empty());
    match open() {
        Err(Errno::ACCESS) => {
            let path = open_on_same_device(parent, name, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
            chmod(format!("/proc/self/fd/{}", path.as_raw_fd()), Mode::RWXU)?;
            open()
        }
        Ok(fd) => {
            if fstat(&fd)?.st_mode & 0o700 != 0o700 {
                fchmod(&fd, Mode::RWXU)?;
            }
            Ok(fd)
        }
        Err(error) => Err(error),
    }
}

/// Returns the names in an open directory, without `.` and `..`, and their types as far as the file system tells.
pub fn names_in(directory: BorrowedFd<'_>) -> Result<Vec<(Vec<u8>, FileType)>, Errno> {
    let mut names = Vec::new();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = retry_on_intr(|| openat(directory, ".", flags, Mode::empty()))?;
    for entry in rustix::fs::Dir::new(opened)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b"..") {
            names.push((name.to_vec(), entry.file_type()));
        }
    }
    Ok(names)
}

/// Returns the names in a directory below `root` that are valid text; none if there is no such directory.
pub fn names_below(root: BorrowedFd<'_>, path: &str) -> Result<Vec<String>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let names = match open_beneath(root, path.as_bytes(), flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Vec::new()),
        opened => names_in(opened?.as_fd())?,
    };
    Ok(names.into_iter().filter_map(|(name, _)| String::from_utf8(name).ok()).collect())
}

/// Returns the type of an entry, which some file systems do not give in a listing; [`FileType::Unknown`] if nothing is there any more.
///
/// # Errors
/// As statx(2).
pub fn known_type(directory: BorrowedFd<'_>, name: &[u8], listed: FileType) -> Result<FileType, Errno> {
    if listed != FileType::Unknown {
        return Ok(listed);
    }
    match statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => Ok(FileType::Unknown),
        stat => stat.map(|stat| FileType::from_raw_mode(stat.st_mode)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_emptied_where_it_is() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let deep = scratch.path().join("top").join(["d"; 300].join("/"));
        std::fs::create_dir_all(&deep).expect("directories");
        for above in deep.ancestors().take(300).step_by(7) {
            std::fs::create_dir_all(above.join("side/below")).expect("directories");
            std::fs::write(above.join("side/below/file"), "gone").expect("a file");
        }
        let top = open_user_dir(&scratch.path().join("top")).expect("it can be opened");
        empty_in_place(top).expect("it can be emptied");
        std::fs::remove_dir(scratch.path().join("top")).expect("it is empty");
    }

    #[test]
    fn without_openat2_no_mount_is_entered_and_no_link_followed() {
        let root = open_user_dir("/".as_ref()).expect("it is there");
        let (flags, resolve) = (OFlags::PATH | OFlags::DIRECTORY, ResolveFlags::BENEATH | ResolveFlags::NO_XDEV);
        let open = |path: &str, resolve| {
            open_by_component(root.as_fd(), path.as_bytes(), flags, Mode::empty(), resolve).map(drop)
        };
        assert_eq!(open("proc", ResolveFlags::BENEATH), Ok(()));
        assert_eq!(open("proc", resolve), Err(Errno::XDEV));
        assert_eq!(open("proc/sys", resolve), Err(Errno::XDEV));
        assert_eq!(open("usr/bin", resolve), Ok(()));
        assert!(open("proc/self", ResolveFlags::BENEATH).is_err(), "a link");
    }

    #[test]
    fn a_deep_tree_is_removed_and_what_links_name_stays() {
        let scratch = tempfile::tempdir().expect("a temporary folder");
        let root = open_user_dir(scratch.path()).expect("it can be opened");
        std::fs::write(scratch.path().join("outside"), "kept").expect("a file");
        let mut at = root.try_clone().expect("a descriptor");
        for depth in 0..1000 {
            rustix::fs::mkdirat(&at, "d", Mode::RWXU).expect("a directory");
            let below = openat(&at, "d", OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("it is there");
            rustix::fs::symlinkat(scratch.path().join("outside"), &below, "link").expect("a link");
            if depth % 100 == 0 {
                rustix::fs::mkdirat(&below, "side", Mode::RWXU).expect("a directory");
                rustix::fs::symlinkat(scratch.path(), &below, "side/up").expect("a link");
            }
            at = below;
        }
        rustix::fs::chmodat(&root, "d/d", Mode::empty(), AtFlags::empty()).expect("it is ours");
        remove_tree(root.as_fd(), b"d").expect("it can be removed");
        remove_tree(root.as_fd(), b"d").expect("a missing name is not an error");
        let names = names_in(root.as_fd()).expect("it can be listed");
        assert_eq!(names.iter().map(|(name, _)| &name[..]).collect::<Vec<_>>(), [b"outside"]);
    }
}
