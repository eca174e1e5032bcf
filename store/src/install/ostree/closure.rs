//! Checks the existing objects of a bundle's commits, before the missing ones are imported.
//!
//! One stat(2) per object tells whether it exists with the expected type and size. An object that was written to since the last import of a bundle
//! of this name, or that has other permissions, is read and compared with its checksum. For a compressed file the size only tells whether it can be
//! complete.

use std::collections::HashSet;

use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::ostree::file;
use sealift_format::{Bundle, Index, InodeKind, OsTreeFile, Ref};

use crate::install_record::written_at;
use crate::ostree::carried::Carried;
use crate::ostree::config::Mode;
use crate::ostree::look::{ObjectCheck, ObjectState};
use crate::ostree::object::loose_path;
use crate::ostree::records::records;
use crate::ostree::repo::Repo;
use crate::ostree::transaction::Object;
use crate::ostree::wanted::{Walk, Wanted, WantedContent};
use crate::progress::Phase;
use crate::threads::parallel::map;
use crate::{Error, Progress};

/// How closely objects are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// By their file system metadata.
    Sizes,
    /// By their content.
    Content,
}

/// The result of checking objects.
#[derive(Debug, Default)]
pub(super) struct Seen {
    missing: HashSet<Object>,
    /// Objects that exist and do not match their names.
    pub(super) damaged: HashSet<Object>,
    /// Objects that exist.
    pub(super) checked: u64,
    /// Objects that were read, or that the kernel vouched for.
    pub(super) hashed: u64,
    /// Bytes that were read.
    pub(super) hashed_bytes: u64,
}

/// What the file system's metadata says of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Glance {
    Good,
    Missing,
    Wrong,
    /// It has to be read.
    Odd,
}

impl Seen {
    /// Returns whether an object has to be imported.
    pub(super) fn is_lacking(&self, wanted: &Wanted<'_>) -> bool {
        let object = (wanted.checksum, wanted.kind);
        self.missing.contains(&object) || self.damaged.contains(&object)
    }
}

/// Returns all objects of the commits of these refs, and of their ancestors that are carried.
///
/// # Errors
/// Returns an error if an object of the bundle is invalid.
pub(super) fn of<'a>(repo: &'a Repo, carried: &Carried<'a>, refs: &[&'a Ref]) -> Result<Vec<Wanted<'a>>, Error> {
    let mut walk = Walk::new(repo, &carried.bundle.index, carried.ostree);
    for from in refs {
        let mut next = Some(carried.tip(from)?.checksum);
        while let Some(commit) = next {
            next = walk.add_commit(from, commit)?;
        }
    }
    Ok(walk.finish().objects)
}

/// Checks objects.
///
/// # Errors
/// Returns an error if they cannot be checked.
pub(super) fn look(
    repo: &Repo,
    bundle: &Bundle,
    wanted: &[Wanted<'_>],
    depth: Depth,
    jobs: usize,
    progress: &Progress,
) -> Result<Seen, Error> {
    let mut seen = Seen::default();
    if wanted.is_empty() {
        return Ok(seen);
    }
    let eye = Eye { repo, index: &bundle.index, since: records(repo).written(&bundle.head.root().identity.name) };
    progress.enter(Phase::Listing, 0, num::wide(wanted.len()));
    let parts: Vec<&[Wanted<'_>]> = wanted.chunks(PART).collect();
    let glances = map(jobs, &parts, |part| {
        progress.check()?;
        let found = part.iter().map(|wanted| eye.glance(wanted)).collect::<Result<Vec<_>, _>>()?;
        progress.add(0, num::wide(part.len()));
        Ok(found)
    })?;
    let (mut metadata, mut files) = (Vec::new(), Vec::new());
    for ((number, wanted), glance) in (0..).zip(wanted).zip(glances.into_iter().flatten()) {
        let object = (wanted.checksum, wanted.kind);
        match glance {
            Glance::Missing => _ = seen.missing.insert(object),
            Glance::Wrong => _ = seen.damaged.insert(object),
            Glance::Good if depth == Depth::Sizes => {}
            Glance::Good | Glance::Odd => match wanted.what {
                WantedContent::Metadata(bytes) => metadata.push((number, bytes)),
                WantedContent::File(file) => files.push((number, file)),
            },
        }
    }
    for (number, looked) in read(repo, bundle, wanted, &metadata, &files, jobs, progress)? {
        let object = (wanted[number].checksum, wanted[number].kind);
        match looked {
            ObjectState::Vouched => seen.hashed += 1,
            ObjectState::Right { bytes } => {
                seen.hashed += 1;
                seen.hashed_bytes = seen.hashed_bytes.saturating_add(bytes);
            }
            ObjectState::Missing => _ = seen.missing.insert(object),
            ObjectState::Changed => {
                seen.hashed += 1;
                seen.damaged.insert(object);
            }
        }
    }
    seen.checked = num::wide(wanted.len() - seen.missing.len());
    for (checksum, kind) in &seen.damaged {
        let path = repo.object_path(*kind, checksum);
        tracing::warn!(path = %path.display(), "replacing an object that does not match its name");
    }
    Ok(seen)
}

/// Objects per batch of a thread, which checks for cancellation before each batch.
const PART: usize = 256;

/// Reads metadata and file objects, given by their numbers.
fn read(
    repo: &Repo,
    bundle: &Bundle,
    wanted: &[Wanted<'_>],
    metadata: &[(usize, &[u8])],
    files: &[(usize, &OsTreeFile)],
    jobs: usize,
    progress: &Progress,
) -> Result<Vec<(usize, ObjectState)>, Error> {
    if metadata.is_empty() && files.is_empty() {
        return Ok(Vec::new());
    }
    let look = ObjectCheck::new(repo, &bundle.index, progress, jobs);
    progress.enter(Phase::Verifying, 0, num::wide(metadata.len() + files.len()));
    let mut found = map(jobs, metadata, |(number, bytes)| {
        let Wanted { kind, checksum, .. } = &wanted[*number];
        Ok((*number, look.metadata(*kind, checksum, bytes)?))
    })?;
    found.extend(look.files(files)?);
    Ok(found)
}

/// What objects are compared with.
struct Eye<'a> {
    repo: &'a Repo,
    index: &'a Index,
    /// When a bundle of this name was last imported, in nanoseconds since 1970: objects written later are read.
    since: Option<i128>,
}

impl Eye<'_> {
    fn glance(&self, wanted: &Wanted<'_>) -> Result<Glance, Error> {
        let (kind, checksum) = (wanted.kind, &wanted.checksum);
        let stat = match statat(
            self.repo.objects(),
            loose_path(kind, checksum, self.repo.config().mode),
            AtFlags::SYMLINK_NOFOLLOW,
        ) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(Glance::Missing),
            Err(error) => return Err(Error::io("look at", self.repo.object_path(kind, checksum), error)),
        };
        let size = stat.st_size.cast_unsigned();
        let glance = match wanted.what {
            WantedContent::Metadata(bytes) => {
                let is_right = is_file(&stat) && usize::try_from(size).is_ok_and(|size| size == bytes.len());
                if is_right { Glance::Good } else { Glance::Wrong }
            }
            WantedContent::File(file) => self.glance_at_file(file, &stat, size),
        };
        let is_later = self.since.is_some_and(|since| written_at(&stat) > since);
        Ok(if glance == Glance::Good && is_later { Glance::Odd } else { glance })
    }

    fn glance_at_file(&self, file: &OsTreeFile, stat: &Stat, size: u64) -> Glance {
        let attributes = self.index.ostree_attributes(file);
        let (content, target) = match file.kind {
            InodeKind::Regular(object) => (Some(self.index.object(object).size), &[][..]),
            InodeKind::Symlink(link) => (None, self.index.symlink_target(link)),
            _ => return Glance::Odd,
        };
        let target_len = num::wide(target.len());
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let is_right = match (self.repo.config().mode, content) {
            (Mode::Bare | Mode::BareUserOnly, None) => is_link && size == target_len,
            // With or without the terminating zero byte.
            (Mode::BareUser, None) => is_file(stat) && (target_len..=target_len.saturating_add(1)).contains(&size),
            (Mode::Archive, content) => {
                let target = std::str::from_utf8(target).unwrap_or_default();
                let header = file::encode_archive_header(content.unwrap_or(0), attributes, target).len();
                let header = num::wide(header);
                // Deflate compresses at most 1032 bytes into one.
                let least = content.map_or(0, |content| 1 + content / 1040);
                is_file(stat) && size >= header.saturating_add(least) && (content.is_some() || size == header)
            }
            (_, Some(content)) => is_file(stat) && size == content,
        };
        let bits = stat.st_mode & 0o7777;
        let is_like = is_link
            || match self.repo.config().mode {
                Mode::Bare => {
                    bits == u32::from(attributes.mode & 0o7777)
                        && (stat.st_uid, stat.st_gid) == (attributes.uid, attributes.gid)
                }
                Mode::BareUserOnly => bits == u32::from(attributes.mode & 0o7777),
                Mode::BareUser | Mode::Archive => true,
            };
        match (is_right, is_like) {
            (false, _) => Glance::Wrong,
            (true, true) => Glance::Good,
            (true, false) => Glance::Odd,
        }
    }
}

fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}
