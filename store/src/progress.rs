//! Progress of an operation, and its cancellation.
//!
//! An operation updates a [`Progress`]; a user interface takes a [`Snapshot`] whenever it draws. There is no callback: an
//! operation never waits for a user interface, and takes no lock for each file.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, MutexGuard};

use crate::Error;

/// Shared between an operation and its observers, from any thread.
///
/// Each operation has its own. In an [`Arc`](std::sync::Arc), or borrowed by a scoped thread, it is read while the operation runs:
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::time::Duration;
/// # use sealift_store as sealift;
/// use sealift::Progress;
/// use sealift::contents::{Want, hash_contents};
/// use sealift::source::{Source, SourceOptions};
///
/// let progress = Progress::default();
/// let source = Source::open_spec("src".as_ref(), &SourceOptions::default(), 2)?;
/// let wanted = vec![Want::Id; source.content_count()];
/// let found = std::thread::scope(|scope| {
///     let work = scope.spawn(|| hash_contents(&source, &wanted, 2, &progress));
///     while !work.is_finished() {
///         let now = progress.snapshot();
///         match now.fraction() {
///             Some(done) => println!("{}: {:.0} %", now.phase.word(), done * 100.0),
///             None => println!("{} ...", now.phase.word()),
///         }
///         std::thread::sleep(Duration::from_millis(20)); // or the next frame
///     }
///     work.join().expect("the thread does not panic")
/// })?;
/// assert!(found.iter().all(|content| content.id.is_some()));
/// # Ok(())
/// # }
/// ```
///
/// Any thread may [`cancel`](Progress::cancel).
#[derive(Debug, Default)]
pub struct Progress {
    phases: Mutex<Phases>,
    bytes: AtomicU64,
    bytes_total: AtomicU64,
    files: AtomicU64,
    files_total: AtomicU64,
    files_kept: AtomicU64,
    first_written: AtomicBool,
    cancelled: AtomicBool,
    is_changing: AtomicBool,
}

/// The current phase, and those that ended since the last call of [`Progress::moments`]. No phase changes while the lock is held.
#[derive(Debug, Default)]
struct Phases {
    present: Phase,
    ended: Vec<Snapshot>,
}

/// What an operation is doing. Phases follow each other; some occur more than once, and which ones occur depends on what is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Nothing yet.
    #[default]
    Starting,
    /// Listing the sources.
    Listing,
    /// Reading, hashing and compressing.
    Packing,
    /// Encoding what a delta bundle carries.
    Encoding,
    /// Writing layout, index and head.
    Finishing,
    /// Hashing stored data.
    Verifying,
    /// Reading and hashing existing files.
    Hashing,
    /// Making files from what the target has, under the same names or others.
    Copying,
    /// Writing files.
    Unpacking,
    /// Moving files into their places in an existing target, and removing others.
    Moving,
    /// Sealing files.
    Sealing,
    /// Waiting until everything is durable.
    Syncing,
}

const PHASES: [(Phase, &str); 12] = [
    (Phase::Starting, "starting"),
    (Phase::Listing, "listing"),
    (Phase::Packing, "packing"),
    (Phase::Encoding, "encoding"),
    (Phase::Finishing, "finishing"),
    (Phase::Verifying, "verifying"),
    (Phase::Hashing, "hashing"),
    (Phase::Copying, "copying"),
    (Phase::Unpacking, "unpacking"),
    (Phase::Moving, "moving"),
    (Phase::Sealing, "sealing"),
    (Phase::Syncing, "syncing"),
];

impl Phase {
    /// Returns its word in JSON and in logs, such as `unpacking`.
    #[must_use]
    pub fn word(self) -> &'static str {
        PHASES.iter().find(|(phase, _)| *phase == self).map_or("starting", |(_, word)| word)
    }
}

/// A snapshot of an operation. Totals are 0 while unknown, and bytes and files restart at 0 with each phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Snapshot {
    /// What the operation is doing.
    pub phase: Phase,
    /// Bytes done.
    pub bytes: u64,
    /// Total bytes.
    pub bytes_total: u64,
    /// Files done.
    pub files: u64,
    /// Total files.
    pub files_total: u64,
    /// Files that need no work, since the target has them: from an interrupted run, or unchanged by an update. They are not in `files_total`, and
    /// stay counted through all phases.
    pub files_kept: u64,
    /// Whether all of the hot set is written; stays true through all later phases.
    pub first_written: bool,
}

impl Snapshot {
    /// Returns how much of the phase is done, from 0 to 1: by bytes, or by files if bytes are not counted; `None` while the total is unknown.
    ///
    /// ```
    /// # use sealift_store::Progress;
    /// assert_eq!(Progress::default().snapshot().fraction(), None);
    /// ```
    #[must_use]
    pub fn fraction(&self) -> Option<f64> {
        let (done, total) = match (self.bytes_total, self.files_total) {
            (0, 0) => return None,
            (0, files) => (self.files, files),
            (bytes, _) => (self.bytes, bytes),
        };
        let millionths = u128::from(done.min(total)) * 1_000_000 / u128::from(total);
        u32::try_from(millionths).ok().map(|millionths| f64::from(millionths) / 1e6)
    }
}

impl Progress {
    /// Asks the operation to stop: it soon ends with [`Error::Cancelled`], and its output does not exist, or is unchanged; a repeated unpacking or
    /// update resumes from there. An operation in its last step still completes, and so does an update that has begun to change the target.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns whether a stop was requested.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns whether an update is changing its target: until it ends, the target has files of both versions, and whoever ends the process leaves it
    /// so until the update is completed.
    #[must_use]
    pub fn is_changing_target(&self) -> bool {
        self.is_changing.load(Ordering::Relaxed)
    }

    /// Runs the part of an update that changes its target.
    pub(crate) fn while_changing<T>(&self, change: impl FnOnce() -> T) -> T {
        self.is_changing.store(true, Ordering::Relaxed);
        let changed = change();
        self.is_changing.store(false, Ordering::Relaxed);
        changed
    }

    /// Returns the current state.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.at(self.phases().present)
    }

    /// Returns all phases that ended since the last call, each as it was at its end, among them the moment at which the hot set was written, and
    /// finally the current state. For observers that must not miss a phase, however short.
    #[must_use]
    pub fn moments(&self) -> Vec<Snapshot> {
        let mut phases = self.phases();
        let mut moments = std::mem::take(&mut phases.ended);
        moments.push(self.at(phases.present));
        moments
    }

    fn phases(&self) -> MutexGuard<'_, Phases> {
        self.phases.lock()
    }

    fn at(&self, phase: Phase) -> Snapshot {
        Snapshot {
            phase,
            bytes: self.bytes.load(Ordering::Relaxed),
            bytes_total: self.bytes_total.load(Ordering::Relaxed),
            files: self.files.load(Ordering::Relaxed),
            files_total: self.files_total.load(Ordering::Relaxed),
            files_kept: self.files_kept.load(Ordering::Relaxed),
            first_written: self.first_written.load(Ordering::Relaxed),
        }
    }

    /// Begins a phase, or adds to the current one.
    pub fn enter(&self, phase: Phase, bytes_total: u64, files_total: u64) {
        tracing::debug!(phase = phase.word(), bytes_total, files_total, "a phase begins");
        let mut phases = self.phases();
        if phases.present != phase {
            let end = self.at(phases.present);
            phases.ended.push(end);
            phases.present = phase;
            for count in [&self.bytes, &self.files, &self.bytes_total, &self.files_total] {
                count.store(0, Ordering::Relaxed);
            }
        }
        self.bytes_total.fetch_add(bytes_total, Ordering::Relaxed);
        self.files_total.fetch_add(files_total, Ordering::Relaxed);
    }

    /// Counts completed work of the phase.
    pub fn add(&self, bytes: u64, files: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.files.fetch_add(files, Ordering::Relaxed);
    }

    /// Counts files that need no work.
    pub(crate) fn keep(&self, files: u64) {
        self.files_kept.fetch_add(files, Ordering::Relaxed);
    }

    /// Notes that the hot set is written.
    pub(crate) fn first_is_written(&self) {
        let mut phases = self.phases();
        if !self.first_written.swap(true, Ordering::Relaxed) {
            tracing::info!("the hot set is written");
            let now = self.at(phases.present);
            phases.ended.push(now);
        }
    }

    /// Checks whether to continue.
    ///
    /// # Errors
    /// Returns [`Error::Cancelled`].
    pub fn check(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fraction_is_of_bytes_else_of_files() {
        let fraction = |bytes_total, files_total| {
            let progress = Progress::default();
            progress.enter(Phase::Unpacking, bytes_total, files_total);
            progress.add(25, 5);
            progress.snapshot().fraction()
        };
        assert_eq!(fraction(100, 10), Some(0.25));
        assert_eq!(fraction(0, 10), Some(0.5));
        assert_eq!(fraction(20, 0), Some(1.0)); // never beyond
        assert_eq!(fraction(0, 0), None);
        assert_eq!(fraction(u64::MAX, 0), Some(0.0));
    }

    #[test]
    fn phases_begin_at_nothing_and_keep_what_was_kept() {
        let progress = Progress::default();
        progress.keep(3);
        progress.add(1, 1);
        progress.enter(Phase::Syncing, 0, 0);
        let now = progress.snapshot();
        assert_eq!((now.phase, now.bytes, now.files, now.files_kept), (Phase::Syncing, 0, 0, 3));
    }

    #[test]
    fn that_the_first_files_are_written_is_told_once_and_stays_true() {
        let progress = Progress::default();
        progress.enter(Phase::Unpacking, 10, 1);
        progress.add(4, 0);
        progress.first_is_written();
        progress.first_is_written();
        progress.add(6, 1);
        progress.enter(Phase::Syncing, 0, 0);
        let seen = |moments: Vec<Snapshot>| {
            moments.iter().map(|at| (at.phase.word(), at.bytes, at.first_written)).collect::<Vec<_>>()
        };
        let all = [("starting", 0, false), ("unpacking", 4, true), ("unpacking", 10, true), ("syncing", 0, true)];
        assert_eq!(seen(progress.moments()), all);
        assert_eq!(seen(progress.moments()), [("syncing", 0, true)]);
    }

    #[test]
    fn no_phase_is_missed_and_one_that_goes_on_rises() {
        let progress = Progress::default();
        progress.enter(Phase::Listing, 0, 0);
        progress.add(0, 2);
        progress.enter(Phase::Listing, 0, 0);
        progress.add(0, 1);
        progress.enter(Phase::Copying, 10, 1);
        progress.add(10, 1);
        progress.enter(Phase::Moving, 0, 1);
        let seen = |moments: Vec<Snapshot>| moments.iter().map(|at| (at.phase, at.files)).collect::<Vec<_>>();
        let all = [(Phase::Starting, 0), (Phase::Listing, 3), (Phase::Copying, 1), (Phase::Moving, 0)];
        assert_eq!(seen(progress.moments()), all);
        assert_eq!(seen(progress.moments()), [(Phase::Moving, 0)]);
    }
}
