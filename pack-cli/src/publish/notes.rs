//! What a publisher keeps beside the list, for its own next runs: a text file with one note a line. Without it, work is done again, and files of killed runs
//! stay; devices do not read it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use sealift_format::name::is_bundle_name;
use sealift_format::{hex, unhex};
use sealift_store::fs::partial::{PartialFile, remove_stale};

use crate::Error;

/// The name of the file.
const FILE: &str = ".sealift-channel-notes";

/// A delta of a plan: the names of the full bundles that it leads from and to, and its zstd level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedDelta {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) level: i32,
}

/// A delta that turned out not to be smaller: its zstd level, and the root digests of the full bundles that it leads from and to.
pub(super) type NotSmaller = (i32, [u8; 32], [u8; 32]);

/// The notes of a channel.
#[derive(Debug, Default)]
pub(super) struct Notes {
    path: PathBuf,
    /// Files that a run writes or removes: those that no list names are removed by the next run.
    pub(super) unlisted: BTreeSet<String>,
    /// The full bundles of a plan, which are there and not listed yet.
    pub(super) bundles: BTreeSet<String>,
    /// The deltas of a plan, by the names of their files.
    pub(super) deltas: BTreeMap<String, PlannedDelta>,
    pub(super) not_smaller: BTreeSet<NotSmaller>,
}

impl Notes {
    /// Reads the notes in a directory. Lines of other forms, as later versions may write them, are ignored.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub(super) fn read(directory: &Path) -> Result<Self, Error> {
        let mut notes = Self { path: directory.join(FILE), ..Self::default() };
        let text = match std::fs::read(&notes.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(notes),
            read => read.map_err(|error| Error::io("read", &notes.path, error))?,
        };
        String::from_utf8_lossy(&text).lines().for_each(|line| notes.take(line));
        Ok(notes)
    }

    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let are_names = |names: &[&str]| names.iter().all(|name| is_bundle_name(name));
        match words[..] {
            ["unlisted", file] if are_names(&[file]) => {
                self.unlisted.insert(file.to_owned());
            }
            ["bundle", file] if are_names(&[file]) => {
                self.bundles.insert(file.to_owned());
            }
            ["delta", file, from, to, level] if are_names(&[file, from, to]) => {
                let Ok(level) = level.parse() else { return };
                let delta = PlannedDelta { from: from.to_owned(), to: to.to_owned(), level };
                self.deltas.insert(file.to_owned(), delta);
            }
            ["not-smaller", level, from, to] => {
                if let (Ok(level), Some(from), Some(to)) = (level.parse(), digest(from), digest(to)) {
                    self.not_smaller.insert((level, from, to));
                }
            }
            _ => tracing::info!(line, "is no note"),
        }
    }

    /// Writes the notes: no half of them is ever seen.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub(super) fn write(&self) -> Result<(), Error> {
        let text = self.text();
        if text.is_empty() {
            return match std::fs::remove_file(&self.path) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", &self.path, error)),
                _ => Ok(()),
            };
        }
        if std::fs::read(&self.path).is_ok_and(|before| before == text.as_bytes()) {
            return Ok(());
        }
        let file = PartialFile::create(&self.path, true)?;
        file.file().write_all(text.as_bytes()).map_err(|error| Error::io("write", &self.path, error))?;
        file.finish()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        for file in &self.unlisted {
            let _ = writeln!(text, "unlisted {file}");
        }
        for file in &self.bundles {
            let _ = writeln!(text, "bundle {file}");
        }
        for (file, PlannedDelta { from, to, level }) in &self.deltas {
            let _ = writeln!(text, "delta {file} {from} {to} {level}");
        }
        for (level, from, to) in &self.not_smaller {
            let _ = writeln!(text, "not-smaller {level} {} {}", hex(from), hex(to));
        }
        text
    }

    /// Notes that a file is about to be written or removed.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub(super) fn add_unlisted(&mut self, files: impl IntoIterator<Item = String>) -> Result<(), Error> {
        self.unlisted.extend(files);
        self.write()
    }

    /// Removes the noted files for which `stays` is false, with what killed runs left of them. Returns those that were there.
    ///
    /// # Errors
    /// Returns an error if a file cannot be removed.
    pub(super) fn remove_unlisted(&mut self, stays: impl Fn(&str) -> bool) -> Result<Vec<String>, Error> {
        let Some(directory) = self.path.parent() else { return Ok(Vec::new()) };
        let mut removed = Vec::new();
        remove_stale(&self.path)?;
        for file in std::mem::take(&mut self.unlisted) {
            let path = directory.join(&file);
            remove_stale(&path)?;
            if stays(&file) {
                continue;
            }
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                done => {
                    done.map_err(|error| Error::io("remove", &path, error))?;
                    removed.push(file);
                }
            }
        }
        Ok(removed)
    }
}

/// Parses a digest in hexadecimal.
fn digest(text: &str) -> Option<[u8; 32]> {
    unhex(text)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut notes = Notes::read(folder.path()).expect("there are none");
        notes.bundles.insert("os-3.sealift".into());
        let delta = PlannedDelta { from: "os-2.sealift".into(), to: "os-3.sealift".into(), level: 19 };
        notes.deltas.insert("os-3-from-2.sealift".into(), delta);
        notes.not_smaller.insert((3, [1; 32], [0xab; 32]));
        notes.add_unlisted(["os-1.sealift".into()]).expect("it can be written");
        let read = Notes::read(folder.path()).expect("it can be read");
        assert_eq!(read.text(), notes.text());
        assert_eq!(read.text().lines().count(), 4);
        // Nothing outside the directory can be meant.
        std::fs::write(folder.path().join(FILE), "unlisted ../a\nunlisted .b\nother\nnot-smaller 3 zz 00\n")
            .expect("ours");
        assert_eq!(Notes::read(folder.path()).expect("it can be read").text(), "");
    }
}
