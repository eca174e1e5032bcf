//! Which mount an open file was reached by. The device does not tell: a file system may be mounted in many places, also within itself.

use std::os::fd::{AsFd, AsRawFd as _};

use rustix::fs::{AtFlags, StatxFlags, statx};
use rustix::io::{Errno, retry_on_intr};

/// Returns the mount of an open file or directory.
///
/// # Errors
/// As statx(2); ENOSYS if neither that call nor `/proc` tells, since Linux 5.8 and 3.15.
pub(crate) fn mount_id(fd: impl AsFd) -> Result<u64, Errno> {
    let flags = AtFlags::EMPTY_PATH | AtFlags::NO_AUTOMOUNT;
    match retry_on_intr(|| statx(&fd, c"", flags, StatxFlags::MNT_ID)) {
        Ok(found) if StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID) => Ok(found.stx_mnt_id),
        // Older kernels, and sandboxes that forbid the call.
        Ok(_) | Err(Errno::NOSYS | Errno::PERM) => listed_mount_id(&fd),
        Err(error) => Err(error),
    }
}

/// Returns the same as `/proc` lists it (proc_pid_fdinfo(5)).
pub(crate) fn listed_mount_id(fd: impl AsFd) -> Result<u64, Errno> {
    let listed = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_fd().as_raw_fd()));
    let listed = listed.map_err(|_| Errno::NOSYS)?;
    let id = listed.lines().find_map(|line| line.strip_prefix("mnt_id:"));
    id.and_then(|id| id.trim().parse().ok()).ok_or(Errno::NOSYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::confined::open_user_dir;

    #[test]
    fn both_ways_agree() {
        let (here, other) = (env!("CARGO_MANIFEST_DIR"), "/proc");
        let ids = [here, other].map(|path| {
            let directory = open_user_dir(path.as_ref()).expect("it is there");
            let ids =
                (mount_id(&directory).expect("the kernel tells"), listed_mount_id(&directory).expect("it is listed"));
            assert_eq!(ids.0, ids.1, "{path}");
            ids.0
        });
        assert_ne!(ids[0], ids[1]);
    }
}
