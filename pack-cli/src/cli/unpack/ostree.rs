//! The summary of `sealift unpack BUNDLE ostree:REPO`.

use std::io::{self, Write};
use std::path::Path;

use sealift::ostree::OsTreeStats;
use sealift::seal::KernelSignature;
use sealift::trust::TargetKind;

use super::import::{Import, sealed};
use super::report::would_read;
use crate::human::count;
use crate::show::Show;

/// Prints the summary.
pub(super) fn print(import: &Import<'_>, stats: &OsTreeStats) -> io::Result<()> {
    let mut out = import.show.out();
    if import.begin(&mut out, stats, &stats.import)? {
        return Ok(());
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
        false => writeln!(out, "  {} {}", new.join(", "), if import.dry_run { "to add" } else { "added" })?,
    }
    import.checked(&mut out, &stats.import)?;
    if import.dry_run {
        return would_read(&mut out, &stats.import.install);
    }
    if !new.is_empty() || stats.import.repaired_objects > 0 {
        import.wrote(&mut out, &stats.import)?;
    }
    if stats.import.install.is_sealed {
        sealed(&mut out, &stats.import)?;
    }
    if stats.import.install.kernel_signature == KernelSignature::Taken {
        writeln!(out, "  sealed the index with the bundle's kernel signature")?;
    }
    Ok(())
}

/// Warns about what a rewritten summary requires of the repository's owner.
pub(super) fn warn_of_summary(show: Show, stats: &OsTreeStats, target: &Path) {
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
