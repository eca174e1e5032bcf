//! Keeps the hot set together on the device. Unchanged files stay where earlier updates put them, so updates scatter the hot set over time; when
//! it has become too scattered, an update writes all of it again.

use std::collections::HashMap;
use std::os::fd::{AsFd as _, OwnedFd};

use crate::kernel::extents;
use rustix::fs::{FileType, IFlags, Mode, OFlags, Stat, fstat, ioctl_getflags, major, minor};
use rustix::io::Errno;
use sealift_format::{Directory, Entry, Row, Xattr};

use super::apply::Update;
use super::hot_files::{HotFile, HotFiles, Lies};
use super::job::Job;
use super::metadata::Privilege;
use super::plan::{Link, PlannedName};
use super::seeks::seeks;
use crate::Error;
use crate::directory::TreeStage;
use crate::directory::target::{Target, TargetWalk};
use crate::fs::confined::open_on_same_device;
use crate::xattrs::XattrFilter;

/// The cost of a seek on a kind of device.
#[derive(Clone, Copy)]
struct Seeks {
    /// The bytes that the device could read in the time of one seek.
    bytes: u64,
    /// The number of seeks that take a tenth of a second. Saving fewer is not worth a rewrite.
    min: u64,
}

/// A seek takes 14 ms; 150 MB/s are read.
const DISK: Seeks = Seeks { bytes: 2 << 20, min: 8 };
/// A seek takes 0.4 ms; 150 MB/s are read.
const FLASH: Seeks = Seeks { bytes: 64 << 10, min: 256 };

/// The attributes (linux/fs.h) that the file system or sealing sets by itself: extents, a huge file, fs-verity. A rewrite need not keep them.
const OWN_FLAGS: u32 = 0x0008_0000 | 0x0004_0000 | 0x0010_0000;

/// Plans to write the whole hot set again if it would otherwise be scattered. `free_bytes` is the space that the rest of the update leaves free
/// on the file system, and `reached` the number of seeks that were left after the last rewrite.
///
/// # Errors
/// Returns an error if the run was cancelled.
pub(super) fn gather<'s>(
    job: &Job<'_>,
    stage: &TreeStage,
    update: &Update<'s>,
    free_bytes: u64,
    reached: Option<u64>,
) -> Result<HotFiles<'s>, Error> {
    // A resumed run leaves this to the next update, and one that trusts the record reads no file that stays.
    let is_possible = !stage.is_resumed() && !job.options.no_check && !job.options.tree.hardlink_duplicates;
    let Some(order) = job.order.filter(|_| is_possible) else { return Ok(HotFiles::default()) };
    let selection = update.selection;
    let mut links: HashMap<Row<Entry>, Vec<&Link>> = HashMap::new();
    for link in &selection.links {
        links.entry(link.from.entry).or_default().push(link);
    }
    let (mut walk, mut files, mut cost) = (TargetWalk::default(), Vec::new(), None);
    for part in order.parts().iter().filter(|part| part.ranges.is_empty()) {
        for &place in selection.places_of(part.object) {
            job.progress.check()?;
            let holes = job.bundle.layout.holes_of(place.object);
            if !holes.is_empty() || job.bundle.index.object(place.object).size == 0 {
                continue;
            }
            let links = links.get(&place.entry).map_or_else(Vec::new, Clone::clone);
            let mut at = Lies::New;
            if !update.changes.build.contains(&place.entry) {
                let further = links.iter().map(|link| (link.directory, link.entry));
                let names: Vec<_> = std::iter::once((place.directory, place.entry)).chain(further).collect();
                let Some((file, stat)) = open_installed(job, &update.target, &mut walk, place) else { continue };
                cost.get_or_insert_with(|| cost_of_seeks(&stat));
                let is_free = usize::try_from(stat.st_nlink) == Ok(names.len())
                    && names.iter().all(|name| is_free(update, &mut walk, name.0, name.1).unwrap_or(false));
                at = lies(job, update, place, &file, &stat, is_free);
            }
            files.push(HotFile { place, links, at });
        }
    }
    let cost = cost.unwrap_or(FLASH);
    let size = |place: PlannedName| job.bundle.index.object(place.object).size;
    let total = |places: &mut dyn Iterator<Item = PlannedName>| places.map(size).fold(0, u64::saturating_add);
    let bytes = total(&mut files.iter().filter(|file| !matches!(file.at, Lies::Stays(_))).map(|file| file.place));
    let seeks = seeks(files.iter().map(|file| match &file.at {
        Lies::New => None,
        Lies::Here(extents) | Lies::Stays(extents) => Some(&extents[..]),
    }));
    let is_large = bytes > total(&mut selection.regulars.iter().copied()) / 2 || bytes > free_bytes / 2;
    // If the last rewrite left many seeks, another one would do no better.
    let saved = seeks.saturating_sub(reached.unwrap_or_default().saturating_mul(2));
    let is_scattered = saved >= cost.min && saved.saturating_mul(cost.bytes) > bytes;
    // Without new files, the hot set lies as the last run left it, which is as well as this file system can place it.
    let has_new = files.iter().any(|file| matches!(file.at, Lies::New));
    if !is_scattered || !has_new || is_large {
        return Ok(HotFiles::default());
    }
    tracing::info!(seeks, files = files.len(), "the hot set is scattered: writing it again, in its order");
    Ok(HotFiles { files })
}

/// Opens an installed file, if it may have its expected content.
pub(super) fn open_installed(
    job: &Job<'_>,
    target: &Target<'_>,
    walk: &mut TargetWalk,
    place: PlannedName,
) -> Option<(OwnedFd, Stat)> {
    let name = target.index.name(target.index.entry(place.entry));
    let directory = walk.go(target, place.directory).ok()?;
    let file = open_on_same_device(directory, name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).ok()?;
    let stat = fstat(&file).ok()?;
    let is_regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let size = job.bundle.index.object(place.object).size;
    (is_regular && u64::try_from(stat.st_size) == Ok(size)).then_some((file, stat))
}

fn lies(job: &Job<'_>, update: &Update<'_>, place: PlannedName, file: &OwnedFd, stat: &Stat, is_free: bool) -> Lies {
    let size = job.bundle.index.object(place.object).size;
    let Ok(Some(extents)) = extents(file, size) else { return Lies::Stays(Vec::new()) };
    let is_sparse = extents.iter().map(|extent| extent.end - extent.start).sum::<u64>() < size;
    // Attributes of chattr(1) would be lost, or forbid replacing the file. Without root, the same goes for the owner if it is another user.
    let flags = ioctl_getflags(file).unwrap_or(IFlags::empty());
    let own = IFlags::from_bits_retain(OWN_FLAGS);
    let is_ours = (flags - own).is_empty() && update.privilege.commands(stat.st_uid);
    match is_free && !is_sparse && is_ours && keeps_xattrs(job, update.privilege, file, place) {
        true => Lies::Here(extents),
        false => Lies::Stays(extents),
    }
}

/// Returns whether the bundle gives a new file all extended attributes that this one has, and this process may set them. Others, such as the
/// system's labels, would be lost.
fn keeps_xattrs(job: &Job<'_>, privilege: &Privilege, file: &OwnedFd, place: PlannedName) -> bool {
    let index = &job.bundle.index;
    let wanted = &index.attributes(index.inode(index.entry(place.entry).inode)).xattrs;
    let mut filter = XattrFilter::default();
    filter.add(b"*");
    let keeps = |xattr: &Xattr| privilege.keeps().has_xattr(&xattr.name) && wanted.get(&xattr.name).is_some();
    filter.read(file.as_fd()).is_ok_and(|found| found.iter().all(keeps))
}

/// Returns whether a name can be given to another file. Once an update has begun to move files, a file that need not move must not make it fail.
fn is_free(
    update: &Update<'_>,
    walk: &mut TargetWalk,
    directory: Row<Directory>,
    entry: Row<Entry>,
) -> Result<bool, Errno> {
    let target = &update.target;
    let here = walk.go(target, directory)?;
    let is_ours = update.privilege.commands(fstat(here)?.st_uid);
    let name = target.index.name(target.index.entry(entry));
    Ok(is_ours && target.obstacle(here, b"")?.is_none() && target.obstacle(here, name)?.is_none())
}

/// Returns what seeks cost on the device that holds a file; a device of unknown kind is taken for flash.
fn cost_of_seeks(stat: &Stat) -> Seeks {
    let device = format!("/sys/dev/block/{}:{}", major(stat.st_dev), minor(stat.st_dev));
    // A partition has the queue of its disk.
    let files = ["queue/rotational", "../queue/rotational"].map(|file| format!("{device}/{file}"));
    let said = files.iter().find_map(|file| std::fs::read_to_string(file).ok());
    if said.is_some_and(|said| said.trim() == "1") { DISK } else { FLASH }
}
