//! Gives up what an interrupted run began to write to a slot. Afterwards, a run that overwrites it needs no consent, unless something else wrote to the slot
//! meanwhile.

use sealift_format::num::size;

use crate::slot::{BLOCK_LEN, Fingerprint, HEAD_LEN, Slot, SlotAddress, SlotFolder, SlotRecord, overwrite_head};
use crate::{Error, LeftRun, Progress};

/// What became of what an interrupted run left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there is nothing else")]
pub enum GivenUp {
    /// There was nothing.
    Nothing,
    /// The image is complete; only its record was not.
    Finished,
    /// It is given up: the slot begins with zeros, or is as it was.
    Discarded,
}

/// Gives up what an interrupted run began, or finishes it if only the record is missing. A slot of which something was overwritten begins with zeros then;
/// what the state keeps of it is forgotten. A slot that is still whole keeps its record.
///
/// # Errors
/// Returns an error if another run is writing to the slot, if the state cannot be read or written, or if the run is cancelled.
pub fn give_up(
    address: &SlotAddress,
    slot: &Slot,
    folder: &SlotFolder,
    jobs: usize,
    progress: &Progress,
) -> Result<GivenUp, Error> {
    let run = folder.run()?;
    folder.lock(slot)?;
    if slot.is_new() {
        folder.forget()?;
    }
    let Some(run) = run else { return Ok(GivenUp::Nothing) };
    let has = |record: Option<SlotRecord>| match record.map(|record| record.image) {
        Some(image) if image.size <= slot.size() => Fingerprint::is_in(slot, image.size, &image.id(), jobs, progress),
        _ => Ok(false),
    };
    match run {
        _ if slot.is_new() => {}
        run if !LeftRun::is_half(run) => folder.give_up()?,
        _ if begins_with_zeros(slot) => {
            // Of the start, all but the first block may have its content. A slot that cannot be written to is forgotten all the same.
            if let Ok(slot) = Slot::open_to_write(address, false) {
                overwrite_head(&slot, slot.size().min(HEAD_LEN))?;
            }
            folder.forget()?;
        }
        // Either everything was written, or nothing yet.
        _ if has(folder.begun()?)? => {
            folder.finish()?;
            return Ok(GivenUp::Finished);
        }
        _ if has(folder.held().unwrap_or_default())? => folder.give_up()?,
        _ => folder.forget()?,
    }
    Ok(GivenUp::Discarded)
}

fn begins_with_zeros(slot: &Slot) -> bool {
    let mut block = vec![0; size(slot.size().min(sealift_format::num::wide(BLOCK_LEN)))];
    slot.read_exact_at(&mut block, 0).is_ok() && block.iter().all(|byte| *byte == 0)
}
