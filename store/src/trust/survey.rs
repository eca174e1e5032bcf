//! What is known of a target: its record, the device's list of targets, what a run does beside it or left there, and what is in its place. Every verb
//! asks for these four together, so that none of them says what another denies.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use sealift_format::{Head, Limits};

use super::{DeviceState, KnownTarget, TargetId, TargetKind};
use crate::directory::{TreeRecord, kept_head, state};
use crate::error::RecordFault;
use crate::fs::LeftRun;
use crate::fs::confined::{known_type, names_in, open_beneath, open_user_dir};
use crate::install_record::{HEAD, InstallRecord, Kept, Records, damage_of};
use crate::ostree::look_for_stages;
use crate::slot::{Slot, SlotFolder};
use crate::{Error, Site};

/// What is known of a target: a directory, a slot, or what a repository or store has of one bundle's name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Survey {
    kind: TargetKind,
    path: PathBuf,
    /// The place of the head in the record, for messages.
    pub head_path: PathBuf,
    /// The head in the record, even if that belongs to another directory.
    pub head: Option<Head>,
    /// Why the record does not show what the target holds; `None` if it does.
    pub fault: Option<RecordFault>,
    /// What this device last installed there, or began to install, according to its list of targets.
    pub listed: Option<KnownTarget>,
    /// What a run does there, or left.
    pub run: Option<LeftRun>,
    /// The head that an interrupted update brings.
    pub next: Option<Head>,
    /// Whether there is anything that could be lost: files in a directory, refs in a repository, images in a store.
    pub is_filled: bool,
}

/// Where a repository and a store have their records, their stages, and what names their content.
struct Layout {
    records: &'static str,
    stages: &'static str,
    names: &'static str,
}

impl TargetKind {
    /// Returns the folder of a repository or store in which imports have their stages.
    pub(crate) fn stages(self) -> Option<&'static str> {
        self.layout().map(|layout| layout.stages)
    }

    fn layout(self) -> Option<Layout> {
        match self {
            Self::Directory | Self::Slot => None,
            Self::Ostree => Some(Layout { records: Records::OSTREE, stages: "tmp", names: "refs" }),
            Self::Composefs => Some(Layout { records: Records::COMPOSEFS, stages: "sealift/tmp", names: "images" }),
        }
    }
}

impl Survey {
    /// Examines the directory at a site; `state` is the device's, if its place is known. Head and owner of the record are read, but not its index.
    ///
    /// # Errors
    /// Returns an error if something cannot be read, or belongs to another user.
    pub fn of_directory(site: &Site, state: Option<&DeviceState>) -> Result<Self, Error> {
        let listed = state.map_or(Ok(None), |state| state.taken_at(site))?;
        let mut survey = Self {
            kind: TargetKind::Directory,
            path: site.path().to_owned(),
            head_path: site.record_path().join(HEAD),
            head: None,
            fault: None,
            listed,
            run: site.run()?,
            next: None,
            is_filled: site.is_nonempty_dir()?,
        };
        if survey.run == Some(LeftRun::HalfUpdated) {
            // A damaged one is handled by whoever completes the update.
            survey.next = site.next_record()?.and_then(|dir| InstallRecord::read_head(&dir, Limits::NONE).ok());
        }
        survey.fault = survey.read_record(site)?;
        Ok(survey)
    }

    fn read_record(&mut self, site: &Site) -> Result<Option<RecordFault>, Error> {
        let missing = RecordFault::Missing { listed: self.listed() };
        if site.root().is_none() {
            return Ok(Some(missing));
        }
        let read = || Ok((kept_head(site)?, state::kept_record(site)?));
        match read() {
            Ok((Some(head), Some(record))) => {
                self.head = Some(head);
                Ok((record.inode != site.inode_id()?.1).then_some(RecordFault::OfAnother))
            }
            Ok(_) => Ok(Some(missing)),
            Err(error) => damage_of(error, &site.record_path()).map(Some),
        }
    }

    /// Reads the whole record of the directory at `site`, to find out whether it is sound.
    pub fn read_whole(&mut self, site: &Site) -> Result<(), Error> {
        if self.fault.is_none()
            && let Err(error) = TreeRecord::of(site, Limits::NONE)
        {
            self.fault = Some(damage_of(error, &site.record_path())?);
        }
        Ok(())
    }

    /// Examines a slot. Its record is read whole.
    ///
    /// # Errors
    /// Returns an error if the slot or the state cannot be read, or if another user could change the state.
    pub fn of_slot(slot: &Slot, state: &DeviceState) -> Result<Self, Error> {
        let place = TargetId::of_slot(slot);
        let mut survey = Self {
            kind: TargetKind::Slot,
            path: slot.shown().to_owned(),
            head_path: PathBuf::new(),
            head: None,
            fault: None,
            listed: state.listed_at(&place, "")?,
            run: None,
            next: None,
            is_filled: false,
        };
        let folder = SlotFolder::open(state.dir(), slot)?;
        if let Some(folder) = &folder {
            survey.run = folder.run()?;
            survey.next = folder.next()?;
            survey.head_path = folder.head_path();
        }
        match folder.map_or(Ok(None), |folder| folder.held()) {
            Ok(Some(record)) => {
                survey.fault = slot.fault_of(record.image.device.as_deref());
                survey.head = Some(record.installed.head);
            }
            Ok(None) => survey.fault = Some(RecordFault::Missing { listed: survey.listed() }),
            Err(error) => survey.fault = Some(damage_of(error, &survey.head_path)?),
        }
        if survey.fault.is_some() && survey.run.is_none() {
            let found = slot.found().map_err(|error| Error::io("read", slot.shown(), error))?;
            survey.is_filled = found.is_some();
            if let (Some(RecordFault::Missing { listed: None }), Some(found)) = (&survey.fault, found) {
                survey.fault = Some(RecordFault::Filled(found));
            }
        }
        Ok(survey)
    }

    /// Examines a repository or store, for one name, or each of which it has a record or which the list has there. Returns `None` if there is nothing.
    ///
    /// # Errors
    /// Returns an error if something cannot be read, or belongs to another user.
    pub fn of_store(
        kind: TargetKind,
        path: &Path,
        name: Option<&str>,
        state: Option<&DeviceState>,
    ) -> Result<Option<Vec<(String, Self)>>, Error> {
        let Some(layout) = kind.layout() else { return Ok(None) };
        let root = match open_user_dir(path) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            root => root.map_err(|error| Error::io("open", path, error))?,
        };
        let mut names = match name {
            Some(name) => vec![name.to_owned()],
            None => Records::new(root.as_fd(), path, layout.records).names()?,
        };
        if let (None, Some(state)) = (name, state) {
            let (listed, place) = (state.targets()?, TargetId::of_store(kind, path)?);
            let there = listed.into_iter().flatten().filter(|known| known.place.has_path_of(&place));
            names.extend(there.map(|known| known.name));
        }
        names.sort();
        names.dedup();
        let records = Records::new(root.as_fd(), path, layout.records);
        let survey = |name: String| {
            let survey = Self::of_name(kind, root.as_fd(), path, &name, state)?;
            let survey = survey.with(&records.look(&name, |_, record| Ok(record))?);
            Ok((name, survey))
        };
        names.into_iter().map(survey).collect::<Result<_, _>>().map(Some)
    }

    /// Examines what the open repository or store has of a name.
    pub(crate) fn of_name(
        kind: TargetKind,
        root: BorrowedFd<'_>,
        path: &Path,
        name: &str,
        state: Option<&DeviceState>,
    ) -> Result<Self, Error> {
        let place = TargetId::of_store(kind, path)?;
        let listed = state.map_or(Ok(None), |state| state.listed_at(&place, name))?;
        let failed = |error| Error::io("read", path, error);
        let mut survey = Self {
            kind,
            path: kind.argument(path),
            head_path: PathBuf::new(),
            head: None,
            fault: None,
            listed,
            run: None,
            next: None,
            is_filled: false,
        };
        let Some(layout) = kind.layout() else { return Ok(survey) };
        survey.run = look_for_stages(root, layout.stages).map_err(failed)?;
        survey.is_filled = has_files(root, layout.names).map_err(failed)?;
        let records = Records::new(root, path, layout.records);
        survey.run = LeftRun::or_mixed(survey.run, records.open(name)?.as_ref());
        survey.head_path = records.head_path(name);
        match records.look_at_head(name)? {
            Kept::None => survey.fault = Some(RecordFault::Missing { listed: survey.listed() }),
            Kept::Damaged(fault) => survey.fault = Some(fault),
            Kept::Whole(head) => survey.head = Some(head),
        }
        Ok(survey)
    }

    /// Notes that a part of the record is damaged which [`Survey::of_name`] does not read.
    pub(crate) fn with<T>(mut self, record: &Kept<T>) -> Self {
        if let (Kept::Damaged(fault), None) = (record, &self.fault) {
            self.fault = Some(fault.clone());
        }
        self
    }

    /// Returns what the list says that the target holds.
    fn held(&self) -> Option<&KnownTarget> {
        self.listed.as_ref().filter(|known| !known.is_begun)
    }

    /// Returns name and version of what the list says that the target holds.
    fn listed(&self) -> Option<(String, u64)> {
        self.held().map(|known| (known.name.clone(), known.version))
    }

    /// Returns why the target may only be taken over on request; `None` if it is new, or shown to be this program's.
    #[must_use]
    pub fn needs_consent(&self) -> Option<&RecordFault> {
        let fault = self.fault.as_ref()?;
        let is_store = matches!(self.kind, TargetKind::Ostree | TargetKind::Composefs);
        let needs = match fault {
            // While an update replaces the record, there is none beside the target for a moment: it is in the stage.
            _ if self.run == Some(LeftRun::HalfUpdated) => false,
            // The first bundle of its name, or the rest of an interrupted import of it.
            RecordFault::Missing { listed } if is_store => listed.is_some() && self.run.is_none() && self.is_filled,
            RecordFault::Damaged { .. } if is_store => true,
            _ => self.is_filled,
        };
        needs.then_some(fault)
    }

    /// Refuses a target that is not shown to be this program's, unless it is to be taken over. Returns the reason for which that is needed.
    ///
    /// # Errors
    /// Returns [`Error::NotOurs`].
    pub(crate) fn claim(&self, adopt: bool) -> Result<Option<RecordFault>, Error> {
        match self.needs_consent() {
            Some(why) if !adopt => Err(Error::NotOurs { target: self.path.clone(), why: Box::new(why.clone()) }),
            why => Ok(why.cloned()),
        }
    }

    /// Returns the version that this device installed there, if the target has gone back to an older one of the same name together with its record:
    /// a bundle that the device installs is listed.
    #[must_use]
    pub fn gone_back_from(&self) -> Option<u64> {
        let (head, listed) = (self.head.as_ref()?, self.held()?);
        let identity = &head.root().identity;
        (listed.name == identity.name && listed.version > identity.version).then_some(listed.version)
    }
}

/// Returns whether there is a file below a directory of a repository or store.
fn has_files(root: BorrowedFd<'_>, below: &str) -> Result<bool, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut pending = vec![below.as_bytes().to_vec()];
    while let Some(path) = pending.pop() {
        let directory = match open_beneath(root, &path, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR) => continue,
            opened => opened?,
        };
        for (name, listed) in names_in(directory.as_fd())? {
            if known_type(directory.as_fd(), &name, listed)? != FileType::Directory {
                return Ok(true);
            }
            pending.push([&path[..], b"/", &name].concat());
        }
    }
    Ok(false)
}
