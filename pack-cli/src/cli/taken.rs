//! The line of JSON that describes what was installed.

use std::time::Duration;

use serde::Serialize;

use super::digests::Digests;
use super::human;
use super::signers::Signers;
use super::then::{CommandEnd, CommandStats};
use super::trust_args::Judge;

#[derive(Serialize)]
struct Line<'a, S: Serialize> {
    dry_run: bool,
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    digests: Option<Digests>,
    #[serde(flatten)]
    signers: Signers,
    #[serde(flatten)]
    stats: &'a S,
    seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    then: Option<CommandStats>,
}

/// Returns the line with the statistics of the kind of target, and how the command of `--then` ended.
pub(crate) fn line<'a, S: Serialize>(
    stats: &'a S,
    judge: &'a Judge,
    dry_run: bool,
    elapsed: Duration,
    then: Option<&CommandEnd>,
) -> impl Serialize + use<'a, S> {
    let (name, version) = judge.identity();
    Line {
        dry_run,
        name,
        version,
        digests: judge.digests(),
        signers: judge.signers(),
        stats,
        seconds: human::seconds(elapsed),
        then: then.map(CommandEnd::stats),
    }
}
