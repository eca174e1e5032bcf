//! A folder with signed bundles, and nbdkit that serves them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output as Done, Stdio};
use std::time::{Duration, Instant};

use sealift::Output;
use sealift::base::Base;
use sealift::pack::{DeltaFor, PackOptions, PackRef, pack, pack_delta};
use sealift::source::Source;
use sealift::trust::sign::{Signer, generate_key, sign_root};
use sealift::trust::{Guard, TrustOptions};
use sealift::{Error, Identity, Input, Limits, Progress};

pub(crate) struct Desk(tempfile::TempDir);

/// nbdkit in the foreground, which ends when this value is dropped.
pub(crate) struct Serving {
    child: Child,
    socket: PathBuf,
    ready: PathBuf,
    log: PathBuf,
}

impl Desk {
    /// A desk with a key that `signers` trusts.
    pub(crate) fn new() -> Self {
        let desk = Self(tempfile::tempdir().unwrap());
        let key = generate_key(&desk.path("release"), None, "release").unwrap().to_openssh();
        desk.write("signers", format!("os namespaces=\"sealift\" {key}\n"));
        desk.write("nobody", "");
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

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// Packs and signs a tree or a file, in chunks of 128 KiB.
    pub(crate) fn pack(&self, source: &str, bundle: &str) {
        self.pack_with(source, |refs, options, sign| {
            pack(refs, &Output::File(self.path(bundle)), options, sign, &Progress::default()).map(drop)
        });
    }

    /// Packs a delta for targets that hold a base.
    pub(crate) fn pack_over(&self, base: &str, source: &str, bundle: &str) {
        let trust = TrustOptions { signers: Some(self.path("signers")), ..TrustOptions::default() };
        let guard = Guard::load(&TrustOptions { state: Some(self.path("state")), ..trust }).unwrap();
        let base = Base::of_bundle(Input::open(&self.path(base)).unwrap(), Limits::default(), &guard);
        let bases = DeltaFor::Bases(vec![base.unwrap()]);
        self.pack_with(source, |refs, options, sign| {
            pack_delta(refs, bases, &Output::File(self.path(bundle)), options, sign, &Progress::default()).map(drop)
        });
    }

    fn pack_with(
        &self,
        source: &str,
        pack: impl FnOnce(&[PackRef<'_>], &PackOptions, &sealift::pack::SigningFn<'_>) -> Result<(), Error>,
    ) {
        let keys = [Signer::open(&self.path("release"), &|_| unreachable!("the key has no passphrase")).unwrap()];
        let source = Source::open_spec(self.path(source).as_os_str(), &Default::default(), 1).unwrap();
        let refs = [PackRef { name: "main", source: &source }];
        let identity =
            Identity { name: "os".into(), version: 7, created: 1_700_000_000, expires: None, compatible: Vec::new() };
        let options = PackOptions { chunk_len: 128 << 10, ..PackOptions::new(identity) };
        pack(&refs, &options, &|signed| sign_root(signed, &keys)).unwrap();
    }

    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.0.path()).stdin(Stdio::null());
        command.env("HOME", self.path("home")).env("SEALIFT_STATE", self.path("state")).env("LC_ALL", "C.UTF-8");
        command
    }

    /// Returns a command of nbdkit, to which options, the plugin and its parameters are added.
    pub(crate) fn nbdkit(&self, options: &[&str], parameters: &[&str]) -> Command {
        let mut command = self.command("nbdkit");
        command.args(options).arg(plugin()).args(parameters);
        command
    }

    /// Checks that nbdkit refuses to serve this, with a message that contains `why`.
    #[track_caller]
    pub(crate) fn refused(&self, parameters: &[&str], why: &str) {
        let done = self.nbdkit(&["--single"], parameters).output().unwrap();
        let said = said(&done);
        assert!(!done.status.success() && said.contains(why), "{parameters:?}: {}: {said}", done.status);
    }

    /// Serves until it is dropped.
    #[track_caller]
    pub(crate) fn serve(&self, options: &[&str], parameters: &[&str]) -> Serving {
        let (socket, ready, log) = (self.path("socket"), self.path("pid"), self.path("log"));
        // nbdkit writes its process id once it accepts connections; the socket exists before that.
        let listen = ["--foreground", "--unix", socket.to_str().unwrap(), "--pidfile", ready.to_str().unwrap()];
        let mut command = self.nbdkit(&[&listen, options].concat(), parameters);
        let child = command.arg("trust=signers").stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
        let mut serving = Serving { child, socket, ready, log };
        wait(|| {
            let ended = serving.child.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", serving.said());
            serving.ready.exists()
        });
        serving
    }

    /// Returns the output of an nbdsh script. If there are several Pythons, the system's has libnbd.
    #[track_caller]
    pub(crate) fn nbdsh(&self, uri: &str, script: &str) -> String {
        let script = format!("import nbd\nh = nbd.NBD()\nh.connect_uri('{uri}')\n{script}");
        self.good("/usr/bin/python3", &["-c", &script])
    }

    /// Returns the output of a program.
    #[track_caller]
    pub(crate) fn good(&self, program: &str, arguments: &[&str]) -> String {
        let done = self.command(program).args(arguments).output().unwrap();
        assert!(done.status.success(), "{program} {arguments:?}: {}", said(&done));
        String::from_utf8(done.stdout).unwrap()
    }
}

impl Serving {
    pub(crate) fn uri(&self) -> String {
        format!("nbd+unix:///?socket={}", self.socket.display())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Ends it, and returns its messages.
    #[track_caller]
    pub(crate) fn end(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}: {}", self.said());
        self.said()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.socket);
        let _ = fs::remove_file(&self.ready);
    }
}

/// The plugin, which cargo built beside the dependencies of this test.
fn plugin() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.with_file_name("libnbdkit_sealift_plugin.so")
}

pub(crate) fn said(done: &Done) -> String {
    String::from_utf8_lossy(&[&done.stderr[..], &done.stdout].concat()).into_owned()
}

/// Waits until a condition holds.
#[track_caller]
pub(crate) fn wait(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether these programs are installed; otherwise reports the test as skipped.
pub(crate) fn has(programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !Path::new("/usr/bin").join(program).exists());
    if let Some(missing) = missing {
        sealift_skipped::skipped(&format!("needs {missing}"));
    }
    missing.is_none()
}

/// Returns incompressible bytes.
pub(crate) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}
