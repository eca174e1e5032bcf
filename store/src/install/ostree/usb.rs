//! Writes a medium for devices with OSTree but without Sealift: the repository that `ostree create-usb` makes of the same refs.

use std::path::Path;
use std::sync::Arc;

use sealift_format::{Bundle, Opened, Ref};

use super::import::{Import, choose, whole};
use super::skeleton::Skeleton;
use super::stats::OsTreeStats;
use super::summary::write_summary;
use crate::input::Input;
use crate::install::options::{Destination, InstallOptions, OsTreeOptions};
use crate::ostree::repo::Repo;
use crate::seal::Seal;
use crate::trust::{Admission, Trusted};
use crate::{Error, Progress};

/// Imports the commits of a bundle into the repository `.ostree/repo` in the directory `medium`, and creates it if there is none.
///
/// Clients find it there: `ostree pull` and `flatpak` on a mounted medium, `ostree pull-local` by its path. The refs become mirrors of their
/// collections, by which clients look for them, and the summary lists everything in the repository. A delta bundle requires a medium that holds its
/// base, whose commits are read, since no record is stored there. The device remembers the bundle before any of it can be reached. After a kill at
/// any point the repository is consistent, and another run completes it.
///
/// # Errors
/// As [`super::import()`]; also returns an error if a ref has no collection id, or if the medium is not a writable directory.
pub fn write_usb(
    bundle: Trusted,
    medium: &Path,
    options: &InstallOptions,
    progress: &Progress,
) -> Result<OsTreeStats, Error> {
    let (unopened, admission) = bundle.install(options.dry_run)?;
    let (mut input, opened) = unopened.open_any()?;
    if let Opened::Whole(bundle) = &opened {
        check_collections(bundle, &options.refs)?;
    }
    let skeleton = Skeleton::make(medium)?;
    let written =
        skeleton.open().and_then(|repo| write(&mut input, opened, &Arc::new(repo), options, &admission, progress));
    if options.dry_run || (written.is_err() && !skeleton.has_stage()) {
        skeleton.remove();
    }
    written
}

fn write(
    input: &mut Input,
    opened: Opened,
    repo: &Arc<Repo>,
    options: &InstallOptions,
    admission: &Admission,
    progress: &Progress,
) -> Result<OsTreeStats, Error> {
    let import = InstallOptions {
        seal: Seal::Off,
        ostree: OsTreeOptions { destination: Destination::Mirror, ..options.ostree.clone() },
        ..options.clone()
    };
    let (bundle, bases) = whole(opened, input, repo, &import, progress)?;
    check_collections(&bundle, &options.refs)?;
    let stats = Import { repo, options: &import, admission, place: None, progress }.take(input, &bundle, &bases)?;
    if !options.dry_run {
        write_summary(repo, options.ostree.now)?;
    }
    Ok(stats)
}

/// Checks that all refs have a collection: on a medium, which has no name, nothing else tells whose they are.
fn check_collections(bundle: &Bundle, names: &[String]) -> Result<(), Error> {
    let has_one = |from: &Ref| from.ostree.as_ref().is_some_and(|ostree| !ostree.collection.is_empty());
    let Some(without) = choose(bundle, names)?.into_iter().find(|from| !has_one(from)) else { return Ok(()) };
    let others = bundle.index.refs().iter().filter(|from| has_one(from)).map(|from| from.name.clone()).collect();
    Err(Error::NoCollection { name: without.name.clone(), others })
}
