//! What new files take over from their directory besides what was signed: a default ACL, and the group of a set-group-ID directory.

use std::os::fd::BorrowedFd;

use rustix::fs::{Gid, Mode, fchmod, fchown, fremovexattr, fstat};
use rustix::io::Errno;

/// Makes a directory of this program its user's alone, and removes what it would pass on to the files made in it.
pub(crate) fn disinherit(directory: BorrowedFd<'_>) -> Result<(), Errno> {
    for acl in ["system.posix_acl_default", "system.posix_acl_access"] {
        match fremovexattr(directory, acl) {
            Ok(()) | Err(Errno::NODATA | Errno::NOTSUP) => {}
            Err(error) => return Err(error),
        }
    }
    let (stat, group) = (fstat(directory)?, rustix::process::getegid());
    if stat.st_gid != group.as_raw() {
        // A file system without owners has one group for everything, which cannot be changed.
        let _ = fchown(directory, None, Some(Gid::from_raw(group.as_raw())));
    }
    match fchmod(directory, Mode::RWXU) {
        // Its modes may not be changed either.
        Err(Errno::PERM | Errno::NOTSUP | Errno::NOSYS) if stat.st_mode & 0o700 == 0o700 => Ok(()),
        changed => changed,
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    use std::process::Command;

    use super::*;

    #[test]
    fn nothing_is_passed_on() {
        let scratch = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a temporary folder");
        let (above, path) = (scratch.path(), scratch.path().join("own"));
        let acl = Command::new("setfacl").args(["-d", "-m", "u:12345:rwx"]).arg(above).status();
        if !acl.is_ok_and(|status| status.success()) {
            return sealift_desk::skipped("needs setfacl, and a file system with ACLs");
        }
        std::fs::set_permissions(above, std::fs::Permissions::from_mode(0o2755)).expect("it is ours");
        std::fs::create_dir(&path).expect("a directory");
        let directory = crate::fs::confined::open_user_dir(&path).expect("it is there");
        let acls = |of: &std::path::Path| {
            let names = ["system.posix_acl_access", "system.posix_acl_default"];
            names.map(|name| rustix::fs::lgetxattr(of, name, &mut [0; 256][..]).is_ok())
        };
        assert_eq!(acls(&path), [true, true]);
        disinherit(directory.as_fd()).expect("it is ours");
        std::fs::create_dir(path.join("below")).expect("a directory");
        std::fs::write(path.join("file"), "").expect("a file");
        for name in ["", "below", "file"] {
            let found = path.join(name).metadata().expect("it is there");
            assert_eq!(acls(&path.join(name)), [false, false], "{name:?}");
            assert_eq!(found.gid(), rustix::process::getegid().as_raw(), "{name:?}");
            assert_eq!(found.mode() & 0o6000, 0, "{name:?}");
        }
        assert_eq!(path.metadata().expect("it is there").mode() & 0o7777, 0o700);
    }
}
