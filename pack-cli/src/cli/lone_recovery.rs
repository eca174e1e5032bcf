//! A recovery file that is given where a bundle is: what it is, and whether it is sound.

use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use sealift::recovery::LoneRecovery;
use sealift_format::num::wide;
use serde::Serialize;

use super::bundle::BundleArg;
use super::digests::Digests;
use super::escape;
use super::failure::{About as _, Failure, shown, verdict_printed};
use super::human::{self, Bytes, percentage};
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::show::{BOLD, GOOD, Show, fact};
use super::signers::Signers;
use super::trust_args::Judge;

/// Returns the recovery file that was given in place of a bundle, if it is one.
pub(crate) fn given(bundle: &BundleArg) -> Result<Option<LoneRecovery>, Failure> {
    let is_file = bundle.bundle != Path::new("-") && bundle.bundle.is_file();
    match is_file && bundle.volumes.is_empty() && bundle.copies.is_empty() {
        true => Ok(LoneRecovery::open(&bundle.bundle, &limits())?),
        false => Ok(None),
    }
}

/// Checks it, and prints the result.
pub(crate) fn verify(file: &LoneRecovery, judge: &Judge, show: Show, progress: ProgressArgs) -> Result<(), Failure> {
    let start = Instant::now();
    judge.judge(file.head()).about(file.path())?;
    let len = progress.watch(show, "Opening", |progress| file.verify(progress)).about(file.path())?;
    judge.warn(show);
    verdict_printed(print(file, len, judge, show, start.elapsed()))
}

fn print(file: &LoneRecovery, len: u64, judge: &Judge, show: Show, elapsed: Duration) -> io::Result<()> {
    let mut out = show.out();
    let identity = &file.head().root().identity;
    let summary = JsonVerifiedRecovery {
        name: &identity.name,
        version: identity.version,
        digests: Digests::of(file.head()),
        signers: judge.signers(),
        recovery: JsonRecoveryFile::of(file),
        file_bytes: len,
        seconds: human::seconds(elapsed),
    };
    if show.is_told(&mut out, &summary)? {
        return Ok(());
    }
    let path = escape::text(&shown(file.path()));
    writeln!(out, "{BOLD}{path}{BOLD:#}: {GOOD}not damaged{GOOD:#}, {}{}", file.label(), judge.mark())?;
    judge.print_signers(&mut out)?;
    let (len, elapsed) = (Bytes(len), human::duration(elapsed));
    writeln!(out, "  every byte by checksums, which are not signed: {len} in {elapsed}; the bundle is not here")
}

/// Prints what it is, as a fact about its bundle.
pub(crate) fn print_fact(out: &mut dyn Write, file: &LoneRecovery) -> io::Result<()> {
    let recovery = file.recovery();
    let geometry = &recovery.geometry;
    let data = wide(geometry.starts.len()) * u64::from(geometry.run);
    let share = percentage(u64::from(geometry.parity), data);
    fact(out, "Recovery", format!("{} of {}, together {share} of the bundle", recovery.number, recovery.count))
}

/// A recovery file in JSON.
#[derive(Serialize)]
pub(crate) struct JsonRecoveryFile {
    number: u16,
    count: u16,
    columns: u64,
    run: u32,
    parity: u32,
    shard_bytes: u32,
}

impl JsonRecoveryFile {
    pub(crate) fn of(file: &LoneRecovery) -> Self {
        let recovery = file.recovery();
        Self {
            number: recovery.number,
            count: recovery.count,
            columns: wide(recovery.geometry.starts.len()),
            run: recovery.geometry.run,
            parity: recovery.geometry.parity,
            shard_bytes: recovery.geometry.shard_len,
        }
    }
}

#[derive(Serialize)]
struct JsonVerifiedRecovery<'a> {
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    digests: Digests,
    #[serde(flatten)]
    signers: Signers,
    recovery: JsonRecoveryFile,
    file_bytes: u64,
    seconds: f64,
}
