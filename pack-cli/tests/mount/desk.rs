//! A folder in which trees are packed and signed, and bundles are mounted at `mnt`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process};

/// A user who is not root.
pub(crate) const NOBODY: u32 = 65534;
const PROGRAM: &str = env!("CARGO_BIN_EXE_sealift");

pub(crate) struct Desk(tempfile::TempDir);

/// A mount that ends when this value is dropped.
pub(crate) struct Mounted {
    child: Child,
    mountpoint: PathBuf,
    said: Arc<Mutex<String>>,
    listener: Option<JoinHandle<()>>,
}

/// Returns whether this machine can mount; otherwise reports the test as skipped.
pub(crate) fn can_mount() -> bool {
    let can = rustix::process::geteuid().is_root() && Path::new("/dev/fuse").exists();
    if !can {
        sealift_skipped::skipped("needs root and /dev/fuse: mounts");
    }
    can
}

impl Desk {
    /// A desk with a key that `signers` trusts.
    pub(crate) fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        desk.good("key generate -o release");
        let line = format!("os namespaces=\"sealift\" {}", fs::read_to_string(desk.path("release.pub")).unwrap());
        desk.write("signers", line);
        fs::create_dir(desk.path("mnt")).unwrap();
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> std::io::Result<Vec<u8>> {
        fs::read(self.path(name))
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        self.command_of(PROGRAM.as_ref(), line)
    }

    fn command_of(&self, program: &Path, line: &str) -> Command {
        let mut command = Command::new(program);
        command.args(line.split(' ')).current_dir(self.0.path()).env("SOURCE_DATE_EPOCH", "1700000000");
        command.env("HOME", self.path("home")).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("SEALIFT_STATE", self.path("state"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the exit status of a line, and its output.
    pub(crate) fn run(&self, line: &str) -> (Option<i32>, String) {
        let done = self.command(line).output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&[done.stderr, done.stdout].concat()).into_owned())
    }

    #[track_caller]
    pub(crate) fn good(&self, line: &str) {
        let (status, said) = self.run(line);
        assert_eq!(status, Some(0), "{line}: {said}");
    }

    #[track_caller]
    pub(crate) fn refused(&self, line: &str, status: i32, why: &str) {
        let (found, said) = self.run(line);
        assert!(found == Some(status) && said.contains(why), "{line}: {found:?}: {said}");
        assert!(!self.is_mounted(), "{line}");
    }

    /// Packs and signs; `arguments` are sources and options.
    #[track_caller]
    pub(crate) fn pack(&self, bundle: &str, version: u32, arguments: &str) {
        let line = format!("pack -o {bundle} --force --name os --bundle-version {version} --key release {arguments}");
        self.good(&line);
    }

    /// Mounts the bundles that the arguments name at `mnt`.
    #[track_caller]
    pub(crate) fn mount(&self, arguments: &str) -> Mounted {
        self.mount_at("mnt", arguments)
    }

    /// Mounts at `point`, an existing directory.
    #[track_caller]
    pub(crate) fn mount_at(&self, point: &str, arguments: &str) -> Mounted {
        self.serve(self.command(&format!("mount {arguments} {point} --trust signers")), point)
    }

    /// Does the same below nohup(1).
    #[track_caller]
    pub(crate) fn mount_ignoring_hangups(&self, arguments: &str) -> Mounted {
        let plain = self.command(&format!("mount {arguments} mnt --trust signers"));
        let mut command = Command::new("nohup");
        command.arg(plain.get_program()).args(plain.get_args()).current_dir(self.0.path());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        self.serve(command, "mnt")
    }

    /// Does the same as a user who is not root.
    #[track_caller]
    pub(crate) fn mount_as_user(&self, arguments: &str) -> Mounted {
        fs::set_permissions(self.path(""), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(self.path("mnt"), Some(NOBODY), Some(NOBODY)).unwrap();
        let program = sealift_skipped::for_every_user(PROGRAM, self.path("").as_ref());
        let mut command = self.command_of(&program, &format!("mount {arguments} mnt --trust signers"));
        command.uid(NOBODY).gid(NOBODY);
        self.serve(command, "mnt")
    }

    #[track_caller]
    fn serve(&self, mut command: Command, point: &str) -> Mounted {
        let mut child = command.spawn().unwrap();
        let (said, err) = (Arc::new(Mutex::new(String::new())), child.stderr.take().unwrap());
        let listener = std::thread::spawn({
            let said = Arc::clone(&said);
            move || BufReader::new(err).lines().for_each(|line| said.lock().push_str(&format!("{}\n", line.unwrap())))
        });
        let mut mounted = Mounted { child, mountpoint: self.path(point), said, listener: Some(listener) };
        let start = Instant::now();
        while !is_mounted(&mounted.mountpoint) {
            let is_running = mounted.child.try_wait().unwrap().is_none() && start.elapsed() < Duration::from_secs(60);
            assert!(is_running, "{command:?}: {}", mounted.said());
            std::thread::sleep(Duration::from_millis(5));
        }
        mounted
    }

    pub(crate) fn is_mounted(&self) -> bool {
        is_mounted(&self.path("mnt"))
    }

    /// Compares trees with rsync, which is independent of our code.
    #[track_caller]
    pub(crate) fn assert_same(&self, a: &str, b: &str) {
        let mut rsync = Command::new("rsync");
        rsync.args(["-aHAXnci", "--delete", &format!("{a}/"), &format!("{b}/")]).current_dir(self.0.path());
        let done = rsync.output().unwrap();
        let (out, error) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success() && out.is_empty(), "{a} and {b}: {out}{error}");
    }
}

fn is_mounted(path: &Path) -> bool {
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
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "it does not end: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        };
        self.listener.take().into_iter().for_each(|listener| listener.join().unwrap());
        status.code()
    }

    /// Waits until it has said something.
    #[track_caller]
    pub(crate) fn says(&self, what: &str) {
        let start = Instant::now();
        while !self.said().contains(what) {
            assert!(start.elapsed() < Duration::from_secs(60), "it does not say {what:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(5));
        }
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

/// Returns incompressible bytes.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}
