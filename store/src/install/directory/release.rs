//! Frees the space of replaced files. The file system frees it when the last open file is closed, and may then wait for the disk (discard). A
//! rename over a file would wait inside the call, and block all other renames.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

use parking_lot::Mutex;

use rustix::fs::{Mode, OFlags};

use crate::fs::confined::open_name;

/// The sender for files that are about to lose their names.
pub(super) struct Release(Option<SyncSender<OwnedFd>>);

/// Threads that wait for the disk.
const WAITING: usize = 4;
/// Files that may be open and waiting for them.
const OPEN_MAX: usize = 64;

impl Release {
    /// Runs `work`, and meanwhile closes the files that it hands over. All are closed when this returns.
    pub(super) fn during<T>(work: impl FnOnce(&Self) -> T) -> T {
        let (send, receive) = sync_channel(OPEN_MAX);
        let receive = Mutex::new(receive);
        std::thread::scope(|scope| {
            let close = || {
                while let Some(file) = next(&receive) {
                    drop(file);
                }
            };
            let threads = (0..WAITING).filter(|_| Builder::new().spawn_scoped(scope, close).is_ok()).count();
            let release = Self((threads > 0).then_some(send));
            work(&release)
        })
    }

    /// Calls `take_name`, which removes a file's name or gives it to another file.
    pub(super) fn after<T>(&self, directory: BorrowedFd<'_>, name: &[u8], take_name: impl FnOnce() -> T) -> T {
        // The space of a file that cannot be opened is freed inside the call.
        let held = open_name(directory, name, OFlags::PATH, Mode::empty());
        let taken = take_name();
        if let (Ok(held), Some(send)) = (held, &self.0) {
            // If there is no receiver, it is closed here.
            let _ = send.send(held);
        }
        taken
    }
}

fn next(files: &Mutex<Receiver<OwnedFd>>) -> Option<OwnedFd> {
    files.lock().recv().ok()
}
