//! `unpack` of several bundles: installs the newest that this device accepts, and reports on the others.

use std::cell::Cell;
use std::path::{Path, PathBuf};

use sealift::Error;
use sealift::choose::{Candidate, choose};
use sealift_format::num;
use serde::Serialize;

use super::escape;
use super::failure::{Failure, shown};
use super::human::Grouped;
use super::limits::limits;
use super::log;
use super::show::{BOLD, Show};
use super::trust_args::AdmitArgs;

/// Bundles, and directories of bundles, of which one is installed.
pub(crate) struct Several<'a> {
    pub(crate) paths: &'a [PathBuf],
    /// The requested name.
    pub(crate) name: Option<String>,
    /// The contents installed in the target.
    pub(crate) held: Vec<[u8; 32]>,
    pub(crate) trust: &'a AdmitArgs,
    pub(crate) show: Show,
    /// How many were passed over.
    pub(crate) passed: Cell<usize>,
    /// Files that were reported before.
    pub(crate) said: &'a [PathBuf],
}

/// How many of those passed over are named without `--verbose`: a stick may be full of other files.
const NAMED: usize = 20;

impl Several<'_> {
    /// Installs the best bundle with `take`, or the next one if the bundle itself is at fault. `chains` says whether the target can be
    /// updated several times in one run.
    pub(crate) fn take(
        &self,
        chains: bool,
        take: impl FnMut(&Candidate) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let taken = self.take_best(chains, take);
        self.say_how_many_more();
        taken
    }

    fn take_best(&self, chains: bool, mut take: impl FnMut(&Candidate) -> Result<(), Failure>) -> Result<(), Failure> {
        let judge = self.trust.load()?;
        let choice = choose(self.paths, self.name.as_deref(), &self.held, chains, judge.guard(), limits())?;
        let mut refusal = None;
        for passed in choice.passed_over {
            let other = match &passed.error {
                Error::OtherName { bound, name, .. } => Some(format!("its name is {name}, not {bound}")),
                _ => None,
            };
            let failure = Failure::from(passed.error);
            self.say(&passed.path, failure.kind(), &other.unwrap_or_else(|| failure.message()));
            // The error to report is that of the newest.
            refusal.get_or_insert(failure);
        }
        check_one_name(&choice.candidates)?;
        let mut candidates = choice.candidates.into_iter();
        while let Some(candidate) = candidates.next() {
            match take(&candidate) {
                Err(failure)
                    if candidate
                        .bases
                        .iter()
                        .chain(&candidate.before)
                        .chain([&candidate.path])
                        .any(|path| failure.is_of(path)) =>
                {
                    self.say(&candidate.path, failure.kind(), &failure.message());
                    refusal = Some(failure);
                }
                Err(failure) => return Err(failure),
                Ok(()) => {
                    for older in candidates
                        .filter(|other| other.path != candidate.path && !candidate.before.contains(&other.path))
                    {
                        let taken = shown(&candidate.path);
                        let (kind, why) = match older.version == candidate.version {
                            true if older.lacks_base => {
                                ("base", "it is a delta, and its base is not installed".to_owned())
                            }
                            true => ("older", format!("{taken} is the same version")),
                            false => ("older", format!("{taken} is newer, version {}", candidate.version)),
                        };
                        self.say(&older.path, kind, &why);
                    }
                    return Ok(());
                }
            }
        }
        let places = self.paths.iter().map(|path| shown(path)).collect::<Vec<_>>().join(", ");
        Err(match refusal {
            Some(failure) => failure.of_several(&places),
            None => Failure::usage(format!("{places}: no *.sealift files here, and no volumes")),
        })
    }

    /// Prints on standard error why a bundle was passed over.
    pub(crate) fn say(&self, bundle: &Path, kind: &str, why: &str) {
        if self.show.quiet || self.said.iter().any(|said| said == bundle) {
            return;
        }
        self.passed.update(|passed| passed + 1);
        if self.passed.get() > NAMED && !log::is_on() {
            return;
        }
        // `verify` prints the line to add to the allowed signers.
        let why = why.split(": ").skip_while(|part| *part == shown(bundle)).collect::<Vec<_>>().join(": ");
        let why = why.split("; ").next().unwrap_or_default();
        let bundle = escape::text(&shown(bundle));
        if self.show.json {
            let line = Line { passed_over: PassedOver { bundle: &bundle, kind, message: why } };
            anstream::eprintln!("{}", serde_json::to_string(&line).unwrap_or_default());
        } else {
            anstream::eprintln!("{BOLD}sealift:{BOLD:#} passed over {bundle}: {}", escape::text(why));
        }
    }

    /// Prints how many were passed over without being named.
    fn say_how_many_more(&self) {
        let more = num::wide(self.passed.get().saturating_sub(NAMED));
        if more == 0 || log::is_on() {
            return;
        }
        let files = if more == 1 { "file" } else { "files" };
        if self.show.json {
            let line = MoreLine { passed_over: More { more } };
            anstream::eprintln!("{}", serde_json::to_string(&line).unwrap_or_default());
        } else {
            anstream::eprintln!("{BOLD}sealift:{BOLD:#} passed over {} more {files}: -v names them", Grouped(more));
        }
    }
}

#[derive(Serialize)]
struct MoreLine {
    passed_over: More,
}

/// How many more were passed over, without their names.
#[derive(Serialize)]
struct More {
    more: u64,
}

/// Refuses bundles of different names: the choice is the user's.
fn check_one_name(candidates: &[Candidate]) -> Result<(), Error> {
    let Some(first) = candidates.first() else { return Ok(()) };
    match candidates.iter().find(|other| other.name != first.name) {
        Some(other) => {
            Err(Error::Usage(format!("found bundles named {} and {}: choose one with --name", first.name, other.name)))
        }
        None => Ok(()),
    }
}

#[derive(Serialize)]
struct Line<'a> {
    passed_over: PassedOver<'a>,
}

#[derive(Serialize)]
struct PassedOver<'a> {
    bundle: &'a str,
    kind: &'a str,
    message: &'a str,
}
