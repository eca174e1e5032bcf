//! Runs that end in the middle, and what the next one reads.

use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::{Desk, out};

impl Desk {
    /// Runs a line that reads a bundle from standard input, gives it these bytes, and kills it when it waits for more: when `folder` has more files than
    /// locks, and for a while no other ones.
    ///
    /// # Panics
    ///
    /// Panics if the run ends by itself.
    #[track_caller]
    pub fn kill_amid(&self, line: &str, bytes: &[u8], folder: &str) {
        let mut run = self.command(line).stdin(Stdio::piped()).spawn().expect("it starts");
        let mut to = run.stdin.take().expect("it is piped");
        to.write_all(bytes).expect("it reads");
        let (mut files, mut since) = (0, Instant::now());
        crate::wait(line, || {
            assert!(run.try_wait().expect("it is our child").is_none(), "it ended: {line}");
            let found = files_below(&self.path(folder));
            if found != files {
                (files, since) = (found, Instant::now());
            }
            files > 10 && since.elapsed() > Duration::from_millis(700)
        });
        run.kill().expect("it runs");
        run.wait().expect("it is our child");
    }

    /// Runs a line that must succeed, and returns how many bytes of a file it reads; `None` where there is no strace.
    #[track_caller]
    pub fn bytes_read(&self, file: &str, line: &str) -> Option<u64> {
        let (log, path) = (self.path("reads.log"), self.path(file));
        let options = [&*log.to_string_lossy(), "-P", &*path.to_string_lossy(), "-e", "trace=read,pread64,preadv"]
            .map(String::from);
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        out(&mut self.strace(&[&["-o"], &options[..]].concat(), line)?);
        let calls = self.text("reads.log");
        let results = calls.lines().filter_map(|call| call.rsplit_once(" = ")?.1.parse::<u64>().ok());
        Some(results.sum())
    }
}

/// Returns the number of regular files below a folder.
fn files_below(folder: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let count = |path: &Path| if path.is_dir() { files_below(path) } else { 1 };
    entries.flatten().map(|entry| count(&entry.path())).sum()
}
