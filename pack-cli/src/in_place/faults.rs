//! Reports what could not be read, once.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use sealift_format::Row;

use super::blocks::Key;
use crate::{Chunk, Error, Kind};

/// A part of a bundle that could not be read: programs that read it get an I/O error.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fault {
    /// The chunk, with its offset in the file; `None` if the fault is in a base, or in content without data.
    pub chunk: Option<(Row<Chunk>, u64)>,
    /// Why.
    pub error: Error,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
    told: Mutex<HashSet<Key>>,
    has_failed: AtomicBool,
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("told", &self.told).finish_non_exhaustive()
    }
}

impl Faults {
    pub(super) fn new(report: Report) -> Self {
        Self { report, told: Mutex::default(), has_failed: AtomicBool::new(false) }
    }

    /// Reports an error in a block, and for a chunk also its number and its offset in the file.
    pub(super) fn add(&self, key: Key, chunk: Option<(Row<Chunk>, u64)>, error: Error) {
        let is_new = match error.kind() {
            None | Some(Kind::Truncated) => !self.has_failed.swap(true, Ordering::Relaxed),
            Some(_) => self.told.lock().insert(key),
        };
        if is_new {
            (self.report)(&Fault { chunk, error });
        }
    }

    /// Records that the medium could be read.
    pub(super) fn read(&self) {
        self.has_failed.store(false, Ordering::Relaxed);
    }
}
