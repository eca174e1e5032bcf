//! What audits, and runs that change a target, say about the target as a whole.

use sealift::LeftRun;

/// Returns what is to be known about a run beside the target before its differences are believed.
pub(super) fn of_run(run: LeftRun, target: &str) -> String {
    match run {
        LeftRun::Running => format!("another sealift run is working on {target}: differences may be its work"),
        LeftRun::Unfinished => {
            format!("a run on {target} was interrupted before it changed anything: repeat it to resume")
        }
        LeftRun::HalfUpdated => {
            format!("an update of {target} was interrupted: repeat it, or finish it with  sealift clean {target}")
        }
        LeftRun::Mixed => {
            format!("an update of {target} did not end: unpack either bundle again, so that it has all of one")
        }
        LeftRun::Hidden => format!("another user's run is working on {target}, or was interrupted"),
    }
}

/// Returns the words for a target that was older before this run.
pub(super) fn had_gone_back_from(version: u64) -> String {
    format!("it had gone back together with its install record: this device had installed version {version} there")
}

/// Returns the words for a target that is older than what was installed there.
pub(super) fn gone_back_from(version: u64) -> String {
    format!("it has gone back together with its install record: this device installed version {version} there")
}
