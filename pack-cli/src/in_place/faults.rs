//! Reports what could not be read, once.

use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use sealift_format::Row;

use super::blocks::Key;
use crate::{Chunk, Error, Kind};

/// A part of a bundle that could not be read: programs that read it get an I/O error.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fault {
    /// The base in which the fault is, if it is a bundle.
    pub base: Option<PathBuf>,
    /// The chunk, with its offset in the file; `None` if the fault is in a base that is not a bundle, or in content without data.
    pub chunk: Option<(Row<Chunk>, u64)>,
    /// Why.
    pub error: Error,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(base) = &self.base {
            write!(f, "{}: ", base.display())?;
        }
        match self.chunk {
            Some((chunk, place)) => {
                // Errors in a chunk's bytes begin with its number, without the offset.
                let error = self.error.to_string();
                let why = error.strip_prefix(&format!("chunk {chunk}: ")).unwrap_or(&error);
                write!(f, "chunk {chunk}, at byte {place}: {why}")
            }
            None => self.error.fmt(f),
        }
    }
}

/// Called with what could not be read, from any thread.
pub type Report = Box<dyn Fn(&Fault) + Send + Sync>;

/// Reports damage once for each block, and a failing medium once until it can be read again.
pub(super) struct Faults {
    report: Report,
    /// Damage, in the words in which it was reported: many files may lie in a chunk of a base.
    told: Mutex<HashSet<String>>,
    has_failed: AtomicBool,
    base_has_failed: AtomicBool,
    /// Whether something of a base was read since. It may have been in memory, until [`Self::rest`].
    base_was_read: AtomicBool,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("told", &self.told).finish_non_exhaustive()
    }
}

impl Faults {
    pub(super) fn new(report: Report) -> Self {
        let [has_failed, base_has_failed, base_was_read] = [false; 3].map(AtomicBool::new);
        Self { report, told: Mutex::default(), has_failed, base_has_failed, base_was_read }
    }

    /// Reports a fault in a block.
    pub(super) fn add(&self, key: Key, fault: Fault) {
        let is_of_medium = match &fault.error {
            Error::Io { .. } => true,
            error => error.kind() == Some(Kind::Truncated),
        };
        let is_new = match (is_of_medium, key.is_of_base()) {
            (true, true) => {
                self.base_was_read.store(false, Ordering::Relaxed);
                !self.base_has_failed.swap(true, Ordering::Relaxed)
            }
            (true, false) => !self.has_failed.swap(true, Ordering::Relaxed),
            (false, _) => self.told.lock().insert(fault.to_string()),
        };
        if is_new {
            (self.report)(&fault);
        }
    }

    /// Records that a block could be read.
    pub(super) fn read(&self, key: Key) {
        match key {
            Key::Hole(..) => {}
            key if key.is_of_base() => self.base_was_read.store(true, Ordering::Relaxed),
            _ => self.has_failed.store(false, Ordering::Relaxed),
        }
    }

    /// Must be called when a thread rests: what is read next of a base comes from its medium again.
    pub(super) fn rest(&self) {
        if self.base_was_read.swap(false, Ordering::Relaxed) {
            self.base_has_failed.store(false, Ordering::Relaxed);
        }
    }
}
