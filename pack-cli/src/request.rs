//! A request: what a target holds, in a small file, so that a publisher can pack just what it lacks (requests.md).

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use sealift_format::num;
use sealift_format::{Index, Request, RootBase};

use crate::output::Output;
use crate::pack::PackOptions;
use crate::pack::compress::Compressor;
use crate::trust::{DeviceState, Survey, TargetKind};
use crate::{Error, Limits, Progress, RecordFault, SlotFault};
use sealift_store::base::Base;
use sealift_store::directory::TreeRecord;
use sealift_store::slot::{Slot, SlotAddress, SlotFolder};
use sealift_store::{LeftRun, Site};

/// The result of writing a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RequestStats {
    /// The base that the target holds. Name and version are absent if the target has no record and was read.
    pub base: RootBase,
    /// Entries of its trees.
    pub entries: u64,
    /// Objects that it holds.
    pub objects: u64,
    /// Size of the request in bytes.
    pub file_bytes: u64,
    /// The version that this device installed there, if the target has gone back to an older one together with its record.
    pub gone_back_from: Option<u64>,
}

/// Writes a description of `target` to `output`. A directory is described from its record of the installed bundle, or by reading all of it if it has
/// none, or that of another directory, and a slot from its record; `ostree:REPO:REF`, a commit in a repository, is read. `state` is the device's, if its place is known.
///
/// # Errors
/// Returns an error if the target does not exist, cannot be read or changes meanwhile, if its record is damaged, or if the output cannot be written.
/// Nothing is left at the output then.
pub fn request(
    target: &OsStr,
    output: &Output,
    state: Option<&DeviceState>,
    jobs: usize,
    progress: &Progress,
) -> Result<RequestStats, Error> {
    let kind = TargetKind::of(target).0;
    if kind == TargetKind::Composefs {
        let problem = "is a composefs store, and a request needs a directory, or a commit as ostree:REPO:REF";
        return Err(Error::unexpected(Path::new(target), problem));
    }
    if kind == TargetKind::Slot {
        return of_slot(target, output, state);
    }
    let site = if kind == TargetKind::Ostree { None } else { Some(Arc::new(Site::resolve(Path::new(target))?)) };
    let (mut kept, mut gone_back_from) = (None, None);
    if let Some(site) = &site {
        site.check_at_rest()?;
        let survey = Survey::of_directory(site, state)?;
        gone_back_from = survey.gone_back_from();
        kept = match survey.fault {
            Some(RecordFault::OfAnother) => None,
            _ => TreeRecord::of(site, Limits::NONE)?,
        };
    }
    if kept.as_ref().is_some_and(|kept| !kept.part.prefix.is_empty() || kept.installed.index.refs().len() > 1) {
        let problem = "holds only a part of its bundle, and a request needs a target with the whole bundle";
        return Err(Error::unexpected(Path::new(target), problem));
    }
    let (index, index_digest, taken) = match kept {
        Some(kept) => {
            let root = kept.installed.head.root();
            let taken = Some((root.identity.name.clone(), root.identity.version));
            let digest = root.contents.index_digest;
            (kept.installed.index, digest, taken)
        }
        None => {
            let base = match site {
                None => Base::of_commit(target, None, &[], jobs, progress)?,
                Some(site) => Base::by_reading(site, "main", jobs, progress)?,
            };
            let named = base.named();
            (base.index, named.index_digest, None)
        }
    };
    write(target, output, &index, index_digest, taken, gone_back_from)
}

/// Describes a slot from its record.
fn of_slot(target: &OsStr, output: &Output, state: Option<&DeviceState>) -> Result<RequestStats, Error> {
    let (Some(state), target) = (state, Path::new(target)) else { return Err(Error::NoStateDirectory) };
    let slot = Slot::open(&SlotAddress { image: None, target: target.to_owned() })?;
    let survey = Survey::of_slot(&slot, state)?;
    if survey.run.is_some_and(LeftRun::is_half) {
        return Err(Error::Slot { path: target.to_owned(), fault: Box::new(SlotFault::Unfinished) });
    }
    let record = SlotFolder::open(state.dir(), &slot)?.map_or(Ok(None), |folder| folder.held())?;
    let record =
        record.filter(|_| survey.fault.is_none()).ok_or_else(|| Error::NoRecord { path: target.to_owned() })?;
    let (root, index) = (record.installed.head.root(), &record.installed.index);
    if index.objects().len() > 1 {
        let problem = "holds only one file of its bundle, and a request needs a target with the whole bundle";
        return Err(Error::unexpected(target, problem));
    }
    let taken = Some((root.identity.name.clone(), root.identity.version));
    write(target.as_os_str(), output, index, root.contents.index_digest, taken, survey.gone_back_from())
}

fn write(
    target: &OsStr,
    output: &Output,
    index: &Index,
    index_digest: [u8; 32],
    taken: Option<(String, u64)>,
    gone_back_from: Option<u64>,
) -> Result<RequestStats, Error> {
    let request =
        Request::of(index, index_digest, taken).map_err(|error| Error::from(error).of_bundle(Path::new(target)))?;
    let bytes = request.encode(Compressor::for_front(PackOptions::LEVEL)?.compress(request.outline())?)?;
    output.write(&bytes)?;
    let wide = |len: usize| num::wide(len);
    Ok(RequestStats {
        base: request.base,
        entries: wide(index.entries().len()),
        objects: wide(index.objects().len()),
        file_bytes: wide(bytes.len()),
        gone_back_from,
    })
}
