//! A terminal that does not show what is typed.

use std::fs::File;
use std::io::ErrorKind;

use parking_lot::Mutex;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The terminal as it was before it was made to hide what is typed.
static BEFORE: Mutex<Option<(File, Termios)>> = Mutex::new(None);

/// While it lives, [`show_typing`] knows how the terminal was.
pub(crate) struct Hidden;

impl Hidden {
    /// Hides what is typed from now on, but for the end of the line.
    pub(crate) fn of(terminal: File, is_interrupted: fn() -> bool) -> std::io::Result<Self> {
        // Under the lock: who leaves meanwhile finds the terminal as it was, or knows how it was.
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

/// Makes the terminal show again what is typed, if it was being asked for a passphrase. A process that a signal ends has to do so itself.
pub(crate) fn show_typing() {
    let before = BEFORE.lock().take();
    if let Some((terminal, before)) = before {
        // With the terminal gone there is nothing to restore.
        let _ = tcsetattr(&terminal, OptionalActions::Now, &before);
    }
}
