//! Creates a bundle's file objects in a repository.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;

use parking_lot::Mutex;

use sealift_format::num::{self, at};
use sealift_format::ostree::Checksum;
use sealift_format::{Attributes, Bundle, Chunk, Holds, InodeKind, Object, Row};
use sealift_verify::content::Content;
use sealift_verify::read_plan::ReadPlan;

use super::plan::Plan;
use crate::base::{self, Bases, GivenBases};
use crate::delivery::feed::requests;
use crate::delivery::{Delivery, from_bases, write_content};
use crate::input::Input;
use crate::ostree::Room;
use crate::ostree::carried::Carried;
use crate::ostree::create::NewFile;
use crate::ostree::transaction::Transaction;
use crate::progress::Phase;
use crate::{Error, Progress};

/// The work of building file objects.
pub(super) struct Work<'a> {
    bundle: &'a Bundle,
    /// The bases of a delta bundle.
    bases: &'a Bases,
    carried: &'a Carried<'a>,
    plan: &'a Plan<'a>,
    transaction: &'a Transaction<'a>,
    progress: &'a Progress,
    reads: ReadPlan,
    /// Large objects, assembled before they are written: a checksum covers all bytes in order.
    large: BTreeMap<Row<Object>, Mutex<Option<File>>>,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        bundle: &'a Bundle,
        bases: &'a Bases,
        carried: &'a Carried<'a>,
        plan: &'a Plan<'a>,
        transaction: &'a Transaction<'a>,
        progress: &'a Progress,
    ) -> Self {
        let mut wanted = vec![false; bundle.index.objects().len()];
        for object in plan.wanted.keys().flatten() {
            wanted[object.at()] = true;
        }
        let large =
            bundle.layout.large.iter().map(|large| large.object).filter(|object| bundle.layout.is_stored(*object));
        let large = large.filter(|object| wanted.get(object.at()).is_some_and(|is_wanted| *is_wanted));
        let large = large.map(|object| (object, Mutex::default())).collect();
        let reads = ReadPlan::new(bundle.into(), wanted, &|_, _| false);
        Self { bundle, bases, carried, plan, transaction, progress, reads, large }
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        self.reads.stored_bytes()
    }

    /// Returns how many requests reading takes, if the bundle is at an address.
    pub(super) fn requests(&self, input: &Input) -> Option<u64> {
        requests(input, &self.bundle.head, &self.bundle.layout.chunks, self.reads.chunks())
    }

    fn chunk(&self, chunk: Row<Chunk>) -> &'a Chunk {
        &self.bundle.layout.chunks[chunk.at()]
    }

    /// Returns the wanted objects that have bytes and come from a base.
    fn lacking(&self) -> Vec<Row<Object>> {
        let layout = &self.bundle.layout;
        let is_lacking =
            |object: &Row<Object>| !layout.is_stored(*object) && self.bundle.index.object(*object).size > 0;
        self.plan.wanted.keys().flatten().copied().filter(is_lacking).collect()
    }

    /// Checks that the bases of a delta, which are those given or else the repository's own, have what it needs of them.
    pub(super) fn check_bases(&self, given: &GivenBases, jobs: usize) -> Result<(), Error> {
        if self.bundle.layout.carried.is_none() {
            return Ok(());
        }
        let (lacking, target) = (self.lacking(), self.transaction.repo.path());
        let needed = base::needed(self.bundle, self.bases, self.reads.chunks(), lacking.iter().copied());
        if !self.bases.is_empty() {
            return base::check(self.bases, &needed, given.place_or(target), jobs, self.progress);
        }
        // The repository imported all of this before, and has lost some of it.
        let with_prefix = self.reads.chunks().iter().filter(|chunk| !self.chunk(**chunk).prefix.is_empty());
        let held = with_prefix.flat_map(|chunk| self.wanted_of(*chunk));
        let Some(object) = lacking.into_iter().chain(held).next() else { return Ok(()) };
        let problem = format!(
            "objects that the last bundle installed are gone, such as the content of {}, and the base of that delta is no longer known",
            base::path_of_object(&self.bundle.index, object)
        );
        Err(Error::missing_base(target, problem))
    }

    /// Returns the wanted objects of which a chunk holds data.
    fn wanted_of(&self, chunk: Row<Chunk>) -> Vec<Row<Object>> {
        let is_wanted = |object: &Row<Object>| self.plan.wanted.contains_key(&Some(*object));
        match &self.chunk(chunk).holds {
            Holds::Group(range) => self.bundle.layout.group(range).iter().copied().filter(is_wanted).collect(),
            Holds::Piece => {
                let pieces = self.reads.pieces().filter(|(brought_by, _)| *brought_by == chunk);
                pieces.map(|(_, portion)| portion.object).collect()
            }
        }
    }

    fn attributes(&self, file: u32) -> (&'a Checksum, &'a Attributes, InodeKind) {
        let file = &self.carried.ostree.files()[at(file)];
        (&file.checksum, self.bundle.index.ostree_attributes(file), file.kind)
    }

    /// Checks that the repository's mode can hold all files, and that there is space for them.
    pub(super) fn check(&self) -> Result<(), Error> {
        let (mut len, mut count) = (0_u64, num::wide(self.plan.metadata.len()));
        for (object, files) in &self.plan.wanted {
            count = count.saturating_add(num::wide(files.len()));
            let size = object.map_or(0, |object| self.bundle.index.object(object).size);
            for file in files {
                let (checksum, attributes, kind) = self.attributes(*file);
                self.transaction.check_file(checksum, attributes, matches!(kind, InodeKind::Symlink(_)))?;
                len = len.saturating_add(Room::of_file(size));
            }
        }
        for (_, object) in &self.plan.metadata {
            len = len.saturating_add(Room::of_file(num::wide(self.bundle.index.ostree_bytes(object).len())));
        }
        self.transaction.check_room(len, count)
    }

    pub(super) fn run(&self, input: &mut Input, jobs: usize) -> Result<(), Error> {
        let files = self.plan.wanted.values().map(Vec::len).sum::<usize>();
        self.progress.enter(Phase::Unpacking, self.stored_bytes(), num::wide(files));
        let Self { bundle, bases, progress, .. } = *self;
        let lacking = self.lacking();
        Delivery::new(bundle, bases, &self.reads, jobs, progress).telling(lacking.is_empty()).run(
            input,
            || (),
            |(), content| {
                if content.portion.piece.is_some() { self.take_piece(content) } else { self.write_small(content) }
            },
            |(), object| self.finish_large(object),
        )?;
        self.write_links()?;
        self.copy_from_bases(&lacking, jobs)
    }

    fn write_small(&self, content: &Content<'_>) -> Result<(), Error> {
        if !content.has_holes() {
            return self.write(content.portion.object, &mut |_| Box::new(content.data));
        }
        let mut whole = Vec::new();
        content.for_each_part(&mut |part| whole.extend(part));
        self.write(content.portion.object, &mut |_| Box::new(&whole[..]))
    }

    /// Writes a piece to its place.
    fn take_piece(&self, content: &Content<'_>) -> Result<(), Error> {
        let object = content.portion.object;
        let Some(slot) = self.large.get(&object) else { return Ok(()) };
        let failed = |error: io::Error| self.transaction.unwritten(error);
        let file = {
            let mut slot = slot.lock();
            if slot.is_none() {
                let file = self.transaction.unnamed_file()?;
                file.set_len(self.bundle.index.object(object).size).map_err(failed)?;
                *slot = Some(file);
            }
            slot.as_ref().map(File::try_clone).transpose().map_err(failed)?
        };
        let Some(file) = file else { return Ok(()) };
        write_content(&file, content).map_err(|error| failed(error.into()))
    }

    /// Builds the files of a large object when all of its pieces are in place.
    fn finish_large(&self, object: Row<Object>) -> Result<(), Error> {
        let slot = self.large.get(&object).map(|slot| slot.lock().take());
        let Some(file) = slot.flatten() else { return Ok(()) };
        let failed = |error: io::Error| self.transaction.unwritten(error);
        let mut clones = Vec::new();
        self.write(object, &mut |_| match file.try_clone() {
            Ok(file) => Box::new(ReadAt { file, at: 0 }),
            Err(error) => {
                clones.push(error.kind());
                Box::new(io::empty())
            }
        })?;
        clones.pop().map_or(Ok(()), |kind| Err(failed(kind.into())))
    }

    /// Writes all files of an object, reading its content again for each.
    fn write<'c>(&self, object: Row<Object>, content: &mut dyn FnMut(u64) -> Box<dyn Read + 'c>) -> Result<(), Error> {
        let size = self.bundle.index.object(object).size;
        for file in self.plan.wanted.get(&Some(object)).map_or(&[][..], Vec::as_slice) {
            self.write_one(*file, size, &mut *content(size))?;
        }
        Ok(())
    }

    fn write_one(&self, file: u32, size: u64, content: &mut dyn Read) -> Result<(), Error> {
        let (checksum, attributes, _) = self.attributes(file);
        self.transaction.write_file(checksum, attributes, NewFile::Regular { size, content })?;
        self.progress.add(0, 1);
        Ok(())
    }

    /// Builds the files whose content a base has: only their attributes differ.
    fn copy_from_bases(&self, lacking: &[Row<Object>], jobs: usize) -> Result<(), Error> {
        if lacking.is_empty() {
            return Ok(());
        }
        let row = |object: Row<Object>| self.bundle.index.object(object);
        let files = |object: Row<Object>| self.plan.wanted.get(&Some(object)).map_or(&[][..], Vec::as_slice);
        let bytes = lacking.iter().map(|object| row(*object).size).sum();
        let count = lacking.iter().map(|object| files(*object).len()).sum::<usize>();
        self.progress.enter(Phase::Copying, bytes, num::wide(count));
        let copied = from_bases(self.bundle, self.bases, lacking, jobs, |reader, object, of_base| {
            self.progress.check()?;
            for file in files(object) {
                let mut content = reader.open(of_base)?;
                self.write_one(*file, row(object).size, &mut content).map_err(|error| self.lost(object, error))?;
            }
            self.progress.add(row(object).size, 0);
            Ok(())
        });
        copied.map(drop)
    }

    /// Returns the error for a content that a base had when it was checked.
    fn lost(&self, object: Row<Object>, error: Error) -> Error {
        match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
                let path = base::path_of_object(&self.bundle.index, object);
                let problem = format!("the content of {path} changed during the import");
                Error::missing_base(self.transaction.repo.path(), problem)
            }
            error => error,
        }
    }

    fn write_links(&self) -> Result<(), Error> {
        for file in self.plan.wanted.get(&None).map_or(&[][..], Vec::as_slice) {
            let (checksum, attributes, kind) = self.attributes(*file);
            let InodeKind::Symlink(link) = kind else { continue };
            let wrong = || Error::Usage("the target of a symbolic link is not UTF-8".into());
            let target = std::str::from_utf8(self.bundle.index.symlink_target(link)).map_err(|_| wrong())?;
            self.transaction.write_file(checksum, attributes, NewFile::Symlink(target))?;
            self.progress.add(0, 1);
        }
        Ok(())
    }
}

/// A reader of a file from its start, independent of other readers.
struct ReadAt {
    file: File,
    at: u64,
}

impl Read for ReadAt {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read_at(buffer, self.at)?;
        self.at += num::wide(len);
        Ok(len)
    }
}
