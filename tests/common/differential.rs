//! Compares the Rust readers with the second reader on mutated bundles.

use std::io::{BufRead, BufReader, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use sealift_desk::folder_in_memory;
use sealift_format::{Kind, Opened};

use crate::bytes::narrow;
use crate::complete::complete;
use crate::content::{hex, of_bundle};
use crate::mutation::{Input, Seeds};
use crate::ostree::sha256;
use crate::reader::{read, walk};
use crate::vector::Check;

/// The second reader as a process that checks one bundle after the other.
#[derive(Debug)]
pub struct SecondReader {
    child: Child,
    requests: ChildStdin,
    answers: Receiver<String>,
}

/// All inputs are small: if a reader takes longer than this for one, that is a fault.
const PATIENCE: Duration = Duration::from_secs(20);

impl SecondReader {
    /// Starts it with this Python.
    pub fn start(python: &Path) -> std::io::Result<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("reference/serve.py");
        let mut command = Command::new(python);
        let mut child = command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(std::io::ErrorKind::BrokenPipe.into());
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let lines = BufReader::new(answers).lines().map_while(Result::ok);
            lines.map_while(|line| sender.send(line).ok()).for_each(drop);
        });
        Ok(Self { child, requests, answers: receiver })
    }

    /// Sends the input; `all` asks for the kinds of all faults.
    fn request(&mut self, input: &Input, all: bool) -> std::io::Result<()> {
        let count = narrow(1 + input.bases.len()) | if all { 1 << 31 } else { 0 };
        let mut request = count.to_le_bytes().to_vec();
        for bytes in std::iter::once(&input.bytes).chain(&input.bases) {
            request.extend(narrow(bytes.len()).to_le_bytes());
            request.extend(bytes);
        }
        self.requests.write_all(&request)?;
        self.requests.flush()
    }

    /// Returns `None` if there is no answer in time: the process cannot be used any further then.
    fn answer(&mut self) -> std::io::Result<Option<String>> {
        match self.answers.recv_timeout(PATIENCE) {
            Ok(line) => Ok(Some(line)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(std::io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Returns whether this kind is among those of the input's faults.
    fn finds(&mut self, input: &Input, kind: &str) -> std::io::Result<bool> {
        self.request(input, true)?;
        Ok(self.answer()?.is_some_and(|faults| faults.split(' ').any(|fault| fault == kind)))
    }
}

impl Drop for SecondReader {
    fn drop(&mut self) {
        // The process may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the verdict of the Rust readers: `ok` and SHA-256 of the content, or the kind of failure. `file` is a path where the input may be written.
pub fn verdict(input: &Input, file: &Path) -> String {
    let verdict = catch_unwind(AssertUnwindSafe(|| {
        std::fs::write(file, &input.bytes).expect("there is room");
        let mut opened = read(sealift::Input::open(file).expect("it was written"), Check::Deep, None);
        let of_page = walk(&input.bytes, &[usize::MAX], Check::Deep);
        // If the content has several faults, threads may meet a different one first (core 11.2). The page's reader goes chunk by chunk.
        let is_of_content = |result: &Result<Opened, Kind>| matches!(result, Err(Kind::Chunk | Kind::Object));
        if is_of_content(&opened) && is_of_content(&of_page) {
            opened.clone_from(&of_page);
        }
        let kind = |result: &Result<Opened, Kind>| result.as_ref().err().copied();
        // The page's reader does not check envelopes.
        let is_of_envelopes = matches!(opened, Err(Kind::Signature));
        if kind(&opened) != kind(&of_page) && !is_of_envelopes {
            return format!("split within: {opened:?} and {of_page:?}");
        }
        let whole = opened.and_then(|opened| match opened {
            Opened::Whole(bundle) => Ok(Some(bundle)),
            Opened::Delta(_) if input.bases.is_empty() => Ok(None),
            Opened::Delta(delta) => {
                let bases: Vec<&[u8]> = input.bases.iter().map(|base| &base[..]).collect();
                complete(delta, &input.bytes, &bases).map(Some).map_err(|error| error.kind())
            }
        });
        match whole {
            Ok(Some(bundle)) => format!("ok {}", hex(&sha256(of_bundle(&bundle).as_bytes()))),
            Ok(None) => "ok".into(),
            Err(kind) => kind.word().into(),
        }
    }));
    verdict.unwrap_or_else(|_| "panic".into())
}

/// An input on which the readers differ.
#[derive(Clone, Debug)]
pub struct Split {
    /// The number of the mutation.
    pub number: u64,
    /// The verdict of the Rust readers.
    pub ours: String,
    /// The verdict of the second reader.
    pub theirs: String,
    /// The input.
    pub input: Input,
}

impl Split {
    /// Writes the files into a folder: the bundle under the mutation's number, and its bases. Returns the bundle's path.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be written.
    pub fn keep(&self, folder: &Path) -> std::io::Result<PathBuf> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join(format!("{}.sealift", self.number));
        std::fs::write(&path, &self.input.bytes)?;
        for (number, base) in self.input.bases.iter().enumerate() {
            std::fs::write(folder.join(format!("{}.base-{number}.sealift", self.number)), base)?;
        }
        Ok(path)
    }
}

/// The results of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How often each verdict occurred.
    pub verdicts: std::collections::BTreeMap<String, u64>,
    /// The inputs on which the readers differ.
    pub splits: Vec<Split>,
}

impl Outcome {
    /// Adds the results of another run.
    pub fn add(&mut self, other: Self) {
        for (verdict, count) in other.verdicts {
            *self.verdicts.entry(verdict).or_default() += count;
        }
        self.splits.extend(other.splits);
    }
}

/// Compares the readers on these mutations of a seed, with as many processes as given. Stops after a hundred differences.
///
/// # Errors
/// Returns an error if the second reader cannot be started, or ends.
pub fn run(python: &Path, seed: u64, numbers: std::ops::Range<u64>, processes: u64) -> std::io::Result<Outcome> {
    let folder = folder_in_memory();
    let folder = folder.path();
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..processes)
            .map(|process| {
                let numbers = numbers.clone().filter(move |number| number % processes == process);
                let file = folder.join(process.to_string());
                scope.spawn(move || compare(python, seed, numbers, &file))
            })
            .collect();
        let mut outcome = Outcome::default();
        for run in runs {
            outcome.add(run.join().map_err(|_| std::io::Error::other("a thread panicked"))??);
        }
        Ok(outcome)
    })
}

fn compare(python: &Path, seed: u64, numbers: impl Iterator<Item = u64>, file: &Path) -> std::io::Result<Outcome> {
    let (mut seeds, mut second) = (Seeds::new(seed), SecondReader::start(python)?);
    let mut outcome = Outcome::default();
    for number in numbers {
        let input = seeds.mutation(number);
        second.request(&input, false)?;
        let ours = verdict(&input, file);
        let theirs = match second.answer()? {
            Some(answer) => answer,
            None => {
                second = SecondReader::start(python)?;
                "no answer".into()
            }
        };
        // Of several faults, any may be named (core 11.2).
        let is_split = ours != theirs && !second.finds(&input, &ours)?;
        let word = if is_split || ours == theirs { ours.split(' ').next().unwrap_or_default() } else { "two faults" };
        *outcome.verdicts.entry(word.to_owned()).or_default() += 1;
        if is_split {
            outcome.splits.push(Split { number, ours, theirs, input });
            if outcome.splits.len() == 100 {
                break;
            }
        }
    }
    Ok(outcome)
}
