//! The file that is served.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;

use sealift::in_place::{InPlace, ReadOptions, Reader, Report};
use sealift::inspect::{InodeKind, Listed, Object, entries, find};
use sealift::trust::{Guard, Trusted, Utc};
use sealift::{Bundle, GivenBases, Progress, Row, data_ranges};

/// A file of an open bundle, before threads are started.
#[derive(Debug)]
pub(crate) struct Opened {
    bundle: InPlace,
    object: Row<Object>,
}

/// A file that can be read from any thread.
#[derive(Debug)]
pub(crate) struct Served {
    reader: Reader,
    object: Row<Object>,
    pub(crate) len: u64,
}

impl Opened {
    /// Opens the file at a path in a bundle, or its only file.
    ///
    /// # Errors
    /// Returns an error if the bundle or its base cannot be used, or if there is no such file.
    pub(crate) fn open(bundle: Trusted, bases: &GivenBases, path: Option<&OsStr>) -> Result<Self, String> {
        let bundle = InPlace::open(bundle, bases, &Progress::default()).map_err(|error| error.to_string())?;
        let object = match path {
            Some(path) => named(bundle.bundle(), path)?,
            None => only(bundle.bundle())?,
        };
        Ok(Self { bundle, object })
    }

    /// Starts the threads that read.
    pub(crate) fn start(self, options: &ReadOptions, report: Report) -> Result<Served, String> {
        let Self { bundle, object } = self;
        let len = bundle.bundle().index.object(object).size;
        let reader = bundle.start(options, report).map_err(|error| format!("cannot start a thread: {error}"))?;
        Ok(Served { reader, object, len })
    }
}

impl Served {
    /// Passes the bytes of a range to `give`. Returns whether they could be read; if not, the fault was reported.
    pub(crate) fn read(&self, range: Range<u64>, give: &mut dyn FnMut(&[u8])) -> bool {
        let bytes = if range.end <= self.len { self.reader.read(self.object, range) } else { None };
        bytes.is_some_and(|bytes| {
            give(&bytes.get());
            true
        })
    }

    /// Passes the parts of a range to `give`, each with whether it is data or a hole, until `give` returns false.
    pub(crate) fn extents(&self, range: Range<u64>, give: &mut dyn FnMut(Range<u64>, bool) -> bool) {
        let mut at = range.start;
        for data in data_ranges(self.reader.bundle().layout.holes_of(self.object), range.clone()) {
            if at < data.start && !give(at..data.start, false) || !give(data.clone(), true) {
                return;
            }
            at = data.end;
        }
        if at < range.end {
            give(at..range.end, false);
        }
    }
}

/// Returns the file at a path.
fn named(bundle: &Bundle, path: &OsStr) -> Result<Row<Object>, String> {
    let found = find(bundle, path.as_bytes()).map_err(|error| error.to_string())?;
    object(&found).ok_or_else(|| format!("{} is not a regular file", path.display()))
}

/// Returns the only file of a bundle. Hard links and equal files count once, in all refs.
fn only(bundle: &Bundle) -> Result<Row<Object>, String> {
    let mut files = entries(bundle).filter_map(|entry| Some((object(&entry)?, entry)));
    let (first, entry) = files.next().ok_or("the bundle has no file")?;
    let others: HashSet<_> = files.map(|(object, _)| object).filter(|object| *object != first).collect();
    if others.is_empty() {
        return Ok(first);
    }
    Err(format!(
        "the bundle has {} different files: choose one, as in path={}:{}",
        others.len() + 1,
        entry.reference.name,
        String::from_utf8_lossy(&entry.path())
    ))
}

fn object(entry: &Listed<'_>) -> Option<Row<Object>> {
    match entry.inode.kind {
        InodeKind::Regular(object) => Some(object),
        _ => None,
    }
}

/// Returns warnings about a bundle that was accepted although it would be refused by default.
pub(crate) fn warnings(guard: &Guard, bundle: &Trusted) -> Vec<String> {
    let judged = bundle.judged();
    let unsigned = judged
        .verdict
        .unsigned
        .then(|| "UNSIGNED: no trusted key signed this bundle; accepted because of allow-unsigned".to_owned());
    let older = judged.verdict.below_floor.map(|floor| {
        format!("version {floor} was installed on this device before; accepted an older one because of allow-downgrade")
    });
    let expired = guard.expired_but_for_time(&judged.head).map(|expires| {
        format!("this bundle expired at {} by this machine's clock; accepted because of time", Utc(expires))
    });
    [unsigned, older, expired].into_iter().flatten().collect()
}
