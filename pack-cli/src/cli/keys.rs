//! `--key`: the publisher's keys and their passphrases.

use std::cell::OnceCell;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sealift::trust::SignError;
use sealift::trust::sign::{Signer, Zeroizing};
use sealift::{Error, FileFault};

use super::failure::{Failure, complain};
use super::hidden::Hidden;
use super::{escape, interrupt};

/// How often a passphrase is asked for on a terminal, as in ssh.
const TRIES: u32 = 3;
/// Longest line that a terminal returns (N_TTY_BUF_SIZE). The buffer never has to grow, which would leave copies of an answer in memory.
const LINE_LEN: usize = 4096;

/// Opens every key. Its passphrase is the first line of `passphrase_file`, or the answer on the terminal or in ssh's askpass program.
pub(crate) fn open(paths: &[PathBuf], passphrase_file: Option<&Path>) -> Result<Vec<Signer>, Failure> {
    let given = OnceCell::new();
    let mut signers: Vec<Signer> = Vec::new();
    for path in paths {
        let signer = open_one(path, passphrase_file, &given)?;
        let id = signer.public_key().id();
        if signers.iter().any(|other| other.public_key().id() == id) {
            return Err(Failure::usage(format!("{} is given twice: {id}", path.display())));
        }
        signers.push(signer);
    }
    Ok(signers)
}

fn open_one(path: &Path, passphrase_file: Option<&Path>, given: &OnceCell<Zeroizing<String>>) -> Result<Signer, Error> {
    if let Some(file) = passphrase_file {
        return Signer::open(path, &|_| {
            if given.get().is_none() {
                let _ = given.set(read_passphrase(file)?);
            }
            Ok(given.get().cloned().unwrap_or_default())
        });
    }
    let mut tries = 1;
    loop {
        match Signer::open(path, &ask) {
            Err(Error::File { fault: FileFault::Key(SignError::WrongPassphrase), .. }) if tries < TRIES => {
                tries += 1;
                complain("key", &format!("{}: wrong passphrase, try again", path.display()), false);
            }
            other => return other,
        }
    }
}

/// Reads the first line of a file, which may be a pipe.
pub(crate) fn read_passphrase(path: &Path) -> Result<Zeroizing<String>, Error> {
    let read = std::fs::read(path).map(Zeroizing::new);
    let bytes = read.map_err(|source| Error::Io { doing: "read", path: path.to_owned(), source })?;
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)) {
        Ok("") => Err(Error::Usage(format!("the first line of {} is empty instead of a passphrase", path.display()))),
        Ok(passphrase) => Ok(Zeroizing::new(passphrase.to_owned())),
        Err(_) => Err(Error::Usage(format!("{} is not UTF-8", path.display()))),
    }
}

fn ask(path: &Path) -> Result<Zeroizing<String>, Error> {
    ask_for(&format!("Passphrase for {}: ", escape::text(&path.display().to_string()))).map_err(|source| match source.kind() {
        ErrorKind::Interrupted => Error::Cancelled, // by Ctrl-C, before the prompt
        ErrorKind::UnexpectedEof => Error::Usage(format!("no passphrase given for {}", path.display())),
        _ => Error::Usage(format!(
            "{} needs a passphrase, but there is no terminal to ask on ({source}): use --passphrase-file, or load the key with \
             ssh-add and give its public key, {}.pub",
            path.display(),
            path.display(),
        )),
    })
}

/// Asks on the terminal, whatever standard input is, without echo; or, without a terminal, through `SSH_ASKPASS`, as ssh does.
pub(crate) fn ask_for(prompt: &str) -> std::io::Result<Zeroizing<String>> {
    let terminal = File::options().read(true).write(true).open("/dev/tty");
    if let Some(program) = askpass(terminal.is_ok()) {
        return ask_by(&program, prompt);
    }
    let mut terminal = terminal?;
    // Before the prompt, so that even an immediate answer is not echoed.
    let _hidden = Hidden::of(terminal.try_clone()?, interrupt::pending)?;
    terminal.write_all(prompt.as_bytes())?;
    read_line(&mut terminal)
}

/// Reads a line from a terminal, without the newline.
fn read_line(terminal: &mut File) -> std::io::Result<Zeroizing<String>> {
    let (mut line, mut byte) = (Zeroizing::new(Vec::with_capacity(LINE_LEN)), [0]);
    loop {
        match terminal.read(&mut byte) {
            Ok(0) if line.is_empty() => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) => line.push(byte[0]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let text = std::str::from_utf8(&line).map_err(|_| std::io::Error::other("the answer is not UTF-8"))?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Returns the program that asks instead of the terminal, as in ssh(1).
fn askpass(has_terminal: bool) -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let has_display = set("DISPLAY").is_some() || set("WAYLAND_DISPLAY").is_some();
    let wanted = match set("SSH_ASKPASS_REQUIRE").as_ref().and_then(|value| value.to_str()) {
        Some("never") => false,
        Some("force") => true,
        Some("prefer") => has_display,
        _ => has_display && !has_terminal,
    };
    set("SSH_ASKPASS").filter(|_| wanted).map(PathBuf::from)
}

fn ask_by(program: &Path, prompt: &str) -> std::io::Result<Zeroizing<String>> {
    let done = Command::new(program).arg(prompt).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
    let answer = Zeroizing::new(done.stdout);
    if !done.status.success() {
        return Err(std::io::Error::other(format!("{} gave no answer", program.display())));
    }
    let line = answer.split(|byte| *byte == b'\n').next().unwrap_or_default();
    match std::str::from_utf8(line.strip_suffix(b"\r").unwrap_or(line)) {
        Ok(line) => Ok(Zeroizing::new(line.to_owned())),
        Err(_) => Err(std::io::Error::other(format!("the answer of {} is not UTF-8", program.display()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passphrase_is_the_first_line() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("passphrase");
        for (content, passphrase) in [("one two\n", "one two"), ("one\r\nmore\n", "one"), (" one", " one")] {
            std::fs::write(&file, content).expect("written");
            assert_eq!(read_passphrase(&file).expect("a passphrase").as_str(), passphrase);
        }
        for content in ["", "\n", "\nlater\n"] {
            std::fs::write(&file, content).expect("written");
            assert!(matches!(read_passphrase(&file), Err(Error::Usage(_))), "{content:?}");
        }
    }
}
