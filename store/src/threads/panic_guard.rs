//! Wakes the threads that wait for a thread that panicked; they would otherwise wait for ever.

/// Calls its function when it is dropped, but only during a panic.
#[derive(Debug)]
pub struct OnPanic<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnPanic<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            (self.0)();
        }
    }
}

/// Runs `work`, which must panic, in a thread, and fails if it has not ended within a minute.
#[cfg(test)]
pub fn assert_panics(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::spawn(work);
    let start = std::time::Instant::now();
    while !thread.is_finished() {
        assert!(start.elapsed().as_secs() < 60, "threads wait for one that panicked");
        std::thread::yield_now();
    }
    assert!(thread.join().is_err(), "the panic is handed on");
}
