//! A folder to run the program in.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder with a tree `os`, a key `release`, and its allowed signers.
pub(crate) struct Desk {
    folder: tempfile::TempDir,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let desk = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(desk.path("os")).unwrap();
        desk.write("os/hello", "hello");
        desk.good("key generate -o release");
        let line = format!("os namespaces=\"sealift\" {}", fs::read_to_string(desk.path("release.pub")).unwrap());
        desk.write("signers", line);
        desk
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Returns a command of the program, without any user's configuration.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sealift"));
        self.prepare(&mut command);
        command.args(line.split_whitespace());
        command
    }

    /// Returns a shell command line that knows the program as `sealift`.
    pub(crate) fn shell(&self, line: &str) -> Command {
        let mut command = Command::new("bash");
        self.prepare(&mut command);
        command.args(["-c", &format!("sealift() {{ '{}' \"$@\"; }}; {line}", env!("CARGO_BIN_EXE_sealift"))]);
        command
    }

    pub(crate) fn prepare(&self, command: &mut Command) {
        command.current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("HOME", self.folder.path()).env("XDG_CONFIG_HOME", self.path("config"));
        command.env("SEALIFT_STATE", self.path("state"));
        for name in ["SOURCE_DATE_EPOCH", "SSH_AUTH_SOCK", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "DISPLAY"] {
            command.env_remove(name);
        }
    }

    /// Runs a line, and returns its exit status and its standard error, or else its standard output.
    pub(crate) fn run(&self, line: &str) -> (i32, String) {
        told(&self.command(line).output().unwrap())
    }

    /// Returns the output of a line that must succeed.
    pub(crate) fn good(&self, line: &str) -> String {
        let (status, said) = self.run(line);
        assert_eq!(status, 0, "{line}: {said}");
        said
    }

    pub(crate) fn refused(&self, line: &str, status: i32, why: &str) {
        let (found, said) = self.run(line);
        assert!(found == status && said.contains(why), "{line}: {found}: {said}");
    }
}

pub(crate) fn told(done: &Output) -> (i32, String) {
    let said = [&done.stderr[..], &done.stdout[..]].concat();
    (done.status.code().unwrap_or(-1), String::from_utf8_lossy(&said).into_owned())
}
