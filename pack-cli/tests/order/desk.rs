//! A folder in which profiles are made.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

pub(crate) struct Desk(tempfile::TempDir);

impl Desk {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sealift"));
        command.args(line.split(' ')).current_dir(self.0.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Returns the exit status of a command, and its output: standard output first.
    pub(crate) fn run(&self, mut command: Command) -> (Option<i32>, String) {
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    }

    /// Returns the output of a line that must succeed.
    #[track_caller]
    pub(crate) fn good(&self, line: &str) -> String {
        let (status, said) = self.run(self.command(line));
        assert_eq!(status, Some(0), "{line}: {said}");
        said
    }

    #[track_caller]
    pub(crate) fn refused(&self, line: &str, why: &str) {
        let (status, said) = self.run(self.command(line));
        assert!(status == Some(2) && said.contains(why), "{line}: {status:?}: {said}");
    }
}
