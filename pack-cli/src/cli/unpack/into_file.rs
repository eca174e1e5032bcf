//! The file of `--into`: which name goes to which target.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use clap::parser::ValueSource;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use sealift::archive::ArchiveEncoder;
use sealift::fs::read_own_file;
use sealift::slot::SlotAddress;
use sealift::trust::TargetKind;
use sealift_format::name::is_bundle_name;

use super::Unpack;
use crate::failure::{Failure, shown};

/// What a line may say. Other options hold for all lines: they are given on the command line, above all those that waive a check.
const OPTIONS: [&str; 28] = [
    "paths",
    "references",
    "remote",
    "mirror",
    "path",
    "update",
    "delete",
    "adopt",
    "yes",
    "rehash",
    "no_check",
    "assume_mtime",
    "seal",
    "durability",
    "hardlink_duplicates",
    "no_same_owner",
    "same_owner",
    "no_devices",
    "devices",
    "expect_partlabel",
    "expect_partuuid",
    "read_back",
    "then",
    "trust",
    "revoked",
    "threshold",
    "compatible",
    "jobs",
];

/// The words of a line after its name.
#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Words {
    #[command(flatten)]
    unpack: Unpack,
}

/// A line: a name, its target or slots, and the options for it.
#[derive(Debug)]
pub(super) struct IntoLine {
    /// Its number in the file, from 1.
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) unpack: Unpack,
    /// The kind and the path of each target, without links.
    places: Vec<(TargetKind, PathBuf)>,
}

impl IntoLine {
    /// Returns the targets as the line has them.
    pub(super) fn targets(&self) -> Vec<String> {
        self.unpack.paths.iter().map(|path| path.display().to_string()).collect()
    }
}

/// Reads the file, and checks all of its lines before anything is installed.
pub(super) fn read(path: &Path) -> Result<Vec<IntoLine>, Failure> {
    let Some(bytes) = read_own_file(path)? else {
        return Err(Failure::usage(format!("{}: there is no such file, which --into names", shown(path))));
    };
    let mut lines: Vec<IntoLine> = Vec::new();
    for (text, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        let failed = |problem: String| Failure::usage(format!("{}:{number}: {problem}", shown(path)));
        let Some(line) = parse(text, number).map_err(failed)? else { continue };
        if let Some(problem) = lines.iter().find_map(|other| conflict(&line, other)) {
            return Err(failed(problem));
        }
        lines.push(line);
    }
    if lines.is_empty() {
        return Err(Failure::usage(format!("{}: has no line; write one for each name: NAME TARGET", shown(path))));
    }
    Ok(lines)
}

/// Parses a line; `None` if it is empty or a comment.
fn parse(text: &[u8], number: usize) -> Result<Option<IntoLine>, String> {
    let Some(words) = shlex::bytes::split(text) else { return Err("a quotation mark is not closed".into()) };
    let mut words = words.into_iter().map(OsString::from_vec);
    let Some(name) = words.next() else { return Ok(None) };
    let Some(name) = name.to_str().filter(|name| is_bundle_name(name)).map(str::to_owned) else {
        return Err(format!("{} is not the name of a bundle: write NAME TARGET", name.display()));
    };
    let command = Words::command();
    let matches = command.clone().try_get_matches_from(words).map_err(|error| first_line(&error))?;
    let is_given = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    if let Some(other) =
        command.get_arguments().find(|own| is_given(own.get_id().as_str()) && !OPTIONS.contains(&own.get_id().as_str()))
    {
        let option = other.get_long().unwrap_or_default();
        return Err(format!("--{option} holds for all lines: give it on the command line"));
    }
    let Words { unpack } = Words::from_arg_matches(&matches).map_err(|error| first_line(&error))?;
    if unpack.paths.len() > 1 && unpack.paths.iter().any(|path| SlotAddress::of(path).is_none()) {
        return Err("has several targets: only block devices and image:FILE can be several".into());
    }
    if let Some(file) = unpack.trust.files().find(|file| !file.is_absolute()) {
        return Err(format!("{}: give an absolute path", file.display()));
    }
    let places = unpack.paths.iter().map(|path| place_of(path)).collect::<Result<Vec<_>, _>>()?;
    for (at, (_, place)) in places.iter().enumerate() {
        if places.iter().take(at).any(|(_, before)| before == place) {
            return Err(format!("{} is there twice", place.display()));
        }
    }
    Ok(Some(IntoLine { number, name, unpack, places }))
}

/// Returns what clap says of the words.
fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let lines = text.lines().take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>();
    let message = lines.join(" ");
    message.strip_prefix("error: ").unwrap_or(&message).to_owned()
}

/// Returns the kind of a target and its path, which is absolute.
fn place_of(target: &Path) -> Result<(TargetKind, PathBuf), String> {
    let slot = SlotAddress::of(target);
    let (kind, path) = match (&slot, ArchiveEncoder::of(target), TargetKind::image_layout(target)) {
        (Some(slot), ..) => (TargetKind::Slot, slot.path()),
        (None, Some((_, file)), _) => (TargetKind::Directory, file),
        (None, None, Some((directory, _))) => (TargetKind::Directory, directory),
        (None, None, None) => TargetKind::of(target),
    };
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return Err(format!("{}: give an absolute path, without ..", target.display()));
    }
    Ok((kind, without_links(path)))
}

/// Follows links as far as the path exists.
fn without_links(path: &Path) -> PathBuf {
    if let Ok(resolved) = path.canonicalize() {
        return resolved;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => without_links(parent).join(name),
        _ => path.to_owned(),
    }
}

/// Returns why two lines cannot be in one file.
fn conflict(line: &IntoLine, before: &IntoLine) -> Option<String> {
    if line.name == before.name {
        return Some(format!("{} is the name of line {} already", line.name, before.number));
    }
    let pairs = line.places.iter().flat_map(|own| before.places.iter().map(move |other| (own, other)));
    let fault = |((kind, own), (other_kind, other)): (&(TargetKind, PathBuf), &(TargetKind, PathBuf))| {
        let (shown_own, shown_other, number) = (own.display(), other.display(), before.number);
        // A repository and a store have room for several names.
        let has_room = kind == other_kind && matches!(kind, TargetKind::Ostree | TargetKind::Composefs);
        if own == other {
            return (!has_room).then(|| format!("{shown_own} is the target of line {number} already"));
        }
        if own.starts_with(other) {
            return Some(format!("{shown_own} is inside {shown_other}, the target of line {number}"));
        }
        other.starts_with(own).then(|| format!("{shown_other}, the target of line {number}, is inside {shown_own}"))
    };
    pairs.into_iter().find_map(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        match parse(text.as_bytes(), 1) {
            Err(problem) => problem,
            Ok(line) => format!("good: {}", line.is_some()),
        }
    }

    #[test]
    fn lines() {
        assert_eq!(problem("  # os /srv/os"), "good: false");
        assert_eq!(problem(""), "good: false");
        assert_eq!(problem("os /srv/os --update --delete --then 'a b' # why"), "good: true");
        assert_eq!(problem("os a.img=/dev/no-1 b.img=/dev/no-2"), "good: true");
        for (text, why) in [
            ("os", "<PATH>..."),
            ("os 'x", "quotation mark"),
            ("-x /srv/os", "not the name"),
            ("os srv/os", "absolute"),
            ("os ostree:repo", "absolute"),
            ("os tar:-", "absolute"),
            ("os /srv/../os", "without .."),
            ("os /a /b", "several targets"),
            ("os /dev/no-1 /dev/no-1", "twice"),
            ("os /a --allow-unsigned", "--allow-unsigned holds for all lines"),
            ("os /a --allow-downgrade", "--allow-downgrade holds"),
            ("os /a --state /b", "--state holds"),
            ("os /a --into /b", "--into holds"),
            ("os /a --usb /b", "--usb"),
            ("os /a --name b", "--name holds"),
            ("os /a --base /b", "--base holds"),
            ("os /a --json", "--json holds"),
            ("os /a --trust b", "b: give an absolute path"),
            ("os /a --frob", "--frob"),
            ("os /a --help", "--help"),
        ] {
            let found = problem(text);
            assert!(found.contains(why), "{text}: {found}");
        }
        let bytes = OsString::from_vec(b"os /srv/\xff".to_vec());
        assert!(parse(&bytes.into_vec(), 1).is_ok(), "a path need not be UTF-8");
        let command = Words::command();
        for id in OPTIONS {
            assert!(command.get_arguments().any(|own| own.get_id() == id), "{id} is no option");
        }
    }

    #[test]
    fn pairs_of_lines() {
        let line = |text: &str| parse(text.as_bytes(), 1).expect("it is good").expect("a line");
        let conflict = |a: &str, b: &str| conflict(&line(b), &line(a)).unwrap_or_default();
        assert_eq!(conflict("a /srv/no-a", "b /srv/no-ab"), "");
        assert_eq!(conflict("a ostree:/no/repo", "b ostree:/no/repo/"), "");
        assert_eq!(conflict("a composefs:/no/store", "b composefs:/no/store"), "");
        for (a, b, why) in [
            ("a /srv/no-a", "a /srv/no-b", "name of line 1"),
            ("a /srv/no-a", "b /srv/./no-a/", "target of line 1"),
            ("a /srv/no-a", "b /srv/no-a/b", "inside /srv/no-a"),
            ("a /srv/no-a/b", "b /srv/no-a", "is inside /srv/no-a"),
            ("a /srv/no-a", "b ostree:/srv/no-a/repo", "inside"),
            ("a ostree:/no/repo", "b composefs:/no/repo", "target of line 1"),
            ("a image:/no/file", "b image:/no/file", "target of line 1"),
        ] {
            let found = conflict(a, b);
            assert!(found.contains(why), "{a} {b}: {found}");
        }
    }
}
