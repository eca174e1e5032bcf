//! What the tables of a layout share: columns of steps (core 7.2).

use alloc::vec::Vec;

use crate::Error;
use crate::bytes::{Reader, put_planes};

/// Reads numbers that are stored as steps: each number is the one before it + 1 + step (core 7.2).
pub(super) fn parse_steps(reader: &mut Reader<'_>, count: usize) -> Result<Vec<u32>, Error> {
    let steps = reader.planes::<4>(count)?.u32s();
    let mut before = u32::MAX;
    Ok(steps
        .map(|step| {
            before = before.wrapping_add(1).wrapping_add(step);
            before
        })
        .collect())
}

/// Appends numbers as steps: each number is the one before it + 1 + step (core 7.2).
pub(super) fn put_steps(out: &mut Vec<u8>, numbers: impl Iterator<Item = u32>) {
    let mut before = u32::MAX;
    let steps: Vec<u32> =
        numbers.map(|number| number.wrapping_sub(core::mem::replace(&mut before, number)).wrapping_sub(1)).collect();
    put_planes(out, steps.iter().map(|step| step.to_le_bytes()));
}
