//! Makes damaged bytes of a bundle again.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use sealift_format::Head;
use sealift_store::fs::partial::PartialFile;

use super::body::{Body, Lost, Part, Slice, suspects};
use super::file::{Front, RecoveryFile};
use crate::base::Bases;
use crate::verify::{Depth, verify_opened};
use crate::{Error, Input, Limits, Phase, Progress, RecoveryFault};

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
    let Some(geometry) = files.first().map(|file| file.recovery().geometry.clone()) else {
        return Err(Error::Usage("give at least one recovery file".into()));
    };
    let offset = front.head.head_len().saturating_add(front.head.root().contents.layout_stored);
    let slices = [Slice { range: offset..file_len, file: Some(file), at: offset.saturating_add_signed(shift) }];
    let run = |suspects: &[Range<u64>]| {
        let body = Body { files: &files, geometry: &geometry, slices: &slices, suspects };
        progress.enter(Phase::Copying, file_len, 0);
        body.repair(options.jobs, progress, &|part| match part {
            Part::Run { offset, bytes, .. } | Part::Made { offset, bytes } => {
                write(bytes, offset.saturating_add_signed(shift))
            }
        })
    };
    let mut lost = run(&[])?;
    let mut checked = check(&partial, &lost, options, progress);
    // Shards without a checksum may have changed: whole chunks tell.
    let is_wrong = checked.as_ref().is_err_and(|error| error.kind().is_some());
    if is_wrong && !lost.unknown.is_empty() {
        lost = run(&suspects(&slices, &front, progress)?)?;
        checked = check(&partial, &lost, options, progress);
    }
    checked.map_err(|error| match error.kind() {
        Some(_) => {
            let path = recovery.first().map_or_else(|| bundle.to_owned(), PathBuf::clone);
            RecoveryFault::Wrong { path, source: Box::new(error) }.into()
        }
        None => error,
    })?;
    partial.finish()?;
    Ok(RepairStats {
        head,
        repaired_bytes: Lost::all(&lost.bytes),
        unreadable_bytes: Lost::all(&lost.unreadable),
        is_head_replaced,
        unused,
    })
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
                    let why = format!("is not of the same set as {}", first.path().display());
                    unused.push((path.clone(), Error::unexpected(path, why)));
                }
                Some(_) if files.iter().any(|other| other.recovery().number == file.recovery().number) => {}
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

/// Compares all of a bundle with its digests.
fn check(partial: &PartialFile, lost: &Lost, options: &RepairOptions, progress: &Progress) -> Result<(), Error> {
    if let Some(short) = lost.short {
        return Err(short.into());
    }
    let mut input = Input::open(partial.path())?;
    let opened = input.open_any(options.limits.clone())?;
    verify_opened(input, opened, Bases::default(), Depth::Stored, options.jobs, progress).map(drop)
}
