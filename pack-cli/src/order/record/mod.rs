//! Records which files are read, through fanotify: it reports an event for each file that is opened, executed or read. `large.rs` finds out which
//! ranges of large files are read.
//!
//! A command runs in a mount namespace of its own, and only the mounts of that namespace are watched. All events are therefore those of the
//! command and its descendants, even of short-lived and orphaned ones; process numbers, which may be gone or reused when an event is read, are not
//! needed. Other namespaces still see what the command mounts, since mounts propagate as before.

mod cold;
mod large;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, unshare};
use nix::sys::fanotify::{EventFFlags, Fanotify, FanotifyEvent, InitFlags, MarkFlags, MaskFlags};
use rustix::fs::{CWD, FileType, Stat, fstat};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use sealift_format::num;
use sealift_store::fs::found::is_directory;
use sealift_store::fs::mount_list::listed_mounts;

use super::profile::{OrderEntry, OrderProfile};
use crate::Error;
use cold::make_cold;
use large::{Large, is_large};

/// What [`Error::Io`] names as the failed action if the kernel does not let this process record.
pub const RECORDING: &str = "record what is read below";

/// The longest time until a request to stop is noticed, in milliseconds.
const PATIENCE: u16 = 200;

/// Events that mean that a file is read. Closing a file that was open only for reading counts too: a file that is only mapped causes no read event.
const READS: MaskFlags = MaskFlags::FAN_ACCESS.union(MaskFlags::FAN_OPEN_EXEC).union(MaskFlags::FAN_CLOSE_NOWRITE);
/// Events that end a use. Those of a large file are reported until its ranges in the page cache stop growing.
const CLOSES: MaskFlags = MaskFlags::FAN_CLOSE_NOWRITE.union(MaskFlags::FAN_CLOSE_WRITE);
/// Events that are watched. A file gets its place in the order when it is opened, and loses it if it is closed as writable without having been read.
const USES: MaskFlags = READS.union(MaskFlags::FAN_OPEN).union(MaskFlags::FAN_CLOSE_WRITE);
/// Ignores further events of a file, without pinning its inode in memory: since Linux 5.19.
const ONCE: MarkFlags = MarkFlags::FAN_MARK_ADD
    .union(MarkFlags::FAN_MARK_EVICTABLE)
    .union(MarkFlags::FAN_MARK_IGNORED_MASK)
    .union(MarkFlags::FAN_MARK_IGNORED_SURV_MODIFY);

/// The length of an event in the kernel's queue, as it states it (fanotify(7)).
const EVENT_LEN: u64 = 24;

/// Errors of reading events that are this program's own. All others concern the file of one event.
const FATAL: [Errno; 6] = [Errno::EBADF, Errno::EFAULT, Errno::EINVAL, Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM];

/// File systems whose files come from the kernel, not from a tree.
const OF_THE_KERNEL: [&str; 14] = [
    "autofs",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "mqueue",
    "proc",
    "securityfs",
    "sysfs",
    "tracefs",
];

/// Whose reads are recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of the command and its descendants, on the file systems below the root. A descendant that makes a mount namespace of its own, as
    /// containers do, leaves the record.
    Command,
    /// Those of all processes, on the file system of this directory.
    Mount(PathBuf),
}

/// What is recorded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Only files below this directory are recorded, relative to it.
    pub root: PathBuf,
    /// Whose reads are recorded.
    pub scope: Scope,
    /// Whether to drop the large files below the root, on its file system, from the page cache first: otherwise what is cached counts as read.
    pub drop_cache: bool,
}

/// What was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recorded {
    /// The regular files, in the order of first use, with the ranges that were read of large ones.
    pub profile: OrderProfile,
    /// Large files that were completely in the page cache when they were first used: nothing says which parts of them were read.
    pub cached_files: u64,
}

/// Runs a command, and records the regular files below the root that are read while it runs. Also returns the command's status. If `stop` is
/// set, sends the command SIGTERM, and still waits for it.
///
/// # Errors
/// Returns an error if this process may not record (CAP_SYS_ADMIN), if the root cannot be opened, or if the command cannot be run; or
/// [`Error::Cancelled`] if `stop` is set before it runs.
pub fn record_command(command: Command, options: &Options, stop: &AtomicBool) -> Result<(ExitStatus, Recorded), Error> {
    in_thread(|| {
        let recorder = Recorder::start(options, stop)?;
        recorder.run(command, stop)
    })
}

/// Records without a command, until `stop` is set.
pub fn record_session(options: &Options, stop: &AtomicBool) -> Result<Recorded, Error> {
    in_thread(|| {
        let mut recorder = Recorder::start(options, stop)?;
        while !stop.load(Ordering::Relaxed) {
            recorder.wait(None)?;
            recorder.take_some()?;
        }
        recorder.take_queued()?;
        Ok(recorder.finish())
    })
}

/// Runs something in a thread of its own: a namespace that it enters ends with it.
fn in_thread<T: Send>(run: impl FnOnce() -> Result<T, Error> + Send) -> Result<T, Error> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, run);
        let thread = thread.map_err(|error| Error::io("start", "a thread", error))?;
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Returns the canonical path of a directory.
fn directory(path: &Path) -> Result<PathBuf, Error> {
    let failed = |error| Error::io("open", path, error);
    let canonical = path.canonicalize().map_err(failed)?;
    if is_directory(&canonical)? { Ok(canonical) } else { Err(failed(io::ErrorKind::NotADirectory.into())) }
}

/// A recording.
struct Recorder {
    events: Fanotify,
    root: PathBuf,
    files: HashMap<Vec<u8>, Use>,
    /// Events that were noted.
    count: u64,
}

/// The use of a file.
struct Use {
    /// The number of its first event.
    first: u64,
    /// Whether it was read; if not, it is still open.
    is_read: bool,
    /// Which parts of it were read, if it is large.
    large: Option<Large>,
}

impl Recorder {
    fn start(options: &Options, stop: &AtomicBool) -> Result<Self, Error> {
        let root = directory(&options.root)?;
        let refused = |error: Errno| Error::io(RECORDING, &root, io::Error::from(error));
        let flags = InitFlags::FAN_CLASS_NOTIF
            | InitFlags::FAN_CLOEXEC
            | InitFlags::FAN_NONBLOCK
            | InitFlags::FAN_UNLIMITED_QUEUE
            | InitFlags::FAN_UNLIMITED_MARKS;
        let opened = EventFFlags::O_RDONLY | EventFFlags::O_LARGEFILE | EventFFlags::O_CLOEXEC | EventFFlags::O_NOATIME;
        let events = Fanotify::init(flags, opened).map_err(refused)?;
        if options.drop_cache {
            // Before events are watched: reads until then do not count, and may be dropped with the rest.
            make_cold(&root, stop)?;
        }
        match &options.scope {
            Scope::Command => {
                unshare(CloneFlags::CLONE_NEWNS).map_err(refused)?;
                for mount in mounts_below(&root)? {
                    let marked =
                        events.mark(MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_MOUNT, USES, CWD, Some(&mount));
                    // A mount that is hidden below another one cannot be marked, but cannot be read either.
                    if let Err(error) = marked
                        && !matches!(error, Errno::ENOENT | Errno::ENOTDIR)
                    {
                        return Err(Error::io(RECORDING, &mount, io::Error::from(error)));
                    }
                }
            }
            Scope::Mount(mount) => {
                let mount = &directory(mount)?;
                let mark = MarkFlags::FAN_MARK_ADD | MarkFlags::FAN_MARK_FILESYSTEM;
                let marked = events.mark(mark, USES, CWD, Some(mount));
                marked.map_err(|error| Error::io(RECORDING, mount, io::Error::from(error)))?;
            }
        }
        Ok(Self { events, root, files: HashMap::new(), count: 0 })
    }

    fn run(mut self, mut command: Command, stop: &AtomicBool) -> Result<(ExitStatus, Recorded), Error> {
        let program = command.get_program().to_owned();
        let failed = |doing| move |error: io::Error| Error::io(doing, Path::new(&program), error);
        let mut child = command.spawn().map_err(failed("run"))?;
        let watched = self.watch(&mut child, stop);
        if watched.is_err() {
            // Without a recording, the command is of no use.
            let _ = child.kill();
        }
        let status = child.wait().map_err(|error| Error::io("wait for", command.get_program(), error))?;
        watched?;
        self.take_queued()?;
        Ok((status, self.finish()))
    }

    /// Takes events until the command ends.
    fn watch(&mut self, child: &mut Child, stop: &AtomicBool) -> Result<(), Error> {
        let pid = Pid::from_child(child);
        let end = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| self.failed(error.into()))?;
        let mut was_told = false;
        while !self.wait(Some(end.as_fd()))? {
            self.take_some()?;
            if stop.load(Ordering::Relaxed) && !was_told {
                was_told = true;
                // It may have ended just now.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
        Ok(())
    }

    /// Waits for events, for a while. Returns whether `end` is readable.
    fn wait(&self, end: Option<BorrowedFd<'_>>) -> Result<bool, Error> {
        let of = |file| PollFd::new(file, PollFlags::POLLIN);
        let mut files: Vec<PollFd<'_>> = [Some(self.events.as_fd()), end].into_iter().flatten().map(of).collect();
        match poll(&mut files, PollTimeout::from(PATIENCE)) {
            Ok(_) | Err(Errno::EINTR) => Ok(files.get(1).is_some_and(|end| end.any() == Some(true))),
            Err(error) => Err(self.failed(error.into())),
        }
    }

    /// Takes all events that have happened until now, but not those that happen meanwhile: on a busy machine, there is no end to them.
    fn take_queued(&mut self) -> Result<(), Error> {
        let len = ioctl_fionread(&self.events).map_err(|error| self.failed(error.into()))?;
        let mut left = len / EVENT_LEN;
        while left > 0 {
            match self.take_some()? {
                0 => break,
                taken => left = left.saturating_sub(taken),
            }
        }
        Ok(())
    }

    /// Takes events that have happened, at most as many as fit into one read. Returns how many, including lost ones.
    fn take_some(&mut self) -> Result<u64, Error> {
        match self.events.read_events() {
            Ok(events) => {
                events.iter().for_each(|event| self.note(event));
                Ok(num::wide(events.len()))
            }
            Err(Errno::EAGAIN) => Ok(0),
            Err(error) if FATAL.contains(&error) => Err(self.failed(error.into())),
            // A file of an event could not be opened, so that the event is lost. The next ones follow.
            Err(_) => Ok(1),
        }
    }

    /// Notes the file of an event.
    fn note(&mut self, event: &FanotifyEvent) {
        let own = i32::try_from(std::process::id()).is_ok_and(|own| own == event.pid());
        let Some(file) = event.fd().filter(|_| !own) else { return };
        let is_read = event.mask().intersects(READS);
        let used = self.regular(file);
        if is_read {
            let is_large = used.as_ref().is_some_and(|(_, stat)| is_large(stat));
            // Further events of the file would add nothing. The kernel still sends them if it cannot keep this mark.
            let known = if is_large { USES.difference(CLOSES) } else { USES };
            let _ = self.events.mark(ONCE, known, file, None::<&Path>);
        }
        let Some((below, stat)) = used else { return };
        self.count += 1;
        let is_written = event.mask().contains(MaskFlags::FAN_CLOSE_WRITE);
        match self.files.entry(below) {
            Entry::Occupied(used) if is_written && !is_read && !used.get().is_read => drop(used.remove()),
            Entry::Occupied(mut used) => {
                let used = used.get_mut();
                used.is_read |= is_read;
                if let Some(large) = &mut used.large
                    && large.look(file, &stat)
                    && event.mask().intersects(CLOSES)
                {
                    let _ = self.events.mark(ONCE, USES, file, None::<&Path>);
                }
            }
            Entry::Vacant(unused) if is_read || !is_written => {
                let large = is_large(&stat).then(|| Large::new(file, stat));
                unused.insert(Use { first: self.count, is_read, large });
            }
            Entry::Vacant(_) => {}
        }
    }

    /// Returns the path of a regular file below the root, unless it is deleted.
    fn regular(&self, file: BorrowedFd<'_>) -> Option<(Vec<u8>, Stat)> {
        let stat = fstat(file).ok()?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile || stat.st_nlink == 0 {
            return None;
        }
        let path = fs::read_link(format!("/proc/thread-self/fd/{}", file.as_raw_fd())).ok()?;
        Some((path.strip_prefix(&self.root).ok()?.as_os_str().as_bytes().to_vec(), stat))
    }

    fn finish(self) -> Recorded {
        let mut files: Vec<(Vec<u8>, Use)> = self.files.into_iter().collect();
        files.sort_by_key(|(_, file)| file.first);
        let mut cached_files = 0;
        let entries = files.into_iter().map(|(path, Use { large, .. })| {
            cached_files += u64::from(large.as_ref().is_some_and(Large::was_cached));
            let parts = large.and_then(|large| large.finish(&self.root.join(OsStr::from_bytes(&path))));
            let (ranges, size) = parts.unzip();
            OrderEntry::of_reads(path, ranges.unwrap_or_default(), size)
        });
        Recorded { profile: OrderProfile::new(entries.collect()), cached_files }
    }

    fn failed(&self, error: io::Error) -> Error {
        Error::io(RECORDING, &self.root, error)
    }
}

/// Returns one directory of each file system that a tree spans: its root, and the mount points below.
fn mounts_below(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let below = listed_mounts()?.into_iter().filter_map(|mount| {
        let is_real = !OF_THE_KERNEL.contains(&&*mount.kind);
        (is_real && mount.place.starts_with(root)).then_some(mount.place)
    });
    // Where the root's own is mounted need not be there: not within chroot(2).
    let mut found: Vec<PathBuf> = std::iter::once(root.to_owned()).chain(below).collect();
    found.sort();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_that_is_no_mount_point_is_watched_itself() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = directory(folder.path()).expect("a directory");
        assert_eq!(mounts_below(&root).expect("listed"), [root]);
    }
}
