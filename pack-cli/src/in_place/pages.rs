//! Memory for blocks, in pages of one size that are reused: blocks of all sizes would fragment the heap.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use sealift_format::num;

/// Bytes of a page.
const PAGE_LEN: usize = 64 << 10;

/// Pages that no block uses. They were all in use at one time, so their number is bounded.
#[derive(Debug, Default)]
pub(super) struct FreePages(Mutex<Vec<Vec<u8>>>);

/// Bytes in pages, which become free when this is dropped.
#[derive(Debug)]
pub(super) struct Pages {
    /// All are full but the last one.
    pages: Vec<Vec<u8>>,
    len: usize,
    free: Arc<FreePages>,
}

impl FreePages {
    /// Frees the memory, when no block has been made for a while.
    pub(super) fn clear(&self) {
        *self.0.lock() = Vec::new();
    }
}

impl Pages {
    /// Copies bytes into pages.
    pub(super) fn copy(bytes: &[u8], free: &Arc<FreePages>) -> Self {
        let mut pages = Vec::with_capacity(bytes.len().div_ceil(PAGE_LEN));
        let parts = bytes.chunks_exact(PAGE_LEN);
        let last = parts.remainder();
        for part in parts {
            let mut page = free.0.lock().pop().unwrap_or_else(|| Vec::with_capacity(PAGE_LEN));
            page.extend(part);
            pages.push(page);
        }
        if !last.is_empty() {
            pages.push(last.to_vec());
        }
        Self { pages, len: bytes.len(), free: Arc::clone(free) }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns roughly how many bytes of memory it takes.
    pub(super) fn cost(&self) -> u64 {
        num::wide(self.len + size_of_val(&self.pages[..]))
    }

    /// Returns a range of the bytes: borrowed if it lies in one page, otherwise copied.
    pub(super) fn get(&self, range: Range<usize>) -> Cow<'_, [u8]> {
        let Range { start, end } = range;
        let (first, within) = (start / PAGE_LEN, start % PAGE_LEN);
        if let Some(page) = self.pages.get(first)
            && let Some(bytes) = page.get(within..within + end.saturating_sub(start))
        {
            return Cow::Borrowed(bytes);
        }
        let mut bytes = Vec::with_capacity(end.saturating_sub(start));
        for (at, page) in (0..).step_by(PAGE_LEN).zip(&self.pages).skip(first) {
            let (from, to) = (start.saturating_sub(at), end.saturating_sub(at).min(page.len()));
            bytes.extend(page.get(from..to).unwrap_or_default());
        }
        Cow::Owned(bytes)
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let full = self.pages.drain(..).filter(|page| page.len() == PAGE_LEN);
        let full = full.map(|mut page| {
            page.clear();
            page
        });
        let mut free = self.free.0.lock();
        free.extend(full);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_any_place() {
        let free = Arc::new(FreePages::default());
        let bytes: Vec<u8> = (0..200_000_u32).map(|number| number.to_le_bytes()[0] ^ number.to_le_bytes()[1]).collect();
        let pages = Pages::copy(&bytes, &free);
        for range in
            [0..0, 0..10, 0..200_000, 65_530..65_536, 65_536..65_540, 65_530..65_540, 1..140_000, 196_608..200_000]
        {
            assert!(pages.get(range.clone())[..] == bytes[range.clone()], "{range:?}");
        }
        assert!(matches!(pages.get(65_536..131_072), Cow::Borrowed(_)));
        assert!(Pages::copy(&[], &free).get(0..0).is_empty());
    }

    #[test]
    fn pages_are_used_again() {
        let free = Arc::new(FreePages::default());
        drop(Pages::copy(&[1; 200_000], &free));
        assert_eq!(free.0.lock().len(), 3);
        let pages = Pages::copy(&[2; 140_000], &free);
        assert_eq!(free.0.lock().len(), 1);
        assert!(pages.get(0..140_000)[..] == [2; 140_000]);
    }
}
