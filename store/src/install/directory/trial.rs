//! Determines what a target will keep of the metadata in an index, before any content is unpacked: by the rights of this process, by the options, and
//! by trying each kind of metadata once on the file system.

use std::collections::HashSet;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, Uid, XattrFlags, fchmod, fchown, fsetxattr, fstat,
    futimens, linkat, makedev, mknodat, openat, symlinkat, unlinkat, utimensat,
};
use rustix::io::Errno;
use rustix::thread::CapabilitySet;
use sealift_format::num;
use sealift_format::{Attributes, Directory, Entry, Index, Inode, InodeKind, Row, XattrRef};
use sealift_verify::escape;
use sealift_verify::trust::Utc;
use serde::{Serialize, Serializer};

use super::plan::Selection;
use crate::Error;
use crate::fs::confined::open_name;
use crate::fs::stat_cache::{FileStat, FileTime};
use crate::fs::unnamed::with_new_name;
use crate::fs::unset::{described, is_too_large, space_of};
use crate::fs::{Aspect, Keeps, Rights, Times, kind_of};
use crate::install::options::TreeOptions;
use crate::xattrs::XattrFilter;

/// An aspect of the metadata that a target does not keep, or not exactly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct NotKept {
    /// The aspect.
    #[serde(serialize_with = "word")]
    pub what: Aspect,
    /// How many files it concerns.
    pub files: u64,
    /// Why.
    pub why: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn word<S: Serializer>(aspect: &Aspect, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(aspect.word())
}

/// What a target will keep.
#[derive(Clone, Debug)]
pub(super) struct Findings {
    pub(super) keeps: Keeps,
    pub(super) not_kept: Vec<NotKept>,
}

/// Where an attribute row occurs.
#[derive(Clone, Copy)]
struct Spot {
    directory: Row<Directory>,
    entry: Option<Row<Entry>>,
}

/// The distinct attributes, each with the number of files that have them, and where one of these is.
type Spots<'s> = [(&'s Attributes, u64, Spot)];

/// What is wanted.
pub(super) struct Wanted<'a> {
    pub(super) target: &'a Path,
    pub(super) index: &'a Index,
    pub(super) selection: &'a Selection,
    pub(super) options: &'a TreeOptions,
    /// What the target has kept so far.
    pub(super) before: Option<Keeps>,
}

/// A file that exists only for the trial.
struct Trial<'a> {
    file: OwnedFd,
    directory: BorrowedFd<'a>,
    /// Its name, if the file system has no unnamed files.
    name: Option<String>,
}

impl Drop for Trial<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = unlinkat(self.directory, &**name, AtFlags::empty());
        }
    }
}

/// Some programs behind it report EIO for what they do not have.
const FUSE: &str = "FUSE";
const PRIVATE: Mode = Mode::from_raw_mode(0o600);
/// Bits of which no file system without permission bits has a look-alike.
const SOME_MODE: u16 = 0o641;
/// A time in the range of every file system, in an odd second: rounding it to any step shows.
const SOME_TIME: FileTime = (1_000_000_001, 999_999_999);
/// The steps in which file systems store times, in nanoseconds.
const STEPS: [u32; 8] = [1, 100, 1_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 2_000_000_000];
/// Attributes of a file that take no more space than this in all ([`space_of`]) fit on every file system that has any.
const SMALL: usize = 512;
/// The capabilities that it takes to set the owner, and then all other metadata.
const OWNERS: CapabilitySet =
    CapabilitySet::CHOWN.union(CapabilitySet::FOWNER).union(CapabilitySet::FSETID).union(CapabilitySet::DAC_OVERRIDE);

impl<'a> Trial<'a> {
    /// Creates the file.
    fn new(directory: BorrowedFd<'a>) -> Result<Self, Errno> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC;
        match openat(directory, ".", flags | OFlags::TMPFILE, PRIVATE) {
            Err(Errno::NOTSUP | Errno::ISDIR | Errno::INVAL | Errno::NOENT) => {}
            opened => return opened.map(|file| Self { file, directory, name: None }),
        }
        let create = |name: &str| open_name(directory, name.as_bytes(), flags | OFlags::CREATE | OFlags::EXCL, PRIVATE);
        let (file, name) = with_new_name(create)?;
        Ok(Self { file, directory, name: Some(name) })
    }

    fn set(&self, xattr: XattrRef<'_>) -> Result<(), Errno> {
        fsetxattr(&self.file, xattr.name, xattr.value, XattrFlags::empty())
    }

    /// Sets an attribute, and looks whether it is there: some file systems accept what they do not store.
    fn keeps(&self, xattr: XattrRef<'_>) -> Result<(), Errno> {
        self.set(xattr)?;
        let mut filter = XattrFilter::default();
        filter.add(xattr.name);
        let is_there = filter.read(self.file.as_fd())?.iter().any(|found| found.name == xattr.name);
        if is_there { Ok(()) } else { Err(Errno::NOTSUP) }
    }

    /// Returns `None` if something is refused.
    fn unless_refused(&self, tried: Result<(), Errno>) -> Result<Option<()>, Errno> {
        match tried {
            Err(error) if has_failed(error, self.directory) => Err(error),
            tried => Ok(tried.ok()),
        }
    }

    fn keeps_modes(&self) -> Result<bool, Errno> {
        if self.unless_refused(fchmod(&self.file, Mode::from_raw_mode(SOME_MODE.into())))?.is_none() {
            return Ok(false);
        }
        let found = fstat(&self.file)?.st_mode & 0o7777;
        fchmod(&self.file, PRIVATE)?;
        Ok(found == u32::from(SOME_MODE))
    }

    fn keeps_owner(&self, (user, group): (u32, u32)) -> Result<bool, Errno> {
        fchown(&self.file, Some(Uid::from_raw(user)), Some(Gid::from_raw(group)))?;
        fstat(&self.file).map(|stat| (stat.st_uid, stat.st_gid) == (user, group))
    }

    /// Sets a time, and returns which is stored then; `None` if it is refused.
    fn stored(&self, (seconds, nanoseconds): FileTime) -> Result<Option<FileTime>, Errno> {
        let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds.into() };
        let set = futimens(&self.file, &Timestamps { last_access: time, last_modification: time });
        match self.unless_refused(set)? {
            Some(()) => Ok(Some(FileStat::from(&fstat(&self.file)?).mtime)),
            None => Ok(None),
        }
    }

    /// Returns how times from `first` to `last` are stored; `None` if that follows no rule.
    fn times(&self, first: FileTime, last: FileTime) -> Result<Option<Times>, Errno> {
        let Some(found) = self.stored(SOME_TIME)? else { return Ok(None) };
        let by = |step: &u32| Times { step: *step, ..Times::EXACT };
        let stepped = STEPS.iter().map(by).find(|times| times.stored(SOME_TIME) == found);
        let Some(mut times) = stepped else { return Ok(None) };
        let (low, high) = ((first.0, 0), (last.0, 0));
        let Some(found) = self.stored(low)? else { return Ok(None) };
        if found != times.stored(low) {
            times.first = found.0;
        }
        let Some(found) = self.stored(high)? else { return Ok(None) };
        if found != times.stored(high) {
            times.last = found.0;
        }
        let ends = [times.first, times.last].into_iter().filter(|end| !matches!(*end, i64::MIN | i64::MAX));
        for sample in ends.map(|end| (end, 0)).chain([low, high, first, last, SOME_TIME]) {
            if self.stored(sample)? != Some(times.stored(sample)) {
                return Ok(None);
            }
        }
        Ok(Some(times))
    }
}

impl Wanted<'_> {
    /// Tries what a file system keeps, in a directory on it. Unless `may_name`, names are used for the trial only on a file system that has no unnamed
    /// files, which may lack other things too; the directory then gets its time back.
    ///
    /// # Errors
    /// Returns an error if a file has more than the file system can hold, or if what the options require cannot be kept.
    pub(super) fn try_in(&self, directory: BorrowedFd<'_>, may_name: bool) -> Result<Findings, Error> {
        let (rights, spots) = (&Rights::of_process(), &self.spots());
        let before = fstat(directory).ok().filter(|_| !may_name);
        let trial = match Trial::new(directory) {
            Ok(trial) => Some(trial),
            Err(error) if may_name => return Err(Error::io("create a file beside", self.target, error)),
            Err(_) => None,
        };
        let may_name = may_name || trial.as_ref().is_some_and(|trial| trial.name.is_some());
        let tried = self.try_with(trial, directory, may_name, rights, spots);
        if let Some(before) = before.filter(|_| may_name) {
            let times = Timestamps {
                last_access: Timespec { tv_sec: before.st_atime, tv_nsec: before.st_atime_nsec.cast_signed() },
                last_modification: Timespec { tv_sec: before.st_mtime, tv_nsec: before.st_mtime_nsec.cast_signed() },
            };
            let _ = utimensat(directory, ".", &times, AtFlags::empty());
        }
        tried
    }

    fn try_with(
        &self,
        trial: Option<Trial<'_>>,
        directory: BorrowedFd<'_>,
        may_name: bool,
        rights: &Rights,
        spots: &Spots<'_>,
    ) -> Result<Findings, Error> {
        let mut findings = Findings { keeps: Keeps::ALL, not_kept: Vec::new() };
        let system = kind_of(directory);
        let failed = |error| Error::io("try what is kept on the file system of", self.target, error);
        if let Some(trial) = &trial {
            if !trial.keeps_modes().map_err(&failed)? {
                let files = num::wide(self.inodes().count());
                findings.lack(Aspect::Modes, files, format!("{system} does not store them"));
            }
            self.times(trial, system, &mut findings).map_err(&failed)?;
            self.xattrs(trial, system, spots, rights, &mut findings);
        }
        let users = self.owners(trial.as_ref(), system, spots, rights).map_err(&failed)?;
        self.decide(Aspect::Owners, self.options.owners, users, spots, &mut findings)?;
        let devices = self.devices(directory, may_name, rights).map_err(&failed)?;
        self.decide(Aspect::Devices, self.options.devices, devices, spots, &mut findings)?;
        drop(trial);
        if may_name {
            self.kinds(directory, system)?;
        }
        self.fit(directory, system, spots, &findings.keeps)?;
        Ok(findings)
    }

    /// Tries each kind of file that not every file system has, and a hard link.
    fn kinds(&self, directory: BorrowedFd<'_>, system: &str) -> Result<(), Error> {
        let (index, selection) = (self.index, self.selection);
        let mut tried: Vec<&str> = Vec::new();
        let others = selection.others.iter().map(|place| {
            let spot = Spot { directory: place.directory, entry: Some(place.entry) };
            (index.inode(index.entry(place.entry).inode).kind, spot)
        });
        for (kind, spot) in others {
            let (what, kind) = match kind {
                InodeKind::Symlink(_) => ("symbolic links", FileType::Symlink),
                InodeKind::Fifo => ("named pipes", FileType::Fifo),
                InodeKind::Socket => ("sockets", FileType::Socket),
                _ => continue,
            };
            if tried.contains(&what) {
                continue;
            }
            tried.push(what);
            let made = try_new(directory, |name| match kind {
                FileType::Symlink => symlinkat("x", directory, name),
                kind => mknodat(directory, name, kind, PRIVATE, 0),
            });
            self.check(made, what, spot, system)?;
        }
        if let Some(link) = selection.links.first() {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            let linked =
                with_new_name(|old| open_name(directory, old.as_bytes(), flags, PRIVATE)).and_then(|(_, old)| {
                    let linked = try_new(directory, |new| linkat(directory, &*old, directory, new, AtFlags::empty()));
                    let _ = unlinkat(directory, &*old, AtFlags::empty());
                    linked
                });
            let spot = Spot { directory: link.directory, entry: Some(link.entry) };
            self.check(linked, "hard links", spot, system)?;
        }
        Ok(())
    }

    /// Refuses what the file system does not have.
    fn check(&self, made: Result<(), Errno>, what: &str, spot: Spot, system: &str) -> Result<(), Error> {
        match made {
            Err(error) if is_unsupported(error) || error == Errno::IO && system == FUSE => {
                Err(Error::Unstorable { path: self.path(spot), what: what.to_owned(), system: system.to_owned() })
            }
            _ => Ok(()),
        }
    }

    fn inodes(&self) -> impl Iterator<Item = (&Inode, Spot)> {
        let index = self.index;
        let files = self.selection.regulars.iter().chain(&self.selection.others).map(|place| {
            (index.inode(index.entry(place.entry).inode), Spot { directory: place.directory, entry: Some(place.entry) })
        });
        let directories = self.selection.directories.iter();
        let directories = directories
            .map(|number| (index.inode(index.directory(*number).inode), Spot { directory: *number, entry: None }));
        directories.chain(files)
    }

    /// Returns the distinct attributes, each with the number of files that have them and one of these.
    fn spots(&self) -> Vec<(&Attributes, u64, Spot)> {
        let mut of: Vec<Option<(u64, Spot)>> = vec![None; self.index.attribute_rows().len()];
        for (inode, spot) in self.inodes() {
            of[inode.attributes.at()].get_or_insert((0, spot)).0 += 1;
        }
        let rows = self.index.attribute_rows().iter().zip(of);
        rows.filter_map(|(row, found)| found.map(|(files, spot)| (row, files, spot))).collect()
    }

    fn path(&self, spot: Spot) -> std::path::PathBuf {
        let below = match spot.entry {
            Some(entry) => self.index.path(spot.directory, entry),
            None => self.index.directory_path(spot.directory),
        };
        self.target.join(crate::error::path_of(&below))
    }

    fn times(&self, trial: &Trial<'_>, system: &str, findings: &mut Findings) -> Result<(), Errno> {
        let times = || self.inodes().map(|(inode, _)| (inode.mtime, inode.mtime_ns));
        let (Some(first), Some(last)) = (times().min(), times().max()) else { return Ok(()) };
        let Some(found) = trial.times(first, last)? else {
            let why = format!("{system} does not store them as they are set");
            findings.lack(Aspect::Times, num::wide(times().count()), why);
            return Ok(());
        };
        findings.keeps.times = found;
        let beyond = times().filter(|time| time.0 < found.first || time.0 > found.last).count();
        if beyond > 0 {
            let why = format!("{system} stores none before {} or after {}", date(found.first), date(found.last));
            let why = match (first.0 < found.first, last.0 > found.last) {
                (false, _) => format!("{system} stores none after {}", date(found.last)),
                (_, false) => format!("{system} stores none before {}", date(found.first)),
                _ => why,
            };
            findings.not_kept.push(NotKept { what: Aspect::Times, files: num::wide(beyond), why });
        }
        let within = |time: &FileTime| time.0 >= found.first && time.0 <= found.last;
        let rounded = times().filter(within).filter(|time| found.stored(*time) != *time).count();
        if rounded > 0 {
            let why = format!("{system} stores them in steps of {}", step(found.step));
            findings.not_kept.push(NotKept { what: Aspect::Times, files: num::wide(rounded), why });
        }
        Ok(())
    }

    /// Tries each kind of extended attribute that occurs.
    fn xattrs(&self, trial: &Trial<'_>, system: &str, spots: &Spots<'_>, rights: &Rights, findings: &mut Findings) {
        let mut tried = HashSet::new();
        for xattr in spots.iter().flat_map(|(attributes, ..)| &attributes.xattrs) {
            let aspect = Aspect::of_xattr(xattr.name);
            let key = if aspect == Aspect::OtherXattrs { xattr.name } else { aspect.word().as_bytes() };
            if !findings.keeps.has(aspect) || !tried.insert(key) {
                continue;
            }
            let Some(sample) = sample(aspect, xattr, rights) else { continue };
            let Err(error) = trial.keeps(XattrRef { name: &sample.0, value: &sample.1 }) else { continue };
            let why = match error {
                Errno::PERM if rights.own.0 != 0 => "not running as root".to_owned(),
                Errno::PERM => match rights.lacks(needed(aspect)) {
                    Some(capability) => without(&capability),
                    None => format!("{system} refuses {}", escape::bytes(xattr.name)),
                },
                Errno::NOTSUP => format!("{system} does not store them"),
                // A file may have too many: that is found below.
                _ => continue,
            };
            let has = |attributes: &Attributes| attributes.xattrs.iter().any(|of| Aspect::of_xattr(of.name) == aspect);
            findings.lack(aspect, count(spots, has), why);
        }
        if findings.keeps.has(Aspect::Acls)
            && let Some((_, _, spot)) = spots.iter().find(|(attributes, ..)| !are_mapped(attributes, rights))
        {
            let has = |attributes: &Attributes| {
                attributes.xattrs.iter().any(|xattr| Aspect::of_xattr(xattr.name) == Aspect::Acls)
            };
            let path = self.path(*spot);
            let why = format!("that of {} names an id that does not exist in this user namespace", path.display());
            findings.lack(Aspect::Acls, count(spots, has), why);
        }
    }

    /// Returns why owners cannot be kept.
    fn owners(
        &self,
        trial: Option<&Trial<'_>>,
        system: &str,
        spots: &Spots<'_>,
        rights: &Rights,
    ) -> Result<Option<String>, Errno> {
        let owner = |attributes: &Attributes| (attributes.uid, attributes.gid);
        let foreign = spots.iter().find(|(attributes, ..)| owner(attributes) != rights.own);
        if foreign.is_some()
            && let Some(capability) = rights.lacks(OWNERS)
        {
            let why = if rights.own.0 == 0 { without(&capability) } else { "not running as root".to_owned() };
            return Ok(Some(why));
        }
        if let Some((attributes, _, spot)) = spots.iter().find(|(attributes, ..)| !rights.maps(owner(attributes))) {
            let ((user, group), path) = (owner(attributes), self.path(*spot));
            let path = path.display();
            return Ok(Some(format!("the owner {user}:{group} of {path} does not exist in this user namespace")));
        }
        let Some(trial) = trial else { return Ok(None) };
        match trial.keeps_owner(foreign.map_or(rights.own, |(attributes, ..)| owner(attributes))) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(format!("{system} does not store them"))),
            Err(error) if has_failed(error, trial.directory) => Err(error),
            Err(error) => Ok(Some(format!("{system} refuses to set them: {error}"))),
        }
    }

    /// Returns why devices cannot be created.
    fn devices(&self, directory: BorrowedFd<'_>, may_name: bool, rights: &Rights) -> Result<Option<String>, Errno> {
        let is_device = |kind| matches!(kind, InodeKind::CharDevice(_) | InodeKind::BlockDevice(_));
        if !self.inodes().any(|(inode, _)| is_device(inode.kind)) {
            return Ok(None);
        }
        match rights.lacks(CapabilitySet::MKNOD) {
            Some(_) if rights.own.0 != 0 => return Ok(Some("not running as root".to_owned())),
            Some(capability) => return Ok(Some(without(&capability))),
            None if rights.is_in_namespace() => return Ok(Some("not possible in a user namespace".to_owned())),
            None if !may_name => return Ok(None),
            None => {}
        }
        let made =
            try_new(directory, |name| mknodat(directory, name, FileType::CharacterDevice, PRIVATE, makedev(1, 3)));
        match made {
            Err(error) if has_failed(error, directory) => Err(error),
            made => Ok(made.err().map(|error| error.to_string())),
        }
    }

    /// Notes whether something is kept that depends on the options, given what prevents it.
    fn decide(
        &self,
        aspect: Aspect,
        wish: Option<bool>,
        obstacle: Option<String>,
        spots: &Spots<'_>,
        findings: &mut Findings,
    ) -> Result<(), Error> {
        let why = match (wish, obstacle) {
            (Some(true), Some(why)) => {
                return Err(Error::NotKept { path: self.target.to_owned(), what: aspect.word(), why });
            }
            (Some(false), _) => "as requested".to_owned(),
            (None, _) if self.before.is_some_and(|before| !before.has(aspect)) => {
                "as when it was unpacked before".to_owned()
            }
            (_, Some(why)) => why,
            (_, None) => return Ok(()),
        };
        let own = Rights::of_process().own;
        let files = match aspect {
            Aspect::Owners => count(spots, |attributes| (attributes.uid, attributes.gid) != own),
            _ => count(spots, |attributes| {
                use sealift_format::FileType::{BlockDevice, CharDevice};
                matches!(attributes.file_type(), CharDevice | BlockDevice)
            }),
        };
        findings.lack(aspect, files, why);
        Ok(())
    }

    /// Tries the largest extended attributes.
    fn fit(&self, directory: BorrowedFd<'_>, system: &str, spots: &Spots<'_>, keeps: &Keeps) -> Result<(), Error> {
        // A default list exists on directories alone.
        let is_tried = |xattr: &XattrRef<'_>| xattr.name != b"system.posix_acl_default";
        let len = |xattr: XattrRef<'_>| xattr.name.len() + xattr.value.len();
        let all = |attributes: &Attributes| space_of(keeps.xattrs(&attributes.xattrs).filter(is_tried));
        let one = |attributes: &Attributes| keeps.xattrs(&attributes.xattrs).filter(is_tried).map(len).max();
        let large = || spots.iter().filter(|(attributes, ..)| all(attributes) > SMALL);
        let most = large().max_by_key(|(attributes, ..)| all(attributes));
        let longest = large().max_by_key(|(attributes, ..)| one(attributes));
        for (attributes, _, spot) in most.into_iter().chain(longest) {
            let Ok(trial) = Trial::new(directory) else { return Ok(()) };
            for xattr in keeps.xattrs(&attributes.xattrs).filter(is_tried) {
                if let Err(error) = trial.set(xattr)
                    && is_too_large(error, all(attributes), directory)
                {
                    let (path, what) = (self.path(*spot), described(xattr));
                    return Err(Error::Unstorable { path, what, system: system.to_owned() });
                }
            }
        }
        Ok(())
    }
}

impl Findings {
    /// Notes that an aspect is not kept.
    fn lack(&mut self, what: Aspect, files: u64, why: String) {
        self.keeps.set(what, false);
        if files > 0 {
            self.not_kept.push(NotKept { what, files, why });
        }
    }
}

/// Makes something that nobody opens under a new name, and removes that name.
fn try_new(directory: BorrowedFd<'_>, make: impl Fn(&str) -> Result<(), Errno>) -> Result<(), Errno> {
    let ((), name) = with_new_name(make)?;
    let _ = unlinkat(directory, &*name, AtFlags::empty());
    Ok(())
}

/// Returns whether an error says that a disk failed or is full, or that the system lacks something, and not that a file system does not keep something.
fn has_failed(error: Errno, directory: BorrowedFd<'_>) -> bool {
    const FAILURES: [Errno; 7] =
        [Errno::IO, Errno::ROFS, Errno::NOSPC, Errno::DQUOT, Errno::NOMEM, Errno::INTR, Errno::STALE];
    FAILURES.contains(&error) && !(error == Errno::IO && kind_of(directory) == FUSE)
}

fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::PERM | Errno::NOTSUP | Errno::NOSYS | Errno::INVAL)
}

/// Returns the number of files whose attributes are as `is_so` says.
fn count(spots: &Spots<'_>, is_so: impl Fn(&Attributes) -> bool) -> u64 {
    spots.iter().filter(|(attributes, ..)| is_so(attributes)).map(|(_, files, _)| files).sum()
}

fn without(capability: &str) -> String {
    format!("without the capability {capability}")
}

/// Returns the capability that an extended attribute takes.
fn needed(aspect: Aspect) -> CapabilitySet {
    match aspect {
        Aspect::Capabilities => CapabilitySet::SETFCAP,
        _ => CapabilitySet::SYS_ADMIN,
    }
}

/// Returns an extended attribute that shows whether those of this aspect can be set.
fn sample(aspect: Aspect, found: XattrRef<'_>, rights: &Rights) -> Option<(Vec<u8>, Vec<u8>)> {
    match aspect {
        Aspect::UserXattrs => Some((b"user.sealift.trial".to_vec(), b"1".to_vec())),
        // user::rw-, user:ID:r--, group::r--, mask::r--, other::---
        Aspect::Acls => {
            let entries: [(u16, u16, u32); 5] =
                [(1, 6, u32::MAX), (2, 4, rights.own.0), (4, 4, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)];
            let mut list = 2_u32.to_le_bytes().to_vec();
            for (tag, bits, id) in entries {
                list.extend([tag.to_le_bytes(), bits.to_le_bytes()].as_flattened());
                list.extend(id.to_le_bytes());
            }
            Some((b"system.posix_acl_access".to_vec(), list))
        }
        // Version 2 (linux/capability.h): cap_net_raw, permitted.
        Aspect::Capabilities => {
            let value = [[0, 0, 0, 2], [0, 32, 0, 0], [0; 4], [0; 4], [0; 4]].concat();
            Some((found.name.to_vec(), value))
        }
        _ => (found.value.len() <= SMALL).then(|| (found.name.to_vec(), found.value.to_vec())),
    }
}

/// Returns whether all ids in the access control lists of these attributes exist.
fn are_mapped(attributes: &Attributes, rights: &Rights) -> bool {
    let lists = attributes.xattrs.iter().filter(|xattr| Aspect::of_xattr(xattr.name) == Aspect::Acls);
    let mut entries = lists.flat_map(|list| list.value.get(4..).unwrap_or_default().as_chunks::<8>().0);
    entries.all(|entry| {
        let id = u32::from_le_bytes([entry[4], entry[5], entry[6], entry[7]]);
        match entry[0] {
            0x02 => rights.maps((id, rights.own.1)),
            0x08 => rights.maps((rights.own.0, id)),
            _ => true,
        }
    })
}

fn date(seconds: i64) -> String {
    Utc(seconds).rfc3339()
}

fn step(nanoseconds: u32) -> String {
    match nanoseconds {
        1_000_000_000 => "a second".to_owned(),
        2_000_000_000 => "2 seconds".to_owned(),
        step if step >= 1_000_000 => format!("{} ms", step / 1_000_000),
        step => format!("{step} ns"),
    }
}
