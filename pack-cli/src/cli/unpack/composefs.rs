//! The summary of `sealift unpack BUNDLE composefs:REPO`.

use std::io::{self, Write};

use sealift::composefs::ComposefsStats;

use super::import::{Import, sealed};
use super::report::would_read;
use crate::human::{Bytes, Grouped, count};
use crate::show::WARN;

/// Prints the summary; `tried` says whether objects were to be sealed if possible.
pub(super) fn print(import: &Import<'_>, stats: &ComposefsStats, tried: bool) -> io::Result<()> {
    let mut out = import.show.out();
    if import.begin(&mut out, stats, &stats.import)? {
        return Ok(());
    }
    let (new, all) = (count(stats.new_objects, "object"), Grouped(stats.objects));
    if import.dry_run {
        writeln!(out, "  {new} of {all} would be added, {} of content", Bytes(stats.import.install.logical_bytes))?;
        import.checked(&mut out, &stats.import)?;
        return would_read(&mut out, &stats.import.install);
    }
    match stats.new_objects {
        0 => writeln!(out, "  no new objects")?,
        _ => {
            writeln!(out, "  {new} of {all} added")?;
            import.wrote(&mut out, &stats.import)?;
        }
    }
    import.checked(&mut out, &stats.import)?;
    if stats.import.install.is_sealed {
        sealed(&mut out, &stats.import)?;
    } else if tried {
        writeln!(out, "  {WARN}not sealed{WARN:#}: the file system does not support fs-verity")?;
    }
    Ok(())
}
