//! What `sealift audit` prints of a block device or image:FILE.

use std::io::Write as _;
use std::time::Duration;

use sealift::LeftRun;
use sealift::slot::SlotAudit;
use serde::Serialize;

use super::audit_words::gone_back_from;
use super::digests::Digests;
use super::escape;
use super::human::{self, Bytes, Grouped, count};
use super::show::{BAD, BOLD, GOOD, Show};
use super::signers::Signers;
use super::trust_args::Judge;
use sealift_format::num;

/// How many ranges are printed.
const NAMED: usize = 20;

/// Returns whether the slot is as it was written.
pub(super) fn is_clean(found: &SlotAudit) -> bool {
    found.differ.is_empty() && found.gone_back_from.is_none() && !found.run.is_some_and(LeftRun::is_half)
}

/// Returns what is wrong, in words.
pub(super) fn words(found: &SlotAudit) -> String {
    match (found.differ.is_empty(), found.gone_back_from) {
        (false, _) => format!("{} of {} differ", Bytes(differing(found)), Bytes(found.bytes)),
        (true, Some(version)) => gone_back_from(version),
        (true, None) => "a run was interrupted while it wrote to it".to_owned(),
    }
}

fn differing(found: &SlotAudit) -> u64 {
    found.differ.iter().map(|range| range.end - range.start).sum()
}

#[derive(Serialize)]
struct Line<'a> {
    target: &'a str,
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    digests: Option<Digests>,
    #[serde(flatten)]
    signers: Signers,
    since: Vec<String>,
    image: &'a str,
    bytes: u64,
    sealed: bool,
    differing_bytes: u64,
    differing: Vec<[u64; 2]>,
    run: Option<&'static str>,
    gone_back_from: Option<u64>,
    seconds: f64,
}

/// Prints the result.
pub(super) fn print(
    show: Show,
    target: &str,
    found: &SlotAudit,
    judge: &Judge,
    elapsed: Duration,
) -> std::io::Result<()> {
    let mut out = show.out();
    let (name, version) = judge.identity();
    let line = Line {
        target,
        name,
        version,
        digests: judge.digests(),
        signers: judge.signers(),
        since: judge.since(),
        image: &found.image,
        bytes: found.bytes,
        sealed: found.sealed,
        differing_bytes: differing(found),
        differing: found.differ.iter().map(|range| [range.start, range.end]).collect(),
        run: found.run.map(LeftRun::word),
        gone_back_from: found.gone_back_from,
        seconds: human::seconds(elapsed),
    };
    if show.is_told(&mut out, &line)? {
        return Ok(());
    }
    let (target, image) = (escape::text(target), escape::text(&found.image));
    writeln!(out, "{BOLD}{target}{BOLD:#}: {image} of {} version {version}{}", escape::text(name), judge.mark())?;
    judge.print_signers(&mut out)?;
    judge.print_since(&mut out)?;
    for range in found.differ.iter().take(NAMED) {
        writeln!(out, "  {BAD}differs{BAD:#}: bytes {} to {}", Grouped(range.start), Grouped(range.end))?;
    }
    if found.differ.len() > NAMED {
        writeln!(out, "  and {} more", count(num::wide(found.differ.len() - NAMED), "range"))?;
    }
    match is_clean(found) {
        true if found.sealed => {
            writeln!(out, "  {GOOD}unchanged{GOOD:#}: {} sealed, asking the kernel", Bytes(found.bytes))
        }
        true => writeln!(out, "  {GOOD}unchanged{GOOD:#}: {} read in {}", Bytes(found.bytes), human::duration(elapsed)),
        false => writeln!(out, "  {BAD}{}{BAD:#}", words(found)),
    }
}
