//! What `sealift unpack BUNDLE ostree:REPO` says when it has ended.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use sealift::ostree::ImportStats;
use sealift::seal::KernelSignature;
use serde::Serialize;

use super::escape;
use super::human::{self, Bytes, Grouped, count};
use super::show::{Show, WARN, json_line};
use super::trust_args::Judge;
use super::unpack::signature_word;

pub(crate) fn print(
    show: Show,
    stats: &ImportStats,
    judge: &Judge,
    (target, bundle): (&Path, &Path),
    (dry_run, trust_record): (bool, bool),
    elapsed: Duration,
) -> std::io::Result<()> {
    let mut out = show.out();
    if show.json {
        let (name, version) = judge.identity();
        let refs = stats.refs.iter().map(|(name, commit)| RefLine { name, commit }).collect();
        return json_line(
            &mut out,
            &Summary {
                dry_run,
                name,
                version,
                signers: judge.signers(),
                refs,
                commits: stats.commits,
                metadata: stats.metadata,
                files: stats.files,
                logical_bytes: stats.logical_bytes,
                stored_bytes: stats.stored_bytes,
                checked_objects: stats.checked_objects,
                hashed_objects: stats.hashed_objects,
                hashed_bytes: stats.hashed_bytes,
                repaired_objects: stats.repaired_objects,
                has_summary: stats.has_summary,
                summary_updated: stats.is_summary_updated,
                summary_signature_removed: stats.has_lost_signature,
                flatpak_index_removed: stats.was_flatpak,
                sealed: stats.is_sealed,
                sealed_objects: stats.sealed_objects,
                kernel_signature: signature_word(&stats.kernel_signature),
                seconds: human::seconds(elapsed),
            },
        );
    }
    if show.quiet {
        return Ok(());
    }
    judge.print_taken(&mut out, (target, bundle), dry_run)?;
    for (name, commit) in &stats.refs {
        writeln!(out, "  {} is {commit}", escape::text(name))?;
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
    print_check(
        &mut out,
        (stats.checked_objects, stats.hashed_objects, stats.repaired_objects),
        (dry_run, trust_record),
    )?;
    if dry_run {
        return writeln!(out, "  {} would be read; nothing was written", Bytes(stats.stored_bytes));
    }
    if !new.is_empty() || stats.repaired_objects > 0 {
        let (bytes, stored) = (Bytes(stats.logical_bytes), Bytes(stats.stored_bytes));
        let (time, rate) = (human::duration(elapsed), human::rate(stats.logical_bytes, elapsed));
        writeln!(out, "  wrote {bytes} (read {stored} from the bundle) in {time}, {rate}")?;
    }
    if stats.is_sealed {
        writeln!(out, "  {} sealed: the kernel protects them from changes", count(stats.sealed_objects, "object"))?;
    }
    if stats.kernel_signature == KernelSignature::Taken {
        writeln!(out, "  sealed the index with the bundle's kernel signature")?;
    }
    Ok(())
}

/// Says how objects of a repository or store were looked at, and what became of those that were not right.
pub(crate) fn print_check(
    out: &mut dyn Write,
    (checked, hashed, repaired): (u64, u64, u64),
    (dry_run, trust_record): (bool, bool),
) -> std::io::Result<()> {
    match (checked, hashed) {
        _ if trust_record => writeln!(out, "  existing objects were not checked (--trust-record)")?,
        (0, _) => {}
        (_, 0) => writeln!(out, "  {} checked by size and time, not by content", count(checked, "object"))?,
        _ if hashed < checked => {
            writeln!(
                out,
                "  {} checked by size and time, of which {} hashed",
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

/// Says what others have to do for a summary that was written anew.
pub(crate) fn warn_of_summary(show: Show, stats: &ImportStats, target: &Path) {
    let repo = target.as_os_str().to_string_lossy();
    let repo = repo.strip_prefix("ostree:").unwrap_or(&repo);
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

#[derive(Serialize)]
struct RefLine<'a> {
    name: &'a str,
    commit: &'a str,
}

#[derive(Serialize)]
struct Summary<'a> {
    dry_run: bool,
    name: &'a str,
    version: u64,
    signers: Vec<String>,
    refs: Vec<RefLine<'a>>,
    commits: u64,
    metadata: u64,
    files: u64,
    logical_bytes: u64,
    stored_bytes: u64,
    checked_objects: u64,
    hashed_objects: u64,
    hashed_bytes: u64,
    repaired_objects: u64,
    has_summary: bool,
    summary_updated: bool,
    summary_signature_removed: bool,
    flatpak_index_removed: bool,
    sealed: bool,
    sealed_objects: u64,
    kernel_signature: Option<&'static str>,
    seconds: f64,
}
