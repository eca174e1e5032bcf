//! Ctrl-C, SIGTERM, and SIGHUP, which is sent when a terminal is closed: the first cancels and cleans up, or ends what is served or recorded; the
//! second exits at once, unless that would lose a recording, or leave a target half updated: then it says so. The exit status is 128 plus the signal's
//! number, unless something was served. While a command runs, it gets every signal, and decides. Ctrl-\ restores the terminal and ends the process at
//! once.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use parking_lot::Mutex;
use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use sealift::{Phase, Progress};
use signal_hook::consts::{SIGABRT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use super::hidden;

/// The first signal received, or 0.
static SIGNAL: AtomicU8 = AtomicU8::new(0);
/// The running operation.
static RUNNING: Mutex<Option<Arc<Progress>>> = Mutex::new(None);
/// Whether signals after the first are ignored.
static IS_PATIENT: AtomicBool = AtomicBool::new(false);
/// The running command.
static COMMAND: Mutex<Option<Pid>> = Mutex::new(None);
/// Ends what is being served.
static SERVING: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Installs the handlers. If that fails, the default remains: a signal ends the process.
pub(crate) fn listen() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM, SIGQUIT]) else { return };
    if !ignores_hangups() {
        // If that fails, a hangup ends the process.
        let _ = signals.add_signal(SIGHUP);
    }
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGQUIT {
                hidden::show_typing();
                let _ = emulate_default_handler(signal); // does not return
            }
            let number = u8::try_from(signal).unwrap_or(2);
            let first = SIGNAL.compare_exchange(0, number, Ordering::Relaxed, Ordering::Relaxed).is_ok();
            if pass_on(signal) {
                continue;
            }
            let is_ending = first && (end() | cancel()) || IS_PATIENT.load(Ordering::Relaxed);
            if !is_ending && !is_saved_by_waiting() {
                hidden::show_typing();
                clear_line();
                std::process::exit(128 + signal);
            }
        }
    });
}

/// Has limits of the process end it as other errors do. A file that may not grow is a failed write, instead of the end without a word. Where the
/// system refuses memory, the runtime says how much, and aborts: that is exit status 2. A panic that aborts is a bug, and stays one.
pub(crate) fn survive_limits() {
    // If that fails, the default remains.
    let _ = flag::register(SIGXFSZ, Arc::default());
    let no_panic = Arc::new(AtomicBool::new(true));
    if flag::register_conditional_shutdown(SIGABRT, 2, Arc::clone(&no_panic)).is_ok() {
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            no_panic.store(false, Ordering::Relaxed);
            print(info);
        }));
    }
}

/// Clears a progress bar from the terminal.
fn clear_line() {
    let mut terminal = io::stderr();
    if terminal.is_terminal() {
        let _ = terminal.write_all(b"\r\x1b[K");
    }
}

/// Has the first signal call `stop`, which makes the process end.
pub(crate) fn serve(stop: impl FnOnce() + Send + 'static) {
    *SERVING.lock() = Some(Box::new(stop));
    if pending() {
        end();
    }
}

/// Runs a command to its end, and passes all signals on to it. Only the first process gets them, since a terminal sends them to all of its group anyway.
pub(crate) fn run(command: &mut Command) -> io::Result<ExitStatus> {
    let mut running = COMMAND.lock();
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    *running = Some(pid);
    drop(running);
    // As long as it is not reaped, no other process gets its number.
    let ended = retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
    *COMMAND.lock() = None;
    ended?;
    child.wait()
}

/// Sends a signal to the running command. Returns whether there is one.
fn pass_on(signal: i32) -> bool {
    let command = COMMAND.lock();
    let Some(pid) = *command else { return false };
    if let Some(signal) = Signal::from_named_raw(signal) {
        // It may have changed its user, as with sudo: then it is for others to end it.
        let _ = kill_process(pid, signal);
    }
    true
}

/// Returns whether SIGHUP was ignored when the process started, as by nohup(1) (proc_pid_status(5)).
fn ignores_hangups() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
}

/// Does the same as [`serve`], and ignores further signals, which would lose a result: `timeout` sends two, to the process and to its group.
pub(crate) fn serve_patiently(stop: impl FnOnce() + Send + 'static) {
    IS_PATIENT.store(true, Ordering::Relaxed);
    serve(stop);
}

/// Has the next signal end the process, since there is nothing left to wait for.
pub(crate) fn end_patience() {
    IS_PATIENT.store(false, Ordering::Relaxed);
}

/// Ends what is being served. Returns whether there was anything.
fn end() -> bool {
    let stop = SERVING.lock().take();
    let is_serving = stop.is_some();
    stop.into_iter().for_each(|stop| stop());
    is_serving
}

/// Cancels the running operation. Returns whether there is anything to wait for.
fn cancel() -> bool {
    let running = RUNNING.lock();
    let Some(progress) = &*running else { return false };
    progress.cancel();
    // Before its first phase, an operation has written nothing.
    progress.snapshot().phase != Phase::Starting
}

/// Returns whether the process has to go on, since the update that it is completing would leave its target half changed, and says so.
fn is_saved_by_waiting() -> bool {
    let is_changing = RUNNING.lock().as_ref().is_some_and(|progress| progress.is_changing_target());
    if is_changing {
        clear_line();
        let text = "the files of the update are being moved into the target: wait for the end. It would have files of both versions, and need the same \
                    command once more to complete it, if it were ended now (Ctrl-\\ does)";
        let _ = writeln!(io::stderr(), "sealift: {text}");
    }
    is_changing
}

/// Makes signals cancel this operation until [`leave`].
pub(crate) fn enter(progress: &Arc<Progress>) {
    *RUNNING.lock() = Some(Arc::clone(progress));
    if pending() {
        progress.cancel();
    }
}

/// Runs something during which a signal ends the process at once, as outside an operation. Clears the terminal's line first.
pub(crate) fn aside<T>(run: impl FnOnce() -> T) -> T {
    clear_line();
    let running = RUNNING.lock().take();
    let result = run();
    if let Some(progress) = &running {
        enter(progress);
    }
    result
}

/// Ends the operation.
pub(crate) fn leave() {
    *RUNNING.lock() = None;
}

/// Returns whether a signal was received.
pub(crate) fn pending() -> bool {
    SIGNAL.load(Ordering::Relaxed) != 0
}

/// Returns the exit status of a cancelled operation.
pub(crate) fn status() -> u8 {
    match SIGNAL.load(Ordering::Relaxed) {
        0 => 130,
        signal => 128 + signal,
    }
}
