//! Mounts that end with a test.

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};

/// A mounted file system, unmounted on drop.
#[derive(Debug)]
pub struct Mounted(PathBuf);

impl Mounted {
    /// Takes over what is mounted at a path.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self(path)
    }

    /// Mounts a file system in memory, or an overlay, at a directory, which is created if it is missing.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be mounted.
    #[track_caller]
    pub fn new(path: PathBuf, kind: &str, options: &str) -> Self {
        fs::create_dir_all(&path).expect("there is room");
        let options = CString::new(options).expect("it has no zero byte");
        mount(kind, &path, kind, MountFlags::empty(), &*options).unwrap_or_else(|error| panic!("{kind}: {error}"));
        Self(path)
    }

    /// Mounts an overlay over `lower` in a folder, whose changes go to `upper` there.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be mounted.
    #[track_caller]
    pub fn overlay(path: PathBuf, folder: &Path) -> Self {
        let [lower, upper, work] = ["lower", "upper", "work"].map(|name| {
            fs::create_dir_all(folder.join(name)).expect("there is room");
            folder.join(name).display().to_string()
        });
        Self::new(path, "overlay", &format!("lowerdir={lower},upperdir={upper},workdir={work}"))
    }

    /// Mounts a file or directory on itself.
    ///
    /// # Panics
    ///
    /// Panics if it cannot be mounted.
    #[track_caller]
    pub fn on_itself(path: PathBuf) -> Self {
        mount_bind(&path, &path).expect("root mounts");
        Self(path)
    }

    /// Where it is mounted.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // It may have been unmounted already.
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}
