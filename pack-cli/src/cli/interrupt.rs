//! Ctrl-C and SIGTERM: the first cancels and cleans up, the second leaves at once. The exit status is 128 and the signal's number. Ctrl-\
//! ends the process where it stands, with the terminal as it was.

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::Mutex;
use sealift::{Phase, Progress};
use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::hidden;

/// The first signal that came; 0 before.
static SIGNAL: AtomicU8 = AtomicU8::new(0);
/// What is running.
static RUNNING: Mutex<Option<Arc<Progress>>> = Mutex::new(None);

/// Starts to listen. Where that fails the system's own way remains: a signal ends the process.
pub(crate) fn listen() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGQUIT]) else { return };
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGQUIT {
                hidden::show_typing();
                let _ = emulate_default_handler(signal); // does not return
            }
            let number = u8::try_from(signal).unwrap_or(2);
            let first = SIGNAL.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            if !first || !cancel() {
                hidden::show_typing();
                clear_line();
                std::process::exit(128 + signal);
            }
        }
    });
}

/// Takes away the bar that may stand on the terminal.
fn clear_line() {
    let mut terminal = std::io::stderr();
    if terminal.is_terminal() {
        let _ = terminal.write_all(b"\r\x1b[K");
    }
}

/// Cancels what is running. Says whether there is anything to wait for.
fn cancel() -> bool {
    let running = RUNNING.lock();
    let Some(progress) = &*running else { return false };
    progress.cancel();
    // Before an operation's first phase nothing is written yet.
    progress.snapshot().phase != Phase::Starting
}

/// Makes signals cancel this operation, from now on until [`leave`].
pub(crate) fn enter(progress: &Arc<Progress>) {
    *RUNNING.lock() = Some(Arc::clone(progress));
    if pending() {
        progress.cancel();
    }
}

/// Does something for which nobody has to wait: a signal ends the process at once, as before an operation. The line is clear for it.
pub(crate) fn aside<T>(run: impl FnOnce() -> T) -> T {
    clear_line();
    let running = RUNNING.lock().take();
    let result = run();
    if let Some(progress) = &running {
        enter(progress);
    }
    result
}

/// The operation is over.
pub(crate) fn leave() {
    *RUNNING.lock() = None;
}

/// Whether a signal came.
pub(crate) fn pending() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// The exit status of an operation that was cancelled.
pub(crate) fn status() -> ExitCode {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => ExitCode::from(130),
        signal => ExitCode::from(128 + signal),
    }
}
