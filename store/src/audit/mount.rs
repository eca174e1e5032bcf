//! Mounts an imported tree.
//!
//! Trust starts at the bundle's root: it states the image's digest, and the image names all contents by their digests. In a sealed store the kernel
//! compares each object with its digest when it is opened, and never returns a byte that differs: mounting checks none of them, since a system that
//! boots from the store would have to wait for tens of thousands of reads. In any other store, all objects must match before the mount: the kernel
//! vouches for those that are sealed, and the others are read and hashed; unless all are sealed, nothing protects them afterwards.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode as Permissions, OFlags, mkdir, open, openat, rmdir};
use rustix::io::{Errno, retry_on_intr};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, UnmountFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen, move_mount, unmount,
};
use sealift_format::hex;
use sealift_format::num;
use sealift_format::verity::FileDigest;
use sealift_format::{Image, Ref};

use super::mount_stats::{ImageChecked, MountStats};
use crate::composefs::check::{Check, Fault, objects_of};
use crate::composefs::records::{StoreRecord, records};
use crate::composefs::repo::Repo;
use crate::trust::{Guard, Judged};
use crate::{Error, Progress};

/// Mounts an imported tree read-only at the directory `mountpoint`. Its name is that of the bundle, followed by a slash and the name of the ref;
/// the bundle's name suffices if the store has one tree of it. Objects are hashed on `jobs` threads.
///
/// `guard` decides by the recorded head whether the bundle is to be trusted, as [`Guard::judge_installed`] does; the judgement comes with the result.
///
/// # Errors
/// Returns an error if the store has no such tree, if the bundle is refused, if the image or, unless the store is sealed, an object is missing or
/// does not match the bundle, or if the kernel refuses the mount. Nothing is mounted then.
pub fn mount(
    store: &Path,
    name: &str,
    mountpoint: &Path,
    jobs: usize,
    guard: &Guard,
    progress: &Progress,
) -> Result<(MountStats, Judged), Error> {
    let unfit = |problem: String| Error::Store { path: store.to_owned(), problem };
    let Some(repo) = Repo::open(store)? else {
        return Err(Error::NoStore { path: store.to_owned() });
    };
    repo.check_own()?;
    let (bundle, reference) =
        name.split_once('/').map_or((name, None), |(bundle, reference)| (bundle, Some(reference)));
    let Some(kept) = StoreRecord::load(&repo, bundle)? else {
        let names = records(&repo).names()?;
        let held = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(unfit(format!("no bundle named {} is installed there; installed: {held}", bundle.escape_debug())));
    };
    tracing::debug!(path = %records(&repo).head_path(bundle).display(), "judged by the install record");
    let judged = guard.judge_installed(&kept.head)?;
    let (tree, image) = find(&kept, &repo, reference)?;
    let directory = open(mountpoint, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Permissions::empty());
    let directory = directory.map_err(|error| Error::io("open", mountpoint, error))?;

    let mut stats = MountStats {
        name: format!("{bundle}/{}", tree.name),
        image: image.digest.to_string(),
        objects: 0,
        checked: ImageChecked::Kernel,
        hashed_bytes: 0,
    };
    let file = check(&repo, &image.digest, jobs, progress, &mut stats)?;
    let objects = repo.objects().ok_or(Errno::NOENT);
    let objects = objects.and_then(|objects| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        retry_on_intr(|| openat(objects, ".", flags, Permissions::empty()))
    });
    let objects = objects.map_err(|error| Error::io("open", repo.path().join("objects"), error))?;
    let made = make_mount(&file, &objects, &stats).map_err(|error| Error::io("mount", mountpoint, error))?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&made, "", &directory, "", flags).map_err(|error| Error::io("mount", mountpoint, error))?;
    Ok((stats, judged))
}

/// Returns the tree of a name, and its image: the one that `images/refs` names.
fn find<'a>(kept: &'a StoreRecord, repo: &Repo, reference: Option<&str>) -> Result<(&'a Ref, &'a Image), Error> {
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
    let (bundle, path) = (&kept.head.root().identity.name, repo.path().to_owned());
    match (&found[..], reference) {
        ([only], _) => Ok(*only),
        ([], Some(name)) => {
            Err(Error::Store { path, problem: format!("no image of {} of {bundle}", name.escape_debug()) })
        }
        ([], None) => Err(Error::DamagedStore { path, problem: format!("the image of {bundle} is gone") }),
        (several, _) => {
            let names: Vec<String> = several.iter().map(|(tree, _)| format!("{bundle}/{}", tree.name)).collect();
            let problem = format!("it has several trees of {bundle}: {}", names.join(", "));
            Err(Error::Store { path, problem })
        }
    }
}

/// Opens the image after comparing it with its digest, and compares all objects that it names with theirs, unless the kernel will do so.
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
    if repo.is_sealed() && image.is_sealed {
        return Ok(image.file);
    }
    let checked = check.objects(&objects)?;
    if !image.is_sealed || !checked.unsealed.is_empty() {
        stats.checked = ImageChecked::Hashed;
    }
    stats.hashed_bytes = checked.hashed_bytes;
    Ok(image.file)
}

/// Creates the mount of an image over the objects, not yet attached anywhere.
fn make_mount(image: &File, objects: &OwnedFd, stats: &MountStats) -> Result<OwnedFd, std::io::Error> {
    let system = System::open("erofs")?;
    system.flag("ro")?;
    system.string("source", &fd_path(image))?;
    let attached = Attached::new(system.mount()?)?;

    let system = System::open("overlay")?;
    system.string("source", &format!("composefs:{}", stats.name))?;
    system.string("metacopy", "on")?;
    system.string("redirect_dir", "on")?;
    if stats.checked == ImageChecked::Kernel {
        system.string("verity", "require")?;
    }
    // As one string: kernels from 6.5 on accept it, and so do those that accept descriptors.
    system.string("lowerdir", &format!("{}::{}", fd_path(&attached.root), fd_path(objects)))?;
    system.mount()
}

fn fd_path(fd: &impl AsRawFd) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

/// A file system that is being configured.
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

    /// Adds the kernel's own message to the error number.
    fn failed(&self, error: Errno) -> std::io::Error {
        if self.kind == "erofs" && error == Errno::NOTBLK {
            return std::io::Error::other(
                "this kernel cannot mount an image from a file: Linux 6.12 or later is required",
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

/// A mount attached to a temporary directory while another is made from it: kernels before 6.15 cannot use a detached mount for that.
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
        // The mount made from it holds its own reference.
        let _ = unmount(&self.path, UnmountFlags::DETACH);
        let _ = rmdir(&self.path);
    }
}
