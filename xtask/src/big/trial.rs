//! A command that is disturbed, and what must hold of what it leaves.

use anyhow::Result;

use super::ground::Ground;

pub(crate) trait Trial {
    fn name(&self) -> &str;

    fn line(&self) -> &str;

    /// The folder of which `work` is a copy before.
    fn start(&self) -> &str;

    /// Whether the bundle comes through a pipe.
    fn is_from_pipe(&self) -> bool {
        false
    }

    /// Whether a run can be given up by `clean`.
    fn can_clean(&self) -> bool {
        true
    }

    /// What is neither old nor new right after a run; nothing but new if it ended well.
    fn not_whole(&self, ground: &Ground, ended_well: bool) -> Result<Option<String>>;

    /// Cleans, or runs the line again undisturbed, and returns what does not hold then.
    fn after(&self, ground: &Ground, cleans: bool) -> Result<Option<String>>;
}
