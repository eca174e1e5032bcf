//! Bundles that are mounted at `mnt`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};
use sealift_desk::{Desk, NOBODY, has, is_root, program, skipped, wait};

/// A mount that ends when this value is dropped.
pub(crate) struct Mounted {
    child: Child,
    mountpoint: PathBuf,
    said: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

/// Returns whether this machine can mount; otherwise reports the test as skipped.
pub(crate) fn can_mount() -> bool {
    let can = is_root() && Path::new("/dev/fuse").exists();
    if !can {
        skipped("needs root and /dev/fuse: mounts");
    }
    can
}

/// Whether users who are not root can mount here as well; otherwise reports the test as skipped.
pub(crate) fn can_mount_as_user() -> bool {
    can_mount() && has(&["fusermount3"])
}

/// A desk with a key, and the directory `mnt`.
pub(crate) fn desk() -> Desk {
    let desk = Desk::with_key();
    fs::create_dir(desk.path("mnt")).unwrap();
    desk
}

/// Checks that a line is refused, and mounts nothing.
#[track_caller]
pub(crate) fn refused(desk: &Desk, line: &str, status: i32, why: &str) {
    desk.refused(line, status, why);
    assert!(!is_mounted(&desk.path("mnt")), "{line}");
}

/// Packs and signs; `arguments` are sources and options.
#[track_caller]
pub(crate) fn pack(desk: &Desk, bundle: &str, version: u32, arguments: &str) {
    desk.good(&format!("pack -o {bundle} --force --name os --bundle-version {version} --key release {arguments}"));
}

/// Mounts the bundles that the arguments name at `mnt`.
#[track_caller]
pub(crate) fn mount(desk: &Desk, arguments: &str) -> Mounted {
    mount_at(desk, "mnt", arguments)
}

/// Mounts at `point`, an existing directory.
#[track_caller]
pub(crate) fn mount_at(desk: &Desk, point: &str, arguments: &str) -> Mounted {
    serve(desk.command(&format!("mount {arguments} {point} --trust signers")), desk.path(point))
}

/// Does the same below nohup(1).
#[track_caller]
pub(crate) fn mount_ignoring_hangups(desk: &Desk, arguments: &str) -> Mounted {
    let mut command = desk.command_of("nohup");
    let line = format!("mount {arguments} mnt --trust signers");
    command.arg(program()).args(line.split(' '));
    serve(command, desk.path("mnt"))
}

/// Does the same as a user who is not root.
#[track_caller]
pub(crate) fn mount_as_user(desk: &Desk, arguments: &str) -> Mounted {
    std::os::unix::fs::chown(desk.path("mnt"), Some(NOBODY), Some(NOBODY)).unwrap();
    serve(desk.command_as_user(&format!("mount {arguments} mnt --trust signers")), desk.path("mnt"))
}

#[track_caller]
fn serve(mut command: Command, mountpoint: PathBuf) -> Mounted {
    let mut child = command.spawn().unwrap();
    let (said, err) = (Arc::new(Mutex::new(String::new())), child.stderr.take().unwrap());
    let listener = std::thread::spawn({
        let said = Arc::clone(&said);
        move || BufReader::new(err).lines().for_each(|line| said.lock().push_str(&format!("{}\n", line.unwrap())))
    });
    let mut mounted = Mounted { child, mountpoint, said, listener: Some(listener) };
    wait("it is mounted", || {
        assert!(mounted.child.try_wait().unwrap().is_none(), "{command:?}: {}", mounted.said());
        is_mounted(&mounted.mountpoint)
    });
    mounted
}

pub(crate) fn is_mounted(path: &Path) -> bool {
    fs::read_to_string("/proc/self/mounts").unwrap().contains(&format!(" {} fuse", path.display()))
}

impl Mounted {
    pub(crate) fn said(&self) -> String {
        self.said.lock().clone()
    }

    /// Ends the mount, and returns the lines about failed reads.
    #[track_caller]
    pub(crate) fn faults(self) -> Vec<String> {
        self.signal(Signal::TERM);
        let (_, said) = self.ends_well();
        said.lines().filter(|line| line.starts_with("sealift: ")).map(str::to_owned).collect()
    }

    #[track_caller]
    pub(crate) fn assert_no_faults(self) {
        let faults = self.faults();
        assert!(faults.is_empty(), "{faults:?}");
    }

    /// Returns the process's own memory in bytes, without that of its program's file.
    pub(crate) fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end, which must be successful and leave no mount. Returns its standard output and standard error.
    #[track_caller]
    pub(crate) fn ends_well(mut self) -> (String, String) {
        assert_eq!(self.ends(), Some(0), "{}", self.said());
        assert!(!is_mounted(&self.mountpoint));
        let mut out = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        (out, self.said())
    }

    /// Waits for the end. Returns the exit status.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> Option<i32> {
        wait("it ends", || self.child.try_wait().unwrap().is_some());
        self.listener.take().into_iter().for_each(|listener| listener.join().unwrap());
        self.child.wait().unwrap().code()
    }

    /// Waits until it has said something.
    #[track_caller]
    pub(crate) fn says(&self, what: &str) {
        wait(what, || self.said().contains(what));
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = rustix::mount::unmount(&self.mountpoint, rustix::mount::UnmountFlags::DETACH);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
