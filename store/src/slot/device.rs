//! An open slot.

use std::fs::{File, Metadata};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use rustix::fs::{Dev, FlockOperation, Mode, OFlags, SeekFrom, flock, fsync, seek};
use rustix::io::Errno;
use sealift_format::num::wide;
use sealift_verify::fsverity;

use super::direct::read_parts;
use super::found::found_in;
use super::partition::Partition;
use super::{Geometry, SlotAddress, users};
use crate::fs::FreeSpace;
use crate::fs::block_device::folder_of;
use crate::fs::parent::{parent_of, shown_directory};
use crate::{Error, RecordFault, SlotFault};

/// A block device, or a regular file that holds an image.
#[derive(Debug)]
pub struct Slot {
    file: File,
    /// As the user named it, for messages.
    shown: PathBuf,
    /// Without links.
    path: PathBuf,
    is_device: bool,
    /// The device's number, or those of the file's file system and inode.
    number: (Dev, u64),
    size: u64,
    partition: Partition,
    geometry: Geometry,
    /// A device, opened so that reads go past the page cache: a file system that is mounted from it changes what the cache has of its journal, even
    /// if it is mounted read-only.
    direct: Option<File>,
}

/// Whether it is a device, and its number, or those of a file's file system and inode.
type Numbers = (bool, (Dev, u64));

/// What to open a slot for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    Read,
    /// Without writing anything yet.
    Try,
    Write,
}

impl Slot {
    /// The number of a file that does not exist yet.
    const NEW: (Dev, u64) = (0, 0);
    /// How the identity of a partition begins.
    pub(crate) const PARTITION: &str = "partition-";

    /// Opens a slot to read it.
    ///
    /// # Errors
    /// Returns an error if there is none, or if it cannot be read.
    pub fn open(address: &SlotAddress) -> Result<Self, Error> {
        Self::open_for(address, Access::Read)
    }

    /// Opens a slot to read it, or the place of a file that does not exist yet.
    ///
    /// # Errors
    /// As [`Slot::open`], except for a file that does not exist, if its folder does.
    pub fn look(address: &SlotAddress) -> Result<Self, Error> {
        match Self::open(address) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                Self::new(&address.target, address.path())
            }
            slot => slot,
        }
    }

    /// Opens a slot that an image is to be written to: nobody else may use it meanwhile. A file that does not exist is created
    /// later ([`Slot::create`]).
    ///
    /// # Errors
    /// Returns an error if there is no such device, if it is in use or read-only, or if it cannot be opened.
    pub(crate) fn open_to_write(address: &SlotAddress, dry_run: bool) -> Result<Self, Error> {
        Self::open_for(address, if dry_run { Access::Try } else { Access::Write })
    }

    fn open_for(address: &SlotAddress, access: Access) -> Result<Self, Error> {
        let (shown, given) = (&address.target, address.path());
        let io = |doing: &'static str, error: std::io::Error| Error::io(doing, given, error);
        let may_be_new = !given.starts_with("/dev") || given.starts_with("/dev/shm");
        let is_new = may_be_new && !given.try_exists().map_err(|error| io("look at", error))?;
        if is_new {
            return if access == Access::Read { Err(io("read", Errno::NOENT.into())) } else { Self::new(shown, given) };
        }
        let path = given.canonicalize().map_err(|error| io("find", error))?;
        let is_device = check_unused(&path, shown, access)?;
        let mut flags = OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        flags |= if access == Access::Write { OFlags::RDWR } else { OFlags::RDONLY };
        if access != Access::Read && is_device {
            flags |= OFlags::EXCL; // nobody else uses it exclusively, as mounts do
        }
        let opened = rustix::fs::open(&path, flags, Mode::empty());
        let file = File::from(opened.map_err(|error| match error {
            Errno::BUSY => Error::slot(shown, SlotFault::InUse("another program has opened it for itself".into())),
            Errno::PERM if is_sealed(&path) => Error::slot(shown, SlotFault::Sealed),
            Errno::ROFS => Error::slot(shown, SlotFault::ReadOnly),
            error => io(if access == Access::Write { "write" } else { "read" }, error.into()),
        })?);
        let metadata = file.metadata().map_err(|error| io("look at", error))?;
        if let Some(kind) = wrong_kind(&metadata) {
            return Err(Error::slot(shown, SlotFault::Kind(kind)));
        }
        let (is_device, number) = place_of(&metadata);
        if access != Access::Read && is_locked_by_others(file.as_fd()) {
            return Err(match is_device {
                true => Error::slot(shown, SlotFault::InUse("another program has locked it".into())),
                false => Error::Busy { path: shown.clone() },
            });
        }
        let size = seek(&file, SeekFrom::End(0)).map_err(|error| io("look at", error.into()))?;
        let (partition, geometry) = match is_device {
            true => (Partition::of(metadata.rdev()), Geometry::of_device(metadata.rdev())),
            false => (Partition::default(), Geometry::OF_FILE),
        };
        let (shown, direct) = (shown.clone(), None);
        let mut slot = Self { file, shown, path, is_device, number, size, partition, geometry, direct };
        if is_device && access == Access::Read {
            slot.direct = slot.open_direct(OFlags::RDONLY);
        }
        Ok(slot)
    }

    /// Returns what it holds, in words; `None` if it begins with zeros.
    ///
    /// # Errors
    /// Returns an error if it cannot be read.
    pub(crate) fn found(&self) -> std::io::Result<Option<&'static str>> {
        if self.is_new() { Ok(None) } else { found_in(&self.file) }
    }

    /// Returns whether it does not exist yet, or no longer.
    #[must_use]
    pub fn is_new(&self) -> bool {
        self.number == Self::NEW
    }

    /// Returns the open device or file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns a file that does not exist yet. The folder must exist; what is created gets no other place than the one that was named.
    fn new(shown: &Path, given: &Path) -> Result<Self, Error> {
        let folder = parent_of(given);
        let failed = |error| Error::io("open", shown_directory(folder), error);
        let folder_path = folder.canonicalize().map_err(failed)?;
        let name = given.file_name().ok_or_else(|| Error::io("create", given, Errno::INVAL))?;
        let (path, file) = (folder_path.join(name), File::open(&folder_path).map_err(failed)?);
        let (shown, partition, geometry) = (shown.to_owned(), Partition::default(), Geometry::OF_FILE);
        let (number, direct) = (Self::NEW, None);
        Ok(Self { file, shown, path, is_device: false, number, size: 0, partition, geometry, direct })
    }

    /// Creates the file, if it does not exist yet.
    ///
    /// # Errors
    /// Returns an error if it cannot be created.
    pub(crate) fn create(&mut self) -> Result<(), Error> {
        if !self.is_new() {
            return Ok(());
        }
        let flags = OFlags::CLOEXEC | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::RDWR;
        let failed = |error: std::io::Error| Error::io("create", &self.path, error);
        let opened = rustix::fs::open(&self.path, flags, Mode::from_raw_mode(0o644));
        let file = File::from(opened.map_err(|error| failed(error.into()))?);
        let metadata = file.metadata().map_err(failed)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| failed(error.into()))?;
        // Until now, the folder was open in its place.
        fsync(&self.file).map_err(|error| failed(error.into()))?;
        (self.file, self.number) = (file, (metadata.dev(), metadata.ino()));
        Ok(())
    }

    /// Opens it once more, to read or write past the page cache; `None` if it cannot be opened so.
    pub(super) fn open_direct(&self, access: OFlags) -> Option<File> {
        let flags = access | OFlags::DIRECT | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::open(&self.path, flags, Mode::empty()).ok()?);
        let is_it = place_of(&file.metadata().ok()?) == self.place();
        is_it.then_some(file)
    }

    /// Fills a buffer from an offset: from the device itself, if that is possible.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or ends before.
    pub(crate) fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        let mut rest = buffer;
        self.read_parts(offset, wide(rest.len()), |part| {
            let (place, behind) = std::mem::take(&mut rest).split_at_mut(part.len());
            place.copy_from_slice(part);
            rest = behind;
        })
    }

    /// Reads a range, and passes it to `take` in parts: from the device itself, if that is possible.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, or ends before.
    pub(super) fn read_parts(&self, offset: u64, len: u64, take: impl FnMut(&[u8])) -> std::io::Result<()> {
        read_parts(&self.file, self.direct.as_ref(), offset, len, take)
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// Returns it as the user named it.
    #[must_use]
    pub fn shown(&self) -> &Path {
        &self.shown
    }

    /// Returns its path, absolute and without links.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether it is a block device, not a regular file.
    #[must_use]
    pub fn is_device(&self) -> bool {
        self.is_device
    }

    /// Returns its size in bytes; that of a file can change.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the units in which it is written.
    pub(super) fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Returns its partition's UUID and label.
    #[must_use]
    pub fn partition(&self) -> &Partition {
        &self.partition
    }

    /// Returns whether writing to one could change the other: they are the same, one is a partition of the other, or a loop device shows the other's
    /// file.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.is_same(other)
            || stands_on(self.place()).contains(&other.place()) && !other.is_new()
            || stands_on(other.place()).contains(&self.place()) && !self.is_new()
    }

    /// Returns whether writing to it could change an open file, such as a bundle.
    pub(crate) fn overlaps_file(&self, file: &File) -> bool {
        let Ok(metadata) = file.metadata() else { return false };
        let place = place_of(&metadata);
        !self.is_new()
            && (self.place() == place
                || stands_on(self.place()).contains(&place)
                || stands_on(place).contains(&self.place()))
    }

    fn place(&self) -> Numbers {
        (self.is_device, self.number)
    }

    /// Returns whether both are the same device or file.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.place() == other.place() && (!self.is_new() || self.path == other.path)
    }

    /// Returns what tells it from another that has its name at another time: the partition's UUID and the size of a device, or else what its hardware
    /// is called; the inode of a file, and when it was created. `None` for a file that does not exist.
    #[must_use]
    pub fn identity(&self) -> Option<String> {
        let size = self.size;
        match (&self.partition.uuid, self.is_device) {
            (Some(uuid), _) => Some(format!("{}{uuid}-{size}", Self::PARTITION)),
            (None, true) => {
                let hardware = users::hardware_of(self.number.0);
                Some(format!("device-{}-{size}", hardware.as_deref().unwrap_or("unnamed")))
            }
            // A file system gives an inode's number again to the next file.
            (None, false) => (!self.is_new()).then(|| format!("file-{}{}", self.number.1, birth_of(&self.file))),
        }
    }

    /// Returns why a record is not of this slot, which is bound to that identity; `None` if it is.
    pub(crate) fn fault_of(&self, recorded: Option<&str>) -> Option<RecordFault> {
        let own = self.identity();
        if own.as_deref() == recorded {
            return None;
        }
        let (Some((own, _)), Some((of_record, before))) = (
            own.as_deref().and_then(|own| own.rsplit_once('-')),
            recorded.and_then(|recorded| recorded.rsplit_once('-')),
        ) else {
            return Some(RecordFault::OtherSlot);
        };
        let before = before.parse().ok().filter(|_| self.is_device && own == of_record);
        Some(before.map_or(RecordFault::OtherSlot, |before| RecordFault::Resized { before, now: self.size }))
    }

    /// Returns the name under which the state keeps its record: a partition has the same one whatever its device is called.
    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        use std::os::unix::ffi::OsStrExt as _;

        match &self.partition.uuid {
            Some(uuid) => uuid.clone().into_bytes(),
            None => self.path.as_os_str().as_bytes().to_vec(),
        }
    }

    /// Checks that an image of this many bytes fits.
    ///
    /// # Errors
    /// Returns an error if it does not, or if the file system of a file has too little space.
    pub(crate) fn check_room(&self, needed: u64) -> Result<(), Error> {
        let size = self.size;
        if self.is_device {
            let fits = needed <= size;
            return if fits { Ok(()) } else { Err(Error::slot(&self.shown, SlotFault::TooSmall { needed, size })) };
        }
        let failed = |error| Error::io("look at", &self.shown, error);
        let taken = if self.is_new() { 0 } else { self.file.metadata().map_err(failed)?.blocks() * 512 };
        let free = FreeSpace::of(self.fd()).map_err(|error| failed(error.into()))?;
        free.check(&self.shown, needed.saturating_sub(taken), u64::from(self.is_new()))
    }

    /// Checks that it is the one that the caller means.
    ///
    /// # Errors
    /// Returns an error if its partition has another label or UUID.
    pub(crate) fn check_expected(&self, label: Option<&str>, uuid: Option<&str>) -> Result<(), Error> {
        let found = self.partition.label.clone().unwrap_or_default();
        if let Some(expected) = label.filter(|expected| *expected != found) {
            return Err(Error::slot(&self.shown, SlotFault::Label { expected: expected.to_owned(), found }));
        }
        let found = self.partition.uuid.clone().unwrap_or_default();
        if let Some(expected) = uuid.filter(|expected| !expected.eq_ignore_ascii_case(&found)) {
            return Err(Error::slot(&self.shown, SlotFault::Uuid { expected: expected.to_owned(), found }));
        }
        Ok(())
    }
}

/// Returns when a file was created, as the end of its identity; nothing if its file system does not tell.
fn birth_of(file: &File) -> String {
    let born = file.metadata().and_then(|metadata| metadata.created()).ok();
    let since = born.and_then(|born| born.duration_since(UNIX_EPOCH).ok());
    since.map_or_else(String::new, |since| format!("-{}", since.as_nanos()))
}

/// Returns the numbers of a device or file.
fn place_of(metadata: &Metadata) -> Numbers {
    match metadata.file_type().is_block_device() {
        true => (true, (metadata.rdev(), 0)),
        false => (false, (metadata.dev(), metadata.ino())),
    }
}

/// Returns what a device consists of: the disk of a partition, and the file that a loop device shows. A file consists of nothing else.
fn stands_on((is_device, (device, _)): Numbers) -> Vec<Numbers> {
    if !is_device {
        return Vec::new();
    }
    let disk = users::disk_of(device);
    let files = [Some(device), disk].into_iter().flatten().filter_map(|device| users::backing_file(&folder_of(device)));
    disk.into_iter().map(|disk| (true, (disk, 0))).chain(files.map(|file| (false, file))).collect()
}

/// Takes the lock, and returns whether others keep it for longer than it takes to look at something.
pub(super) fn is_locked_by_others(fd: BorrowedFd<'_>) -> bool {
    for _ in 0..20 {
        match flock(fd, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(50)),
            _ => return false,
        }
    }
    true
}

/// Returns whether nothing can be written to a file since it has fs-verity.
fn is_sealed(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| fsverity::measure(file).is_ok())
}

/// Returns what it is instead of a block device or a regular file.
fn wrong_kind(metadata: &Metadata) -> Option<&'static str> {
    let kind = metadata.file_type();
    match () {
        () if kind.is_block_device() || kind.is_file() => None,
        () if kind.is_char_device() => Some("a character device"),
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_fifo() => Some("a pipe"),
        () if kind.is_socket() => Some("a socket"),
        () => Some("a special file"),
    }
}

/// Refuses what something else uses, before it is opened: the kernel only says that it is busy. Returns whether it is a block device.
fn check_unused(path: &Path, shown: &Path, access: Access) -> Result<bool, Error> {
    let metadata = path.metadata().map_err(|error| Error::io("look at", path, error))?;
    if let Some(kind) = wrong_kind(&metadata) {
        return Err(Error::slot(shown, SlotFault::Kind(kind)));
    }
    let is_device = metadata.file_type().is_block_device();
    if access == Access::Read {
        return Ok(is_device);
    }
    let user = if is_device { users::user_of_device(metadata.rdev()) } else { users::user_of_file(&metadata) };
    if let Some(user) = user {
        return Err(Error::slot(shown, SlotFault::InUse(user)));
    }
    if is_device && users::is_read_only(metadata.rdev()) {
        return Err(Error::slot(shown, SlotFault::ReadOnly));
    }
    Ok(is_device)
}
