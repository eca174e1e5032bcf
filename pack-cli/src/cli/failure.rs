//! How a verb ends when it does not do what was asked.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use sealift::Error;
use serde::Serialize;

use super::show::{self, BAD};
use super::{escape, interrupt};

/// An error and the bundle that it is about.
#[derive(Debug)]
pub(crate) struct Failure {
    error: Error,
    bundle: Option<Box<Path>>,
    /// Two trees differ, which the library has no word for.
    differs: bool,
    /// What there is to say has been said.
    printed: bool,
    /// Where it was stopped, it goes on when it is run again, unless this target is cleaned.
    unfinished: Option<Box<Path>>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self { error, bundle: None, differs: false, printed: false, unfinished: None }
    }
}

/// Only writing to standard output fails with a bare error here: the library names its files.
impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Self {
        Error::Io { doing: "write", path: "standard output".into(), source }.into()
    }
}

/// Names the bundle in a failure.
pub(crate) trait About<T> {
    /// The failure is about this bundle.
    fn about(self, bundle: &Path) -> Result<T, Failure>;
}

impl<T> About<T> for Result<T, Error> {
    fn about(self, bundle: &Path) -> Result<T, Failure> {
        self.map_err(|error| Failure { bundle: Some(bundle.into()), ..error.into() })
    }
}

#[derive(Serialize)]
struct Line<'a> {
    error: Object<'a>,
}

#[derive(Serialize)]
struct Object<'a> {
    kind: &'a str,
    message: &'a str,
}

impl Failure {
    /// A wrong wish.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Error::Usage(message.into()).into()
    }

    /// What came out is not what went in.
    pub(crate) fn differs(message: String) -> Self {
        Self { differs: true, ..Self::usage(message) }
    }

    /// Two trees differ, and how has been printed.
    pub(crate) fn printed() -> Self {
        Self { printed: true, ..Self::differs(String::new()) }
    }

    /// What was done so far beside this target is kept.
    pub(crate) fn unfinished(self, target: &Path) -> Self {
        Self { unfinished: Some(target.into()), ..self }
    }

    /// Whether somebody wished so.
    pub(crate) fn is_stop(&self) -> bool {
        matches!(self.error, Error::Cancelled)
    }

    /// Says what happened, and returns the exit status.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        if self.printed {
            return ExitCode::FAILURE;
        }
        if self.is_broken_pipe() {
            return ExitCode::SUCCESS; // the reader has what it wanted
        }
        let names_it = matches!(self.error, Error::Bundle { .. });
        let message = match &self.bundle {
            Some(bundle) if self.error.kind().is_some() && !names_it => format!("{}: {}", shown(bundle), self.error),
            _ => self.error.to_string(),
        };
        if self.is_stop() {
            let message = match &self.unfinished {
                Some(target) => {
                    format!("stopped; run it again to go on, or give it up by  sealift clean {}", target.display())
                }
                None => "stopped; nothing half-written is left".to_owned(),
            };
            complain("cancelled", &message, json);
            return interrupt::status();
        }
        complain(self.kind(), &message, json);
        if self.differs { ExitCode::FAILURE } else { ExitCode::from(self.error.exit_status()) }
    }

    fn kind(&self) -> &'static str {
        if self.differs { "differs" } else { self.error.word() }
    }

    fn is_broken_pipe(&self) -> bool {
        matches!(&self.error, Error::Io { source, .. } if source.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// A path for messages; `-` is standard input.
pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}

/// Writes an error to standard error: a line for people, or one JSON object.
pub(crate) fn complain(kind: &str, message: &str, json: bool) {
    let mut out = anstream::stderr().lock();
    // With standard error gone there is nobody to tell.
    let _ = if json {
        let line = serde_json::to_string(&Line { error: Object { kind, message } }).unwrap_or_default();
        writeln!(out, "{line}")
    } else {
        let message = escape::text(message);
        match message.split_once("; ").filter(|_| message.contains(" namespaces=")) {
            Some((first, rest)) => {
                writeln!(out, "{BAD}sealift:{BAD:#} {first}").and_then(|()| show::clauses(&mut out, 2, rest))
            }
            // A terminal would break the line within words.
            None if io::stderr().is_terminal() => {
                show::paragraph(&mut out, 0, &format!("{BAD}sealift:{BAD:#} {message}"))
            }
            None => writeln!(out, "{BAD}sealift:{BAD:#} {message}"),
        }
    };
}
