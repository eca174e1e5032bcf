//! Mounts a bundle as a read-only file system in user space (FUSE): its trees are read in place, and nothing is unpacked.
//!
//! Every chunk is compared with its digest before a byte of it is handed out, by [`in_place`](crate::in_place). Whoever reads what is damaged, or what
//! the medium does not give, gets an I/O error, and the mount stays.
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
mod nodes;
mod recording;

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
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
use nodes::Nodes;
use recording::Recorder;
pub use recording::Recording;

/// How to mount a bundle.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct MountOptions {
    /// The refs to mount, all if there are none here. One is the root of the mount; several are directories of their names.
    pub refs: Vec<String>,
    /// Threads, and memory for decoded content.
    pub read: ReadOptions,
    /// Lets other users in, as far as modes and owners allow. Without root, `user_allow_other` must stand in `/etc/fuse.conf`.
    pub allow_other: bool,
    /// Makes device nodes and set-user-id bits effective, which takes root.
    pub dev_suid: bool,
    /// Records what is read.
    pub recording: Option<Recording>,
}

/// A mounted bundle.
#[derive(Debug)]
pub struct Mount {
    session: Session<Served>,
    /// Where the kernel's questions come from.
    device: Arc<OwnedFd>,
    mountpoint: PathBuf,
    refs: Vec<String>,
}

/// Unmounts, from any thread.
#[derive(Debug)]
pub struct Unmounter {
    session: SessionUnmounter,
    /// Not its own: who waits for an answer would wait until it is closed everywhere.
    device: Weak<OwnedFd>,
    mountpoint: PathBuf,
}

impl Mount {
    /// Mounts a bundle, or a delta bundle over its bases, on a directory. Nobody is served before [`Self::serve`]. What cannot be read is given to
    /// `report`: damage once for each place, and a medium that fails once until it can be read again.
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
        // Unmounting takes the path that is meant now, wherever the process is then.
        let mountpoint = std::fs::canonicalize(mountpoint).map_err(failed)?;
        if !mountpoint.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        }
        let session = Session::new(served, &mountpoint, &config(options, name));
        let session = session.map_err(|error| Error::io("mount on", &mountpoint, one_line(error)))?;
        let device = Arc::new(session.as_fd().try_clone_to_owned().map_err(failed)?);
        Ok(Self { session, device, mountpoint, refs })
    }

    /// Returns the refs that are mounted: one is the root, several are directories.
    #[must_use]
    pub fn refs(&self) -> &[String] {
        &self.refs
    }

    /// Returns what unmounts while this serves.
    #[must_use]
    pub fn unmounter(&mut self) -> Unmounter {
        let (session, device) = (self.session.unmount_callable(), Arc::downgrade(&self.device));
        Unmounter { session, device, mountpoint: self.mountpoint.clone() }
    }

    /// Serves until it is unmounted, by an [`Unmounter`] or by others.
    ///
    /// # Errors
    /// Returns an error if the kernel cannot be talked to.
    pub fn serve(self) -> Result<(), Error> {
        // The device stays open until then.
        let Self { session, mountpoint, device: _device, .. } = self;
        session.run().map_err(|error| Error::io("serve", mountpoint, error))
    }
}

impl Unmounter {
    /// Unmounts. If files are open or directories in use, the mount only disappears from the tree. Returns whether it is unmounted: otherwise
    /// [`Mount::serve`] goes on until the last user is done, and whoever does not wait ends the process.
    ///
    /// # Errors
    /// Returns an error if it cannot be unmounted.
    pub fn unmount(&mut self) -> Result<bool, Error> {
        let failed = |error| Error::io("unmount", &self.mountpoint, error);
        match self.session.unmount() {
            // For users, fusermount3 unmounts: what is in use only leaves the tree then.
            Ok(()) => Ok(self.is_gone()),
            Err(error) if error.raw_os_error() == Some(Errno::BUSY.raw_os_error()) => {
                unmount(&self.mountpoint, UnmountFlags::DETACH).map_err(|error| failed(error.into()))?;
                Ok(false)
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Returns whether the kernel asks no more, since nobody uses what was mounted.
    fn is_gone(&self) -> bool {
        let Some(device) = self.device.upgrade() else { return true };
        let mut device = [PollFd::new(device.as_fd(), PollFlags::empty())];
        // It tells this error without being asked.
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
    // Besides those who wait for content, some answer what the index alone answers.
    config.n_threads = Some(options.read.jobs.max(1) + 2);
    config.clone_fd = true;
    config
}

/// Returns an error without the line end of what fusermount3 said.
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
