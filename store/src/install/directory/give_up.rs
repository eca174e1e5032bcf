//! Gives up an update that had begun to change its target and cannot be completed.

use super::installed::Installed;
use super::journal;
use super::metadata::Privilege;
use super::plan::Selection;
use super::recheck::{Checker, Recheck};
use crate::directory::target::Target;
use crate::directory::{TreeStage, state};
use crate::fs::stat_cache::FileTime;
use crate::install::options::InstallOptions;
use crate::{Error, Progress, Site};

/// Gives up the update whose journal is in the stage, and which cannot be completed. Returns whether it had changed nothing: then the target is still
/// as its record says.
///
/// # Errors
/// Returns an error if the target cannot be examined, or the mark cannot be removed.
pub fn give_up(stage: &TreeStage, site: &Site, jobs: usize, progress: &Progress) -> Result<bool, Error> {
    let is_unchanged = is_as_recorded(site, jobs, progress).unwrap_or(false);
    if is_unchanged {
        journal::remove_mark(stage)?;
    } else {
        journal::give_up_state(stage, site)?;
    }
    Ok(is_unchanged)
}

/// Returns whether all files of the target have the stats in its record.
fn is_as_recorded(site: &Site, jobs: usize, progress: &Progress) -> Result<bool, Error> {
    let Some(record) = state::kept_record(site)? else { return Ok(false) };
    let mut options = InstallOptions::default();
    options.tree.prefix.clone_from(&record.prefix);
    let Some(kept) = Installed::kept(site, &options)? else { return Ok(false) };
    let Some((index, tree)) = kept.tree() else { return Ok(false) };
    let target = Target::open(site, index)?;
    let privilege = Privilege::new(record.keeps);
    let selection = Selection::list(index, tree, &record.prefix);
    let checker = Checker::new(&target, &selection, kept.stats(), &privilege, progress);
    let found = Recheck::of(&checker.sealed(kept.is_sealed()), &selection, FileTime::default(), jobs)?;
    Ok(found.is_same())
}
