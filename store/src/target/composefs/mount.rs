//! Mounting a tree that a store took: nothing is mounted of which not all has been found to be what the bundle says.
//!
//! The bundle's root is what is trusted: it states the image's digest, and the image names all contents by theirs. Where all of them are
//! sealed the kernel vouches for each without reading it, and goes on doing so: it hands out no byte that differs. Where they are not, all are
//! read and hashed before the mount; nothing keeps them so afterwards.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode as Permissions, OFlags, mkdir, open, openat, rmdir};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};
use sealift_format::num;
use sealift_format::verity::FileDigest;
use sealift_format::{Image, Ref};

use super::check::{Check, Fault, objects_of};
use crate::composefs::kept::{InstallRecord, path_of};
use crate::composefs::repo::Repo;
use crate::ostree::hex;
use crate::trust::{Guard, Judged};
use crate::{Error, Progress};

/// How a tree is mounted.
#[derive(Clone, Copy, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct MountOptions {
    /// Threads; 0 is 1.
    pub jobs: usize,
}

/// What was mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MountStats {
    /// Its name in the store.
    pub name: String,
    /// The image, as in `sha256:` and hexadecimal digits.
    pub image: String,
    /// Objects that the image names.
    pub objects: u64,
    /// Who found that they are right.
    pub checked: Checked,
    /// Bytes that were read and hashed for that.
    pub hashed_bytes: u64,
}

/// Who found that objects are what the image says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there is nobody else")]
pub enum Checked {
    /// The kernel: they are sealed, and it looks at each byte that it hands out.
    Kernel,
    /// Whoever mounted it: they were read before, and whoever may write to the store can change them afterwards.
    Hashed,
}

/// Mounts a tree, which the store took, at the directory `mountpoint`, for reading. Its name is that of the bundle, and after a slash that of the
/// ref; the bundle's alone where the store has one tree of it.
///
/// `guard` decides by the head that the store kept whether its bundle is to be trusted, as [`Guard::judge_taken`] does: it comes with the result.
///
/// # Errors
/// The store has no such tree, the bundle is refused, the image or an object is missing or is not what the bundle says, or the kernel did not
/// mount it. Nothing is mounted then.
pub fn mount(
    store: &Path,
    name: &str,
    mountpoint: &Path,
    options: MountOptions,
    guard: &Guard,
    progress: &Progress,
) -> Result<(MountStats, Judged), Error> {
    let unfit = |problem: String| Error::Store { path: store.to_owned(), problem };
    let Some(repo) = Repo::open(store)? else {
        return Err(unfit("there is no composefs store: unpack a bundle to it first".into()));
    };
    let (bundle, reference) =
        name.split_once('/').map_or((name, None), |(bundle, reference)| (bundle, Some(reference)));
    let Some(kept) = InstallRecord::load(&repo, bundle)? else {
        let names = InstallRecord::names(&repo)?;
        let held = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(unfit(format!("no bundle named {} is installed there; installed: {held}", bundle.escape_debug())));
    };
    tracing::debug!(path = %path_of(&repo, bundle).display(), "judged by what was kept");
    let judged = guard.judge_taken(&kept.head)?;
    let (tree, image) = find(&kept, &repo, reference).map_err(unfit)?;
    let directory = open(mountpoint, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Permissions::empty());
    let directory = directory.map_err(|error| Error::io("open", mountpoint, error))?;

    let mut stats = MountStats {
        name: format!("{bundle}/{}", tree.name),
        image: image.digest.to_string(),
        objects: 0,
        checked: Checked::Kernel,
        hashed_bytes: 0,
    };
    let file = check(&repo, &image.digest, options.jobs, progress, &mut stats)?;
    let made = make_mount(&file, &repo, &stats).map_err(|error| Error::io("mount", mountpoint, error))?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&made, "", &directory, "", flags).map_err(|error| Error::io("mount", mountpoint, error))?;
    Ok((stats, judged))
}

/// The tree of a name, and its image: the one that `images/refs` has.
fn find<'a>(kept: &'a InstallRecord, repo: &Repo, reference: Option<&str>) -> Result<(&'a Ref, &'a Image), String> {
    let images = kept.head.root().images.iter().filter(|image| image.digest.algorithm() == repo.algorithm());
    let mut found: Vec<(&Ref, &Image)> = Vec::new();
    for image in images {
        let tree = kept.index.refs().get(usize::from(image.reference));
        let is_taken = repo.open_object(&image.digest).is_ok_and(|opened| opened.is_some());
        if let Some(tree) = tree.filter(|tree| is_taken && reference.is_none_or(|name| name == tree.name)) {
            found.retain(|(other, _)| other.name != tree.name);
            found.push((tree, image));
        }
    }
    let bundle = &kept.head.root().identity.name;
    match (&found[..], reference) {
        ([only], _) => Ok(*only),
        ([], Some(name)) => Err(format!("no image of {} of {bundle}", name.escape_debug())),
        ([], None) => Err(format!("the image of {bundle} is gone: unpack the bundle again")),
        (several, _) => {
            let names: Vec<String> = several.iter().map(|(tree, _)| format!("{bundle}/{}", tree.name)).collect();
            Err(format!("it has several trees of {bundle}: choose one of {}", names.join(", ")))
        }
    }
}

/// Opens the image, which is what its digest says, and compares all objects that it names with theirs.
fn check(
    repo: &Repo,
    digest: &FileDigest,
    jobs: usize,
    progress: &Progress,
    stats: &mut MountStats,
) -> Result<File, Error> {
    let note = |digest: &FileDigest, fault: Fault| Err(fault.error(repo, digest));
    let check = Check { repo, progress, jobs: jobs.max(1), note: &note };
    let image = check.image(digest)?.ok_or_else(|| Fault::Missing.error(repo, digest))?;
    let objects = objects_of(&image.bytes, digest, repo)?;
    stats.objects = num::wide(objects.len());
    let checked = check.objects(&objects)?;
    if !image.is_sealed || !checked.unsealed.is_empty() {
        stats.checked = Checked::Hashed;
    }
    stats.hashed_bytes = checked.hashed_bytes;
    Ok(image.file)
}

/// Makes the mount of an image over the objects, which is nowhere yet.
fn make_mount(image: &File, repo: &Repo, stats: &MountStats) -> Result<OwnedFd, std::io::Error> {
    let system = System::open("erofs")?;
    system.flag("ro")?;
    system.string("source", &fd_path(image))?;
    let attached = Attached::new(system.mount()?)?;

    let system = System::open("overlay")?;
    system.string("source", &format!("composefs:{}", stats.name))?;
    system.string("metacopy", "on")?;
    system.string("redirect_dir", "on")?;
    if stats.checked == Checked::Kernel {
        system.string("verity", "require")?;
    }
    let objects =
        openat(repo.objects(), ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Permissions::empty())?;
    // By one string: kernels from 6.5 on know it, and those that take descriptors know it as well.
    system.string("lowerdir", &format!("{}::{}", fd_path(&attached.root), fd_path(&objects)))?;
    system.mount()
}

fn fd_path(fd: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// A file system that is being set up.
struct System {
    kind: &'static str,
    fd: OwnedFd,
}

impl System {
    fn open(kind: &'static str) -> Result<Self, std::io::Error> {
        match fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC) {
            Ok(fd) => Ok(Self { kind, fd }),
            Err(Errno::NODEV) => Err(std::io::Error::other(format!("this kernel has no {kind}"))),
            Err(Errno::PERM) => Err(std::io::Error::other("requires root")),
            Err(error) => Err(error.into()),
        }
    }

    fn flag(&self, key: &str) -> Result<(), std::io::Error> {
        fsconfig_set_flag(self.fd.as_fd(), key).map_err(|error| self.failed(error))
    }

    fn string(&self, key: &str, value: &str) -> Result<(), std::io::Error> {
        fsconfig_set_string(self.fd.as_fd(), key, value).map_err(|error| self.failed(error))
    }

    fn mount(self) -> Result<OwnedFd, std::io::Error> {
        fsconfig_create(self.fd.as_fd()).map_err(|error| self.failed(error))?;
        let mounted = fsmount(self.fd.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY);
        mounted.map_err(|error| self.failed(error))
    }

    /// What the kernel says beside the error's number.
    fn failed(&self, error: Errno) -> std::io::Error {
        if self.kind == "erofs" && error == Errno::NOTBLK {
            return std::io::Error::other(
                "this kernel does not mount an image that is a file: Linux does from 6.12 on",
            );
        }
        let mut said = vec![0; 1024];
        let len = rustix::io::read(&self.fd, &mut said[..]).unwrap_or(0);
        let said = String::from_utf8_lossy(&said[..len]);
        let said = said.trim_start_matches("e ").trim();
        let error = std::io::Error::from(error);
        if said.is_empty() { error } else { std::io::Error::new(error.kind(), format!("{error}: {said}")) }
    }
}

/// A mount at a directory of its own, as long as another one is made of it: kernels before 6.15 make none of a mount that is nowhere.
struct Attached {
    path: PathBuf,
    root: OwnedFd,
}

impl Attached {
    fn new(mount: OwnedFd) -> Result<Self, std::io::Error> {
        let mut random = [0; 8];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let path = std::env::temp_dir().join(format!("sealift-{}", hex(&random)));
        mkdir(&path, Permissions::RWXU)?;
        let attach = || -> Result<OwnedFd, Errno> {
            move_mount(&mount, "", CWD, &path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
            open(&path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Permissions::empty())
        };
        match attach() {
            Ok(root) => Ok(Self { path, root }),
            Err(error) => {
                let _ = unmount(&path, UnmountFlags::DETACH);
                let _ = rmdir(&path);
                Err(error.into())
            }
        }
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // The mount that was made of it has its own hold on it.
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        let _ = rmdir(&self.path);
    }
}
