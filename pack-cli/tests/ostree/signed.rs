//! A desk with OpenPGP keys, on which libostree's judgement is compared with sealift's.

use std::fs;
use std::process::Command;

use sealift_desk::noise;

use crate::repos::{Repos, write};

/// A desk with keys, whose gpg-agent ends when this value is dropped.
pub(crate) struct Signed {
    pub(crate) desk: Repos,
}

impl Drop for Signed {
    fn drop(&mut self) {
        let _ = self.gnupg("gpgconf").args(["--kill", "all"]).status();
    }
}

impl Signed {
    pub(crate) fn new() -> Self {
        let desk = Repos::new();
        fs::create_dir(desk.path("keys")).expect("a folder");
        make_tree(&desk);
        Self { desk }
    }

    pub(crate) fn gnupg(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("GNUPGHOME", self.desk.path("keys")).current_dir(self.desk.path(""));
        command
    }

    pub(crate) fn gpg(&self, line: &str) {
        let output = self.gnupg("gpg").args(["--batch", "--quiet", "--passphrase", ""]).args(line.split(' ')).output();
        let output = output.expect("gnupg is installed");
        assert!(output.status.success(), "gpg {line}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Makes a key, and a keyring with its name.
    pub(crate) fn make_key(&self, name: &str) {
        // The key is old enough to have expired.
        self.gpg(&format!("--faked-system-time 20200101T000000 --quick-gen-key {name} ed25519 sign never"));
        self.gpg(&format!("--output {name}.gpg --export {name}"));
    }

    pub(crate) fn fingerprint(&self, key: &str) -> String {
        let output = self.gnupg("gpg").args(["--batch", "--list-keys", "--with-colons", key]).output();
        let text = String::from_utf8(output.expect("gnupg is installed").stdout).expect("it is ASCII");
        let line = text.lines().find(|line| line.starts_with("fpr")).expect("there is the key");
        line.trim_matches(':').rsplit(':').next().expect("it has one").to_owned()
    }

    /// Packs a commit that is signed with these keys.
    pub(crate) fn sign(&self, reference: &str, keys: &[&str]) -> String {
        let keys: Vec<_> = keys.iter().map(|key| format!("--gpg-sign={}", self.fingerprint(key))).collect();
        let home = format!("--gpg-homedir={}", self.desk.path("keys").display());
        let more: Vec<&str> = keys.iter().chain([&home]).map(String::as_str).collect();
        self.commit(reference, &more)
    }

    pub(crate) fn commit(&self, reference: &str, more: &[&str]) -> String {
        let all = [&["--owner-uid=0", "--owner-gid=0"], more].concat();
        let commit = self.desk.commit("source", reference, "./tree", &all);
        self.desk.run(&format!("pack --force ostree:source --ref {reference} -o os.sealift"));
        commit
    }

    /// Checks that the target refuses the bundle and is unchanged.
    pub(crate) fn is_refused(&self, destination: &str, why: &str) {
        let before = self.desk.snapshot("target");
        for more in ["", " --dry-run"] {
            let said =
                self.desk.refused(&format!("unpack os.sealift ostree:target --allow-unsigned {destination}{more}"));
            assert!(said.contains(why), "{why}: {said}");
            self.desk.is_as(&before, "target", why);
        }
        self.desk.fsck("target");
    }

    pub(crate) fn is_taken(&self, destination: &str, name: &str, commit: &str) {
        self.desk.run(&format!("unpack os.sealift ostree:target --allow-unsigned {destination}"));
        let file = fs::read_to_string(self.desk.path("target/refs").join(name)).expect("there is the ref");
        assert_eq!(file.trim(), commit);
        self.desk.fsck("target");
    }

    /// Returns whether libostree accepts the same commit with the same keys.
    pub(crate) fn does_libostree_take(&self, commit: &str) -> bool {
        self.does_libostree_pull(&["--remote=origin", "--gpg-verify", "source", commit])
    }

    pub(crate) fn does_libostree_pull(&self, args: &[&str]) -> bool {
        self.desk.init("judge", "archive");
        self.desk.ostree("judge", &["remote", "add", "origin", "https://example.org"]);
        let keyring = self.desk.path("target/origin.trustedkeys.gpg");
        if keyring.exists() {
            fs::copy(keyring, self.desk.path("judge/origin.trustedkeys.gpg")).expect("there is room");
        }
        let named = "remote \"origin\".gpgkeypath";
        if let Ok(paths) = self.desk.try_ostree("target", &["config", "get", named]) {
            self.desk.ostree("judge", &["config", "set", named, paths.trim_end()]);
        }
        let taken = self.desk.try_ostree("judge", &[&["pull-local"], args].concat()).is_ok();
        fs::remove_dir_all(self.desk.path("judge")).expect("it can be removed");
        taken
    }
}

fn make_tree(desk: &Repos) {
    fs::create_dir(desk.path("tree")).expect("a folder");
    write(&desk.path("tree/file"), 0o644, &noise(1, 10_000));
}
