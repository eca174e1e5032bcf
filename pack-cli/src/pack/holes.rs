//! Finds holes in content (core 7.1).

use sealift_format::num;
use sealift_format::{BLOCK_LEN, Extent, HOLE_BLOCKS};

const BLOCK: usize = 4096;
static ZEROS: [u8; BLOCK] = [0; BLOCK];

/// Returns whether all bytes are zero; `block` has at most 4096 bytes.
pub(super) fn is_zero(block: &[u8]) -> bool {
    *block == ZEROS[..block.len()]
}

/// Returns the holes in a part of an object, which begins at block `first`. `before` and `after` count the zero blocks adjacent to the part on either
/// side; no more than 15 matter.
pub(super) fn find_holes(part: &[u8], first: u64, before: u64, after: u64) -> Vec<Extent> {
    let blocks = part.as_chunks::<BLOCK>().0;
    let mut holes = Vec::new();
    let mut run = 0;
    for (at, block) in (first..).zip(blocks) {
        if is_zero(block) {
            run += 1;
            continue;
        }
        push_run(&mut holes, at - run, run, if at - run == first { before } else { 0 });
        run = 0;
    }
    let end = first + num::wide(blocks.len());
    let whole = part.len() == blocks.len() * BLOCK;
    let outside = if end - run == first { before } else { 0 } + if whole { after } else { 0 };
    push_run(&mut holes, end - run, run, outside);
    holes
}

fn push_run(holes: &mut Vec<Extent>, start: u64, len: u64, outside: u64) {
    if len > 0 && len + outside >= HOLE_BLOCKS {
        holes.push(Extent { start, len });
    }
}

/// Appends the holes of the next part to those of the previous ones, merging a hole that continues.
pub(super) fn append_holes(holes: &mut Vec<Extent>, next: &[Extent]) {
    for extent in next {
        match holes.last_mut() {
            Some(last) if last.start + last.len == extent.start => last.len += extent.len,
            _ => holes.push(*extent),
        }
    }
}

/// Size of the zero blocks that a neighbour can add to a run.
pub(super) const CONTEXT_LEN: u64 = (HOLE_BLOCKS - 1) * BLOCK_LEN;

#[cfg(test)]
mod tests {
    use super::*;

    fn part(blocks: &[u8]) -> Vec<u8> {
        blocks.iter().flat_map(|byte| [*byte; BLOCK]).collect()
    }

    #[test]
    fn a_run_needs_sixteen_blocks() {
        let mut blocks = vec![1];
        blocks.extend([0; 15]);
        blocks.push(1);
        assert_eq!(find_holes(&part(&blocks), 0, 0, 0), []);
        blocks.insert(1, 0);
        assert_eq!(find_holes(&part(&blocks), 0, 0, 0), [Extent { start: 1, len: 16 }]);
    }

    #[test]
    fn neighbours_count() {
        let zeros = part(&[0, 0]);
        assert_eq!(find_holes(&zeros, 10, 7, 6), []);
        assert_eq!(find_holes(&zeros, 10, 7, 7), [Extent { start: 10, len: 2 }]);
        let mut cut = zeros;
        cut.push(0);
        assert_eq!(find_holes(&cut, 10, 7, 7), [], "a last block that is not whole ends a run");
    }

    #[test]
    fn parts_join() {
        let mut holes = vec![Extent { start: 1, len: 3 }];
        append_holes(&mut holes, &[Extent { start: 4, len: 256 }, Extent { start: 300, len: 16 }]);
        assert_eq!(holes, [Extent { start: 1, len: 259 }, Extent { start: 300, len: 16 }]);
    }
}
