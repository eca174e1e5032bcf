//! Signed bundles, and nbdkit that serves them.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

use sealift::Output;
use sealift::base::Base;
use sealift::pack::{DeltaFor, PackOptions, PackRef, pack_delta};
use sealift::source::Source;
use sealift::trust::sign::{Signer, generate_key, sign_root};
use sealift::trust::{Guard, TrustOptions};
use sealift::{Error, Identity, Input, Limits, Progress};
use sealift_desk::{Desk, out, told, wait};

/// nbdkit in the foreground, which ends when this value is dropped.
pub(crate) struct Serving {
    child: Child,
    socket: PathBuf,
    ready: PathBuf,
    log: PathBuf,
}

/// Creates a desk with a key that `signers` trusts.
pub(crate) fn desk() -> Desk {
    let desk = Desk::new();
    let key = generate_key(&desk.path("release"), None, "release").unwrap().to_openssh();
    desk.write("signers", format!("os namespaces=\"sealift\" {key}\n"));
    desk.write("nobody", "");
    desk
}

/// Packs and signs a tree or a file, in chunks of 128 KiB.
pub(crate) fn pack(desk: &Desk, source: &str, bundle: &str) {
    pack_with(desk, source, |refs, options, sign| {
        sealift::pack::pack(refs, &Output::File(desk.path(bundle)), options, sign, &Progress::default()).map(drop)
    });
}

/// Packs a delta for targets that hold a base.
pub(crate) fn pack_over(desk: &Desk, base: &str, source: &str, bundle: &str) {
    let trust = TrustOptions { signers: Some(desk.path("signers")), ..TrustOptions::default() };
    let guard = Guard::load(&TrustOptions { state: Some(desk.path("state")), ..trust }).unwrap();
    let base = Base::of_bundle(Input::open(&desk.path(base)).unwrap(), Limits::default(), &guard);
    let bases = DeltaFor::Bases(vec![base.unwrap()]);
    pack_with(desk, source, |refs, options, sign| {
        pack_delta(refs, bases, &Output::File(desk.path(bundle)), options, sign, &Progress::default()).map(drop)
    });
}

fn pack_with(
    desk: &Desk,
    source: &str,
    pack: impl FnOnce(&[PackRef<'_>], &PackOptions, &sealift::pack::SigningFn<'_>) -> Result<(), Error>,
) {
    let keys = [Signer::open(&desk.path("release"), &|_| unreachable!("the key has no passphrase")).unwrap()];
    let source = Source::open_spec(desk.path(source).as_os_str(), &Default::default(), 1).unwrap();
    let refs = [PackRef { name: "main", source: &source }];
    let identity =
        Identity { name: "os".into(), version: 7, created: 1_700_000_000, expires: None, compatible: Vec::new() };
    let options = PackOptions { chunk_len: 128 << 10, ..PackOptions::new(identity) };
    pack(&refs, &options, &|signed| sign_root(signed, &keys)).unwrap();
}

/// Returns a command of nbdkit, to which options, the plugin and its parameters are added.
pub(crate) fn nbdkit(desk: &Desk, options: &[&str], parameters: &[&str]) -> Command {
    let mut command = desk.command_of("nbdkit");
    command.args(options).arg(plugin()).args(parameters);
    command
}

/// Checks that nbdkit refuses to serve this, with a message that contains `why`.
#[track_caller]
pub(crate) fn refused(desk: &Desk, parameters: &[&str], why: &str) {
    let (status, said) = told(&mut nbdkit(desk, &["--single"], parameters));
    assert!(status != Some(0) && said.contains(why), "{parameters:?}: {status:?}: {said}");
}

/// Serves until it is dropped.
#[track_caller]
pub(crate) fn serve(desk: &Desk, options: &[&str], parameters: &[&str]) -> Serving {
    let (socket, ready, log) = (desk.path("socket"), desk.path("pid"), desk.path("log"));
    // nbdkit writes its process id once it accepts connections; the socket exists before that.
    let listen = ["--foreground", "--unix", socket.to_str().unwrap(), "--pidfile", ready.to_str().unwrap()];
    let mut command = nbdkit(desk, &[&listen, options].concat(), parameters);
    let child = command.arg("trust=signers").stderr(fs::File::create(&log).unwrap()).spawn().unwrap();
    let mut serving = Serving { child, socket, ready, log };
    wait("nbdkit serves", || {
        let ended = serving.child.try_wait().unwrap();
        assert!(ended.is_none(), "{ended:?}: {}", serving.said());
        serving.ready.exists()
    });
    serving
}

/// Returns the output of an nbdsh script. If there are several Pythons, the system's has libnbd.
#[track_caller]
pub(crate) fn nbdsh(desk: &Desk, uri: &str, script: &str) -> String {
    let script = format!("import nbd\nh = nbd.NBD()\nh.connect_uri('{uri}')\n{script}");
    out(desk.command_of("/usr/bin/python3").args(["-c", &script]))
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
