//! What failed, found in the output of a step, so that it can be printed once more at a run's end: a log of ten thousand lines is mostly read there,
//! and whoever keeps it may have kept its end only.

use std::io::{self, BufRead as _, BufReader, PipeReader, Write as _};
use std::process::Command;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::shell::as_typed;

/// At most so many lines of one step are printed again.
const MOST_LINES: usize = 120;

/// At most so many lines of one failed test.
const MOST_OF_ONE: usize = 30;

/// How many of the last lines are printed of a step whose output names no test.
const LAST_LINES: usize = 30;

/// How long the output of a command is waited for that has ended: a process that it left behind may hold the pipe open.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs a command, passes its output through, and adds it to `seen`.
pub(crate) fn run(command: &mut Command, seen: &mut String) -> Result<()> {
    let (reader, writer) = io::pipe()?;
    let mut child = as_typed(command).stdout(writer.try_clone()?).stderr(writer).spawn()?;
    // The command holds the pipe's end, too, and it would never close.
    command.stdout(io::stdout()).stderr(io::stderr());
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || pass_through(reader, &sender));
    let status = child.wait()?;
    while let Ok(line) = lines.recv_timeout(PATIENCE) {
        seen.push_str(&line);
    }
    if !status.success() {
        bail!("{} ended with {status}", command.get_program().display());
    }
    Ok(())
}

fn pass_through(reader: PipeReader, sender: &mpsc::Sender<String>) {
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        // Whoever reads our output may have gone; the step goes on all the same.
        let _ = io::stdout().write_all(&line);
        let _ = sender.send(String::from_utf8_lossy(&line).into_owned());
        line.clear();
    }
}

/// Returns the lines of a failed step's output that say what failed: those of the tests that failed, or else the last ones.
pub(crate) fn excerpt(output: &str) -> Vec<&str> {
    let lines: Vec<&str> = output.lines().collect();
    let mut said = Vec::new();
    let mut next = 0;
    while next < lines.len() {
        let length = length_of_failure(&lines[next..]);
        said.extend(lines[next..next + length].iter().take(MOST_OF_ONE));
        next += length.max(1);
    }
    if said.is_empty() {
        said = lines[lines.len().saturating_sub(LAST_LINES)..].to_vec();
    }
    said.truncate(MOST_LINES);
    said
}

/// Returns how many of the lines are about a failed test that the first one names, and 0 if it names none. Rust's tests are shown as
/// `---- name stdout ----` and what they printed, Node's as `not ok 7 - name` and a block that ends with `...`.
fn length_of_failure(lines: &[&str]) -> usize {
    let first = lines[0];
    let ends: fn(&str) -> bool = if first.starts_with("---- ") && first.ends_with(" stdout ----") {
        |line| line.starts_with("---- ") || line == "failures:"
    } else if first.trim_start().starts_with("not ok ") {
        |line| line.trim() == "..."
    } else {
        return 0;
    };
    lines.iter().skip(1).position(|line| ends(line)).map_or(lines.len(), |length| length + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_that_failed_are_named_with_what_they_printed() {
        let rust = "test a ... ok\ntest b ... FAILED\n\nfailures:\n\n---- b stdout ----\nassertion failed\n\n---- c stdout ----\nno\n\nfailures:\n    b\n    c\n";
        assert_eq!(excerpt(rust), ["---- b stdout ----", "assertion failed", "", "---- c stdout ----", "no", ""]);
        let node = "ok 1 - a\nnot ok 2 - b\n  ---\n  error: 'no'\n  ...\nok 3 - c\n";
        assert_eq!(excerpt(node), ["not ok 2 - b", "  ---", "  error: 'no'"]);
    }

    #[test]
    fn without_a_test_the_last_lines_are_shown() {
        let output: String = (0..100).map(|line| format!("line {line}\n")).collect();
        let said = excerpt(&output);
        assert_eq!((said.len(), said[0], said[LAST_LINES - 1]), (LAST_LINES, "line 70", "line 99"));
    }

    #[test]
    fn the_output_of_a_command_is_kept_and_its_status_told() {
        let mut seen = String::new();
        run(Command::new("sh").args(["-c", "echo out; echo err >&2"]), &mut seen).expect("it ends well");
        assert_eq!(seen, "out\nerr\n");
        let error = run(Command::new("sh").args(["-c", "echo last; exit 3"]), &mut seen).expect_err("it fails");
        assert_eq!((seen.as_str(), error.to_string().as_str()), ("out\nerr\nlast\n", "sh ended with exit status: 3"));
    }
}
