//! A recovery file that is given where a bundle is: what it is, and whether it is sound.

use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use sealift::recovery::LoneRecovery;
use sealift_format::num::wide;
use serde::Serialize;

use super::bundle::BundleArg;
use super::failure::{Failure, verdict_printed};
use super::human::{self, Bytes, percentage};
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::show::{Show, fact};
use super::trust_args::Judge;
use super::verdict::{Alone, Verdict};

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
    let alone = Alone { path: file.path(), head: file.head(), judge, show, progress };
    let (len, elapsed) = alone.check(|progress| file.verify(progress))?;
    verdict_printed(print(file, len, judge, show, elapsed))
}

fn print(file: &LoneRecovery, len: u64, judge: &Judge, show: Show, elapsed: Duration) -> io::Result<()> {
    let mut out = show.out();
    let verdict = Verdict { path: file.path(), head: file.head(), label: file.label(), word: "not damaged", judge };
    let rest = JsonVerifiedRecovery {
        recovery: JsonRecoveryFile::of(file),
        file_bytes: len,
        seconds: human::seconds(elapsed),
    };
    if verdict.is_told(&mut out, show, rest)? {
        return Ok(());
    }
    verdict.print(&mut out)?;
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
struct JsonVerifiedRecovery {
    recovery: JsonRecoveryFile,
    file_bytes: u64,
    seconds: f64,
}
