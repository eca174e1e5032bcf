//! The summary of an update of a directory.

use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;

use sealift::unpack::{Census, UnpackStats};

use super::escape;
use super::human::{Grouped, count};

/// Returns counts of all kinds, such as `1,501 files and 2 directories`.
pub(crate) fn kinds(census: &Census) -> String {
    let kinds = [
        (census.files, "file"),
        (census.directories, "directory"),
        (census.symlinks, "symlink"),
        (census.others, "special file"),
    ];
    let parts: Vec<String> = kinds.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(*n, noun)).collect();
    match parts.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}

/// Returns what was created, or would be.
pub(crate) fn made(stats: &UnpackStats) -> String {
    let specials = stats.others.saturating_sub(stats.symlinks);
    let rest = [
        (stats.directories, "directory"),
        (stats.links, "hard link"),
        (stats.symlinks, "symlink"),
        (specials, "special file"),
    ];
    let rest = rest.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(*n, noun));
    if !stats.is_update {
        let files = Some(count(stats.files, "file")).filter(|_| stats.files > 0);
        return files.into_iter().chain(rest).collect::<Vec<_>>().join(", ");
    }
    let replaced = stats.replaced.files.min(stats.files);
    let files = [
        (stats.files - replaced, "added"),
        (replaced, "replaced"),
        (stats.metadata_files, "with new metadata"),
        (stats.kept_files, "unchanged"),
    ];
    let is_idle = files.iter().all(|(n, _)| *n == 0) && stats.directories + stats.links + stats.others == 0;
    let is_said = |(n, what): &&(u64, &str)| *n > 0 || is_idle && *what == "unchanged";
    let mut parts: Vec<String> =
        files.iter().filter(is_said).map(|(n, what)| format!("{} {what}", Grouped(*n))).collect();
    if let Some(first) = parts.first_mut() {
        // Only the first count has the noun.
        *first = match first.split_once(' ') {
            Some(("1", what)) => format!("1 file {what}"),
            Some((number, what)) => format!("{number} files {what}"),
            None => first.clone(),
        };
    }
    parts.extend(rest.map(|made| format!("{made} created")));
    parts.join(", ")
}

/// Returns how existing files were checked.
pub(crate) fn checked(stats: &UnpackStats, asked: &Asked, dry_run: bool) -> Vec<String> {
    let hashed = count(stats.hashed_files, "file");
    let mut lines = Vec::new();
    match () {
        () if !stats.is_update => return lines,
        () if stats.was_hashed && asked.rehash => lines.push(format!("hashed {hashed}")),
        () if stats.was_hashed && stats.install.is_sealed && stats.sealed_files > 0 => {
            lines.push(format!("hashed {hashed} before sealing"));
        }
        () if stats.was_hashed && asked.assume_mtime => {
            lines.push(format!("no usable install record: hashed {hashed}, trusted size and time of the others"));
        }
        () if stats.was_hashed && stats.was_adopted => lines.push(format!("hashed its {hashed}")),
        () if stats.was_hashed => lines.push(format!("no usable install record: hashed all {hashed}")),
        () if asked.no_check => lines.push("existing files were not checked (--no-check)".to_owned()),
        () => {
            let checked = count(stats.checked_files, "file");
            let read = match stats.hashed_files {
                0 => String::new(),
                _ => format!(", and hashed {} that seemed changed", Grouped(stats.hashed_files)),
            };
            lines.push(format!("checked {checked} by size and time{read}"));
        }
    }
    if stats.changed_files > 0 {
        let verb = if dry_run { "would be repaired" } else { "repaired" };
        lines.push(format!("{verb}: {} changed or missing since the last update", count(stats.changed_files, "file")));
    }
    lines
}

/// The options that determine how files are checked.
pub(crate) struct Asked {
    pub(crate) rehash: bool,
    pub(crate) assume_mtime: bool,
    pub(crate) no_check: bool,
}

/// Prints the paths that were deleted, or would be, one per line.
pub(crate) fn print_deletions(out: &mut dyn Write, stats: &UnpackStats, dry_run: bool) -> io::Result<()> {
    let verb = if dry_run { "would delete" } else { "deleted" };
    for path in &stats.deletions {
        writeln!(out, "  {verb} {}", escape::bytes(path.as_os_str().as_bytes()))?;
    }
    if !stats.deleted.is_empty() {
        writeln!(out, "  {verb} {}", kinds(&stats.deleted))?;
    }
    Ok(())
}
