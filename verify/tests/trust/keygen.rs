//! A folder in which the real `ssh-keygen` works.

use std::ops::Deref;
use std::process::Command;
use std::{env, fs};

use sealift_desk::Desk;
use sealift_verify::trust::PublicKey;

/// What is signed.
pub(crate) const MESSAGE: &[u8] = b"preamble and root\0\xff";

/// A folder with a message, in which `ssh-keygen` works.
pub(crate) struct Keygen(Desk);

impl Deref for Keygen {
    type Target = Desk;

    fn deref(&self) -> &Desk {
        &self.0
    }
}

impl Keygen {
    pub(crate) fn new() -> Self {
        let desk = Self(Desk::new());
        desk.write("message", MESSAGE);
        desk
    }

    /// Runs `ssh-keygen` with the message as its input and says how it ended.
    pub(crate) fn ssh_keygen(&self, arguments: &[&str]) -> bool {
        let program = env::var_os("SSH_KEYGEN").unwrap_or_else(|| "ssh-keygen".into());
        let message = fs::File::open(self.path("message")).expect("the message");
        let done = self.command_of(program).args(arguments).stdin(message).output();
        done.expect("ssh-keygen is installed (Debian: openssh-client)").status.success()
    }

    pub(crate) fn public_key(&self, name: &str) -> PublicKey {
        PublicKey::from_openssh(&self.text(&format!("{name}.pub"))).expect("an accepted key")
    }

    pub(crate) fn sign(&self, key: &str, namespace: &str) -> String {
        let _ = fs::remove_file(self.path("message.sig"));
        assert!(self.ssh_keygen(&["-Y", "sign", "-q", "-n", namespace, "-f", key, "message"]));
        self.text("message.sig")
    }

    /// Asks `ssh-keygen -Y verify` about `message.sig`.
    pub(crate) fn accepts(&self, name: &str, more: &[&str]) -> bool {
        let mut arguments = vec!["-Y", "verify", "-n", "sealift", "-f", "signers", "-s"];
        arguments.extend(["message.sig", "-I", name]);
        arguments.extend(more);
        self.ssh_keygen(&arguments)
    }

    /// Takes the armor off with another program than ours.
    pub(crate) fn unarmor(&self, armored: &str) -> Vec<u8> {
        let lines = armored.lines().filter(|line| !line.starts_with('-'));
        self.write("base64", lines.collect::<String>());
        let output = Command::new("base64").arg("-d").arg(self.path("base64")).output().expect("base64 is installed");
        output.stdout
    }

    /// Writes a private key, which `ssh-keygen` refuses where others may read it.
    pub(crate) fn write_private(&self, name: &str, file: &str) {
        self.write(name, file);
        self.set_mode(name, 0o600);
    }
}
