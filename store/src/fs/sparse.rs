//! Reading a file without what its file system says are holes. This saves time and nothing else: which zeros a bundle leaves out follows from the
//! content (core 7.1).

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use sealift_format::num;

/// Shorter reads cost less than the questions.
const WORTH_ASKING: usize = 64 << 10;

/// Fills `buffer` with the file's bytes from `offset` on.
///
/// # Errors
/// Returns an error if the file cannot be read, or ends before its last byte of data.
pub(crate) fn read_exact_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    if buffer.len() < WORTH_ASKING || !may_have_holes(file)? {
        return file.read_exact_at(buffer, offset);
    }
    let end = offset + num::wide(buffer.len());
    let mut at = offset;
    while at < end {
        let data = next_data(file, at..end)?;
        let part = |range: Range<u64>| num::size(range.start - offset)..num::size(range.end - offset);
        buffer[part(at..data.start)].fill(0);
        file.read_exact_at(&mut buffer[part(data.clone())], data.start)?;
        at = data.end;
    }
    Ok(())
}

/// Returns whether a file takes less space than its length. In one without holes, tmpfs looks at each page up to the end to find that out.
fn may_have_holes(file: &File) -> io::Result<bool> {
    let metadata = file.metadata()?;
    Ok(metadata.blocks().saturating_mul(512) < metadata.len())
}

/// Returns the next run of data within a range, which is empty at its end if there is none.
fn next_data(file: &File, within: Range<u64>) -> Result<Range<u64>, Errno> {
    let start = match seek(file, SeekFrom::Data(within.start)) {
        Err(Errno::NXIO) => within.end,
        // The file system does not know.
        Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(within),
        start => start?.min(within.end),
    };
    if start == within.end {
        return Ok(start..start);
    }
    let hole = seek(file, SeekFrom::Hole(start)).unwrap_or(within.end);
    // A run that ends where it begins would be asked for again and again.
    Ok(start..if hole > start { hole.min(within.end) } else { within.end })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_zeros_wherever_a_read_begins_and_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = File::options().create_new(true).read(true).write(true).open(folder.path().join("f"));
        let file = file.expect("a file");
        let len = 4 << 20;
        file.set_len(len).expect("it is sparse");
        let data = [(0, 10), (1 << 20, 70_000), (3 << 20, 4096)];
        let mut whole = vec![0; num::size(len)];
        for (at, count) in data {
            let bytes = vec![7; count];
            file.write_all_at(&bytes, at).expect("it is written");
            whole[num::size(at)..][..count].copy_from_slice(&bytes);
        }
        for (start, end) in
            [(0, len), (5, 1 << 20), (5, (1 << 20) + 5), (100, 1 << 19), ((3 << 20) + 1, len), (len - 70_000, len)]
        {
            let mut found = vec![1; num::size(end - start)];
            read_exact_at(&file, &mut found, start).expect("it is read");
            assert!(found == whole[num::size(start)..num::size(end)], "{start} to {end}");
        }
    }
}
