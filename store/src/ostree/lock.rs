//! The lock by which libostree keeps writers and a prune apart: an open file description lock (fcntl(2)), or flock(2) if the file system does not
//! support these.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

/// What a lock excludes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LockKind {
    /// Exclusive holders.
    Shared,
    /// All other holders.
    Exclusive,
}

/// The pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// Tries to lock an open file until it is closed. Returns whether it succeeded.
pub(crate) fn try_lock(file: &OwnedFd, kind: LockKind) -> Result<bool, Errno> {
    let l_type = match kind {
        LockKind::Shared => libc::F_RDLCK,
        LockKind::Exclusive => libc::F_WRLCK,
    };
    let short = |value: libc::c_int| libc::c_short::try_from(value).unwrap_or_default();
    let whole = libc::flock { l_type: short(l_type), l_whence: short(libc::SEEK_SET), l_start: 0, l_len: 0, l_pid: 0 };
    loop {
        return match fcntl(file.as_fd(), FcntlArg::F_OFD_SETLK(&whole)) {
            Ok(_) => Ok(true),
            Err(nix::Error::EINTR) => continue,
            Err(nix::Error::EAGAIN | nix::Error::EACCES) => Ok(false),
            Err(nix::Error::EINVAL | nix::Error::ENOSYS | nix::Error::EOPNOTSUPP) => try_flock(file, kind),
            Err(error) => Err(Errno::from_io_error(&error.into()).unwrap_or(Errno::IO)),
        };
    }
}

fn try_flock(file: &OwnedFd, kind: LockKind) -> Result<bool, Errno> {
    let operation = match kind {
        LockKind::Shared => FlockOperation::NonBlockingLockShared,
        LockKind::Exclusive => FlockOperation::NonBlockingLockExclusive,
    };
    match flock(file, operation) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Takes the lock, waiting at most this long. Returns whether it succeeded.
pub(crate) fn wait_lock(file: &OwnedFd, kind: LockKind, timeout: Option<Duration>) -> Result<bool, Errno> {
    let start = Instant::now();
    while !try_lock(file, kind)? {
        if timeout.is_some_and(|timeout| start.elapsed() >= timeout) {
            return Ok(false);
        }
        std::thread::sleep(PAUSE);
    }
    Ok(true)
}
