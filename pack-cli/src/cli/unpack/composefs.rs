//! The summary of `sealift unpack BUNDLE composefs:REPO`.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use sealift::SetRef;
use sealift::composefs::ComposefsStats;

use super::ostree;
use crate::escape;
use crate::human::{self, Bytes, Grouped, count};
use crate::show::{Show, WARN};
use crate::taken;
use crate::trust_args::Judge;

/// Prints the summary.
pub(crate) fn print(
    show: Show,
    stats: &ComposefsStats,
    judge: &Judge,
    (target, bundle): (&Path, &Path),
    (dry_run, tried, trust_record): (bool, bool, bool),
    elapsed: Duration,
) -> std::io::Result<()> {
    let mut out = show.out();
    if show.is_told(&mut out, &taken::line(stats, judge, dry_run, elapsed))? {
        return Ok(());
    }
    judge.print_taken(&mut out, (target, bundle), dry_run)?;
    for SetRef { name, value } in &stats.import.refs {
        writeln!(out, "  {} is {value}", escape::text(name))?;
    }
    let (new, all) = (count(stats.new_objects, "object"), Grouped(stats.objects));
    if dry_run {
        writeln!(out, "  {new} of {all} would be added, {} of content", Bytes(stats.import.install.logical_bytes))?;
        ostree::print_check(&mut out, &stats.import, (true, trust_record))?;
        return writeln!(out, "  {} would be read; nothing was written", Bytes(stats.import.install.stored_bytes));
    }
    match stats.new_objects {
        0 => writeln!(out, "  no new objects")?,
        _ => {
            let (bytes, stored) = (Bytes(stats.import.install.logical_bytes), Bytes(stats.import.install.stored_bytes));
            let (time, rate) = (human::duration(elapsed), human::rate(stats.import.install.logical_bytes, elapsed));
            writeln!(out, "  {new} of {all} added\n  wrote {bytes} (read {stored} from the bundle) in {time}, {rate}")?;
        }
    }
    ostree::print_check(&mut out, &stats.import, (false, trust_record))?;
    if stats.import.install.is_sealed {
        ostree::print_sealed(&mut out, &stats.import)?;
    } else if tried {
        writeln!(out, "  {WARN}not sealed{WARN:#}: the file system does not support fs-verity")?;
    }
    Ok(())
}
