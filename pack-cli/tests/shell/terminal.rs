//! A terminal, and a user who types.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use sealift_desk::Desk;

/// A terminal in which a line of a shell runs that knows the program as `sealift`.
pub(crate) struct Terminal {
    child: Child,
    out: ChildStdout,
    said: String,
}

impl Terminal {
    pub(crate) fn start(desk: &Desk, line: &str) -> Self {
        let mut command = desk.command_of("script");
        let mut path = Path::new(env!("CARGO_BIN_EXE_sealift")).parent().unwrap().as_os_str().to_owned();
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        command.env("PATH", path).env("SHELL", "/bin/sh"); // which script runs, whoever tests
        command.args(["-qec", line, "/dev/null"]).stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = child.stdout.take().unwrap();
        Self { child, out, said: String::new() }
    }

    /// Waits until `text` has appeared this many times.
    pub(crate) fn until(&mut self, text: &str, times: usize) -> &mut Self {
        let mut byte = [0];
        while self.said.matches(text).count() < times {
            assert_eq!(self.out.read(&mut byte).unwrap(), 1, "it ended after {:?}", self.said);
            self.said.push(char::from(byte[0]));
        }
        self
    }

    pub(crate) fn types(&mut self, keys: &str) -> &mut Self {
        let stdin = self.child.stdin.as_mut().unwrap();
        stdin.write_all(keys.as_bytes()).and_then(|()| stdin.flush()).unwrap();
        self
    }

    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        self.out.read_to_string(&mut self.said).unwrap();
        (self.child.wait().unwrap().code(), self.said)
    }
}
