//! Lines of a log that may be larger than memory.

use std::io::{BufRead, Read as _};

use sealift_format::num;
use sealift_store::OrderFault;

use super::Fault;

/// The longest line. strace prints at most two paths of 4096 bytes in a call, each byte in up to four characters.
const LONGEST: usize = 1 << 20;

/// Calls `visit` with each line and its number, from 1.
pub(super) fn each(
    input: &mut dyn BufRead,
    mut visit: impl FnMut(&[u8], u64) -> Result<(), OrderFault>,
) -> Result<(), Fault> {
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        let len = (&mut *input).take(num::wide(LONGEST)).read_until(b'\n', &mut line)?;
        if len == 0 {
            break;
        }
        match line.strip_suffix(b"\n") {
            None if len == LONGEST => {
                return Err(OrderFault::Line { line: number, what: "not a text file: the line is too long" }.into());
            }
            stripped => visit(stripped.unwrap_or(&line), number)?,
        }
    }
    Ok(())
}
