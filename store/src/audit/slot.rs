//! Compares what a slot holds with what was written to it.

use std::ops::Range;

use sealift_format::verity::{self, Algorithm, FileDigest};
use sealift_verify::{escape, fsverity};
use serde::Serialize;

use crate::slot::{Fingerprint, Slot, SlotAddress, SlotFolder, SlotImage, SlotRecord, ranges};
use crate::trust::{Guard, Judged, Survey};
use crate::{Error, LeftRun, Phase, Progress, SlotFault};

/// What an audit of a slot found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SlotAudit {
    /// The image's path in the bundle, with `%` escapes for bytes that are not UTF-8.
    pub image: String,
    /// The image's size, all of which was read, unless it is sealed.
    pub bytes: u64,
    /// Whether it is a file that the kernel protects with fs-verity, and has the digest of what was signed: it was not read then.
    pub sealed: bool,
    /// The ranges that differ, in bytes, in ascending order; one with the whole image if nothing more exact is known.
    pub differ: Vec<Range<u64>>,
    /// What a run does to the slot, or left there.
    pub run: Option<LeftRun>,
    /// The version that this device installed there, if the slot has gone back to an older one together with its record.
    pub gone_back_from: Option<u64>,
}

/// Reads the image in a slot, and compares it with the record of what was written. A file that is sealed is not read: the kernel is asked for its digest. Also returns the bundle that it is from, as judged.
///
/// # Errors
/// Returns an error if the state has no record of the slot, or a damaged one, if the bundle is not trusted any more, or if the slot cannot be read.
pub fn audit(
    address: &SlotAddress,
    guard: &Guard,
    jobs: usize,
    progress: &Progress,
) -> Result<(SlotAudit, Judged), Error> {
    let slot = Slot::open(address)?;
    let survey = Survey::of_slot(&slot, guard.state())?;
    let folder = SlotFolder::open(guard.state().dir(), &slot)?;
    let record = folder.map_or(Ok(None), |folder| folder.held())?;
    let other = survey.fault.as_ref().filter(|fault| fault.is_of_another());
    let Some(record) = record.filter(|_| other.is_none()) else {
        return Err(match other {
            _ if survey.run.is_some_and(LeftRun::is_half) => Error::slot(slot.shown(), SlotFault::Unfinished),
            Some(fault) => Error::slot(slot.shown(), SlotFault::Record(fault.clone())),
            None => Error::NoRecord { path: slot.shown().to_owned() },
        });
    };
    let judged = guard.judge_installed(&record.installed.head)?;
    let sealed = is_vouched_for(&slot, &record);
    let image = record.image;
    progress.enter(Phase::Hashing, image.size, 0);
    let differ = if sealed { Vec::new() } else { differences(&slot, &image, jobs.max(1), progress)? };
    let (run, gone_back_from) = (survey.run, survey.gone_back_from());
    let path = escape::percent(&image.path);
    Ok((SlotAudit { image: path, bytes: image.size, sealed, differ, run, gone_back_from }, judged))
}

/// Returns whether the kernel vouches for a file: it is sealed, and its digest is that of the image. The index has a digest over the digests of all its
/// objects (core 6, section 10): if the image is the only one, that tells its own.
fn is_vouched_for(slot: &Slot, record: &SlotRecord) -> bool {
    let (index, image) = (&record.installed.index, &record.image);
    let is_only = matches!(index.objects(), [object] if object.id == image.id());
    let is_signed = |digest: FileDigest| {
        digest.algorithm() == Algorithm::Sha256 && verity::digest(digest.as_bytes()) == *index.verity()
    };
    !slot.is_device() && slot.size() == image.size && is_only && fsverity::measure(slot.file()).is_ok_and(is_signed)
}

fn differences(slot: &Slot, image: &SlotImage, jobs: usize, progress: &Progress) -> Result<Vec<Range<u64>>, Error> {
    let (wanted, len) = (&image.fingerprint, image.size);
    let there = len.min(slot.size());
    if wanted.pieces.is_empty() || there < len {
        let is_same = there == len && Fingerprint::is_in(slot, len, &wanted.id, jobs, progress)?;
        return Ok((!is_same).then_some(0..len).into_iter().collect());
    }
    let found = Fingerprint::read(slot, len, wanted.piece_len, jobs, progress)?;
    let both = wanted.pieces.iter().zip(&found.pieces).map(|(wanted, found)| wanted == found);
    let mut differ: Vec<Range<u64>> = Vec::new();
    for (range, _) in ranges(len, wanted.piece_len).zip(both).filter(|(_, is_same)| !is_same) {
        match differ.last_mut().filter(|last| last.end == range.start) {
            Some(last) => last.end = range.end,
            None => differ.push(range),
        }
    }
    Ok(differ)
}
