//! The summary of `sealift unpack BUNDLE ostree:REPO`.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use sealift::ostree::OsTreeStats;
use sealift::seal::KernelSignature;
use sealift::trust::TargetKind;
use sealift::{ImportStats, SetRef};

use crate::audit_words::had_gone_back_from;
use crate::escape;
use crate::human::{self, Bytes, Grouped, count};
use crate::show::{Show, WARN};
use crate::taken;
use crate::trust_args::Judge;

pub(crate) fn print(
    show: Show,
    stats: &OsTreeStats,
    judge: &Judge,
    (target, bundle): (&Path, &Path),
    (dry_run, trust_record): (bool, bool),
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
    if stats.has_summary {
        writeln!(out, "  the summary is the one from the source")?;
    }
    if stats.is_summary_updated {
        writeln!(out, "  updated the summary")?;
    }
    let new = [(stats.commits, "commit"), (stats.metadata, "directory object"), (stats.files, "file object")];
    let new: Vec<_> = new.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(*n, noun)).collect();
    match new.is_empty() {
        true => writeln!(out, "  no new objects")?,
        false => writeln!(out, "  {} {}", new.join(", "), if dry_run { "to add" } else { "added" })?,
    }
    print_check(&mut out, &stats.import, (dry_run, trust_record))?;
    if dry_run {
        return writeln!(out, "  {} would be read; nothing was written", Bytes(stats.import.install.stored_bytes));
    }
    if !new.is_empty() || stats.import.repaired_objects > 0 {
        let (bytes, stored) = (Bytes(stats.import.install.logical_bytes), Bytes(stats.import.install.stored_bytes));
        let (time, rate) = (human::duration(elapsed), human::rate(stats.import.install.logical_bytes, elapsed));
        writeln!(out, "  wrote {bytes} (read {stored} from the bundle) in {time}, {rate}")?;
    }
    if stats.import.install.is_sealed {
        print_sealed(&mut out, &stats.import)?;
    }
    if stats.import.install.kernel_signature == KernelSignature::Taken {
        writeln!(out, "  sealed the index with the bundle's kernel signature")?;
    }
    Ok(())
}

/// Prints how many objects of a repository or store were sealed.
pub(crate) fn print_sealed(out: &mut dyn Write, stats: &ImportStats) -> std::io::Result<()> {
    writeln!(out, "  {} sealed: the kernel protects them from changes", count(stats.sealed_objects, "object"))
}

/// Prints how the objects of a repository or store were checked, and how many were repaired.
pub(crate) fn print_check(
    out: &mut dyn Write,
    stats: &ImportStats,
    (dry_run, trust_record): (bool, bool),
) -> std::io::Result<()> {
    if let Some(version) = stats.install.gone_back_from {
        writeln!(out, "  {WARN}before{WARN:#}: {}", had_gone_back_from(version))?;
    }
    let (checked, hashed, repaired) = (stats.checked_objects, stats.hashed_objects, stats.repaired_objects);
    match (checked, hashed) {
        _ if trust_record => writeln!(out, "  existing objects were not checked (--no-check)")?,
        (0, _) => {}
        (_, 0) => writeln!(out, "  {} checked by size and time, not by content", count(checked, "object"))?,
        _ if hashed < checked => {
            writeln!(
                out,
                "  {} checked by size and time, {} of them hashed",
                count(checked, "object"),
                Grouped(hashed)
            )?;
        }
        _ => writeln!(out, "  {} hashed", count(hashed, "object"))?,
    }
    if repaired > 0 {
        let (objects, verb) = (count(repaired, "damaged object"), if dry_run { "to be replaced" } else { "replaced" });
        writeln!(out, "  {WARN}{objects}{WARN:#} {verb}")?;
    }
    Ok(())
}

/// Warns about what a rewritten summary requires of the repository's owner.
pub(crate) fn warn_of_summary(show: Show, stats: &OsTreeStats, target: &Path) {
    let repo = TargetKind::of(target).1.display();
    if stats.was_flatpak {
        let signed = if stats.has_lost_signature { " --gpg-sign=KEY" } else { "" };
        show.warn(&format!(
            "Flatpak clients see the new commits, but not their names, sizes and AppStream data: run  flatpak build-update-repo{signed} {repo}"
        ));
    } else if stats.has_lost_signature {
        show.warn(&format!(
            "the signature of the summary was removed: sign it again with  ostree summary --update --gpg-sign=KEY --repo={repo}"
        ));
    }
}
