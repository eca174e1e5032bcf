//! Calls of the kernel that no library has: where a file lies on its device and in memory, and free memory given back.

mod sys;

use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::AsFd;

use sealift_format::num;

/// Has this process return memory to the kernel soon after it is freed. An import of 79,000 files into an OSTree repository takes 69 MiB so, and 80 MiB
/// as glibc does it by default, in the same time.
pub fn keep_little_memory() {
    sys::trim_early();
}

/// Calls `free`, then returns free memory to the kernel, for a thread that becomes idle: glibc keeps many MiB for each thread otherwise.
pub fn give_back_memory(free: impl FnOnce()) {
    sys::trim_after(free);
}

/// Returns where the first `len` bytes of a file lie on its device, in the order of the file (Documentation/filesystems/fiemap.rst);
/// `None` if a part of it is not in plain blocks of its own: for example compressed, encrypted, stored in the inode, or shared with another file.
///
/// # Errors
/// Returns an error if the file system does not report this.
pub fn extents(file: impl AsFd, len: u64) -> io::Result<Option<Vec<Range<u64>>>> {
    /// `FIEMAP_EXTENT_LAST`, `_UNWRITTEN` and `_MERGED`
    const LAST: u32 = 1;
    const PLAIN: u32 = LAST | 0x800 | 0x1000;
    let (mut found, mut at) = (Vec::new(), 0);
    while at < len {
        let extents = sys::map(file.as_fd(), at, len - at)?;
        for extent in &extents {
            if extent.flags & !PLAIN != 0 {
                return Ok(None);
            }
            let end = len.min(extent.logical.saturating_add(extent.length));
            found.push(extent.physical..extent.physical.saturating_add(end.saturating_sub(extent.logical)));
            at = end;
        }
        if extents.last().is_none_or(|extent| extent.flags & LAST != 0) {
            break;
        }
    }
    Ok(Some(found))
}

/// Exchanges the blocks of the first `len` bytes of a file with those of `other` from the byte `from` on. Both are open for reading and writing, on
/// the same ext4 with blocks of `block_len` bytes; `len` is in whole blocks, and `from` in whole blocks and pages.
///
/// # Errors
/// Returns an error if the file system cannot do this, or has exchanged only a part.
pub fn exchange_blocks(file: impl AsFd, other: impl AsFd, from: u64, len: u64, block_len: u64) -> io::Result<()> {
    let blocks = |bytes: u64| bytes.checked_div(block_len).unwrap_or_default();
    let exchanged = sys::exchange(file.as_fd(), other.as_fd(), blocks(from), blocks(len))?;
    if exchanged == blocks(len) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
}

/// Returns the size of the kernel's pages.
///
/// # Errors
/// Returns an error if the kernel does not report it.
pub fn page_len() -> io::Result<u64> {
    Ok(num::wide(sys::page_len()?))
}

/// Returns which ranges of the first `len` bytes of a file are in the page cache, in whole pages, in ascending order and not adjacent. If this
/// process neither owns the file nor may write to it, the kernel reports all of it as cached (mincore(2)).
///
/// # Errors
/// Returns an error if the file cannot be mapped, which some file systems do not support.
pub fn cached(file: impl AsFd, len: u64) -> io::Result<Vec<Range<u64>>> {
    /// The most bytes that are mapped at once: a multiple of any page's size.
    const WINDOW: u64 = 256 << 20;
    let page = page_len()?;
    let (mut found, mut at) = (Vec::<Range<u64>>::new(), 0);
    while at < len {
        let window = WINDOW.min(len - at);
        let Some(wanted) = usize::try_from(window).ok().and_then(NonZeroUsize::new) else { break };
        let mut place = at;
        for is_cached in sys::in_memory(file.as_fd(), at, wanted)? {
            let end = place + page;
            match found.last_mut().filter(|last| last.end == place) {
                Some(last) if is_cached => last.end = end,
                None if is_cached => found.push(place..end),
                _ => {}
            }
            place = end;
        }
        at += window;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a file with holes, only the pages that were written.
    #[test]
    fn pages_that_were_used_are_cached() {
        use std::os::unix::fs::FileExt as _;

        const LEN: u64 = 600 << 20;
        let file = tempfile::tempfile().expect("a file");
        file.set_len(LEN).expect("a hole");
        assert_eq!(cached(&file, LEN).expect("the kernel says"), []);
        let page = num::wide(sys::page_len().expect("the kernel says"));
        // On both sides of the border of two windows, and at the end, which is not a whole page.
        let places = [(256 << 20) - 1, 256 << 20, 512 << 20, LEN];
        for place in places {
            file.write_all_at(b"x", place).expect("written");
        }
        let written = [(256 << 20) - page..(256 << 20) + page, 512 << 20..(512 << 20) + page, LEN..LEN + page];
        assert_eq!(cached(&file, LEN + 1).expect("the kernel says"), written);
        assert_eq!(cached(&file, 0).expect("nothing to say"), []);
    }
}
