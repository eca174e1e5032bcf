//! A folder in which the real `ssh-keygen` works.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::{env, fs};

use sealift_verify::trust::PublicKey;
use tempfile::TempDir;

/// What is signed.
pub(crate) const MESSAGE: &[u8] = b"preamble and root\0\xff";

/// A folder with a message, in which `ssh-keygen` works.
pub(crate) struct Desk(TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        let desk = Self(TempDir::new().expect("a folder"));
        desk.write("message", MESSAGE);
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).expect("a file is written");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file is read")
    }

    pub(crate) fn read_text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).expect("a text file")
    }

    /// Runs `ssh-keygen` with the message as its input and says how it ended.
    pub(crate) fn ssh_keygen(&self, arguments: &[&str]) -> bool {
        let program = env::var_os("SSH_KEYGEN").unwrap_or_else(|| "ssh-keygen".into());
        let message = fs::File::open(self.path("message")).expect("the message");
        Command::new(program)
            .args(arguments)
            .current_dir(self.0.path())
            .stdin(message)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("ssh-keygen is installed (Debian: openssh-client)")
            .success()
    }

    pub(crate) fn make_key(&self, name: &str, options: &[&str]) {
        let mut arguments = vec!["-q", "-f", name, "-C", "me@desk"];
        if !options.contains(&"-N") {
            arguments.extend(["-N", ""]);
        }
        arguments.extend(options);
        assert!(self.ssh_keygen(&arguments), "ssh-keygen {arguments:?}");
    }

    pub(crate) fn public_key(&self, name: &str) -> PublicKey {
        PublicKey::from_openssh(&self.read_text(&format!("{name}.pub"))).expect("an accepted key")
    }

    pub(crate) fn sign(&self, key: &str, namespace: &str) -> String {
        let _ = fs::remove_file(self.path("message.sig"));
        assert!(self.ssh_keygen(&["-Y", "sign", "-q", "-n", namespace, "-f", key, "message"]));
        self.read_text("message.sig")
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
        fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).expect("chmod");
    }
}
