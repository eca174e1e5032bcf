//! Opening paths beneath a directory: no symbolic link is followed, and a path may be longer than PATH_MAX.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;

/// Longest path given to one system call, below PATH_MAX of 4096.
pub(crate) const STEP_LEN: usize = 4000;

/// Opens `path`, made of plain components, beneath `root`; an empty path is `root` itself.
///
/// # Errors
/// As openat2(2); a symbolic link on the way is ELOOP.
pub(crate) fn open_beneath(root: BorrowedFd<'_>, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
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
///
/// # Errors
/// As openat2(2).
pub(crate) fn open_within(from: BorrowedFd<'_>, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    open_step(from, path, flags | OFlags::CLOEXEC, mode, ResolveFlags::empty())
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
            Err(Errno::NOSYS | Errno::PERM) => open_by_component(from, path, flags, mode),
            other => other,
        };
    }
}

fn open_by_component(from: BorrowedFd<'_>, path: &[u8], flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
    let last = names.pop().unwrap_or(b".");
    let mut at: Option<OwnedFd> = None;
    for name in names {
        let here = at.as_ref().map_or(from, AsFd::as_fd);
        let step = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = Some(openat(here, name, step, Mode::empty())?);
    }
    openat(at.as_ref().map_or(from, AsFd::as_fd), last, flags | OFlags::NOFOLLOW, mode)
}

/// Opens a directory by a path that the user gave: links are followed.
pub(crate) fn open_user_dir(path: &std::path::Path) -> Result<OwnedFd, Errno> {
    openat(CWD, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}
