//! The caller's thread and others that work with it.

use std::thread::Builder;

/// Runs `work` on `jobs` threads, the caller's among them, and returns when all have ended. If the system has fewer threads to give, for example at
/// its limit of processes, those do the work.
///
/// # Panics
/// Panics if `work` does, on any thread.
pub fn team(jobs: usize, work: impl Fn() + Sync) {
    std::thread::scope(|scope| {
        for _ in 1..jobs.max(1) {
            if let Err(error) = Builder::new().spawn_scoped(scope, &work) {
                tracing::debug!(%error, "cannot start another thread");
                break;
            }
        }
        work();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::threads::panic_guard::assert_panics;

    #[test]
    fn each_thread_works_once() {
        for (jobs, runs) in [(0, 1), (1, 1), (3, 3)] {
            let count = AtomicUsize::new(0);
            team(jobs, || {
                count.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(count.into_inner(), runs);
        }
    }

    #[test]
    fn a_panic_is_the_callers() {
        assert_panics(|| team(2, || panic!("as the test wants")));
    }
}
