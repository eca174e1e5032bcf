//! Waiting for what another process does.

use std::thread::sleep;
use std::time::{Duration, Instant};

/// Waits until a condition holds; `what` says which.
///
/// # Panics
///
/// Panics after a minute. A condition that can say more about its failure panics by itself.
#[track_caller]
pub fn wait(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it does not happen: {what}");
        sleep(Duration::from_millis(5));
    }
}
