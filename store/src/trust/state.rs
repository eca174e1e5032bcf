//! The device's state between bundles: each name's floor and newest vouched-for `created`, and the places where bundles were installed.
//!
//! ```text
//! DIR/lock             held by the writer
//! DIR/floors/NAME      "sealift floor 2 NAME", then VERSION CREATED KEY..., then "check BLAKE3" of everything before
//! DIR/lists/NAME       the same of the channel's lists, "sealift list 1 NAME"; the folder is made with the first
//! DIR/targets/BLAKE3   "sealift target 1", then the lines given in `targets`, then "check BLAKE3" of everything before
//! ```
//!
//! A file that cannot be read or is malformed is an error: if it counted as missing, whoever damages it could go back to an old version.

use std::path::{Path, PathBuf};

use crate::{Site, StateDir, StateLock, check_may_create};
use sealift_format::Head;
use sealift_format::name::is_bundle_name;
use sealift_verify::trust::Floors;

use super::records::Of;
use super::{KnownTarget, TargetId, TrustOptions, TrustPaths, now, records};
use crate::Error;
use crate::address::TargetKind;
use crate::fs::found::named_at;

const FLOORS: &str = "floors";
const LISTS: &str = "lists";
const TARGETS: &str = "targets";

/// The state's folder. A missing folder is the empty state.
#[derive(Clone, Debug)]
pub struct DeviceState {
    dir: PathBuf,
    /// Called with the path of a lock that has to be waited for.
    waiting: Option<fn(&Path)>,
}

/// The state, open and known to be writable.
#[derive(Debug)]
pub(super) struct Held {
    waiting: Option<fn(&Path)>,
    dir: StateDir,
    floors: StateDir,
    targets: StateDir,
}

impl DeviceState {
    /// Returns the state in `dir`.
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into(), waiting: None }
    }

    /// Has `waiting` called with the path of a lock of another run, before that is waited for.
    #[must_use]
    pub fn telling(self, waiting: Option<fn(&Path)>) -> Self {
        Self { waiting, ..self }
    }

    /// Returns the current user's state, or the one that the options give.
    ///
    /// # Errors
    /// Returns an error if its location is unknown.
    pub fn of_this_process(options: &TrustOptions) -> Result<Self, Error> {
        Ok(Self::at(TrustPaths::of_this_process().state(options)?).telling(options.waiting))
    }

    /// Returns the folder.
    #[must_use]
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Returns what was committed for `name`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is malformed, or if another user could change it.
    pub fn floors(&self, name: &str) -> Result<Floors, Error> {
        check_name(name)?;
        match self.folder(FLOORS)? {
            Some(folder) => read(Of::Bundles, &folder, name),
            None => Ok(Floors::default()),
        }
    }

    /// Returns what was taken of a channel's lists of this name.
    ///
    /// # Errors
    /// As [`Self::floors`].
    pub(super) fn lists(&self, name: &str) -> Result<Floors, Error> {
        check_name(name)?;
        match self.folder(LISTS)? {
            Some(folder) => read(Of::Lists, &folder, name),
            None => Ok(Floors::default()),
        }
    }

    /// Returns the names that have a floor, in order.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read or holds anything else.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let Some(folder) = self.folder(FLOORS)? else { return Ok(Vec::new()) };
        let name = |bytes: Vec<u8>| match String::from_utf8(bytes) {
            Ok(name) if is_bundle_name(&name) => Ok(name),
            other => {
                let name = other.unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
                let problem = "it is not a bundle's name".to_owned();
                Err(Error::State { path: folder.path().join(name), problem })
            }
        };
        folder.names()?.into_iter().map(name).collect()
    }

    /// Forgets what was committed for `name`, and returns it.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be written. A malformed file is forgotten too: this is the way to recover.
    pub fn reset_floor(&self, name: &str) -> Result<Option<Floors>, Error> {
        check_name(name)?;
        let Some(dir) = StateDir::open(&self.dir)? else { return Ok(None) };
        let Some(folder) = dir.folder(FLOORS)? else { return Ok(None) };
        let _lock = dir.lock(self.waiting)?;
        if let Some(lists) = dir.folder(LISTS)? {
            lists.remove(name)?;
        }
        let before = match read(Of::Bundles, &folder, name) {
            Err(Error::Floor { .. }) => Floors::default(),
            other => other?,
        };
        Ok(folder.remove(name)?.then_some(before))
    }

    /// Returns the places where trusted bundles were installed, by path. A damaged file of the list, or one of a newer version, yields its own error
    /// and does not hide the others.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read, or if another user could change it.
    pub fn targets(&self) -> Result<Vec<Result<KnownTarget, Error>>, Error> {
        let Some(folder) = self.folder(TARGETS)? else { return Ok(Vec::new()) };
        let names = folder.names()?.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned());
        let mut known: Vec<_> = names.filter_map(|name| read_target(&folder, &name).transpose()).collect();
        known.sort_by(|a, b| a.as_ref().ok().cmp(&b.as_ref().ok()));
        Ok(known)
    }

    /// Returns what was last installed to the directory at `target`, whatever is there now; `None` if the list has no readable entry for it.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read, if another user could change it, or if the path has no name.
    pub fn taken_to(&self, target: &Path) -> Result<Option<KnownTarget>, Error> {
        self.taken_at(&Site::resolve(target)?)
    }

    /// Returns the list's entry for the target at `site`.
    ///
    /// # Errors
    /// Returns an error if the list cannot be read or is damaged.
    pub fn taken_at(&self, site: &Site) -> Result<Option<KnownTarget>, Error> {
        self.listed_at(&TargetId::of_directory(site)?, "")
    }

    /// Returns a slot as it can be opened: as `target` names it or, if there is no such device any more, by the name that the partition has now to which
    /// this device wrote under that name.
    ///
    /// # Errors
    /// Returns an error if it cannot be determined whether there is such a device, if the list cannot be read, or if another user could change it.
    pub fn slot_now(&self, target: &Path) -> Result<PathBuf, Error> {
        let (kind, path) = TargetKind::of(target);
        if kind != TargetKind::Slot || named_at(path)?.is_some() {
            return Ok(target.to_owned());
        }
        let places = self.targets()?.into_iter().flatten().map(|known| known.place);
        let mut now =
            places.filter(|place| place.kind() == kind && place.path() == path).filter_map(|place| place.now());
        Ok(now.next().map_or_else(|| target.to_owned(), |place| place.argument()))
    }

    /// Returns the list's entry for a place; in a repository or store, that for this name of a bundle. A damaged entry counts as missing, and so does
    /// that of another file system, which is mounted there at other times.
    ///
    /// # Errors
    /// Returns an error if the list cannot be read, or if another user could change it.
    pub(super) fn listed_at(&self, place: &TargetId, name: &str) -> Result<Option<KnownTarget>, Error> {
        let Some(folder) = self.folder(TARGETS)? else { return Ok(None) };
        let known = read_target(&folder, &place.file_name(name)).ok().flatten();
        Ok(known.filter(|known| known.place.is_same(place)))
    }

    /// Lists the bundle of `head` as what a directory or slot holds, if a run that the device remembers had begun to install it there. Whoever completes an
    /// update in its place calls this.
    ///
    /// # Errors
    /// Returns an error if the list cannot be read or written.
    pub fn settle(&self, place: &TargetId, head: &Head) -> Result<(), Error> {
        let identity = &head.root().identity;
        let listed = self.listed_at(place, "")?.filter(|listed| listed.name == identity.name);
        let floors = self.floors(&identity.name)?;
        let raised = floors.records().iter().find(|record| record.version == identity.version);
        let (Some(listed), Some(raised), Some(dir)) = (listed, raised, StateDir::open(&self.dir)?) else {
            return Ok(());
        };
        let Some(targets) = dir.folder(TARGETS)? else { return Ok(()) };
        let known = KnownTarget {
            version: identity.version,
            keys: raised.keys.iter().copied().collect(),
            taken: now::clock_time(),
            is_begun: false,
            ..listed
        };
        let _lock = dir.lock(self.waiting)?;
        targets.replace(&known.file_name(), &known.encode())
    }

    /// Forgets that bundles were installed to a place, and returns whether the list had any. Floors stay.
    ///
    /// # Errors
    /// Returns an error if the list cannot be read or written.
    pub fn forget_target(&self, place: &TargetId) -> Result<bool, Error> {
        let Some(dir) = StateDir::open(&self.dir)? else { return Ok(false) };
        let Some(folder) = dir.folder(TARGETS)? else { return Ok(false) };
        let _lock = dir.lock(self.waiting)?;
        let mut forgotten = false;
        for known in self.targets()?.into_iter().flatten().filter(|known| known.place.has_path_of(place)) {
            forgotten |= folder.remove(&known.file_name())?;
        }
        Ok(forgotten)
    }

    /// Forgets what the list has of a name at a place, and returns whether it was there. Floors stay.
    ///
    /// # Errors
    /// Returns an error if the list cannot be read or written.
    pub fn forget(&self, place: &TargetId, name: &str) -> Result<bool, Error> {
        let Some(dir) = StateDir::open(&self.dir)? else { return Ok(false) };
        let Some(folder) = dir.folder(TARGETS)? else { return Ok(false) };
        let _lock = dir.lock(self.waiting)?;
        folder.remove(&place.file_name(name))
    }

    /// Forgets that a newer version of a name was installed to a place.
    ///
    /// # Errors
    /// Returns an error if the list cannot be read or written.
    pub(super) fn forget_newer(&self, place: &TargetId, name: &str, version: u64) -> Result<(), Error> {
        match self.listed_at(place, name)? {
            Some(listed) if listed.name == name && listed.version > version => self.forget(place, name).map(drop),
            _ => Ok(()),
        }
    }

    /// Checks that no other user could change the state.
    ///
    /// # Errors
    /// Returns an error if another user could, or if it cannot be opened.
    pub(super) fn check(&self) -> Result<(), Error> {
        self.folder(FLOORS).map(|_| ())
    }

    /// Creates the state if it does not exist, and checks that it can be written.
    ///
    /// # Errors
    /// Returns an error if it cannot be created or written, or if another user could change it.
    pub(super) fn hold(&self) -> Result<Held, Error> {
        let dir = StateDir::open_or_create(&self.dir)?;
        let (floors, targets) = (dir.folder_or_create(FLOORS)?, dir.folder_or_create(TARGETS)?);
        let _lock = dir.lock(self.waiting)?;
        floors.check_writable()?;
        Ok(Held { waiting: self.waiting, dir, floors, targets })
    }

    /// Checks the same as [`Self::hold`], as far as that can be told without writing.
    pub(super) fn check_may_hold(&self) -> Result<(), Error> {
        check_may_create(&self.dir)?;
        for name in [FLOORS, TARGETS] {
            self.folder(name)?.map_or(Ok(()), |folder| folder.check_may_write())?;
        }
        Ok(())
    }

    fn folder(&self, name: &str) -> Result<Option<StateDir>, Error> {
        StateDir::open(&self.dir)?.map_or(Ok(None), |dir| dir.folder(name))
    }
}

impl Held {
    /// Waits for other runs, which may raise floors until then.
    pub(super) fn lock(&self) -> Result<StateLock, Error> {
        let lock = self.dir.lock(self.waiting)?;
        self.dir.check_same()?;
        Ok(lock)
    }

    pub(super) fn floors(&self, name: &str) -> Result<Floors, Error> {
        read(Of::Bundles, &self.floors, name)
    }

    /// Returns what was taken of a channel's lists, and its folder, which is made if it is not there. Call it under the lock.
    pub(super) fn lists(&self, name: &str) -> Result<(StateDir, Floors), Error> {
        let folder = self.dir.folder_or_create(LISTS)?;
        let before = read(Of::Lists, &folder, name)?;
        Ok((folder, before))
    }

    /// Replaces what was taken of a channel's lists, durably. Call it under the lock.
    pub(super) fn replace_lists(folder: &StateDir, name: &str, lists: &Floors) -> Result<(), Error> {
        folder.replace(name, &records::encode(Of::Lists, name, lists.records()))
    }

    /// Replaces what was committed for `name`, durably. Call it under the lock.
    pub(super) fn replace(&self, name: &str, floors: &Floors) -> Result<(), Error> {
        self.floors.replace(name, &records::encode(Of::Bundles, name, floors.records()))
    }

    /// Lists a target whose bundle is about to be installed as begun, unless another version of it is listed there: until the new one is in its place,
    /// the target holds the old one. Call it under the lock.
    pub(super) fn announce(&self, target: &KnownTarget) -> Result<(), Error> {
        match read_target(&self.targets, &target.file_name()) {
            Ok(Some(listed)) if !listed.is_begun && listed.name == target.name && listed.version <= target.version => {
                Ok(())
            }
            _ => self.list(&KnownTarget { is_begun: true, ..target.clone() }),
        }
    }

    /// Lists a target durably, unless it is already listed so. Call it under the lock.
    pub(super) fn list(&self, target: &KnownTarget) -> Result<(), Error> {
        let file = target.file_name();
        // A damaged entry is overwritten: it protects nothing.
        let is_listed =
            read_target(&self.targets, &file).is_ok_and(|known| known.is_some_and(|known| known.is_as(target)));
        if is_listed { Ok(()) } else { Ok(self.targets.replace(&file, &target.encode())?) }
    }
}

/// Checks a caller's name, which may contain a slash; the parser checked a bundle's.
fn check_name(name: &str) -> Result<(), Error> {
    if is_bundle_name(name) { Ok(()) } else { Err(Error::Usage(format!("{name:?} is not a bundle's name"))) }
}

fn read(of: Of, folder: &StateDir, name: &str) -> Result<Floors, Error> {
    let damaged = |problem| Error::Floor { path: folder.path().join(name), name: name.to_owned(), problem };
    match folder.read(name) {
        Ok(None) => Ok(Floors::default()),
        Ok(Some(text)) => records::parse(of, name, &text).map(Floors::new).map_err(damaged),
        Err(Error::State { problem, .. }) => Err(damaged(problem)),
        Err(error) => Err(error),
    }
}

fn read_target(folder: &StateDir, name: &str) -> Result<Option<KnownTarget>, Error> {
    let Some(text) = folder.read(name)? else { return Ok(None) };
    let known = KnownTarget::parse(&text).map(Some);
    known.map_err(|problem| Error::State { path: folder.path().join(name), problem })
}

/// Forgets the floor of `name` (`trust reset NAME`), and returns it; `None` if there was none.
///
/// # Errors
/// Returns an error if the state's location is unknown, or if it cannot be written.
pub fn reset_floor(options: &TrustOptions, name: &str) -> Result<Option<Floors>, Error> {
    DeviceState::of_this_process(options)?.reset_floor(name)
}
