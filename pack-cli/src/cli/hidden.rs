//! Turns off the echo of the terminal while a passphrase is typed.

use std::fs::File;
use std::io::ErrorKind;

use parking_lot::Mutex;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The terminal, and its attributes before the echo was turned off.
static BEFORE: Mutex<Option<(File, Termios)>> = Mutex::new(None);

/// Keeps the echo off until it is dropped.
pub(crate) struct Hidden;

impl Hidden {
    /// Turns off the echo, except that of the newline.
    pub(crate) fn of(terminal: File, is_interrupted: fn() -> bool) -> std::io::Result<Self> {
        // Under the lock: a signal either comes first and finds the terminal unchanged, or finds the attributes to restore.
        let mut slot = BEFORE.lock();
        if is_interrupted() {
            return Err(ErrorKind::Interrupted.into());
        }
        let before = tcgetattr(&terminal)?;
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        hidden.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(&terminal, OptionalActions::Now, &hidden)?;
        *slot = Some((terminal, before));
        Ok(Self)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        show_typing();
    }
}

/// Turns the echo on again, if it is off. Must be called before a signal ends the process, since nothing is dropped then.
pub(crate) fn show_typing() {
    let before = BEFORE.lock().take();
    if let Some((terminal, before)) = before {
        // With the terminal gone there is nothing to restore.
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
}
