//! Makes damaged bytes of a bundle again.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use reed_solomon_simd::rate::RateDecoder as _;
use sealift_format::num::{at, size, wide};
use sealift_format::{Geometry, Head};
use sealift_store::fs::partial::PartialFile;
use sealift_store::threads::parallel::for_each_with;

use super::code::{self, Decoder};
use super::file::{Checksums, Front, RecoveryFile};
use super::readable;
use crate::base::Bases;
use crate::verify::{Depth, verify_opened};
use crate::{Error, Input, Limits, Phase, Progress};

/// How to repair a bundle.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "a caller chooses all of it")]
pub struct RepairOptions {
    /// Whether an existing file is replaced.
    pub replaces: bool,
    /// How many threads work on it; fewer do if codewords take much memory.
    pub jobs: usize,
    /// The limits of what the bundle may declare.
    pub limits: Limits,
}

/// The result of repairing a bundle.
#[derive(Debug)]
#[non_exhaustive]
pub struct RepairStats {
    /// The bundle's head.
    pub head: Head,
    /// Bytes that were lost, and are made again, in whole shards.
    pub repaired_bytes: u64,
    /// Those of them that the system could not read, or that were missing at the end of the file; the others had changed.
    pub unreadable_bytes: u64,
    /// Whether the bundle's head is that of the recovery files, with the signatures that it had when they were made.
    pub is_head_replaced: bool,
    /// Recovery files that are damaged or of another bundle, and why.
    pub unused: Vec<(PathBuf, Error)>,
}

/// Makes a whole bundle from a damaged one and recovery files that were made for it. It appears when all of it is there and every byte is checked.
///
/// # Errors
/// Returns an error if no recovery file is sound, if more is lost than they can make again, if what they make is not the bundle, or if the file exists
/// already or cannot be written.
pub fn repair(
    bundle: &Path,
    recovery: &[PathBuf],
    output: &Path,
    options: &RepairOptions,
    progress: &Progress,
) -> Result<RepairStats, Error> {
    let Opened { files, front, unused } = open_all(recovery, &options.limits)?;
    let file = File::open(bundle).map_err(|error| Error::io("read", bundle, error))?;
    // Signatures that were added since are kept, if they are sound.
    let own = Input::open(bundle).and_then(|mut input| input.read_head(options.limits.clone())).ok();
    let own = match own {
        Some(own) if own.signed() != front.head.signed() => {
            let why = format!("is another bundle than that of {}", shown(recovery));
            return Err(Error::unexpected(bundle, why));
        }
        own => own,
    };
    let is_head_replaced = own.is_none();
    let (shift, head) = match own {
        Some(own) => (own.head_len().cast_signed() - front.head.head_len().cast_signed(), own),
        None => (0, front.head.clone()),
    };
    let partial = PartialFile::create(output, options.replaces)?;
    let file_len = front.head.file_len();
    let write = |bytes: &[u8], offset: u64| {
        let written = partial.file().write_all_at(bytes, offset);
        written.map_err(|error| Error::io("write", output, error))
    };
    write(&[head.encode(), front.layout.clone()].concat(), 0)?;
    let Some(geometry) = files.first().map(|file| file.recovery.geometry.clone()) else {
        return Err(Error::Usage("give at least one recovery file".into()));
    };
    let suspects = suspects(&files, &file, shift, &front, file_len, progress)?;
    let body = Body { files: &files, file: &file, geometry: &geometry, shift, file_len, suspects: &suspects };
    let codewords: Vec<u64> = (0..geometry.codewords(file_len)).collect();
    progress.enter(Phase::Copying, file_len, 0);
    let total = Mutex::new(Lost::default());
    for_each_with(
        code::jobs(&geometry, options.jobs)?,
        &codewords,
        || None,
        |worker, codeword| {
            progress.check()?;
            let worker = match worker {
                Some(worker) => worker,
                None => worker.insert(Worker::new(&geometry)?),
            };
            let lost = worker.repair(&body, *codeword, &write)?;
            let mut total = total.lock();
            total.all += lost.all;
            total.unreadable += lost.unreadable;
            progress.add(file_len / wide(codewords.len()).max(1), 0);
            Ok(())
        },
    )?;
    check(&partial, options, progress).map_err(|error| match error.kind() {
        Some(_) => Error::WrongRecovery {
            path: recovery.first().map_or_else(|| bundle.to_owned(), PathBuf::clone),
            source: Box::new(error),
        },
        None => error,
    })?;
    partial.finish()?;
    let Lost { all, unreadable } = total.into_inner();
    Ok(RepairStats { head, repaired_bytes: all, unreadable_bytes: unreadable, is_head_replaced, unused })
}

/// Recovery files, and the bundle's front, which they have.
struct Opened {
    files: Vec<RecoveryFile>,
    front: Front,
    /// Those that are not sound, and why.
    unused: Vec<(PathBuf, Error)>,
}

/// Opens the recovery files that are sound. The others are returned with the reason.
fn open_all(paths: &[PathBuf], limits: &Limits) -> Result<Opened, Error> {
    let (mut files, mut front, mut unused): (Vec<RecoveryFile>, Option<Front>, Vec<(PathBuf, Error)>) =
        Default::default();
    for path in paths {
        match RecoveryFile::open(path, limits) {
            Err(error) => unused.push((path.clone(), error)),
            Ok((file, own)) => match files.first() {
                Some(first) if !file.is_with(first) => {
                    let why = format!("is not of the same set as {}", first.path.display());
                    unused.push((path.clone(), Error::unexpected(path, why)));
                }
                Some(_) if files.iter().any(|other| other.recovery.number == file.recovery.number) => {}
                _ => {
                    front.get_or_insert(own);
                    files.push(file);
                }
            },
        }
    }
    match front {
        Some(front) => Ok(Opened { files, front, unused }),
        None => Err(unused.pop().map_or_else(|| Error::Usage("give the recovery files".into()), |(_, error)| error)),
    }
}

fn shown(paths: &[PathBuf]) -> String {
    paths.first().map_or_else(String::new, |path| path.display().to_string())
}

/// Returns the damaged chunks, and the index if it is damaged, if checksums of shards are lost that would tell more exactly. In ascending order.
fn suspects(
    files: &[RecoveryFile],
    file: &File,
    shift: i64,
    front: &Front,
    file_len: u64,
    progress: &Progress,
) -> Result<Vec<Range<u64>>, Error> {
    let Some(first) = files.first() else { return Ok(Vec::new()) };
    let codewords = first.recovery.geometry.codewords(file_len);
    let has_checksums = |file: &RecoveryFile| (0..codewords).all(|codeword| file.checksums(codeword).is_some());
    if files.len() == usize::from(first.recovery.count) && files.iter().all(has_checksums) {
        return Ok(Vec::new());
    }
    let contents = &front.head.root().contents;
    let index = front.head.head_len().saturating_add(contents.layout_stored)..front.head.chunks_at();
    let mut suspects = Vec::new();
    let mut look = |range: Range<u64>, digest: &[u8; 32]| -> Result<(), Error> {
        progress.check()?;
        let mut stored = vec![0; size(range.end - range.start)];
        readable::read(file, &mut stored, range.start.saturating_add_signed(shift));
        if blake3::hash(&stored).as_bytes() != digest {
            suspects.push(range);
        }
        Ok(())
    };
    look(index, &contents.index_blake3)?;
    for chunk in front.chunks()? {
        let start = front.head.chunks_at().saturating_add(chunk.offset);
        look(start..start.saturating_add(chunk.stored_len.into()), &chunk.digest)?;
    }
    Ok(suspects)
}

/// Compares all of a bundle with its digests.
fn check(partial: &PartialFile, options: &RepairOptions, progress: &Progress) -> Result<(), Error> {
    let mut input = Input::open(partial.path())?;
    let opened = input.open_any(options.limits.clone())?;
    verify_opened(input, opened, Bases::default(), Depth::Stored, options.jobs, progress).map(drop)
}

/// What is read of a bundle, and how.
struct Body<'a> {
    files: &'a [RecoveryFile],
    file: &'a File,
    geometry: &'a Geometry,
    /// By how much later the body lies in the file than in the bundle of the recovery files.
    shift: i64,
    file_len: u64,
    suspects: &'a [Range<u64>],
}

/// Bytes of shards that were lost.
#[derive(Default)]
struct Lost {
    all: u64,
    unreadable: u64,
}

/// A data shard that was lost.
struct LostShard {
    /// Its number in the codeword.
    number: usize,
    /// Its bytes in the bundle, and how many zeros come before them.
    range: Range<u64>,
    zeros: usize,
}

/// What a thread needs to repair codewords.
struct Worker {
    decoder: Decoder,
    run: Vec<u8>,
}

impl Worker {
    fn new(geometry: &Geometry) -> Result<Self, Error> {
        let run = vec![0; at(geometry.run) * at(geometry.shard_len)];
        Ok(Self { decoder: code::decoder(geometry)?, run })
    }

    /// Writes the bytes of a codeword, which it makes again where they are lost.
    fn repair(
        &mut self,
        body: &Body<'_>,
        codeword: u64,
        write: &(impl Fn(&[u8], u64) -> Result<(), Error> + Sync),
    ) -> Result<Lost, Error> {
        code::begin_again(&mut self.decoder, body.geometry)?;
        let checksums: Vec<_> = body.files.iter().filter_map(|file| file.checksums(codeword)).collect();
        let mut total = Lost::default();
        let mut lost = Vec::new();
        for column in 0..body.geometry.starts.len() {
            self.read_run(body, (codeword, column), &checksums, &mut lost, &mut total)?;
            let (range, zeros) = body.geometry.run_of(codeword, column, body.file_len);
            let bytes = self.run.get(size(zeros)..size(zeros + (range.end - range.start))).unwrap_or_default();
            write(bytes, range.start.saturating_add_signed(body.shift))?;
        }
        if lost.is_empty() {
            return Ok(total);
        }
        let mut needed = lost.len();
        for file in body.files {
            file.shards(codeword, |number, shard| {
                if needed > 0 {
                    self.decoder.add_recovery_shard(number, shard).map_err(code::failed)?;
                    needed -= 1;
                }
                Ok(needed > 0)
            })?;
        }
        if needed > 0 {
            let range = lost.first().map_or(0..0, |shard| shard.range.clone());
            return Err(Error::Unrepairable { lost: wide(lost.len()), needed: wide(needed), offset: range.start });
        }
        let made = self.decoder.decode().map_err(code::failed)?;
        for LostShard { number, range, zeros } in &lost {
            let shard = made.restored_original(*number).unwrap_or_default();
            let len = size(range.end - range.start);
            let bytes = shard.get(*zeros..zeros + len).unwrap_or_default();
            write(bytes, range.start.saturating_add_signed(body.shift))?;
        }
        Ok(total)
    }

    /// Reads the run of a column, gives its sound shards to the decoder, and adds the others to `lost`.
    fn read_run(
        &mut self,
        body: &Body<'_>,
        (codeword, column): (u64, usize),
        checksums: &[Checksums<'_>],
        lost: &mut Vec<LostShard>,
        total: &mut Lost,
    ) -> Result<(), Error> {
        let (geometry, shard_len) = (body.geometry, at(body.geometry.shard_len));
        let (range, zeros) = geometry.run_of(codeword, column, body.file_len);
        let (zeros, len) = (size(zeros), size(range.end - range.start));
        self.run.fill(0);
        let part = self.run.get_mut(zeros..zeros + len).unwrap_or_default();
        let unread = readable::read(body.file, part, range.start.saturating_add_signed(body.shift));
        for (place, shard) in self.run.chunks_exact(shard_len).enumerate() {
            let number = column * at(geometry.run) + place;
            // Its bytes, counted from where those of the run begin.
            let (start, end) = (place * shard_len, (place + 1) * shard_len);
            let own = start.max(zeros).min(zeros + len) - zeros..end.max(zeros).min(zeros + len) - zeros;
            let bytes = range.start + wide(own.start)..range.start + wide(own.end);
            let is_unread = unread.iter().any(|unread| unread.start < own.end && own.start < unread.end);
            let is_suspect = || {
                let after = body.suspects.partition_point(|suspect| suspect.end <= bytes.start);
                body.suspects.get(after).is_some_and(|suspect| suspect.start < bytes.end)
            };
            let checksum = checksums.iter().find_map(|checksums| checksums.of(column, place));
            let has_changed = || match checksum {
                Some(checksum) => checksum != code::checksum(shard),
                None => is_suspect(),
            };
            if !own.is_empty() && (is_unread || has_changed()) {
                total.all += bytes.end - bytes.start;
                total.unreadable += if is_unread { bytes.end - bytes.start } else { 0 };
                lost.push(LostShard { number, range: bytes, zeros: zeros.saturating_sub(start) });
            } else {
                self.decoder.add_original_shard(number, shard).map_err(code::failed)?;
            }
        }
        Ok(())
    }
}
