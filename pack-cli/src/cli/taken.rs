//! The line of JSON that describes what was installed.

use std::time::Duration;

use serde::Serialize;

use super::digests::Digests;
use super::human;
use super::signers::Signers;
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
}

/// Returns the line with the statistics of the kind of target.
pub(crate) fn line<'a, S: Serialize>(
    stats: &'a S,
    judge: &'a Judge,
    dry_run: bool,
    elapsed: Duration,
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
    }
}
