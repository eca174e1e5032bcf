//! Binds a target to the first name that was installed there, and to the version that it has.

use std::path::Path;

use crate::Site;
use sealift_format::Head;
use sealift_verify::trust::{FloorRecord, Floors, Standing};

use super::Guard;
use crate::Error;
use crate::directory::kept_head;

/// Returns the name of the bundle that `target` took, from the head that is kept beside it; `None` where it took none, or is not
/// there any more.
///
/// # Errors
/// The kept head cannot be read or is damaged, or is another user's.
pub fn bound_name(target: &Path) -> Result<Option<String>, Error> {
    Ok(kept_head(&Site::resolve(target)?)?.map(|head| head.root().identity.name.clone()))
}

/// Refuses a bundle of another name than the one that a target is bound to, which had taken the bundle of the head `kept`: a key that may sign
/// an app must not get to replace the system by a slip of the administrator's hand.
///
/// # Errors
/// [`Error::OtherName`].
pub(super) fn check_name(target: &Path, kept: &Head, head: &Head) -> Result<(), Error> {
    let (bound, name) = (&kept.root().identity.name, &head.root().identity.name);
    if bound != name {
        return Err(Error::OtherName { target: target.to_owned(), bound: bound.clone(), name: name.clone() });
    }
    Ok(())
}

/// The head that is kept beside a target. One that is damaged binds to nothing.
///
/// # Errors
/// It cannot be read, or is another user's.
pub(super) fn kept(site: &Site) -> Result<Option<Head>, Error> {
    match kept_head(site) {
        Err(error @ Error::State { .. }) => {
            tracing::warn!(%error, "the target is not bound to a name");
            Ok(None)
        }
        kept => kept,
    }
}

/// The floor as if the bundle of the head `kept` had been committed: one that nobody trusted raises it as little.
pub(super) fn floor_of(guard: &Guard, kept: &Head) -> Floors {
    let counts = |standing: &Standing| standing.is_trusted() || matches!(standing, Standing::Revoked { listed: true });
    let signatures = guard.inspect(kept).into_iter();
    let signed = signatures.filter(|signature| signature.outcome.as_ref().is_ok_and(counts));
    let keys = signed.filter_map(|signature| signature.key.map(|key| key.id())).collect();
    let record = FloorRecord { version: kept.root().identity.version, created: 0, keys };
    Floors::new(if record.keys.is_empty() { Vec::new() } else { vec![record] })
}
