//! The install records of a repository, in `extensions/sealift`: libostree leaves `extensions` to other programs. A record is used only if its index
//! is the base or the result of a delta bundle; objects are checked whatever it states.

use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Timespec;
use rustix::io::Errno;
use sealift_format::{Bundle, Index};

use super::repo::Repo;
use super::stage::ObjectStage;
use super::transaction::{make_directory, take_lock};
use crate::Error;
use crate::fs::own_store::{FOLDER_MODE, make_folder};
use crate::install_record::{NewRecord, Records};
use crate::kept_order::KeptOrder;
use crate::seal::{KernelSignature, WantedSignature};

/// Returns the records of a repository.
pub(crate) fn records(repo: &Repo) -> Records<'_> {
    Records::new(repo.root(), repo.path(), Records::OSTREE)
}

/// Returns the indexes of all records.
pub(crate) fn indexes(repo: &Repo) -> Result<Vec<Index>, Error> {
    let (records, mut indexes) = (records(repo), Vec::new());
    for name in records.names()? {
        let Some(record) = records.load(&name)? else { continue };
        indexes.push(record.index);
    }
    Ok(indexes)
}

/// Returns the order in the record that has exactly this index; `None` if no such record can be read.
pub(crate) fn order_of(repo: &Repo, index: &Index) -> Option<KeptOrder> {
    let records = records(repo);
    let names = records.names().ok()?.into_iter();
    let mut found = names.filter_map(|name| records.load(&name).ok()?);
    found.find(|record| record.index.bytes() == index.bytes())?.order
}

/// Returns a moment before all writes from now on. It is a second or two in the past, since file times lag behind the clock.
pub(crate) fn now() -> Timespec {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timespec { tv_sec: i64::try_from(now.as_secs()).unwrap_or(i64::MAX).saturating_sub(1), tv_nsec: 0 }
}

/// Checks whether the kernel accepts a signature of a bundle's index, by sealing an index that is removed again.
///
/// # Errors
/// Returns an error if it does not.
pub(crate) fn try_signature(repo: &Repo, bundle: &Bundle, signature: WantedSignature<'_>) -> Result<(), Error> {
    records(repo).try_signature(stage(repo)?.directory(), bundle, signature)
}

/// Writes the record of an imported bundle, unless it is unchanged. It is sealed if the objects are, and the index with the signature for the
/// kernel. Returns what happened to that signature.
///
/// # Errors
/// Returns an error if the repository cannot be written to, or if the kernel refuses a required signature.
pub(crate) fn write(
    repo: &Repo,
    bundle: &Bundle,
    order: Option<&KeptOrder>,
    is_sealed: bool,
    signature: Option<WantedSignature<'_>>,
) -> Result<KernelSignature, Error> {
    let (records, name) = (records(repo), &bundle.head.root().identity.name);
    let is_signature_missing = signature.is_some_and(|signature| signature.is_required) && !records.is_signed(name);
    let new = NewRecord { bundle, files: Vec::new(), order, is_sealed, signature, durable: repo.config().fsync };
    if !is_signature_missing && records.has(&new)? {
        records.end(name)?;
        return Ok(KernelSignature::None);
    }
    let _lock = if repo.config().locking { Some(take_lock(repo)?) } else { None };
    let folder = records_folder(repo).map_err(|error| Error::io("write", records.head_path(name), error))?;
    records.put(stage(repo)?.directory(), &folder, &new)
}

/// Creates a stage, by which a run that was killed is recognized.
pub(crate) fn stage(repo: &Repo) -> Result<ObjectStage, Error> {
    let stage = make_directory(repo, "tmp").and_then(ObjectStage::create);
    stage.map_err(|error| Error::io("write to", repo.path().join("tmp"), error))
}

/// Creates the folder of records, which no other user may write to.
fn records_folder(repo: &Repo) -> Result<OwnedFd, Errno> {
    let extensions = make_directory(repo, "extensions")?;
    make_folder(extensions.as_fd(), "sealift", FOLDER_MODE)
}
