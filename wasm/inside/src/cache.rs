//! The bytes of a file that JavaScript has read so far. Readers of containers are synchronous, and reads in a browser are not: where bytes are missing,
//! a call fails and is repeated once they are here.

use std::collections::BTreeMap;
use std::io;

use parking_lot::Mutex;
use sealift_container::ReadAt;
use sealift_format::num::{up_to, wide};

/// The bytes of a block, in which the file is kept.
const BLOCK_LEN: u64 = 64 << 10;
/// The most bytes that are kept, and so the most that one call can use.
const KEPT_LEN: u64 = 128 << 20;
/// After so many reads for one call, each further one is twice as long, so that the call is not repeated too often.
const READS: u32 = 16;
/// The longest read, as a power of two of blocks.
const LONGEST_LOG: u32 = 5;

/// A file of which some blocks are here.
pub(crate) struct Cache {
    len: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    blocks: BTreeMap<u64, Block>,
    /// The number of the call, from 1 on. It stays while the call is repeated.
    call: u64,
    /// How often bytes were given for it.
    reads: u32,
    /// Whether bytes were given since the call ended, so that the next one repeats it.
    is_given: bool,
    /// The first block that it lacked.
    missing: Option<u64>,
    /// Whether it needs more than is kept.
    is_full: bool,
}

struct Block {
    bytes: Vec<u8>,
    /// The last call that needed it; 0 if none did.
    used: u64,
}

/// What a call lacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Bytes of the file: their offset and their length.
    Bytes(u64, u64),
    /// Room: it needs more bytes at once than are kept.
    Room,
}

impl Cache {
    /// Returns an empty cache of a file of so many bytes.
    pub(crate) fn new(len: u64) -> Self {
        Self { len, state: Mutex::default() }
    }

    /// Begins a call, or repeats the last one if bytes were given for it.
    pub(crate) fn begin(&self) {
        let state = &mut *self.state.lock();
        if !std::mem::take(&mut state.is_given) {
            state.call += 1;
            (state.reads, state.is_full) = (0, false);
        }
        state.missing = None;
    }

    /// Returns what the call lacked. Whatever it returned is then of no use.
    pub(crate) fn lack(&self) -> Option<Lack> {
        let state = &*self.state.lock();
        let first = state.missing?;
        if state.is_full {
            return Some(Lack::Room);
        }
        let most = 1 << (state.reads / READS).min(LONGEST_LOG);
        let next = state.blocks.range(first..).next().map_or(u64::MAX, |(number, _)| *number);
        let start = first * BLOCK_LEN;
        let end = (first + most).min(next).saturating_mul(BLOCK_LEN).min(self.len);
        Some(Lack::Bytes(start, end - start))
    }

    /// Takes the bytes that a call lacked. Returns whether they begin at a block and hold whole ones, but for the last of the file.
    pub(crate) fn give(&self, offset: u64, bytes: &[u8]) -> bool {
        let end = offset.checked_add(wide(bytes.len())).filter(|end| *end <= self.len);
        let is_whole = |end: u64| end == self.len || end.is_multiple_of(BLOCK_LEN);
        if bytes.is_empty() || !offset.is_multiple_of(BLOCK_LEN) || !end.is_some_and(is_whole) {
            return false;
        }
        let state = &mut *self.state.lock();
        for (number, bytes) in (offset / BLOCK_LEN..).zip(bytes.chunks(up_to(BLOCK_LEN, usize::MAX))) {
            // The first is what the call lacked; those behind it may be of use.
            let used = if number * BLOCK_LEN == offset { state.call } else { 0 };
            state.blocks.insert(number, Block { bytes: bytes.to_vec(), used });
        }
        state.reads += 1;
        state.is_given = true;
        while wide(state.blocks.len()) * BLOCK_LEN > KEPT_LEN {
            let oldest = state.blocks.iter().min_by_key(|(_, block)| block.used);
            match oldest.map(|(number, block)| (*number, block.used)) {
                Some((number, used)) if used < state.call => drop(state.blocks.remove(&number)),
                _ => {
                    state.is_full = true;
                    state.blocks.remove(&(offset / BLOCK_LEN));
                }
            }
        }
        true
    }
}

impl ReadAt for Cache {
    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        let end = offset.checked_add(wide(buffer.len())).filter(|end| *end <= self.len);
        end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let state = &mut *self.state.lock();
        while !buffer.is_empty() {
            let number = offset / BLOCK_LEN;
            let Some(block) = state.blocks.get_mut(&number) else {
                state.missing.get_or_insert(number);
                return Err(io::ErrorKind::WouldBlock.into());
            };
            block.used = state.call;
            let part = block.bytes.get(up_to(offset % BLOCK_LEN, usize::MAX)..).unwrap_or_default();
            let len = part.len().min(buffer.len());
            let (now, later) = buffer.split_at_mut(len);
            now.copy_from_slice(part.get(..len).ok_or(io::ErrorKind::UnexpectedEof)?);
            (buffer, offset) = (later, offset + wide(len));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 64 << 10;

    fn read(cache: &Cache, offset: u64, len: usize) -> Result<Vec<u8>, Lack> {
        cache.begin();
        let mut buffer = vec![0; len];
        let done = cache.read_exact_at(&mut buffer, offset);
        cache.lack().map_or(Ok(()), Err)?;
        done.expect("it is within the file");
        Ok(buffer)
    }

    #[test]
    fn what_is_missing_is_asked_for_and_then_read() {
        let file: Vec<u8> = (0..3 * BLOCK + 5).map(|at| u8::try_from(at % 251).expect("it is below 251")).collect();
        let cache = Cache::new(wide(file.len()));
        assert_eq!(read(&cache, 10, 20), Err(Lack::Bytes(0, BLOCK_LEN)));
        assert!(cache.give(0, &file[..BLOCK]));
        assert_eq!(read(&cache, 10, 20).as_deref(), Ok(&file[10..30]));
        // The last block is short.
        assert_eq!(read(&cache, 3 * BLOCK_LEN, 5), Err(Lack::Bytes(3 * BLOCK_LEN, 5)));
        for (offset, len) in [(3 * BLOCK_LEN, 4), (1, BLOCK), (BLOCK_LEN, BLOCK - 1), (0, 0), (3 * BLOCK_LEN, 6)] {
            assert!(!cache.give(offset, &vec![0; len]), "{offset} {len}");
        }
        assert!(cache.give(3 * BLOCK_LEN, &file[3 * BLOCK..]));
        assert_eq!(read(&cache, BLOCK_LEN - 1, BLOCK + 2), Err(Lack::Bytes(BLOCK_LEN, BLOCK_LEN)));
        assert!(cache.give(BLOCK_LEN, &file[BLOCK..3 * BLOCK]));
        assert_eq!(read(&cache, 1, file.len() - 1).as_deref(), Ok(&file[1..]));
        cache.begin();
        assert!(cache.read_exact_at(&mut [0; 2], wide(file.len()) - 1).is_err() && cache.lack().is_none());
    }

    #[test]
    fn a_call_that_is_repeated_often_reads_more_at_once_up_to_what_is_kept() {
        let blocks = KEPT_LEN / BLOCK_LEN + 100;
        let cache = Cache::new(blocks * BLOCK_LEN);
        let all = vec![7; up_to(BLOCK_LEN << LONGEST_LOG, usize::MAX)];
        let mut rounds = 0;
        // One call that reads a byte of each block.
        let lack = loop {
            cache.begin();
            let done = (0..blocks).try_for_each(|number| cache.read_exact_at(&mut [0], number * BLOCK_LEN));
            assert!(done.is_err());
            match cache.lack() {
                Some(Lack::Bytes(offset, len)) => assert!(cache.give(offset, &all[..up_to(len, usize::MAX)])),
                lack => break lack,
            }
            rounds += 1;
        };
        assert_eq!(lack, Some(Lack::Room));
        assert!(rounds < 200, "{rounds}");
        // The next call may use other blocks.
        let last = (blocks - 1) * BLOCK_LEN;
        assert_eq!(read(&cache, last, 9), Err(Lack::Bytes(last, BLOCK_LEN)));
        assert!(cache.give(last, &all[..BLOCK]));
        assert_eq!(read(&cache, last, 9), Ok(vec![7; 9]));
    }
}
