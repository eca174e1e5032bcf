//! What is installed where: the install records of targets, and the list of targets in the state.

use std::io;
use std::path::Path;

use sealift_format::Head;
use sealift_store::install::import_at;
use sealift_store::slot::{Slot, SlotAddress};
use sealift_store::{LeftRun, Site};

use crate::trust::{DeviceState, KnownTarget, Survey, TargetKind};
use crate::{Error, Keeps, RecordFault, RepoFault};
use sealift_store::directory::state;

/// The last installed bundle of a name in a target.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Installed {
    /// Its identity and signatures.
    pub head: Head,
    /// Time of installation in seconds since 1970, by the device's clock at that time.
    pub taken: i64,
    /// Whether its files were sealed; `None` for a store, whose audit tells.
    pub is_sealed: Option<bool>,
    /// What the target keeps of the metadata of the bundle; `None` for a store, which keeps everything.
    pub keeps: Option<Keeps>,
    /// Why the record does not show what is there, if it belongs to something else: another directory, from which this one was copied or moved, or a
    /// partition of another size.
    pub of_another: Option<RecordFault>,
    /// What a run does there, or left. After [`LeftRun::HalfUpdated`], some files are those of another version.
    pub run: Option<LeftRun>,
    /// Name and version that an interrupted update brings.
    pub next: Option<(String, u64)>,
    /// The version that this device installed there, if the target has gone back to this older one together with its record.
    pub gone_back_from: Option<u64>,
}

/// The state of a target.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Present {
    /// The install record of the target: of a directory the last one, of a store the one for a name.
    Holds(Box<Installed>),
    /// An update was interrupted while it changed the files, and there is no record: name and version that it brings, if they can be read.
    HalfUpdated(Option<(String, u64)>),
    /// A run is unpacking to it, for the first time.
    Running,
    /// Unpacking to it was interrupted or failed, and can be repeated.
    Unfinished,
    /// Something without a record of the bundle.
    Other,
    /// Nothing.
    Missing,
}

impl Present {
    /// Returns whether an update was interrupted while it changed the files, so that they are of two versions.
    #[must_use]
    pub fn is_half_updated(&self) -> bool {
        match self {
            Self::Holds(installed) => installed.run.is_some_and(LeftRun::is_half),
            present => matches!(present, Self::HalfUpdated(_)),
        }
    }
}

/// A target, or what a repository or store has of a bundle's name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Target {
    /// What this device last installed there, according to its list of targets.
    pub listed: Option<KnownTarget>,
    /// What is there.
    pub present: Present,
}

/// Checks a target that the state lists. The target's own record is authoritative; the list says where to look, and what was there last.
///
/// # Errors
/// Returns an error if the record cannot be read, is damaged, or belongs to another user.
pub fn look(known: &KnownTarget, state: &DeviceState) -> Result<Present, Error> {
    let Some(place) = known.place.now() else { return Ok(Present::Missing) };
    let (kind, path) = (place.kind(), place.path());
    let looked = match kind {
        TargetKind::Directory => directory(path, state).map(|target| target.present),
        TargetKind::Slot => slot(&place.argument(), state).map(|target| target.present),
        _ => store(kind, path, Some(&known.name), state)
            .map(|mut found| found.pop().map_or(Present::Other, |target| target.present)),
    };
    match looked {
        // A tree of another name was moved there together with its record.
        Ok(Present::Holds(held)) if held.head.root().identity.name != known.name => {
            let fault = if kind == TargetKind::Slot { RecordFault::OtherSlot } else { RecordFault::OfAnother };
            Ok(Present::Holds(Box::new(Installed { of_another: Some(fault), ..*held })))
        }
        Err(Error::Unusable { .. }) => Ok(Present::Other),
        Err(error) if is_missing(&error) => Ok(Present::Missing),
        looked => looked,
    }
}

/// Returns whether the error says that the target, or a directory on the way to it, is missing.
fn is_missing(error: &Error) -> bool {
    match error {
        // A component of the path may be a file now.
        Error::Io { source, .. } => {
            matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        }
        Error::Repository { fault, .. } => matches!(**fault, RepoFault::NoDirectory),
        error => matches!(error, Error::NoStore { .. }),
    }
}

/// Checks a target as the user names it: a directory, a slot, or each bundle's name in `ostree:REPO` or `composefs:REPO`.
///
/// # Errors
/// Returns an error if there is no such target, and none is listed there; if a record cannot be read, is damaged, or belongs to another user.
pub fn targets(target: &Path, state: &DeviceState) -> Result<Vec<Target>, Error> {
    match TargetKind::of(target) {
        (TargetKind::Directory, path) => match directory(path, state)? {
            Target { listed: None, present: Present::Missing } => {
                Err(Error::io("read", path, rustix::io::Errno::NOENT))
            }
            target => Ok(vec![target]),
        },
        (TargetKind::Slot, _) => slot(target, state).map(|target| vec![target]),
        (kind, path) => store(kind, path, None, state),
    }
}

/// Returns the bundles installed in a target, the last of each name.
pub fn installed(target: &Path, state: &DeviceState) -> Result<Vec<Installed>, Error> {
    let held = |target: Target| match target.present {
        Present::Holds(installed) => Some(*installed),
        _ => None,
    };
    Ok(targets(target, state)?.into_iter().filter_map(held).collect())
}

fn directory(target: &Path, state: &DeviceState) -> Result<Target, Error> {
    let site = Site::resolve(target)?;
    let mut survey = Survey::of_directory(&site, Some(state))?;
    survey.read_whole(&site)?;
    let listed = survey.listed.clone();
    if site.root().is_none() {
        return Ok(Target { listed, present: begun(&survey).unwrap_or(Present::Missing) });
    }
    let (sealed, record) = match survey.fault {
        None | Some(RecordFault::OfAnother) => (state::is_sealed(&site)?, state::kept_record(&site)?),
        _ => (false, None),
    };
    let more = |held| Installed { is_sealed: Some(sealed), keeps: record.map(|record| record.keeps), ..held };
    Ok(Target { listed, present: present(survey, more)? })
}

fn slot(target: &Path, state: &DeviceState) -> Result<Target, Error> {
    let survey = Survey::of_slot(&Slot::open(&SlotAddress { image: None, target: target.to_owned() })?, state)?;
    let listed = survey.listed.clone();
    Ok(Target { listed, present: present(survey, |held| held)? })
}

fn store(kind: TargetKind, path: &Path, name: Option<&str>, state: &DeviceState) -> Result<Vec<Target>, Error> {
    let Some(surveys) = Survey::of_store(kind, path, name, Some(state))? else {
        return Err(match kind {
            TargetKind::Composefs => Error::NoStore { path: path.to_owned() },
            _ => Error::Repository { path: path.to_owned(), fault: Box::new(RepoFault::NoDirectory) },
        });
    };
    if surveys.is_empty() && name.is_none() {
        // The first import of all did not end.
        let present = match import_at(kind, path)? {
            None => return Ok(Vec::new()),
            Some(LeftRun::Running) => Present::Running,
            Some(_) => Present::Unfinished,
        };
        return Ok(vec![Target { listed: None, present }]);
    }
    let target = |(_, survey): (String, Survey)| {
        Ok(Target { listed: survey.listed.clone(), present: present(survey, |held| held)? })
    };
    surveys.into_iter().map(target).collect()
}

/// Returns what is there; `more` adds what this kind of target has recorded.
fn present(survey: Survey, more: impl FnOnce(Installed) -> Installed) -> Result<Present, Error> {
    let (gone_back_from, next) = (survey.gone_back_from(), survey.next.as_ref().map(identity));
    let of_another = survey.fault.clone().filter(RecordFault::is_of_another);
    let begun = begun(&survey);
    match (survey.head, survey.fault, survey.run) {
        (Some(head), fault, run) if fault.as_ref().is_none_or(RecordFault::is_of_another) => {
            let taken = time_of(&survey.head_path)?;
            let held = Installed { head, taken, is_sealed: None, keeps: None, of_another, run, next, gone_back_from };
            Ok(Present::Holds(Box::new(more(held))))
        }
        (_, _, Some(LeftRun::HalfUpdated)) => Ok(Present::HalfUpdated(next)),
        (_, Some(RecordFault::Damaged { path, problem }), _) => Err(Error::State { path, problem }),
        _ => Ok(begun.unwrap_or(Present::Other)),
    }
}

/// Returns the state of a target without a record that a run has begun to fill.
fn begun(survey: &Survey) -> Option<Present> {
    match survey.run {
        Some(LeftRun::Running) => Some(Present::Running),
        None if survey.listed.as_ref().is_none_or(|known| !known.is_begun) => None,
        _ => Some(Present::Unfinished),
    }
}

fn identity(head: &Head) -> (String, u64) {
    (head.root().identity.name.clone(), head.root().identity.version)
}

fn time_of(path: &Path) -> Result<i64, Error> {
    let stat = rustix::fs::stat(path).map_err(|error| Error::io("read", path, error))?;
    Ok(stat.st_mtime)
}
