//! Keys, bundles, trust files and state.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sealift::Output;
use sealift::pack::{PackOptions, PackRef, pack};
use sealift::source::{DirectoryOptions, DirectorySource, Source};
use sealift::trust::sign::{SignChange, Signer, Zeroizing, sign_bundle};
use sealift::trust::{Guard, PublicKey, TrustOptions, TrustPaths, Trusted, Verdict};
use sealift::unpack::unpack;
use sealift::{Durability, InstallOptions, TreeOptions};
use sealift::{Error, Input, Limits, Progress};
use sealift_desk::Desk;
use sealift_format::{Head, Identity, Kind};

/// A desk with a tree to pack, keys, and files that say which of them are trusted.
pub(crate) struct Keyring(Desk);

/// The time of all judgements that do not state another.
pub(crate) const NOW: i64 = 1_800_000_000;

impl Deref for Keyring {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

impl Keyring {
    pub(crate) fn new() -> Self {
        let desk = Desk::new();
        desk.write("tree/etc/motd", "hello\n");
        fs::create_dir(desk.path("config")).expect("a folder");
        Self(desk)
    }

    /// Writes a file, and returns its path.
    pub(crate) fn written(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.write(name, content);
        self.path(name)
    }

    pub(crate) fn places(&self) -> TrustPaths {
        TrustPaths { user_config: None, system_config: self.path("config"), state: Some(self.path("state")) }
    }

    /// Runs a program in the folder, and returns whether it succeeded.
    pub(crate) fn run(&self, program: &str, arguments: &[&str]) -> bool {
        self.run_with(program, arguments, Stdio::null())
    }

    pub(crate) fn run_with(&self, program: &str, arguments: &[&str], input: Stdio) -> bool {
        let mut command = self.command_of(program);
        command.args(arguments).stdin(input).output().expect("openssh-client is installed").status.success()
    }

    pub(crate) fn ssh_keygen(&self, arguments: &[&str]) {
        assert!(self.run("ssh-keygen", arguments), "ssh-keygen {arguments:?}");
    }

    /// A desk whose allowed signers are these keys.
    pub(crate) fn trusting(keys: &[&str]) -> Self {
        let desk = Self::new();
        desk.trust(keys);
        desk
    }

    /// Makes ed25519 keys, and lets them sign `os` in the allowed signers of the configuration.
    pub(crate) fn trust(&self, keys: &[&str]) {
        let mut file = String::new();
        for key in keys {
            self.make_ssh_key(key, &["-t", "ed25519"]);
            file.push_str(&self.signer_line("os", key));
        }
        self.write("config/allowed_signers", file);
    }

    pub(crate) fn signer_line(&self, principals: &str, key: &str) -> String {
        format!("{principals} namespaces=\"sealift\" {}", self.text(&format!("{key}.pub")))
    }

    pub(crate) fn public_key(&self, key: &str) -> PublicKey {
        PublicKey::from_openssh(&self.text(&format!("{key}.pub"))).expect("an accepted key")
    }

    /// Packs `os` without a signature.
    pub(crate) fn pack(&self, version: u64) -> PathBuf {
        self.pack_as(identity(version), 2048)
    }

    pub(crate) fn pack_as(&self, identity: Identity, signature_room: u32) -> PathBuf {
        let path = self.path(&format!("{}-{}.sealift", identity.name, identity.version));
        let tree = DirectorySource::list(&self.path("tree"), &DirectoryOptions::default(), 1).expect("a tree");
        let source = Source::Directory(tree);
        let options = PackOptions { level: 1, signature_room, jobs: 1, ..PackOptions::new(identity) };
        let refs = [PackRef { name: "main", source: &source }];
        pack(&refs, &Output::File(path.clone()), &options, &|_| Ok(Vec::new()), &Progress::default())
            .expect("a bundle");
        path
    }

    pub(crate) fn signer(&self, key: &str) -> Signer {
        Signer::open_with(&self.path(key), None, &no_passphrase).expect("a key that signs")
    }

    pub(crate) fn sign(&self, bundle: &Path, keys: &[&str]) {
        let keys: Vec<_> = keys.iter().map(|key| self.signer(key)).collect();
        let change = SignChange { keys: &keys, ..SignChange::default() };
        sign_bundle(bundle, &change, &Progress::default()).expect("it is signed");
    }

    /// Packs `os` and signs it with these keys.
    pub(crate) fn signed(&self, version: u64, keys: &[&str]) -> PathBuf {
        let path = self.pack(version);
        self.sign(&path, keys);
        path
    }

    pub(crate) fn guard(&self, options: &TrustOptions) -> Result<Guard, Error> {
        Guard::load_from(options, self.places())
    }

    pub(crate) fn judge(&self, options: &TrustOptions, bundle: &Path) -> Result<Verdict, Error> {
        self.guard(options)?.judge(&head_of(bundle))
    }

    /// Returns the kind and the exit status of a refusal.
    pub(crate) fn refusal(&self, options: &TrustOptions, bundle: &Path) -> (Option<Kind>, u8) {
        refusal(self.judge(options, bundle))
    }

    pub(crate) fn admit(&self, options: &TrustOptions, bundle: &Path) -> Result<Trusted, Error> {
        self.guard(options)?.admit(Input::open(bundle)?, Limits::default())
    }

    /// Judges a bundle, and unpacks it to a target of its own if it is accepted.
    pub(crate) fn take(&self, options: &TrustOptions, bundle: &Path) -> Result<(), Error> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        self.take_to(&folder.path().join("target"), self.admit(options, bundle)?)
    }

    /// Creates the target, or updates it.
    pub(crate) fn take_to(&self, target: &Path, bundle: Trusted) -> Result<(), Error> {
        let tree = TreeOptions { update: true, durability: Durability::None, ..TreeOptions::default() };
        let options = InstallOptions { tree, ..InstallOptions::default() };
        unpack(bundle, target, &options, &Progress::default()).map(drop)
    }
}

/// Returns options with the usual time.
pub(crate) fn options() -> TrustOptions {
    TrustOptions { time: Some(NOW), ..TrustOptions::default() }
}

pub(crate) fn identity(version: u64) -> Identity {
    Identity { name: "os".to_owned(), version, created: NOW - 1000, expires: None, compatible: Vec::new() }
}

pub(crate) fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> (Option<Kind>, u8) {
    let error = result.expect_err("a refusal");
    assert!(!error.to_string().is_empty());
    (error.kind(), error.exit_status())
}

pub(crate) fn head_of(bundle: &Path) -> Head {
    let bytes = fs::read(bundle).expect("a bundle");
    Head::parse_first(&bytes).expect("a sound head").0
}

pub(crate) fn no_passphrase(_: &Path) -> Result<Zeroizing<String>, Error> {
    panic!("no key has a passphrase")
}
