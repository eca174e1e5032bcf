//! Reads past the page cache, which needs aligned memory and offsets.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt as _;

use rustix::io::Errno;
use sealift_format::num::{size, wide};

/// The alignment that O_DIRECT needs on every device.
pub(super) const ALIGN: usize = 4096;
/// Bytes that are read at once.
const READ_LEN: usize = 1 << 20;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Returns the aligned part of a buffer that has [`ALIGN`] bytes more than `len`.
pub(super) fn aligned(buffer: &mut [u8], len: usize) -> &mut [u8] {
    let skipped = buffer.as_ptr().align_offset(ALIGN).min(ALIGN);
    &mut buffer[skipped..skipped + len]
}

/// Reads `len` bytes from an offset, and passes them to `take` in parts. They come from the device itself if `direct` is open for that and the offset is
/// aligned, and else from `file`.
///
/// # Errors
/// Returns an error if they cannot be read; [`ErrorKind::UnexpectedEof`] if there are fewer.
pub(super) fn read_parts(
    file: &File,
    direct: Option<&File>,
    offset: u64,
    len: u64,
    mut take: impl FnMut(&[u8]),
) -> io::Result<()> {
    let direct = direct.filter(|_| offset.is_multiple_of(wide(ALIGN)));
    SCRATCH.with_borrow_mut(|scratch| {
        scratch.resize(READ_LEN + ALIGN, 0);
        for at in (0..len).step_by(READ_LEN) {
            let part_len = size((len - at).min(wide(READ_LEN)));
            // The block with the last bytes is read whole.
            let part = aligned(scratch, part_len.next_multiple_of(ALIGN));
            match direct.map(|direct| read_block(direct, part, part_len, offset + at)) {
                Some(Err(error)) if error.raw_os_error() != Some(Errno::INVAL.raw_os_error()) => return Err(error),
                Some(Ok(())) => {}
                // It has larger sectors, or lies about them.
                _ => file.read_exact_at(&mut part[..part_len], offset + at)?,
            }
            take(&part[..part_len]);
        }
        Ok(())
    })
}

/// Fills at least the first `len` bytes of an aligned buffer.
fn read_block(direct: &File, buffer: &mut [u8], len: usize, at: u64) -> io::Result<()> {
    let mut read = 0;
    while read < len {
        match direct.read_at(&mut buffer[read..], at + wide(read)) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(more) => read += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if read < len && !read.is_multiple_of(ALIGN) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rustix::fs::OFlags;

    use super::*;

    /// On a file system that has O_DIRECT, which the folder of temporary files may lie on.
    #[test]
    fn all_bytes_come_whatever_the_end() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("it");
        for len in [0, 1, ALIGN - 1, ALIGN, READ_LEN, READ_LEN + 1, 3 * READ_LEN + ALIGN + 7] {
            let content: Vec<u8> = (0..251).cycle().take(len).collect();
            std::fs::write(&path, &content).expect("it is ours");
            let file = File::open(&path).expect("it is there");
            let direct = rustix::fs::open(&path, OFlags::RDONLY | OFlags::DIRECT, rustix::fs::Mode::empty()).ok();
            let direct = direct.map(File::from);
            for (direct, start) in
                [(None, 0), (direct.as_ref(), 0), (direct.as_ref(), ALIGN.min(len)), (direct.as_ref(), 1.min(len))]
            {
                let mut read: Vec<u8> = Vec::new();
                let rest = wide(len - start);
                read_parts(&file, direct, wide(start), rest, |part| read.extend(part)).expect("it is read");
                assert!(read == content[start..], "{len} from {start}");
                let beyond = read_parts(&file, direct, wide(start), rest + 1, |_| {});
                assert_eq!(beyond.expect_err("it ends").kind(), ErrorKind::UnexpectedEof, "{len} from {start}");
            }
        }
    }
}
