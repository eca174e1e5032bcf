//! A command that is disturbed, and the conditions on its results.

use anyhow::Result;

use super::ground::Ground;

pub(crate) trait Trial {
    fn name(&self) -> &str;

    fn line(&self) -> &str;

    /// Returns the folder that is copied to `work` before each run.
    fn start(&self) -> &str;

    /// Returns whether the bundle comes through a pipe.
    fn is_from_pipe(&self) -> bool {
        false
    }

    /// Returns whether a run can be discarded with `clean`.
    fn can_clean(&self) -> bool {
        true
    }

    /// Returns what is neither old nor new right after a run, or not new if the run succeeded.
    fn not_whole(&self, ground: &Ground, ended_well: bool) -> Result<Option<String>>;

    /// Cleans, or repeats the command undisturbed, and returns the failed checks.
    fn after(&self, ground: &Ground, cleans: bool) -> Result<Option<String>>;
}
