//! The differences between two versions of an image in bundles.

use std::io::{self, Write};
use std::time::Duration;

use sealift::diff::Change;
use sealift::inside::{Comparison, InnerChange};
use sealift_format::num::wide;
use serde::Serialize;

use super::differences::{Line, Words, print_lines};
use super::escape;
use super::human::{self, Bytes, Grouped};
use super::show::{BOLD, Show, json_line};

/// Prints the differences.
pub(crate) fn print(
    out: &mut dyn Write,
    [old, new]: [&str; 2],
    found: &Comparison,
    show: Show,
    elapsed: Duration,
) -> io::Result<()> {
    if show.json {
        return json_line(out, &JsonComparison::new(old, new, found, human::seconds(elapsed)));
    }
    if show.quiet {
        return Ok(());
    }
    let line = |change: &InnerChange| {
        let size = |size: Option<u64>| size.map(|size| Bytes(size).to_string()).unwrap_or_default();
        let path = escape::bytes(&path(found, change)).to_string();
        Line { change: kind(change), old: size(change.old), new: size(change.new), path, notes: Vec::new() }
    };
    print_lines(out, || found.changes.iter().map(line))?;
    let number = |wanted| found.changes.iter().filter(|change| kind(change) == wanted).count();
    let counts =
        [Change::Added, Change::Removed, Change::Changed].map(|wanted| (number(wanted), Words::USUAL.of(wanted)));
    let some: Vec<_> = counts.iter().filter(|(number, _)| *number > 0).collect();
    let counts = match &some[..] {
        [] => format!("no difference in {}", human::count(found.compared, "file")),
        some => some
            .iter()
            .map(|(number, word)| format!("{} {word}", Grouped(wide(*number))))
            .collect::<Vec<_>>()
            .join(", "),
    };
    writeln!(out, "{BOLD}{} -> {}{BOLD:#}: {counts}", escape::text(old), escape::text(new))
}

fn path(of: &Comparison, change: &InnerChange) -> Vec<u8> {
    [&of.container[..], &change.path].concat()
}

fn kind(change: &InnerChange) -> Change {
    match (change.old, change.new) {
        (None, _) => Change::Added,
        (_, None) => Change::Removed,
        _ => Change::Changed,
    }
}

#[derive(Serialize)]
struct JsonComparison<'a> {
    old: &'a str,
    new: &'a str,
    differs: bool,
    seconds: f64,
    entries: Vec<JsonChange>,
}

#[derive(Serialize)]
struct JsonChange {
    kind: &'static str,
    path: String,
    old: Option<JsonSize>,
    new: Option<JsonSize>,
}

#[derive(Serialize)]
struct JsonSize {
    #[serde(rename = "type")]
    file_type: &'static str,
    size: u64,
}

impl<'a> JsonComparison<'a> {
    fn new(old: &'a str, new: &'a str, found: &Comparison, seconds: f64) -> Self {
        let size = |size: Option<u64>| size.map(|size| JsonSize { file_type: "file", size });
        let entry = |change: &InnerChange| JsonChange {
            kind: Words::USUAL.of(kind(change)),
            path: escape::percent(&path(found, change)),
            old: size(change.old),
            new: size(change.new),
        };
        let entries = found.changes.iter().map(entry).collect();
        Self { old, new, differs: !found.changes.is_empty(), seconds, entries }
    }
}
