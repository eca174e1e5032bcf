//! The file objects of a bundle, made in a repository from its chunks.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use sealift_format::ostree::Checksum;
use sealift_format::{Attributes, Bundle, Chunk, Holds, InodeKind, data_len};
use sealift_verify::content::{ChunkDecoder, check_object, check_piece, fill_holes, group_objects, piece_range};

use super::carried::Carried;
use super::create::NewFile;
use super::plan::Plan;
use super::transaction::Transaction;
use crate::base::{self, BaseReader, Bases};
use crate::feed::Feed;
use crate::input::Input;
use crate::parallel::for_each;
use crate::progress::Phase;
use crate::{Error, Progress};

/// Making the file objects.
pub(super) struct Work<'a> {
    bundle: &'a Bundle,
    /// Of a delta bundle.
    bases: &'a Bases,
    carried: &'a Carried<'a>,
    plan: &'a Plan<'a>,
    transaction: &'a Transaction<'a>,
    progress: &'a Progress,
    chunks: Vec<u32>,
    /// Of each chunk the pieces that are wanted.
    pieces: BTreeMap<u32, Vec<(u32, u64)>>,
    large: BTreeMap<u32, Large>,
}

/// A large object, which is put together before it is written: its checksum is one of all its bytes in order.
struct Large {
    file: Mutex<Option<File>>,
    missing: AtomicU64,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        (bundle, bases): (&'a Bundle, &'a Bases),
        carried: &'a Carried<'a>,
        plan: &'a Plan<'a>,
        transaction: &'a Transaction<'a>,
        progress: &'a Progress,
    ) -> Self {
        let mut chunks = Vec::new();
        let mut pieces: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
        let mut large = BTreeMap::new();
        let piece_len = bundle.head.root().maxima.piece_len();
        let is_large =
            |object: &u32| bundle.index.object(*object).size > piece_len && bundle.layout.is_carried(*object);
        for object in plan.wanted.keys().flatten().filter(|object| is_large(object)) {
            let mut missing = 0;
            for (number, piece) in (0..).zip(bundle.layout.pieces_of(*object)) {
                if let Some(chunk) = piece.chunk {
                    pieces.entry(chunk).or_default().push((*object, number));
                    missing += 1;
                }
            }
            large.insert(*object, Large { file: Mutex::default(), missing: AtomicU64::new(missing) });
        }
        for (number, chunk) in (0..).zip(&bundle.layout.chunks) {
            let is_wanted = match &chunk.holds {
                Holds::Group(range) => {
                    bundle.layout.group(range).iter().any(|object| plan.wanted.contains_key(&Some(*object)))
                }
                Holds::Piece => pieces.contains_key(&number),
            };
            if is_wanted {
                chunks.push(number);
            }
        }
        Self { bundle, bases, carried, plan, transaction, progress, chunks, pieces, large }
    }

    pub(super) fn stored_bytes(&self) -> u64 {
        self.chunks.iter().map(|number| u64::from(self.chunk(*number).stored_len)).sum()
    }

    fn chunk(&self, number: u32) -> &'a Chunk {
        &self.bundle.layout.chunks[usize::try_from(number).unwrap_or(usize::MAX)]
    }

    /// The objects that are wanted, have bytes, and come from a base.
    fn lacking(&self) -> Vec<u32> {
        let layout = &self.bundle.layout;
        let is_lacking = |object: &u32| !layout.is_carried(*object) && self.bundle.index.object(*object).size > 0;
        self.plan.wanted.keys().flatten().copied().filter(is_lacking).collect()
    }

    /// Whether the repository has what a delta needs of its base.
    pub(super) fn check_bases(&self, jobs: usize) -> Result<(), Error> {
        if self.bundle.layout.carried.is_none() {
            return Ok(());
        }
        let (lacking, target) = (self.lacking(), self.transaction.repo.path());
        let needed = base::needed(self.bundle, self.bases, &self.chunks, lacking.iter().copied());
        if !self.bases.is_empty() {
            return base::check(self.bases, &needed, target, jobs, self.progress);
        }
        // The repository took all of this before, and has lost some of it.
        let with_prefix = self.chunks.iter().filter(|chunk| !self.chunk(**chunk).prefix.is_empty());
        let held = with_prefix.flat_map(|chunk| self.wanted_of(*chunk));
        let Some(object) = lacking.into_iter().chain(held).next() else { return Ok(()) };
        let problem = format!(
            "objects that the last bundle installed are gone, such as the content of {}, and the base of that delta is no longer known; use the \
             full bundle",
            base::path_of_object(&self.bundle.index, object)
        );
        Err(Error::MissingBase { path: target.to_owned(), problem })
    }

    /// The wanted objects of which a chunk holds something.
    fn wanted_of(&self, chunk: u32) -> Vec<u32> {
        let is_wanted = |object: &u32| self.plan.wanted.contains_key(&Some(*object));
        match &self.chunk(chunk).holds {
            Holds::Group(range) => self.bundle.layout.group(range).iter().copied().filter(is_wanted).collect(),
            Holds::Piece => self.pieces.get(&chunk).into_iter().flatten().map(|(object, _)| *object).collect(),
        }
    }

    fn attributes(&self, file: u32) -> (&'a Checksum, &'a Attributes, InodeKind) {
        let file = &self.carried.ostree.files()[usize::try_from(file).unwrap_or(usize::MAX)];
        (&file.checksum, self.bundle.index.ostree_attributes(file), file.kind)
    }

    /// Whether the repository's mode holds all files, and there is room for them.
    pub(super) fn check(&self) -> Result<(), Error> {
        let mut len = 0_u64;
        for (object, files) in &self.plan.wanted {
            let size = object.map_or(0, |object| self.bundle.index.object(object).size);
            for file in files {
                let (checksum, attributes, kind) = self.attributes(*file);
                self.transaction.check_file(checksum, attributes, matches!(kind, InodeKind::Symlink(_)))?;
                len = len.saturating_add(size);
            }
        }
        self.transaction.check_room(len)
    }

    pub(super) fn run(&self, input: &mut Input, jobs: usize) -> Result<(), Error> {
        let files = self.plan.wanted.values().map(Vec::len).sum::<usize>();
        self.progress.enter(Phase::Unpacking, self.stored_bytes(), u64::try_from(files).unwrap_or(0));
        Feed::new((&self.bundle.head, &self.bundle.layout.chunks), &self.chunks, input, self.progress).run(
            jobs,
            || (ChunkDecoder::default(), BaseReader::new(self.bases), Vec::new()),
            |(decoder, reader, prefix), number, stored| {
                reader.prefix(self.bundle.layout.prefix_of(self.chunk(number)), prefix)?;
                let decoded = decoder.decode(self.bundle, number, stored, prefix)?;
                self.take_chunk(number, decoded)
            },
        )?;
        self.copy_from_bases(jobs)?;
        // Links, and files without data, which no chunk brings.
        let rest: Vec<Option<u32>> =
            self.plan.wanted.keys().copied().filter(|object| !self.has_data(*object)).collect();
        for_each(
            jobs,
            &rest,
            || (),
            |(), object| {
                self.progress.check()?;
                match object {
                    None => self.write_links(),
                    Some(object) if self.large.contains_key(object) => {
                        self.check_bare_pieces(*object)?;
                        self.write(*object, &mut |size| Box::new(io::repeat(0).take(size)))
                    }
                    Some(object) => {
                        check_object(self.bundle, *object, &[])?;
                        self.write(*object, &mut |size| Box::new(io::repeat(0).take(size)))
                    }
                }
            },
        )
    }

    fn has_data(&self, object: Option<u32>) -> bool {
        let data = |object| data_len(self.bundle.layout.holes_of(object), 0..self.bundle.index.object(object).size);
        object.is_some_and(|object| data(object) > 0)
    }

    fn take_chunk(&self, number: u32, decoded: &[u8]) -> Result<(), Error> {
        match &self.chunk(number).holds {
            Holds::Group(range) => {
                for (object, data) in group_objects(self.bundle, self.bundle.layout.group(range), decoded) {
                    if self.plan.wanted.contains_key(&Some(object)) {
                        check_object(self.bundle, object, data)?;
                        self.write_small(object, data)?;
                    }
                }
                Ok(())
            }
            Holds::Piece => {
                for &(object, piece) in self.pieces.get(&number).map_or(&[][..], Vec::as_slice) {
                    let start = check_piece(self.bundle, object, piece, decoded)?;
                    self.take_piece(object, piece, start, decoded)?;
                }
                Ok(())
            }
        }
    }

    fn write_small(&self, object: u32, data: &[u8]) -> Result<(), Error> {
        let holes = self.bundle.layout.holes_of(object);
        if holes.is_empty() {
            return self.write(object, &mut |_| Box::new(data));
        }
        let mut whole = Vec::new();
        let size = self.bundle.index.object(object).size;
        let Ok(()) = fill_holes(data, holes, 0..size, |part| {
            whole.extend(part);
            Ok::<(), std::convert::Infallible>(())
        });
        self.write(object, &mut |_| Box::new(&whole[..]))
    }

    /// Puts a piece in its place; the last one makes the files.
    fn take_piece(&self, object: u32, piece: u64, start: u64, data: &[u8]) -> Result<(), Error> {
        let Some(large) = self.large.get(&object) else { return Ok(()) };
        let failed = |error: io::Error| self.transaction.unwritten(error);
        let file = {
            let mut slot = large.file.lock().unwrap_or_else(PoisonError::into_inner);
            if slot.is_none() {
                let file = self.transaction.unnamed_file()?;
                file.set_len(self.bundle.index.object(object).size).map_err(failed)?;
                *slot = Some(file);
            }
            slot.as_ref().map(File::try_clone).transpose().map_err(failed)?
        };
        let Some(file) = file else { return Ok(()) };
        let mut data = data;
        for range in
            sealift_format::data_ranges(self.bundle.layout.holes_of(object), piece_range(self.bundle, object, piece))
        {
            let len = usize::try_from(range.end - range.start).unwrap_or(usize::MAX).min(data.len());
            let (part, rest) = data.split_at(len);
            file.write_all_at(part, range.start).map_err(failed)?;
            data = rest;
        }
        debug_assert!(start <= self.bundle.index.object(object).size, "a piece lies in its object");
        if large.missing.fetch_sub(1, Ordering::AcqRel) > 1 {
            return Ok(());
        }
        self.check_bare_pieces(object)?;
        let mut clones = Vec::new();
        self.write(object, &mut |_| match file.try_clone() {
            Ok(file) => Box::new(ReadAt { file, at: 0 }),
            Err(error) => {
                clones.push(error.kind());
                Box::new(io::empty())
            }
        })?;
        large.file.lock().unwrap_or_else(PoisonError::into_inner).take();
        clones.pop().map_or(Ok(()), |kind| Err(failed(kind.into())))
    }

    fn check_bare_pieces(&self, object: u32) -> Result<(), Error> {
        for (number, piece) in (0..).zip(self.bundle.layout.pieces_of(object)) {
            if piece.chunk.is_none() {
                check_piece(self.bundle, object, number, &[])?;
            }
        }
        Ok(())
    }

    /// Writes all files of an object, whose content each reads anew.
    fn write<'c>(&self, object: u32, content: &mut dyn FnMut(u64) -> Box<dyn Read + 'c>) -> Result<(), Error> {
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

    /// Makes the files whose content a base has: what differs is who owns them, or the like.
    fn copy_from_bases(&self, jobs: usize) -> Result<(), Error> {
        let lacking = self.lacking();
        if lacking.is_empty() {
            return Ok(());
        }
        let by_id = self.bases.by_id();
        let row = |object: u32| self.bundle.index.object(object);
        let files = |object: u32| self.plan.wanted.get(&Some(object)).map_or(&[][..], Vec::as_slice);
        let bytes = lacking.iter().map(|object| row(*object).size).sum();
        let count = lacking.iter().map(|object| files(*object).len()).sum::<usize>();
        self.progress.enter(Phase::Copying, bytes, u64::try_from(count).unwrap_or(0));
        for_each(
            jobs,
            &lacking,
            || BaseReader::new(self.bases),
            |reader, object| {
                self.progress.check()?;
                let of_base = by_id.get(&row(*object).id).copied().unwrap_or(u32::MAX);
                for file in files(*object) {
                    let mut content = reader.open(of_base)?;
                    self.write_one(*file, row(*object).size, &mut content)
                        .map_err(|error| self.lost(*object, error))?;
                }
                self.progress.add(row(*object).size, 0);
                Ok(())
            },
        )
    }

    /// The error of a content that a base had when it was looked at.
    fn lost(&self, object: u32, error: Error) -> Error {
        match error {
            Error::Io { source, .. } if source.kind() == io::ErrorKind::InvalidData => {
                let path = base::path_of_object(&self.bundle.index, object);
                let problem = format!("the content of {path} changed during the import; run it again");
                Error::MissingBase { path: self.transaction.repo.path().to_owned(), problem }
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

/// A file from its start, wherever others read it.
struct ReadAt {
    file: File,
    at: u64,
}

impl Read for ReadAt {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read_at(buffer, self.at)?;
        self.at += u64::try_from(len).unwrap_or(0);
        Ok(len)
    }
}
