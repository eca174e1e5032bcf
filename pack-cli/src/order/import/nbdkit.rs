//! The log of nbdkit's filter `log`: which parts of a disk image were read.

use std::io::BufRead;

use sealift_store::OrderFault;

use super::image::Reads;
use super::{Fault, lines};

/// Reads lines such as `2024-05-06 07:08:09.123456 connection=1 Read id=2 offset=0x1000 count=0x200 ...`. The line of the answer, with
/// `...Read`, has no offset.
pub(super) fn read(input: &mut dyn BufRead) -> Result<Reads, Fault> {
    let mut reads = Reads::default();
    let mut has_reads = false;
    lines::each(input, |line, number| {
        let mut words = line.split(|byte| *byte == b' ').skip_while(|word| *word != b"Read").skip(1);
        let mut value = |key: &[u8]| words.find_map(|word| word.strip_prefix(key));
        if value(b"id=").is_none() {
            return Ok(());
        }
        let mut hexadecimal = |key: &[u8]| {
            let digits = std::str::from_utf8(value(key)?.strip_prefix(b"0x")?).ok()?;
            u64::from_str_radix(digits, 16).ok()
        };
        let read = hexadecimal(b"offset=").zip(hexadecimal(b"count="));
        let range = read.and_then(|(offset, count)| Some(offset..offset.checked_add(count)?));
        let valid = range.filter(|range| i64::try_from(range.end).is_ok());
        reads.add(valid.ok_or(OrderFault::Line { line: number, what: "a read without offset and count" })?);
        has_reads = true;
        Ok(())
    })?;
    if !has_reads {
        return Err(OrderFault::Whole("no reads in it, as nbdkit --filter=log logs them").into());
    }
    Ok(reads)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(log: &str) -> Option<Vec<std::ops::Range<u64>>> {
        read(&mut log.as_bytes()).ok().map(Reads::into_ranges)
    }

    #[test]
    fn reads_are_ranges() {
        let log = "\
2024-05-06 07:08:09.1 connection=1 Connect export=\"\" tls=0 size=0x100000 write=1
2024-05-06 07:08:09.2 connection=1 Read id=1 offset=0x1000 count=0x200 ...
2024-05-06 07:08:09.3 connection=1 ...Read id=1 return=0 (Success)
2024-05-06 07:08:09.3 connection=1 Write id=2 offset=0x9000 count=0x200 fua=0 ...
2024-05-06 07:08:09.4 connection=1 Read id=3 offset=0x0 count=0x10 ...
2024-05-06 07:08:09.4 connection=1 Read id=4 offset=0x1200 count=0x200 ...
2024-05-06 07:08:09.5 connection=1 Disconnect transactions=4";
        assert_eq!(ranges(log), Some(vec![0x1000..0x1400, 0..0x10]));
        assert_eq!(ranges("connection=1 Read id=1 offset=0xfffffffffffffff0 count=0x20 ..."), None);
        assert_eq!(ranges("connection=1 Read id=1 count=0x20 ..."), None);
        assert_eq!(ranges("an image was served"), None);
    }
}
