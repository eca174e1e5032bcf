//! The limit of open files, which is raised for this program, and not for the commands that it runs.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit with which the program was started.
static GIVEN: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit to its maximum: each directory in use stays open, and the usual limit of 1024 is low.
pub(crate) fn raise() {
    let given = *GIVEN.get_or_init(|| getrlimit(Resource::Nofile));
    // If it cannot be raised, the present limit may suffice.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: given.maximum, ..given });
}

/// Sets the limit with which the program was started, for a command that inherits it: programs that use select(2) fail with more files.
pub(crate) fn lower() {
    if let Some(given) = GIVEN.get() {
        // A lower limit is never refused.
        let _ = setrlimit(Resource::Nofile, *given);
    }
}
