//! The programs that bootchart2 saw start, which dracut's module `bootchart` puts into an initramfs too: `cmdline2.log` in its archive. For each
//! program there are the process number, a line with a colon and the program's path, one with a colon and its arguments, and an empty line.

use std::io::BufRead;

use sealift_store::OrderFault;

use super::root::Rooted;
use super::{Fault, lines};
use crate::order::profile::OrderEntry;

/// The kernel's mark for a running program whose file was replaced or removed.
const GONE: &[u8] = b" (deleted)";

/// Reads the log: each program when it first starts.
pub(super) fn read(input: &mut dyn BufRead, rooted: &mut Rooted) -> Result<Vec<OrderEntry>, Fault> {
    let mut entries = Vec::new();
    let mut follows_number = false;
    let mut programs = 0_u64;
    lines::each(input, |line, _| {
        let path = line.strip_prefix(b":").filter(|_| follows_number);
        follows_number = !line.is_empty() && line.iter().all(u8::is_ascii_digit);
        let Some(path) = path.filter(|path| path.starts_with(b"/")) else { return Ok(()) };
        programs += 1;
        if path.ends_with(GONE) {
            return Ok(());
        }
        entries.extend(rooted.below(path).map(|path| OrderEntry { path, ranges: Vec::new() }));
        Ok(())
    })?;
    if programs == 0 {
        return Err(OrderFault::Whole("not a cmdline2.log of bootchart2: it names no program").into());
    }
    Ok(entries)
}
