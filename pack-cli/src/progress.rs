//! How far an operation has come, and the wish that it stop.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

use crate::Error;

/// Shared between an operation and whoever watches it, from any thread.
#[derive(Debug, Default)]
pub struct Progress {
    phase: AtomicU8,
    bytes: AtomicU64,
    bytes_total: AtomicU64,
    files: AtomicU64,
    files_total: AtomicU64,
    cancelled: AtomicBool,
}

/// What an operation is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Nothing yet.
    Starting,
    /// Listing the sources.
    Listing,
    /// Reading, hashing and compressing.
    Packing,
    /// Writing layout, index and head.
    Finishing,
    /// Hashing what is stored.
    Verifying,
    /// Reading and hashing files that are there already.
    Hashing,
    /// Writing files.
    Unpacking,
    /// Waiting for the medium to have everything.
    Syncing,
}

const PHASES: [Phase; 8] = [
    Phase::Starting,
    Phase::Listing,
    Phase::Packing,
    Phase::Finishing,
    Phase::Verifying,
    Phase::Hashing,
    Phase::Unpacking,
    Phase::Syncing,
];

/// A moment of an operation. Totals are 0 while they are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What it is doing.
    pub phase: Phase,
    /// Bytes done.
    pub bytes: u64,
    /// Bytes there are.
    pub bytes_total: u64,
    /// Files done.
    pub files: u64,
    /// Files there are.
    pub files_total: u64,
}

impl Progress {
    /// Asks the operation to stop: it ends with [`Error::Cancelled`] soon, and leaves nothing half-written.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// The present moment.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let phase = usize::from(self.phase.load(Ordering::Relaxed));
        Snapshot {
            phase: PHASES.get(phase).copied().unwrap_or(Phase::Starting),
            bytes: self.bytes.load(Ordering::Relaxed),
            bytes_total: self.bytes_total.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            files_total: self.files_total.load(Ordering::Relaxed),
        }
    }

    pub(crate) fn enter(&self, phase: Phase, bytes_total: u64, files_total: u64) {
        self.bytes.store(0, Ordering::Relaxed);
        self.files.store(0, Ordering::Relaxed);
        self.bytes_total.store(bytes_total, Ordering::Relaxed);
        self.files_total.store(files_total, Ordering::Relaxed);
        let phase = PHASES.iter().position(|known| *known == phase).and_then(|at| u8::try_from(at).ok());
        self.phase.store(phase.unwrap_or(0), Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes: u64, files: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.files.fetch_add(files, Ordering::Relaxed);
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.cancelled.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }
}
