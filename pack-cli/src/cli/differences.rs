//! Differences as a table and as JSON.

use std::io::{self, Write};
use std::sync::Arc;

use anstyle::Style;
use sealift::Aspect;
use sealift::diff::{Change, Diff, Field, File, PathDifference, TreePath};
use sealift::inspect::{FileType, Xattrs};
use sealift_format::hex;
use sealift_format::walk::pairs;
use serde::{Serialize, Serializer};

use super::human::{Bytes, Grouped, count};
use super::json_file::JsonFile;
use super::show::{BAD, DIM, GOOD, WARN};
use super::time::Moment;
use super::{escape, show};

/// The words for paths that only one side has.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words {
    pub(crate) added: &'static str,
    pub(crate) removed: &'static str,
}

impl Words {
    /// For an old and a new side.
    pub(crate) const USUAL: Self = Self { added: "added", removed: "removed" };

    pub(crate) fn of(self, change: Change) -> &'static str {
        match change {
            Change::Added => self.added,
            Change::Removed => self.removed,
            Change::Changed => "changed",
            Change::Moved => "moved",
            Change::Unsealed => "unsealed",
            Change::Metadata => "metadata",
        }
    }
}

/// Returns the letter of a line and its colour.
pub(crate) fn mark(change: Change) -> (char, Style) {
    match change {
        Change::Added => ('A', GOOD),
        Change::Removed => ('D', BAD),
        Change::Changed => ('M', WARN),
        Change::Moved => ('R', show::BOLD),
        Change::Unsealed => ('U', WARN),
        Change::Metadata => ('m', DIM),
    }
}

/// A line of a table.
pub(crate) struct Line {
    pub(crate) change: Change,
    /// The old size; empty if there is none to show.
    pub(crate) old: String,
    /// The new size; empty if there is none to show.
    pub(crate) new: String,
    pub(crate) path: String,
    pub(crate) notes: Vec<String>,
}

/// Writes a line for each difference: letter, old and new size, path and notes.
pub(crate) fn print_table(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    let line = |difference: &PathDifference| {
        let (old, new) = sizes(difference);
        let (path, notes) = (full_path(difference, &difference.path), notes(difference));
        Line { change: difference.change, old, new, path, notes }
    };
    print_lines(out, || diff.differences.iter().map(line))
}

/// Writes these lines, whose sizes form columns.
pub(crate) fn print_lines<L: Iterator<Item = Line>>(out: &mut dyn Write, lines: impl Fn() -> L) -> io::Result<()> {
    let widths = lines().map(|line| (line.old.len(), line.new.len()));
    let (old_width, new_width) = widths.fold((0, 0), |(old, new), (a, b)| (old.max(a), new.max(b)));
    for Line { change, old, new, path, notes } in lines() {
        let (letter, style) = mark(change);
        write!(out, "{style}{letter}{style:#}  ")?;
        let arrow = if !old.is_empty() && !new.is_empty() { "->" } else { "  " };
        match (old_width, new_width) {
            (0, 0) => {}
            (0, _) => write!(out, "{new:>new_width$}  ")?,
            (_, 0) => write!(out, "{old:>old_width$}  ")?,
            _ => write!(out, "{old:>old_width$} {arrow} {new:>new_width$}  ")?,
        }
        write!(out, "{path}")?;
        match &notes[..] {
            [] => writeln!(out)?,
            notes => writeln!(out, "  {DIM}{}{DIM:#}", notes.join(", "))?,
        }
    }
    Ok(())
}

/// Returns the counts in words, without those that are 0; empty if nothing differs.
pub(crate) fn counts(diff: &Diff, words: Words) -> String {
    let counts = &diff.counts;
    let of = |bytes: u64| if bytes > 0 { format!(" ({})", Bytes(bytes)) } else { String::new() };
    let changed = format!(" ({} -> {})", Bytes(counts.changed_old_bytes), Bytes(counts.changed_new_bytes));
    let has_bytes = counts.changed_old_bytes.max(counts.changed_new_bytes) > 0;
    let parts = [
        (counts.added, words.added, of(counts.added_bytes)),
        (counts.removed, words.removed, of(counts.removed_bytes)),
        (counts.changed, "changed", if has_bytes { changed } else { String::new() }),
        (counts.moved, "moved", of(counts.moved_bytes)),
        (counts.unsealed, "not sealed", String::new()),
        (counts.metadata, "with other metadata", String::new()),
    ];
    let some = parts.into_iter().filter(|(number, ..)| *number > 0);
    some.map(|(number, word, bytes)| format!("{} {word}{bytes}", Grouped(number))).collect::<Vec<_>>().join(", ")
}

/// Returns the aspects that a target does not keep, in words.
pub(crate) fn lacking(aspects: impl IntoIterator<Item = Aspect>) -> String {
    aspects.into_iter().map(named).collect::<Vec<_>>().join(", ")
}

/// Returns the name of an aspect.
pub(crate) fn named(aspect: Aspect) -> &'static str {
    match aspect {
        Aspect::Owners => "owners",
        Aspect::Devices => "devices",
        Aspect::Modes => "permission bits",
        Aspect::Acls => "access control lists",
        Aspect::UserXattrs => "user attributes",
        Aspect::Capabilities => "capabilities",
        Aspect::Times => "times",
        _ => "other extended attributes",
    }
}

/// Prints how many of the differences come from unpacking without root.
pub(crate) fn print_privileged(out: &mut dyn Write, diff: &Diff) -> io::Result<()> {
    let number = diff.counts.privileged;
    if number == 0 {
        return Ok(());
    }
    let come = if number == 1 { "comes" } else { "come" };
    writeln!(
        out,
        "  {} {come} from unpacking without root (owner, set-id bits, capabilities, devices): --ignore privileged",
        Grouped(number)
    )
}

/// Returns the sizes of a regular file whose content was added, removed or changed.
fn sizes(difference: &PathDifference) -> (String, String) {
    let size = |file: &Option<Arc<File>>| {
        let size = file.as_ref().and_then(|file| file.size);
        size.map(|size| Bytes(size).to_string()).unwrap_or_default()
    };
    match difference.change {
        Change::Metadata | Change::Unsealed => (String::new(), String::new()),
        Change::Moved => (String::new(), size(&difference.new)),
        _ => (size(&difference.old), size(&difference.new)),
    }
}

/// Returns a path as other verbs print it; a directory's ends with a slash.
fn full_path(difference: &PathDifference, path: &TreePath) -> String {
    let file = difference.new.as_ref().or(difference.old.as_ref());
    let is_directory = file.is_some_and(|file| file.file_type == FileType::Directory);
    let path = match &path.to_vec()[..] {
        b"" => "./".to_owned(),
        path => format!("{}{}", escape::bytes(path), if is_directory { "/" } else { "" }),
    };
    match &difference.reference {
        Some(reference) => format!("{}:{path}", escape::text(reference)),
        None => path,
    }
}

/// Returns the notes that follow the path.
fn notes(difference: &PathDifference) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(from) = &difference.from {
        notes.push(format!("from {}", full_path(difference, from)));
    }
    match (&difference.old, &difference.new) {
        (Some(old), Some(new)) => {
            let quiet_time = !matches!(difference.change, Change::Metadata | Change::Unsealed);
            let fields = difference.fields.iter().filter(|field| !(quiet_time && **field == Field::Mtime));
            notes.extend(fields.filter_map(|field| note(*field, old, new)));
        }
        (Some(file), None) | (None, Some(file)) => {
            notes.extend(file.link.as_ref().map(|link| format!("hard link to {}", escape::bytes(&link.to_vec()))));
            notes.extend(file.target.as_ref().map(|target| format!("-> {}", escape::bytes(target))));
            let kind = type_word(file.file_type);
            notes.extend((file.target.is_none() && !is_plain(file.file_type)).then(|| kind.to_owned()));
        }
        (None, None) => {}
    }
    notes
}

fn is_plain(file_type: FileType) -> bool {
    matches!(file_type, FileType::Regular | FileType::Directory)
}

fn note(field: Field, old: &File, new: &File) -> Option<String> {
    let (a, b) = (&old.metadata, &new.metadata);
    let target = |file: &File| escape::bytes(file.target.as_deref().unwrap_or_default());
    let device =
        |file: &File| file.device.map(|device| format!("{},{}", device.major, device.minor)).unwrap_or_default();
    Some(match field {
        Field::Content => return by_how_much(old.size?, new.size?),
        Field::Seal => "not sealed".to_owned(),
        Field::Type => format!("{} -> {}", type_word(old.file_type), type_word(new.file_type)),
        Field::Target => format!("-> {}, was -> {}", target(new), target(old)),
        Field::Device => format!("device {} -> {}", device(old), device(new)),
        Field::Mode => format!("mode {:04o} -> {:04o}", a.permissions, b.permissions),
        Field::Owner => format!("owner {}:{} -> {}:{}", a.uid, a.gid, b.uid, b.gid),
        Field::Mtime if a.mtime == b.mtime => format!("mtime .{:09} -> .{:09}", a.mtime_ns, b.mtime_ns),
        Field::Mtime => format!("mtime {} -> {}", Moment(a.mtime), Moment(b.mtime)),
        Field::Xattrs => format!("xattrs {}", xattr_names(&a.xattrs, &b.xattrs)),
        Field::Links => match (&old.link, &new.link) {
            (_, Some(link)) => format!("now a hard link to {}", escape::bytes(&link.to_vec())),
            (Some(link), None) => format!("no longer a hard link to {}", escape::bytes(&link.to_vec())),
            (None, None) => "other hard links".to_owned(),
        },
    })
}

/// Returns the exact change of two sizes that look the same when rounded.
fn by_how_much(old: u64, new: u64) -> Option<String> {
    let look_alike = Bytes(old).to_string() == Bytes(new).to_string();
    let sign = if new > old { '+' } else { '-' };
    (look_alike && old != new).then(|| format!("{sign}{}", Bytes(new.abs_diff(old))))
}

/// Returns the names that differ: `+` added, `-` removed, the others changed.
fn xattr_names(old: &Xattrs, new: &Xattrs) -> String {
    let (mut gone, mut others) = (Vec::new(), Vec::new());
    let [old, new] = [old, new].map(|xattrs| xattrs.iter().map(|xattr| (xattr.name, xattr.value)));
    for (name, old, new) in pairs(old, new) {
        match (old, new) {
            (Some(_), None) => gone.push(format!("-{}", escape::bytes(name))),
            (None, Some(_)) => others.push(format!("+{}", escape::bytes(name))),
            (old, new) if old != new => others.push(escape::bytes(name)),
            _ => {}
        }
    }
    gone.extend(others);
    gone.join(" ")
}

fn type_word(file_type: FileType) -> &'static str {
    match file_type {
        FileType::Regular => "file",
        FileType::Directory => "directory",
        FileType::Symlink => "symbolic link",
        FileType::CharDevice => "character device",
        FileType::BlockDevice => "block device",
        FileType::Fifo => "fifo",
        FileType::Socket => "socket",
    }
}

/// Returns how many paths were compared.
pub(crate) fn compared(diff: &Diff) -> String {
    count(diff.counts.compared, "path")
}

/// A difference in JSON. Its files have the fields of `ls --json`.
#[derive(Serialize)]
struct JsonDifference<'a> {
    kind: &'static str,
    #[serde(rename = "ref", skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
    path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    fields: &'a [Field],
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<JsonSide<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    new: Option<JsonSide<'a>>,
}

/// A file on one side.
#[derive(Serialize)]
struct JsonSide<'a> {
    #[serde(flatten)]
    file: JsonFile<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
}

/// All differences in JSON, each built when it is written: together their paths may be far larger than the index.
pub(crate) struct JsonDifferences<'a> {
    pub(crate) diff: &'a Diff,
    pub(crate) words: Words,
}

impl Serialize for JsonDifferences<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .collect_seq(self.diff.differences.iter().map(|difference| JsonDifference::of(difference, self.words)))
    }
}

impl<'a> JsonDifference<'a> {
    fn of(difference: &'a PathDifference, words: Words) -> Self {
        Self {
            kind: words.of(difference.change),
            reference: difference.reference.as_deref(),
            path: if difference.path.is_empty() { ".".into() } else { escape::percent(&difference.path.to_vec()) },
            from: difference.from.as_ref().map(|from| escape::percent(&from.to_vec())),
            fields: &difference.fields,
            old: difference.old.as_deref().map(JsonSide::of),
            new: difference.new.as_deref().map(JsonSide::of),
        }
    }
}

impl<'a> JsonSide<'a> {
    fn of(file: &'a File) -> Self {
        let shown = JsonFile {
            kind: file.file_type.word(),
            mode: file.metadata.permissions,
            uid: file.metadata.uid,
            gid: file.metadata.gid,
            mtime: file.metadata.mtime,
            mtime_ns: file.metadata.mtime_ns,
            size: file.size,
            id: file.id.as_ref().map(|id| hex(id)),
            target: file.target.as_deref().map(escape::percent),
            major: file.device.map(|device| device.major),
            minor: file.device.map(|device| device.minor),
            xattrs: &file.metadata.xattrs,
        };
        Self { file: shown, link: file.link.as_ref().map(|link| escape::percent(&link.to_vec())) }
    }
}
