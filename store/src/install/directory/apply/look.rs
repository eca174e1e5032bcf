//! What is in the places that an update changes, and whether it can change them.

use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use rustix::fs::{FileType, Mode, OFlags, Statx};
use rustix::io::Errno;
use sealift_format::num::at;
use sealift_format::{Directory, Row};

use super::super::census::Census;
use super::super::changes::Depth;
use super::super::plan::PlannedName;
use super::super::recheck::stat_of;
use super::{BATCH, Update};
use crate::Error;
use crate::directory::target::TargetWalk;
use crate::fs::confined::{known_type, names_in, open_on_same_device};
use crate::threads::parallel::for_each_with;

/// What was seen in a directory.
#[derive(Default)]
struct Seen {
    /// Names to remove.
    extras: Vec<Vec<u8>>,
    /// Directories that occupy the places of files.
    displaced: Vec<Vec<u8>>,
    /// What else occupies the places of entries that are rebuilt.
    present: Census,
    /// Paths that stay because of what is mounted there.
    mounted: Vec<Vec<u8>>,
    /// Whether everything that stays is present, each name with its expected kind of file.
    has_all: bool,
}

impl Update<'_> {
    /// Examines the directories that stay, and lists what `--delete` removes in them. Returns whether everything that stays is present, each name
    /// with its expected kind of file. If the tree `was_compared` with its record, directories whose contents are as expected are skipped.
    ///
    /// # Errors
    /// Returns an error if a name that is to be replaced or removed cannot be, such as one under a mount.
    pub(in crate::install::directory) fn look(&mut self, prefix: &[u8], was_compared: bool) -> Result<bool, Error> {
        let whole = prefix.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).count();
        let directories = self.selection.directories.iter().copied();
        let stay: Vec<Row<Directory>> = directories
            .filter(|number| !self.is_new(*number) && (!was_compared || !self.is_settled(*number)))
            .collect();
        let stays = self.entries_that_stay(&stay);
        let batches: Vec<&[Row<Directory>]> = stay.chunks(BATCH).collect();
        let (is_whole, all) =
            (AtomicBool::new(true), Mutex::new((Vec::new(), Vec::new(), Census::default(), Vec::new())));
        for_each_with(self.jobs, &batches, TargetWalk::default, |walk, batch| {
            for &directory in *batch {
                self.progress.check()?;
                let deletes = self.may_delete && at(self.target.index.directory(directory).depth) >= whole;
                let seen = self.look_at(walk, directory, &stays, deletes)?;
                is_whole.fetch_and(seen.has_all, Ordering::Relaxed);
                let mut all = all.lock();
                all.0.extend(seen.extras.into_iter().map(|name| (directory, name)));
                all.1.extend(seen.displaced.into_iter().map(|name| (directory, name)));
                all.2 = all.2.plus(seen.present);
                all.3.extend(seen.mounted);
            }
            Ok(())
        })?;
        (self.extras, self.displaced, self.present, self.mounted) = all.into_inner();
        self.extras.sort_unstable();
        self.extras.iter().for_each(|(directory, _)| self.changes.touch(*directory));
        Ok(is_whole.into_inner())
    }

    /// Returns whether nothing is created or removed in a directory, according to the comparison.
    fn is_settled(&self, directory: Row<Directory>) -> bool {
        let changes = &self.changes;
        changes.directories.get(&directory) != Some(&Depth::All)
            && (!self.may_delete || changes.exact.contains(&directory))
    }

    /// Returns for each entry of the index whether it is wanted and already present.
    fn entries_that_stay(&self, directories: &[Row<Directory>]) -> Vec<bool> {
        let mut stays = vec![false; self.target.index.entries().len()];
        let directories = directories.iter().filter_map(|number| self.place_of(*number)).map(|place| place.entry);
        for entry in self.selection.entries().chain(directories).filter(|entry| !self.may_be_missing(*entry)) {
            stays[entry.at()] = true;
        }
        stays
    }

    /// Examines the names in a directory; `deletes` says whether the update removes what the wanted tree does not have.
    fn look_at(
        &self,
        walk: &mut TargetWalk,
        directory: Row<Directory>,
        stays: &[bool],
        deletes: bool,
    ) -> Result<Seen, Error> {
        let target = &self.target;
        let failed = target.failed("read", directory, b"");
        let here = match walk.go(target, directory) {
            Ok(here) => here,
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => return Ok(Seen::default()),
            Err(Errno::XDEV) => return self.look_under_mount(directory),
            Err(error) => return Err(failed(error)),
        };
        let row = target.index.directory(directory);
        // Such a directory is known to hold only wanted names.
        let is_known = self.changes.exact.contains(&directory);
        let names = if is_known { self.in_the_way(here, row) } else { names_in(here) };
        let names = match names {
            // A non-root user may be unable to list it; this matters only for deletions.
            Err(Errno::ACCESS) if !self.may_delete => return Ok(Seen { has_all: true, ..Seen::default() }),
            names => names.map_err(failed)?,
        };
        let (mut seen, mut found) = (Seen::default(), 0);
        for (name, listed) in names {
            match target.index.find_entry(row, &name) {
                None if target
                    .leaves_alone(directory, &name, || known_type(here, &name, listed))
                    .map_err(target.failed("look at", directory, &name))? => {}
                None if self.finishes
                    && self.needed.has(here, &name).map_err(target.failed("look at", directory, &name))? => {}
                None if deletes
                    && target.holds_mount(here, &name).map_err(target.failed("read", directory, &name))? =>
                {
                    seen.mounted.push(self.path_of(directory, &name));
                }
                None if deletes => {
                    target.check_free(directory, here, &name)?;
                    self.check_needed(directory, here, &name)?;
                    seen.extras.push(name);
                }
                Some((number, entry)) if stays[number.at()] => {
                    let mode = target.index.attributes(target.index.inode(entry.inode)).mode;
                    let kind = known_type(here, &name, listed).map_err(target.failed("look at", directory, &name))?;
                    found += usize::from(kind == FileType::from_raw_mode(mode.into()));
                }
                Some((number, entry)) if self.may_be_missing(number) => {
                    target.check_free(directory, here, &name)?;
                    let kind = known_type(here, &name, listed).map_err(target.failed("look at", directory, &name))?;
                    let mode = target.index.attributes(target.index.inode(entry.inode)).mode;
                    match kind {
                        FileType::Directory if FileType::from_raw_mode(mode.into()) != FileType::Directory => {
                            target.check_movable(directory, here, &name)?;
                            self.check_needed(directory, here, &name)?;
                            seen.displaced.push(name);
                        }
                        kind => seen.present.add(kind),
                    }
                }
                _ => {}
            }
        }
        if !seen.extras.is_empty() || row.entries().any(|entry| self.may_be_missing(entry)) {
            target.check_free(directory, here, b"")?;
        }
        seen.has_all = is_known || found == row.entries().filter(|entry| stays[entry.at()]).count();
        Ok(seen)
    }

    /// Checks that nothing changes in a directory that a mount hides.
    fn look_under_mount(&self, directory: Row<Directory>) -> Result<Seen, Error> {
        let mut entries = self.target.index.directory(directory).entries();
        let shrinks = self.may_delete && self.changes.shrinking.contains(&directory);
        if shrinks || entries.any(|entry| self.may_be_missing(entry)) {
            return Err(self.target.is_mounted(directory));
        }
        let mounted = vec![self.target.index.directory_path(directory)];
        Ok(Seen { has_all: true, mounted, ..Seen::default() })
    }

    /// Checks that no metadata changes of files that a mount hides.
    fn check_metadata(&self) -> Result<(), Error> {
        let (target, mut walk) = (&self.target, TargetWalk::default());
        for places in self.changes.metadata.chunk_by(|a, b| a.directory == b.directory) {
            let Some(PlannedName { directory, .. }) = places.first() else { continue };
            let here = match walk.go(target, *directory) {
                Err(Errno::XDEV) => return Err(target.is_mounted(*directory)),
                Err(_) => continue, // it is found where it is set
                Ok(here) => here,
            };
            if target.may_hold_mounts() {
                for place in places {
                    target.check_free(*directory, here, target.index.name(target.index.entry(place.entry)))?;
                }
            }
        }
        Ok(())
    }

    /// Checks that what is changed in place belongs to this user, who could not change it otherwise, unless this process may change anything.
    fn check_owners(&self) -> Result<(), Error> {
        if self.privilege.may_change_all() {
            return Ok(());
        }
        let (target, mut walk) = (&self.target, TargetWalk::default());
        let changed = self.selection.directories.iter().filter(|number| self.changes.directories.contains_key(number));
        for &directory in changed.filter(|number| !self.is_new(**number)) {
            match walk.go(target, directory).and_then(|here| stat_of(here, b"")) {
                // A mount hides it, or it makes way for a new one.
                Err(Errno::XDEV | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                found => self.check_owner(&found.map_err(target.failed("look at", directory, b""))?, directory, b"")?,
            }
        }
        for place in &self.changes.metadata {
            let name = target.index.name(target.index.entry(place.entry));
            match walk.go(target, place.directory).and_then(|here| stat_of(here, name)) {
                Err(Errno::NOENT) => {}
                found => {
                    let found = found.map_err(target.failed("look at", place.directory, name))?;
                    self.check_owner(&found, place.directory, name)?;
                }
            }
        }
        Ok(())
    }

    fn check_owner(&self, found: &Statx, directory: Row<Directory>, name: &[u8]) -> Result<(), Error> {
        if self.privilege.may_change(found.stx_uid) {
            return Ok(());
        }
        let problem = format!("belongs to user {}, and the update has to change it", found.stx_uid);
        Err(Error::unexpected(self.target.path_of(&self.path_of(directory, name)), problem))
    }

    /// Checks that names can be created and removed in the directories that stay.
    fn check_writable(&self) -> Result<(), Error> {
        if self.privilege.overrides_modes() {
            return Ok(());
        }
        let (target, mut walk) = (&self.target, TargetWalk::default());
        let parents = self.made.iter().filter_map(|number| target.index.directory(*number).parent);
        let removed = self.extras.iter().chain(&self.displaced).map(|(directory, _)| *directory);
        let built = self.built().into_iter().map(|(directory, _)| directory);
        let mut changed: Vec<_> = built.chain(parents).chain(removed).filter(|number| !self.is_new(*number)).collect();
        changed.sort_unstable();
        changed.dedup();
        for directory in changed {
            let failed = target.failed("open", directory, b"");
            let here = match walk.go(target, directory) {
                // A mount hides it, or it makes way for a new one.
                Err(Errno::XDEV | Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
                here => here.map_err(&failed)?,
            };
            if !self.privilege.may_write_in(here).map_err(&failed)? {
                let problem = "is not writable for this process, and the update has to change what is in it";
                return Err(Error::unexpected(target.path_in(directory, b""), problem));
            }
        }
        Ok(())
    }

    pub(super) fn check_needed(
        &self,
        directory: Row<Directory>,
        here: BorrowedFd<'_>,
        name: &[u8],
    ) -> Result<(), Error> {
        self.needed.check(here, name, || self.target.path_in(directory, name))
    }

    /// Returns the existing names in a directory, with their types, that will be replaced by what is built.
    fn in_the_way(&self, here: BorrowedFd<'_>, row: &Directory) -> Result<Vec<(Vec<u8>, FileType)>, Errno> {
        let index = self.target.index;
        let names =
            row.entries().filter(|entry| self.may_be_missing(*entry)).map(|entry| index.name(index.entry(entry)));
        let names = names.map(|name| Ok((name.to_vec(), seen_type(here, name)?)));
        names.filter(|found| !matches!(found, Ok((_, FileType::Unknown)))).collect()
    }

    /// Checks whether what was built can take its places in the target. Nothing is changed.
    ///
    /// # Errors
    /// Returns an error if a non-empty directory would have to be replaced, a file that a mount hides, or the metadata of what another user owns.
    pub(in crate::install::directory) fn fits(&self) -> Result<(), Error> {
        self.check_metadata()?;
        self.check_owners()?;
        self.check_writable()?;
        let target = &self.target;
        let mut walk = TargetWalk::default();
        for (directory, entry) in self.built() {
            if self.is_new(directory) || self.may_delete {
                continue;
            }
            let name = target.index.name(target.index.entry(entry));
            let at = walk.go(target, directory).map_err(target.failed("open", directory, b""))?;
            let kind = seen_type(at, name).map_err(target.failed("look at", directory, name))?;
            if kind == FileType::Directory
                && open_on_same_device(at, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())
                    .and_then(|directory| names_in(directory.as_fd()))
                    .is_ok_and(|names| !names.is_empty())
            {
                let path = target.path_of(&target.index.path(directory, entry));
                return Err(Error::DirectoryInPlace { path });
            }
        }
        Ok(())
    }
}

/// Returns the type of a name; [`FileType::Unknown`] if nothing is there, or if this user, who is not root, may not look into the directory yet.
fn seen_type(directory: BorrowedFd<'_>, name: &[u8]) -> Result<FileType, Errno> {
    match known_type(directory, name, FileType::Unknown) {
        Err(Errno::ACCESS) => Ok(FileType::Unknown),
        found => found,
    }
}
