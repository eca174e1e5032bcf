//! Reads what can be read of a damaged medium, down to single sectors.

use std::fs::File;
use std::io::{ErrorKind, Result};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use sealift_format::num::{size, wide};

/// Lengths of reads: each that fails is repeated in parts of the next length. The last is that of a disc's sector.
const LENS: [u64; 3] = [1 << 20, 64 << 10, 2048];

/// Fills `buffer` from `offset` on. Returns the ranges of the buffer that the system cannot read, or that lie behind the end of the file; they are
/// zeros.
pub(super) fn read(file: &File, buffer: &mut [u8], offset: u64) -> Vec<Range<usize>> {
    let mut lost = Vec::new();
    read_parts(file, buffer, (0, offset), &LENS, &mut lost);
    lost
}

/// Reads in parts that end at multiples of the first of `lens`. `at` is where `buffer` begins in the whole one.
fn read_parts(file: &File, buffer: &mut [u8], (at, offset): (usize, u64), lens: &[u64], lost: &mut Vec<Range<usize>>) {
    let mut done = 0;
    while done < buffer.len() {
        let begin = offset.saturating_add(wide(done));
        let len = lens.first().map_or(u64::MAX, |len| len - begin % len);
        let end = done.saturating_add(size(len)).min(buffer.len());
        let Some(part) = buffer.get_mut(done..end) else { return };
        if read_all(file, part, begin).is_err() {
            part.fill(0);
            match lens.get(1..) {
                Some(shorter @ [_, ..]) => read_parts(file, part, (at + done, begin), shorter, lost),
                _ => lost.push(at + done..at + end),
            }
        }
        done = end;
    }
}

fn read_all(file: &File, part: &mut [u8], offset: u64) -> Result<()> {
    match file.read_exact_at(part, offset) {
        Err(error) if error.kind() == ErrorKind::Interrupted => read_all(file, part, offset),
        read => read,
    }
}
