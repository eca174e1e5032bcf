//! Giving back what replaced files took: the file system frees it when the last open file of it is closed, and may wait for the medium
//! then (discard). A rename over a file would wait within, while all other renames wait for it.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};

use crate::fs::confined::open_name;

/// Where the files go that are about to lose their names.
pub(super) struct Release(SyncSender<OwnedFd>);

/// Threads that wait for the medium.
const WAITING: usize = 4;
/// Files that may be open and wait for them.
const OPEN_MAX: usize = 64;

impl Release {
    /// Runs `work`, and meanwhile closes what is given to it. All is given back when this ends.
    pub(super) fn during<T>(work: impl FnOnce(&Self) -> T) -> T {
        let (send, receive) = sync_channel(OPEN_MAX);
        let receive = Mutex::new(receive);
        std::thread::scope(|scope| {
            for _ in 0..WAITING {
                scope.spawn(|| {
                    while let Some(file) = next(&receive) {
                        drop(file);
                    }
                });
            }
            let release = Self(send);
            work(&release)
        })
    }

    /// Calls `take_name`, which takes a file's name away or gives it to another one.
    pub(super) fn after<T>(&self, directory: BorrowedFd<'_>, name: &[u8], take_name: impl FnOnce() -> T) -> T {
        // What cannot be opened is given back within the call.
        let held = open_name(directory, name, OFlags::PATH, Mode::empty());
        let taken = take_name();
        if let Ok(held) = held {
            // Where nobody receives, it is closed here.
            let _ = self.0.send(held);
        }
        taken
    }
}

fn next(files: &Mutex<Receiver<OwnedFd>>) -> Option<OwnedFd> {
    files.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}
