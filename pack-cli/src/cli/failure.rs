//! How a verb reports failure and exits.

use std::io::{self, IsTerminal as _, Write as _};
use std::path::Path;
use std::process::ExitCode;

use sealift::{Class, Error, VolumeFault};
use serde::Serialize;

use super::advice::{advice, advice_for_target};
use super::show::{self, BAD};
use super::{escape, interrupt};

/// An error and the bundle that caused it.
#[derive(Debug)]
pub(crate) struct Failure {
    error: Box<Error>,
    bundle: Option<Box<Path>>,
    /// Two trees differ, which is not an error of the library.
    differs: bool,
    /// The message has been printed.
    printed: bool,
    /// The reader of a list or summary has closed the pipe.
    unread: bool,
    /// None of the bundles here could be installed; the reason for each has been printed.
    places: Option<Box<str>>,
    /// The target of an interrupted run, which can be resumed or cleaned.
    unfinished: Option<Box<Path>>,
    /// The exit status of a command that was run, which has printed its own error.
    status: Option<u8>,
    /// What went wrong with the command that was to be run after an installation.
    then: Option<Box<str>>,
    /// Nothing could be compared, and exit status 1 would say that two trees differ.
    uncompared: bool,
    /// What the user of this verb can do about it.
    advice: Option<&'static str>,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let error = Box::new(error);
        Self {
            error,
            bundle: None,
            differs: false,
            printed: false,
            unread: false,
            places: None,
            unfinished: None,
            status: None,
            then: None,
            uncompared: false,
            advice: None,
        }
    }
}

/// A bare I/O error comes only from writing to standard output: errors of the library name their files. Output converted here is lists and
/// summaries, which a reader may stop reading early; [`Failure::content`] is for content.
impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Self {
        let unread = source.kind() == io::ErrorKind::BrokenPipe;
        Self { unread, ..Self::content(source) }
    }
}

/// Ignores a closed pipe when printing a verdict, since the exit status states the verdict too.
pub(crate) fn verdict_printed(printed: io::Result<()>) -> Result<(), Failure> {
    match printed {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => Ok(other?),
    }
}

/// Adds the bundle to a failure.
pub(crate) trait About<T> {
    /// Returns the failure with this bundle.
    fn about(self, bundle: &Path) -> Result<T, Failure>;
}

impl<T> About<T> for Result<T, Error> {
    fn about(self, bundle: &Path) -> Result<T, Failure> {
        self.map_err(|error| Failure { bundle: Some(bundle.into()), ..error.into() })
    }
}

/// The exit status if the command of `--then` failed: the library has those below.
const THEN_FAILED: u8 = 5;

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
    /// A usage error.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Error::Usage(message.into()).into()
    }

    /// Content could not be written to standard output. Even a closed pipe is an error then: part of a content is useless.
    pub(crate) fn content(source: io::Error) -> Self {
        Error::Io { doing: "write", path: "standard output".into(), source }.into()
    }

    /// A comparison found differences.
    pub(crate) fn differs(message: String) -> Self {
        Self { differs: true, ..Self::usage(message) }
    }

    /// Two trees differ, and the differences have been printed.
    pub(crate) fn printed() -> Self {
        Self { printed: true, ..Self::differs(String::new()) }
    }

    /// The run was interrupted, and its progress beside this target is kept.
    pub(crate) fn unfinished(self, target: &Path) -> Self {
        Self { unfinished: Some(target.into()), ..self }
    }

    /// The verb writes to this target.
    pub(crate) fn of_target(self, target: &Path) -> Self {
        Self { advice: advice_for_target(&self.error, target), ..self }
    }

    /// A command that was run exited with this status.
    pub(crate) fn of_command(status: u8) -> Self {
        Self { status: Some(status), ..Self::usage(String::new()) }
    }

    /// The bundle is installed, but the command of `--then` did not succeed.
    pub(crate) fn of_then(message: &str) -> Self {
        Self { then: Some(message.into()), ..Self::usage(String::new()) }
    }

    /// The trees could not be compared, in a verb whose exit status 1 says that they differ.
    pub(crate) fn uncompared(self) -> Self {
        Self { uncompared: true, ..self }
    }

    /// Returns the exit status of the error.
    fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self.error.exit_status() {
            1 if self.uncompared => 2,
            status => status,
        })
    }

    /// Prints the failure and continues.
    pub(crate) fn tell(&self, json: bool) {
        self.report(json);
    }

    /// Marks the failure as printed.
    pub(crate) fn told(self) -> Self {
        Self { printed: true, ..self }
    }

    /// Ranks failures: damage above a refusal by policy, that above an undetermined result, and that above a missing base.
    pub(crate) fn gravity(&self) -> u8 {
        match self.error.class() {
            _ if self.differs => 4,
            Class::Damaged => 4,
            Class::Refused => 3,
            Class::BaseMissing => 1,
            _ => 2,
        }
    }

    /// Returns whether the user cancelled.
    pub(crate) fn is_stop(&self) -> bool {
        self.error.class() == Class::Cancelled
    }

    /// Returns whether the bundle is damaged: another copy may be whole.
    pub(crate) fn is_of_content(&self) -> bool {
        self.error.kind().is_some() && self.error.class() == Class::Damaged
    }

    /// Returns whether a volume was given, and others of its set are not beside it.
    pub(crate) fn lacks_volumes(&self) -> bool {
        match &*self.error {
            Error::Volumes { path, fault } => matches!(**fault, VolumeFault::Missing { .. }) && !path.is_dir(),
            _ => false,
        }
    }

    /// Prints the failure and returns the exit status.
    pub(crate) fn report(&self, json: bool) -> ExitCode {
        if let Some(status) = self.status {
            return ExitCode::from(status);
        }
        if let Some(message) = &self.then {
            // A command that ended although it got a signal had a status of its own.
            let (kind, status) =
                if interrupt::pending() { ("cancelled", interrupt::status()) } else { ("then", THEN_FAILED) };
            if !self.printed {
                complain(kind, message, json);
            }
            return ExitCode::from(status);
        }
        if self.printed {
            return if self.differs { ExitCode::FAILURE } else { self.exit_code() };
        }
        if self.unread {
            return ExitCode::SUCCESS; // the reader has seen enough
        }
        let message = self.message();
        if let Some(places) = &self.places {
            complain(self.kind(), &format!("{places}: no bundle that this device can install"), json);
            return self.exit_code();
        }
        if self.is_stop() {
            let message = match &self.unfinished {
                Some(target) => {
                    format!(
                        "interrupted; repeat the command to resume, or discard it: sealift clean {}",
                        target.display()
                    )
                }
                None => "interrupted; no partial output was left".to_owned(),
            };
            complain("cancelled", &message, json);
            return ExitCode::from(interrupt::status());
        }
        complain(self.kind(), &message, json);
        if self.differs { ExitCode::FAILURE } else { self.exit_code() }
    }

    /// Returns the message, one sentence.
    pub(crate) fn message(&self) -> String {
        if let Some(message) = &self.then {
            return message.to_string();
        }
        let names_it = matches!(*self.error, Error::Bundle { .. } | Error::Volumes { .. });
        let mut message = match &self.bundle {
            Some(bundle) if self.error.kind().is_some() && !names_it => format!("{}: {}", shown(bundle), self.error),
            _ => self.error.to_string(),
        };
        // A verb that writes to a target has advice of its own.
        message.extend(self.advice.map(str::to_owned).or_else(|| advice(&self.error)));
        message
    }

    /// Returns whether the failure is specific to this bundle, so that another one may work.
    pub(crate) fn is_of(&self, bundle: &Path) -> bool {
        match &*self.error {
            // A read error, as from a worn medium.
            Error::Io { path, .. } => path == bundle,
            error => {
                error.kind().is_some() || matches!(error.class(), Class::Damaged | Class::Refused | Class::BaseMissing)
            }
        }
    }

    /// Turns the failure into that of all bundles found.
    pub(crate) fn of_several(self, places: &str) -> Self {
        Self { places: Some(places.into()), ..self }
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self { differs: true, .. } => "differs",
            Self { then: Some(_), .. } => "then",
            _ => self.error.word(),
        }
    }
}

/// Returns a path for messages; `-` is standard input.
pub(crate) fn shown(path: &Path) -> String {
    if path == Path::new("-") { "standard input".into() } else { path.display().to_string() }
}

/// Writes an error to standard error: a line for people, or one JSON object.
pub(crate) fn complain(kind: &str, message: &str, json: bool) {
    let mut out = anstream::stderr().lock();
    // If standard error is closed, there is nobody to tell.
    let _ = if json {
        let line = serde_json::to_string(&Line { error: Object { kind, message } }).unwrap_or_default();
        writeln!(out, "{line}")
    } else {
        let message = escape::text(message);
        match message.split_once("; ").filter(|_| message.contains(" namespaces=")) {
            Some((first, rest)) => {
                writeln!(out, "{BAD}sealift:{BAD:#} {first}").and_then(|()| show::clauses(&mut out, 2, rest))
            }
            // A terminal would wrap the line within words.
            None if io::stderr().is_terminal() => {
                show::paragraph(&mut out, 0, &format!("{BAD}sealift:{BAD:#} {message}"))
            }
            None => writeln!(out, "{BAD}sealift:{BAD:#} {message}"),
        }
    };
}
