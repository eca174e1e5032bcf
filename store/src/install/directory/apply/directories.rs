//! The new directories of an update: which of them are made, and how they come to their places.

use std::collections::{HashMap, HashSet};
use std::ffi::CString;
use std::os::fd::{AsFd as _, BorrowedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, Statx, fchmod, fstat, futimens, mkdirat, statat};
use rustix::io::Errno;
use sealift_format::{Directory, Entry, InodeKind, Row};

use super::super::changes::Depth;
use super::super::metadata::times;
use super::super::recheck::{Recheck, stat_of};
use super::{Update, take_away};
use crate::directory::stage::TreeStage;
use crate::directory::target::TargetWalk;
use crate::fs::Unset;
use crate::fs::confined::{known_type, names_in, open_name, open_on_same_device, open_own, open_within};
use crate::fs::rename::{moves_no_directory, rename_new};
use crate::{Error, InodeId, OwnDir, inode_id};

/// Makes a directory where it will be. While it is empty, and its user's alone, nothing is given away with another one that takes its name.
fn make_empty(at: BorrowedFd<'_>, name: &[u8]) -> Result<Stat, Errno> {
    mkdirat(at, name, Mode::RWXU)?;
    let made = open_on_same_device(at, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    if names_in(made.as_fd())?.is_empty() { fstat(&made) } else { Err(Errno::NOTEMPTY) }
}

impl Update<'_> {
    /// Moves new directories into the target, and returns their identities.
    pub(super) fn place_directories(
        &self,
        stage: &TreeStage,
        walk: &mut TargetWalk,
    ) -> Result<HashMap<Row<Directory>, InodeId>, Error> {
        let (index, mut placed) = (self.target.index, HashMap::new());
        let Some(from) = stage.directories()? else { return Ok(placed) };
        let displaced: HashSet<(Row<Directory>, &[u8])> =
            self.displaced.iter().map(|(parent, name)| (*parent, &**name)).collect();
        for &number in &self.made {
            let row = index.directory(number);
            let Some(parent) = row.parent else { continue };
            let name = index.name(index.entry(row.entry));
            let failed = self.target.failed("create", parent, name);
            let at = walk.go(&self.target, parent).map_err(&failed)?;
            self.open_up(at).map_err(&failed)?;
            let source = number.to_string();
            let made = match statat(from.fd(), &*source, AtFlags::SYMLINK_NOFOLLOW) {
                // A killed run moved it.
                Err(Errno::NOENT) => continue,
                made => made.map_err(&failed)?,
            };
            let place = || match rename_new(from.fd(), &source, at, name) {
                Err(error) if moves_no_directory(error) => make_empty(at, name),
                moved => moved.map(|()| made),
            };
            let made = match place() {
                Err(Errno::EXIST | Errno::NOTDIR | Errno::NOTEMPTY) => {
                    let is_directory = known_type(at, name, FileType::Unknown).map_err(&failed)? == FileType::Directory;
                    if is_directory && !displaced.contains(&(parent, name)) {
                        // It came since this was examined. It stays, with the rights that it has.
                        continue;
                    }
                    take_away(stage, at, name).and_then(|()| place())
                }
                made => made,
            };
            let made = made.map_err(&failed)?;
            placed.insert(number, (made.st_dev, made.st_ino));
        }
        Ok(placed)
    }

    /// Sets the metadata of directories, from the deepest up: a parent may end up read-only.
    pub(super) fn finish_directories(
        &self,
        walk: &mut TargetWalk,
        placed: &HashMap<Row<Directory>, InodeId>,
    ) -> Result<(), Error> {
        let index = self.target.index;
        for number in self.directories_of(Depth::All).rev() {
            let row = index.directory(number);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let opened = match row.parent {
                None => open_within(self.target.root(), b".", flags, Mode::empty()).map(|at| (at, true)),
                Some(parent) => walk.go_seeing(&self.target, parent).and_then(|(at, is_safe)| {
                    let name = index.name(index.entry(row.entry));
                    open_own(flags, |flags| open_on_same_device(at, name, flags, Mode::empty())).map(|at| (at, is_safe))
                }),
            };
            let set = opened
                .map_err(Unset::Call)
                .and_then(|(at, is_safe)| self.finish_directory(number, at.as_fd(), is_safe, placed));
            self.pass_over_unlike(set, number, b"")?;
        }
        Ok(())
    }

    /// Sets the metadata of a directory, unless it only lacks its time, or is not ours to give rights to.
    fn finish_directory(
        &self,
        number: Row<Directory>,
        at: BorrowedFd<'_>,
        is_safe: bool,
        placed: &HashMap<Row<Directory>, InodeId>,
    ) -> Result<(), Unset> {
        let index = self.target.index;
        let (row, inode) = (index.directory(number), index.inode(index.directory(number).inode));
        let attributes = index.attributes(inode);
        let found = stat_of(at, b".")?;
        if self.privilege.is_as_set(&found, &self.xattrs.read(at)?, attributes) {
            self.finished.lock().insert(number, found.stx_ino);
            return self.privilege.set_time(futimens(at, &times(inode)));
        }
        let is_ours = row.parent.is_none()
            || placed.get(&number).is_some_and(|placed| inode_id(at).is_ok_and(|id| id == *placed))
            || self.recorded.may_give(number, &found, is_safe);
        if is_ours {
            self.finished.lock().insert(number, found.stx_ino);
            return self.privilege.apply_again(at, attributes, inode);
        }
        self.unlike.lock().get_or_insert_with(|| self.stranger(number, (&found).into()));
        Ok(())
    }

    /// Returns whether this inode is the directory of that number, as made or set by this run, or as recorded before.
    pub(in crate::install::directory) fn is_own_directory(&self, number: Row<Directory>, inode: u64) -> bool {
        self.finished.lock().get(&number) == Some(&inode) || self.recorded.is_known(number, inode)
    }

    /// Returns the error for a directory that is not the installed one.
    fn stranger(&self, number: Row<Directory>, Rights { owner, mode }: Rights) -> Error {
        let path = self.target.path_of(&self.target.index.directory_path(number));
        Error::OtherDirectory { path, owner, mode }
    }

    /// Returns the directories that would get other rights, and are not those that were installed: they are made anew. Those that the `recheck` found
    /// as recorded, owner included, are not looked at again.
    pub(in crate::install::directory) fn strangers(&self, recheck: &Recheck) -> Result<Vec<Row<Directory>>, Error> {
        let (mut strangers, mut walk) = (Vec::new(), TargetWalk::default());
        let is_recorded = |number: &Row<Directory>| {
            let entry = self.place_of(*number).and_then(|place| self.changes.installed(place.entry));
            let found = entry.and_then(|entry| recheck.stat(entry));
            self.recorded.has_owners() && found.is_some_and(|found| self.recorded.is_known(*number, found.inode))
        };
        let stays = |number: &Row<Directory>| !self.is_new(*number) && !is_recorded(number);
        for number in self.directories_of(Depth::All).filter(stays) {
            if let Occupant::Stranger(_) = self.occupant(&mut walk, number)? {
                strangers.push(number);
            }
        }
        Ok(strangers)
    }

    /// Decides which new directories are made. A directory that already has the name of a new one stays if it needs no other rights, or may be given
    /// them; otherwise it makes way with what it holds, which must be known to the bundle unless the update deletes everything else. Returns the
    /// error for the first that neither stays nor makes way.
    pub(in crate::install::directory) fn settle(&mut self) -> Result<Option<Error>, Error> {
        let (mut stays, mut walk, mut refused) = (HashSet::new(), TargetWalk::default(), None);
        let wanted: HashSet<Row<Entry>> = self.selection.entries().collect();
        for number in self.changes.new_directories.clone() {
            let Some(parent) = self.target.index.directory(number).parent else { continue };
            let is_there = !self.is_new(parent) || stays.contains(&parent);
            let occupant = if is_there { self.occupant(&mut walk, number)? } else { Occupant::Nothing };
            match occupant {
                Occupant::Nothing => self.made.push(number),
                Occupant::Right => _ = stays.insert(number),
                Occupant::Stranger(found) if !self.may_delete && self.holds_others(&mut walk, number, &wanted) => {
                    refused.get_or_insert_with(|| self.stranger(number, found));
                    stays.insert(number);
                }
                Occupant::Stranger(_) => {
                    let index = self.target.index;
                    let name = index.name(index.entry(index.directory(number).entry)).to_vec();
                    let here = walk.go(&self.target, parent).map_err(self.target.failed("look at", parent, &name))?;
                    self.target.check_free(parent, here, &name)?;
                    self.target.check_movable(parent, here, &name)?;
                    self.check_needed(parent, here, &name)?;
                    self.displaced.push((parent, name));
                    self.made.push(number);
                }
            }
        }
        Ok(refused)
    }

    /// Returns what is in the place of a directory.
    fn occupant(&self, walk: &mut TargetWalk, number: Row<Directory>) -> Result<Occupant, Error> {
        let index = self.target.index;
        let row = index.directory(number);
        let Some(parent) = row.parent else { return Ok(Occupant::Right) };
        let name = index.name(index.entry(row.entry));
        let mut look = || {
            let (here, is_safe) = walk.go_seeing(&self.target, parent)?;
            let found = stat_of(here, name)?;
            if FileType::from_raw_mode(found.stx_mode.into()) != FileType::Directory {
                return Ok(Occupant::Nothing);
            }
            if self.target.is_elsewhere(&found) {
                return Ok(Occupant::Right);
            }
            let name = CString::new(name).map_err(|_| Errno::INVAL)?;
            let xattrs = self.xattrs.read_link(here, &name)?;
            let is_right = self.privilege.is_as_set(&found, &xattrs, index.attributes(index.inode(row.inode)));
            let stays = is_right || self.recorded.may_give(number, &found, is_safe);
            Ok(if stays { Occupant::Right } else { Occupant::Stranger((&found).into()) })
        };
        match look() {
            Err(Errno::NOENT | Errno::LOOP | Errno::NOTDIR) => Ok(Occupant::Nothing),
            // A mount hides it, and stays as it is.
            Err(Errno::XDEV) => Ok(Occupant::Right),
            // A non-root user cannot change it either.
            Err(Errno::ACCESS) if !self.privilege.overrides_modes() => Ok(Occupant::Right),
            found => found.map_err(self.target.failed("look at", parent, name)),
        }
    }

    /// Returns whether a directory holds anything that the bundle does not bring.
    fn holds_others(&self, walk: &mut TargetWalk, number: Row<Directory>, wanted: &HashSet<Row<Entry>>) -> bool {
        let index = self.target.index;
        let names = walk.go(&self.target, number).and_then(|at| {
            let names = names_in(at)?.into_iter();
            names.map(|(name, listed)| Ok((known_type(at, &name, listed)?, name))).collect::<Result<Vec<_>, Errno>>()
        });
        let Ok(names) = names else { return true };
        names.into_iter().any(|(kind, name)| {
            let Some((entry, row)) = index.find_entry(index.directory(number), &name) else { return true };
            match index.inode(row.inode).kind {
                InodeKind::Directory(below) if kind == FileType::Directory => self.holds_others(walk, below, wanted),
                _ => kind == FileType::Directory || !wanted.contains(&entry),
            }
        })
    }

    /// Makes the new directories in the stage, with their rights: only they and what the record names get any.
    pub(in crate::install::directory) fn stage_directories(&self, folder: &OwnDir) -> Result<(), Error> {
        let index = self.target.index;
        for &number in &self.made {
            let failed = self.target.failed("create", number, b"");
            let (name, inode) = (number.to_string(), index.inode(index.directory(number).inode));
            match mkdirat(folder.fd(), &*name, Mode::RWXU) {
                // Left by a killed run, with its rights.
                Err(Errno::EXIST) => continue,
                made => made.map_err(&failed)?,
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY;
            let made = open_name(folder.fd(), name.as_bytes(), flags, Mode::empty()).map_err(&failed)?;
            let attributes = index.attributes(inode);
            self.privilege.apply(made.as_fd(), attributes, inode, Some(Mode::RWXU)).map_err(|unset| {
                let path = self.target.path_of(&index.directory_path(number));
                unset.into_error(&path, folder.fd(), &failed)
            })?;
            if !self.privilege.overrides_modes()
                && let Some(mode) = self.privilege.mode(attributes)
            {
                // Files are moved into it first.
                fchmod(&made, mode | Mode::RWXU).map_err(&failed)?;
            }
        }
        Ok(())
    }
}

/// Owner and permissions that were found.
#[derive(Clone, Copy)]
struct Rights {
    owner: u32,
    mode: u16,
}

impl From<&Statx> for Rights {
    fn from(found: &Statx) -> Self {
        Self { owner: found.stx_uid, mode: found.stx_mode & 0o7777 }
    }
}

/// What is in the place of a directory.
enum Occupant {
    /// Nothing, or something else, which makes way.
    Nothing,
    /// A directory that stays.
    Right,
    /// A directory that may not be given the rights which it lacks.
    Stranger(Rights),
}
