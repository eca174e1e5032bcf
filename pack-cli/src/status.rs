//! What is installed where: the install records of targets, and the list of targets in the state.

use std::io::{self, Read as _};
use std::path::Path;

use sealift_format::Head;
use sealift_store::Site;
use sealift_store::fs::confined::open_own_file;

use crate::trust::{KnownTarget, TargetKind};
use crate::{Error, RepoFault};
use sealift_store::directory::state;

/// Where stores keep their install records.
const OSTREE: &str = "extensions/sealift";
const COMPOSEFS: &str = "sealift/state";

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
    /// Whether it was unpacked by root.
    pub as_root: Option<bool>,
    /// Whether the record belongs to another directory, from which this one was copied or moved.
    pub is_of_another: bool,
}

/// The state of a path that the state lists.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Present {
    /// The install record of the target: of a directory the last one, of a store the one for the listed name.
    Holds(Box<Installed>),
    /// Unpacking to it was interrupted, and can be resumed.
    Unfinished,
    /// Something without a record of the bundle.
    Other,
    /// Nothing.
    Missing,
}

/// Checks a target that the state lists. The target's own record is authoritative; the list only says where to look.
///
/// # Errors
/// Returns an error if the record cannot be read, is damaged, or belongs to another user.
pub fn look(known: &KnownTarget) -> Result<Present, Error> {
    let path = known.place.path();
    let held = match known.place.kind() {
        TargetKind::Directory => directory(path).map(|held| {
            // A tree of another name was moved there together with its record.
            held.map(|held| Installed {
                is_of_another: held.is_of_another || held.head.root().identity.name != known.name,
                ..held
            })
        }),
        TargetKind::Ostree => ostree(path).map(|all| named(all, &known.name)),
        TargetKind::Composefs => composefs(path).map(|all| named(all, &known.name)),
    };
    match held {
        Ok(Some(installed)) => Ok(Present::Holds(Box::new(installed))),
        Ok(None) | Err(Error::Unusable { .. }) => Ok(Present::Other),
        Err(error) if is_missing(&error) => {
            let site = Site::resolve(path);
            let is_unfinished = site.is_ok_and(|site| site.has_stage().is_ok_and(|left| left));
            Ok(if is_unfinished { Present::Unfinished } else { Present::Missing })
        }
        // A component of the path is a file now.
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotADirectory => Ok(Present::Missing),
        Err(error) => Err(error),
    }
}

fn is_missing(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => source.kind() == io::ErrorKind::NotFound,
        Error::Repository { fault, .. } => matches!(**fault, RepoFault::NoDirectory),
        error => matches!(error, Error::NoStore { .. }),
    }
}

fn named(all: Vec<Installed>, name: &str) -> Option<Installed> {
    all.into_iter().find(|installed| installed.head.root().identity.name == name)
}

/// Returns the bundle installed in the directory `target`; `None` if it has no record.
///
/// # Errors
/// Returns an error if there is no such directory, or if the record cannot be read, is damaged, or belongs to another user.
pub fn directory(target: &Path) -> Result<Option<Installed>, Error> {
    let site = Site::resolve(target)?;
    if site.root().is_none() {
        return Err(Error::io("read", target, rustix::io::Errno::NOENT));
    }
    let Some(head) = state::kept_head(&site)? else { return Ok(None) };
    let record = state::kept_record(&site)?;
    let path = state::path_of(target)?.join("head");
    Ok(Some(Installed {
        head,
        taken: time_of(&path)?,
        is_sealed: Some(state::is_sealed(&site)?),
        as_root: record.as_ref().map(|record| record.as_root),
        is_of_another: record.is_some_and(|record| site.inode_id().is_ok_and(|(_, inode)| inode != record.inode)),
    }))
}

/// Returns the bundles installed in an OSTree repository, the last of each name.
///
/// # Errors
/// Returns an error if the repository does not exist, or if its records cannot be read or are damaged.
pub fn ostree(repo: &Path) -> Result<Vec<Installed>, Error> {
    let missing = || Error::Repository { path: repo.to_owned(), fault: Box::new(RepoFault::NoDirectory) };
    store(repo, OSTREE)?.ok_or_else(missing)
}

/// Returns the same for a composefs store.
///
/// # Errors
/// As [`ostree`].
pub fn composefs(repo: &Path) -> Result<Vec<Installed>, Error> {
    store(repo, COMPOSEFS)?.ok_or_else(|| Error::NoStore { path: repo.to_owned() })
}

/// Returns the bundles with a record in `folder` of a store, sorted by name; `None` if it does not exist.
fn store(repo: &Path, folder: &str) -> Result<Option<Vec<Installed>>, Error> {
    let folder = repo.join(folder);
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(repo.is_dir().then(Vec::new)),
        entries => entries.map_err(|error| Error::io("read", &folder, error))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| Error::io("read", &folder, error))?.path().join("head");
        let head = open_own_file(&path).and_then(|file| {
            let mut bytes = Vec::new();
            file.take(u64::from(Head::LEN_MAX) + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        });
        let bytes = match head {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            read => read.map_err(|error| Error::io("read", &path, error))?,
        };
        let head =
            Head::parse(&bytes).map_err(|error| Error::State { path: path.clone(), problem: error.to_string() })?;
        found.push(Installed { head, taken: time_of(&path)?, is_sealed: None, as_root: None, is_of_another: false });
    }
    found.sort_by(|a, b| a.head.root().identity.name.cmp(&b.head.root().identity.name));
    Ok(Some(found))
}

fn time_of(path: &Path) -> Result<i64, Error> {
    let stat = rustix::fs::stat(path).map_err(|error| Error::io("read", path, error))?;
    Ok(stat.st_mtime)
}
