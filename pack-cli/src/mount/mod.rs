//! Mounts a bundle as a read-only file system in user space (FUSE): its trees are read in place, and nothing is unpacked.
//!
//! [`in_place`](crate::in_place) compares every chunk with its digest before it hands out a byte of it. Reads of damaged content, or from a medium
//! that fails, get an I/O error, and the mount stays.
//!
//! ```no_run
//! use sealift::in_place::Fault;
//! use sealift::mount::{Mount, MountOptions};
//! use sealift::trust::{Guard, TrustOptions};
//! use sealift::{GivenBases, Input, Limits, Progress};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let guard = Guard::load(&TrustOptions::default())?;
//! let bundle = guard.admit(Input::open("os.sealift".as_ref())?, Limits::default())?;
//! let report = Box::new(|fault: &Fault| eprintln!("{fault}"));
//! let (bases, progress) = (GivenBases::default(), Progress::default());
//! let mount = Mount::new(bundle, &bases, "/mnt".as_ref(), &MountOptions::default(), report, &progress)?;
//! mount.serve()?; // until it is unmounted
//! # Ok(())
//! # }
//! ```

mod filesystem;
mod mount_point;
mod nodes;
mod recording;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::{Arc, Weak};

use fuser::{Config, MountOption, Session, SessionACL, SessionUnmounter};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use sealift_store::base::GivenBases;

use crate::in_place::{InPlace, ReadOptions, Report};
use crate::trust::Trusted;
use crate::{Error, Progress};
use filesystem::Served;
use mount_point::{MountPoint, Top};
use nodes::Nodes;
use recording::Recorder;
pub use recording::Recording;

/// How to mount a bundle.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct MountOptions {
    /// The refs to mount; all if empty. One is the root of the mount; several are directories of their names.
    pub refs: Vec<String>,
    /// Threads, and memory for decoded content.
    pub read: ReadOptions,
    /// Lets other users in, as far as modes and owners allow. Without root, `/etc/fuse.conf` must contain `user_allow_other`.
    pub allow_other: bool,
    /// Makes device nodes and set-user-id bits effective, which takes root.
    pub dev_suid: bool,
    /// Records what is read.
    pub recording: Option<Recording>,
}

/// What the kernel's requests come through. Where it is missing, mounting fails with an error about another file.
const FUSE_DEVICE: &str = "/dev/fuse";

/// A mounted bundle.
#[derive(Debug)]
pub struct Mount {
    session: Session<Served>,
    /// The FUSE device, from which the kernel's requests are read.
    device: Arc<OwnedFd>,
    place: MountPoint,
    refs: Vec<String>,
}

/// Unmounts, from any thread.
#[derive(Debug)]
pub struct Unmounter {
    session: SessionUnmounter,
    /// Weak, so that this does not keep the device open: processes that wait for an answer would then go on waiting when serving has ended.
    device: Weak<OwnedFd>,
    place: MountPoint,
}

impl Mount {
    /// Mounts a bundle, or a delta bundle over its bases, on a directory. Requests are answered only by [`Self::serve`]. What cannot be read is
    /// passed to `report`: damage once for each place, and a failing medium once until it can be read again.
    ///
    /// # Errors
    /// Returns an error if the bundle is damaged or comes through a pipe, if the bases are not those of the delta, if there is no such ref, or if
    /// it cannot be mounted.
    pub fn new(
        bundle: Trusted,
        bases: &GivenBases,
        mountpoint: &Path,
        options: &MountOptions,
        report: Report,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let failed = |error| Error::io("mount on", mountpoint, error);
        let bundle = InPlace::open(bundle, bases, progress)?;
        let nodes = Nodes::new(&bundle.bundle().index, &options.refs)?;
        let refs = nodes.refs().to_vec();
        let name = source_name(bundle.path());
        let reader = bundle.start(&options.read, report).map_err(failed)?;
        let recorder = options.recording.clone();
        let recorder = recorder.map(|recording| Recorder::new(recording, &reader.bundle().index, &refs));
        let served = Served::new(reader, nodes, recorder);
        // For unmounting, the path must stay valid even if the process changes its working directory.
        let mountpoint = std::fs::canonicalize(mountpoint).map_err(failed)?;
        if !mountpoint.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        std::fs::metadata(FUSE_DEVICE).map_err(|error| Error::io("open", FUSE_DEVICE, error))?;
        let session = Session::new(served, &mountpoint, &config(options, name));
        let session = session.map_err(|error| Error::io("mount on", &mountpoint, one_line(error)))?;
        let device = Arc::new(session.as_fd().try_clone_to_owned().map_err(failed)?);
        Ok(Self { session, device, place: MountPoint::of(mountpoint), refs })
    }

    /// Returns the refs that are mounted: one is the root, several are directories.
    #[must_use]
    pub fn refs(&self) -> &[String] {
        &self.refs
    }

    /// Returns a handle that can unmount while [`Self::serve`] runs.
    #[must_use]
    pub fn unmounter(&mut self) -> Unmounter {
        let (session, device) = (self.session.unmount_callable(), Arc::downgrade(&self.device));
        Unmounter { session, device, place: self.place.clone() }
    }

    /// Serves until it is unmounted, by an [`Unmounter`] or by others.
    ///
    /// # Errors
    /// Returns an error if the kernel cannot be talked to.
    pub fn serve(self) -> Result<(), Error> {
        // The device stays open until then.
        let Self { session, place, device: _device, .. } = self;
        session.run().map_err(|error| Error::io("serve", place.path, error))
    }
}

impl Unmounter {
    /// Unmounts. If files are open or directories in use, the mount only disappears from the tree. Returns whether it is unmounted: otherwise
    /// [`Mount::serve`] goes on until the last user is done, and a caller that does not want to wait has to end the process.
    ///
    /// # Errors
    /// Returns an error if it cannot be unmounted, such as when something else is mounted over it.
    pub fn unmount(&mut self) -> Result<bool, Error> {
        let failed = |error| Error::io("unmount", &self.place.path, error);
        if self.is_gone() {
            return Ok(true);
        }
        match self.place.top().map_err(failed)? {
            Top::Itself => {}
            Top::Gone => return Ok(false),
            Top::Other(other) => {
                let hidden = format!("{other} is mounted over it");
                return Err(failed(io::Error::new(io::ErrorKind::ResourceBusy, hidden)));
            }
        }
        match self.session.unmount() {
            // Without root, fusermount3 unmounts, and succeeds even if the mount is in use and has only left the tree.
            Ok(()) => Ok(self.is_gone()),
            Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
                unmount(&self.place.path, UnmountFlags::DETACH).map_err(|error| failed(error.into()))?;
                Ok(false)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns whether the kernel has closed the connection, since nobody uses the mount any more.
    fn is_gone(&self) -> bool {
        let Some(device) = self.device.upgrade() else { return true };
        let mut device = [PollFd::new(device.as_fd(), PollFlags::empty())];
        // poll(2) always reports this error, whatever events were asked for.
        poll(&mut device, PollTimeout::ZERO).is_ok()
            && device[0].revents().is_some_and(|told| told.contains(PollFlags::POLLERR))
    }
}

fn config(options: &MountOptions, name: String) -> Config {
    let mut mount_options = vec![
        MountOption::RO,
        MountOption::NoAtime,
        MountOption::DefaultPermissions,
        MountOption::FSName(name),
        MountOption::Subtype("sealift".into()),
    ];
    if options.dev_suid {
        mount_options.extend([MountOption::Dev, MountOption::Suid]);
    } else {
        mount_options.extend([MountOption::NoDev, MountOption::NoSuid]);
    }
    let mut config = Config::default();
    config.mount_options = mount_options;
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    // None of them waits for content: other threads read and decode it.
    config.n_threads = Some(options.read.jobs.max(1) + 2);
    config.clone_fd = true;
    config
}

/// Strips the newline from an error message of fusermount3.
fn one_line(error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() {
        return error;
    }
    io::Error::new(error.kind(), error.to_string().trim().to_owned())
}

/// Returns the bundle's name as mount lists it: commas would end the option.
fn source_name(path: &Path) -> String {
    let name = path.file_name().map_or(&b"bundle"[..], OsStr::as_bytes);
    String::from_utf8_lossy(name)
        .chars()
        .map(|c| if c == ',' || c.is_control() || c == '\\' { '_' } else { c })
        .collect()
}
