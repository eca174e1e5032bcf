//! Starts writeback while files are still being written: the kernel would start it seconds later, and the final sync
//! would wait for all of it.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{Builder, ScopedJoinHandle};
use std::time::Duration;

use crate::Error;

/// How long written data may wait.
const INTERVAL: Duration = Duration::from_millis(300);

/// Runs `work`, and meanwhile calls `sync` again and again.
///
/// # Errors
/// Returns the error of `sync`, else that of `work`: the system reports a failed write once, to the first caller (syncfs(2)), and may still show what it
/// dropped, so that nothing that was written may be resumed.
pub(crate) fn with_writeback<T>(
    sync: impl Fn() -> Result<(), Error> + Send,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    let (done, ends) = channel::<()>();
    std::thread::scope(|scope| {
        let syncing = Builder::new().spawn_scoped(scope, move || {
            let mut synced = Ok(());
            while synced.is_ok() && ends.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                synced = sync();
            }
            synced
        });
        let result = work();
        drop(done);
        match syncing.map(ScopedJoinHandle::join) {
            Ok(Ok(synced)) => synced.and(result),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            // No thread could be started: the kernel writes back when it sees fit.
            Err(_) => result,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_meanwhile_is_one_of_the_whole() {
        let (called, calls) = channel();
        let sync = move || {
            let _ = called.send(());
            Err(Error::Usage("the medium is gone".into()))
        };
        let work = || {
            calls.recv().expect("it is called while the work goes on");
            Ok(7)
        };
        assert!(with_writeback(sync, work).is_err_and(|error| error.to_string() == "the medium is gone"));
        assert_eq!(with_writeback(|| Ok(()), || Ok(7)).ok(), Some(7));
        let failed = with_writeback(|| Ok(()), || Err::<(), _>(Error::Cancelled));
        assert!(matches!(failed, Err(Error::Cancelled)));
    }
}
