//! Seals unpacked files: from then on the kernel refuses to return a byte that differs.
//!
//! New files are sealed in the stage, when all of them are there. The kernel's digest of each file is then compared with the index, which has a
//! digest of all digests, and recorded beside the target, so that an audit need not read content.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use rustix::fs::{FileType, Mode, OFlags, chmod, fstat};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::verity::Parameters;
use sealift_format::{BLOCK_LEN, Error as FormatError, Head, Index, Object, Part, Row, verity};
use sealift_verify::fsverity::{self, KernelError, Sealed};

use super::files::Builder;
use super::plan::PlannedName;
use crate::Site;
use crate::directory::state;
use crate::directory::target::{Target, TargetWalk};
use crate::directory::walk::Walk;
use crate::fs::confined::open_name;
use crate::progress::Phase;
use crate::seal::{Digests, Seal, WantedSignature, is_supported_in, seal_open};
use crate::threads::parallel::for_each_with;
use crate::{Error, Progress};

/// How the files of a target are sealed.
#[derive(Debug)]
pub(super) struct Sealing {
    /// Whether they are sealed from now on.
    pub(super) is_on: bool,
    /// Whether they were sealed with the last bundle.
    was_on: bool,
    /// Whether the index must not be sealed without the bundle's signature for the kernel.
    is_signature_required: bool,
    /// Whether the index of the last bundle was sealed with a signature.
    was_signed: bool,
    /// The kernel's digests of objects.
    digests: Mutex<BTreeMap<Row<Object>, [u8; 32]>>,
    files: AtomicU64,
}

impl Sealing {
    /// Decides what to do, before anything is written.
    ///
    /// # Errors
    /// Returns an error if the file system has no fs-verity, and that was required.
    pub(super) fn plan(wish: Seal, site: &Site) -> Result<Self, Error> {
        let was_on = state::is_sealed(site)?;
        let (parent, folder) = (site.ground(), site.ground_path());
        let is_on = wish.decide(was_on, &folder, || is_supported_in(parent, &folder))?;
        let was_signed = was_on && state::is_signed(site)?;
        let is_signature_required = wish.requires_signature(was_signed);
        let (digests, files) = (Mutex::default(), AtomicU64::new(0));
        Ok(Self { is_on, was_on, is_signature_required, was_signed, digests, files })
    }

    /// Returns whether existing files are to be sealed for the first time. Nothing has vouched for them.
    pub(super) fn is_new(&self) -> bool {
        self.is_on && !self.was_on
    }

    /// Returns whether the target's seals already match this bundle.
    pub(super) fn is_done(&self, head: &Head) -> bool {
        let is_signature_missing = self.is_signature_required && !self.was_signed;
        self.is_on == self.was_on && !(is_signature_missing && self.signature(head).is_some())
    }

    /// Returns the signature for the kernel to seal the index with.
    pub(super) fn signature<'a>(&self, head: &'a Head) -> Option<WantedSignature<'a>> {
        WantedSignature::of(head, self.is_signature_required).filter(|_| self.is_on)
    }

    /// Returns the maximum bytes that sealing these files needs: file systems store the tree and a descriptor behind the content.
    pub(super) fn room(&self, index: &Index, places: &[PlannedName]) -> u64 {
        let sizes = places.iter().filter(|_| self.is_on).map(|place| index.object(place.object).size);
        sizes.map(tree_len).fold(0, u64::saturating_add)
    }

    /// Returns the number of files that this run sealed.
    pub(super) fn files(&self) -> u64 {
        self.files.load(Ordering::Relaxed)
    }

    /// Seals files of the stage that are no longer being written.
    pub(super) fn seal_staged(&self, builder: &Builder<'_>, places: &[PlannedName], jobs: usize) -> Result<(), Error> {
        builder.progress.enter(Phase::Sealing, 0, num::wide(places.len()));
        for_each_with(jobs, places, Walk::default, |hand, &place| {
            builder.progress.check()?;
            let (directory, name) = builder.spot(hand, place)?;
            let path = || builder.stage.path_of(&builder.path(place));
            builder.forget(place);
            self.seal(directory, &name, place.object, path)?;
            builder.progress.add(0, 1);
            Ok(())
        })
    }

    /// Seals files that stay in the target, in place.
    pub(super) fn seal_kept(
        &self,
        target: &Target<'_>,
        places: &[PlannedName],
        jobs: usize,
        progress: &Progress,
    ) -> Result<(), Error> {
        progress.enter(Phase::Sealing, 0, num::wide(places.len()));
        for_each_with(jobs, places, TargetWalk::default, |walk, &place| {
            progress.check()?;
            let name = target.index.name(target.index.entry(place.entry));
            let directory = walk.go(target, place.directory).map_err(target.failed("open", place.directory, name))?;
            let path = || target.path_of(&target.index.path(place.directory, place.entry));
            self.seal(directory, name, place.object, path)?;
            progress.add(0, 1);
            Ok(())
        })
    }

    /// Adopts the recorded digests of objects, which are in the order of the index recorded with them.
    pub(super) fn take_known(&self, old: (&Index, &[[u8; 32]]), new: &Index) {
        let known: BTreeMap<[u8; 32], [u8; 32]> =
            old.0.objects().iter().zip(old.1).map(|(object, digest)| (object.id, *digest)).collect();
        let known = Row::all(new.objects()).filter_map(|(number, object)| Some((number, *known.get(&object.id)?)));
        self.digests.lock().extend(known);
    }

    /// Returns the digests of all objects of the index, for the target's record; an empty list if some of them are not in the target. Returns `None`
    /// if files are not sealed.
    ///
    /// # Errors
    /// Returns an error if they do not match the index.
    pub(super) fn table(&self, index: &Index) -> Result<Option<Vec<[u8; 32]>>, Error> {
        let digests = self.digests.lock();
        match digests.len() == index.objects().len() {
            _ if !self.is_on => Ok(None),
            false => Ok(Some(Vec::new())),
            true => {
                let table: Vec<[u8; 32]> = digests.values().copied().collect();
                if verity::digest(table.as_flattened()) != *index.verity() {
                    let what = "its digest of the objects' fs-verity digests does not match the kernel's digests";
                    return Err(FormatError::Malformed { part: Part::Index, what, at: 0 }.into());
                }
                Ok(Some(table))
            }
        }
    }

    fn seal(
        &self,
        at: BorrowedFd<'_>,
        name: &[u8],
        object: Row<Object>,
        path: impl Fn() -> PathBuf,
    ) -> Result<(), Error> {
        let file = open_to_seal(at, name).map_err(|error| Error::io("open", path(), error))?;
        let failed = |error| Error::kernel(path(), error);
        match seal_open(file.as_fd(), &Parameters::default(), None).map_err(failed)? {
            Sealed::Now => self.files.fetch_add(1, Ordering::Relaxed),
            Sealed::Before => 0,
        };
        let found = fsverity::measure(&file).map_err(failed)?;
        let Some(digest) = found.as_bytes().first_chunk().copied() else { return Ok(()) };
        let mut digests = self.digests.lock();
        match digests.insert(object, digest) {
            Some(other) if other != digest => Err(failed(KernelError::OtherDigest { expected: other.into(), found })),
            _ => Ok(()),
        }
    }
}

/// Returns the bytes of the Merkle tree and the descriptor of a file of this size, in blocks.
fn tree_len(size: u64) -> u64 {
    let (mut blocks, mut hashed) = (1, size.div_ceil(BLOCK_LEN));
    while hashed > 1 {
        hashed = hashed.div_ceil(BLOCK_LEN / 32);
        blocks += hashed;
    }
    blocks * BLOCK_LEN
}

/// Opens one of our files for reading, whatever its mode.
fn open_to_seal(at: BorrowedFd<'_>, name: &[u8]) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK;
    let file = match open_name(at, name, flags, Mode::empty()) {
        // A non-root user lacks access to their own file; its mode is changed briefly.
        Err(Errno::ACCESS) => {
            let closed = open_name(at, name, OFlags::PATH, Mode::empty())?;
            let (mode, path) = (fstat(&closed)?.st_mode, format!("/proc/self/fd/{}", closed.as_raw_fd()));
            chmod(&*path, Mode::RUSR | Mode::WUSR)?;
            let opened = open_name(at, name, flags, Mode::empty());
            chmod(&*path, Mode::from_raw_mode(mode))?;
            opened?
        }
        opened => opened?,
    };
    match FileType::from_raw_mode(fstat(&file)?.st_mode) {
        FileType::RegularFile => Ok(file),
        _ => Err(Errno::INVAL),
    }
}

impl Digests {
    /// Returns the digests that a target recorded for the objects of an index.
    pub fn kept(site: &Site, index: &Index) -> Result<Option<Self>, Error> {
        Ok(state::kept_digests(site, index)?.map(|table| Self::new(index, &table)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trees_take_a_block_for_each_128() {
        for (size, blocks) in
            [(0, 1), (1, 1), (4096, 1), (4097, 2), (128 * 4096, 2), (128 * 4096 + 1, 4), (128 * 128 * 4096, 130)]
        {
            assert_eq!(tree_len(size), blocks * 4096, "{size}");
        }
        assert!(tree_len(u64::MAX) < u64::MAX / 100);
    }
}
