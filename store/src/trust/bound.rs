//! A target is bound to the first name that was installed into it, and to the version that it holds.

use std::collections::BTreeSet;
use std::path::Path;

use crate::Site;
use sealift_format::Head;
use sealift_verify::trust::{FloorRecord, Floors, Standing};

use super::Guard;
use crate::Error;
use crate::directory::kept_head;

/// Returns the name of the bundle that `target` holds, from the head recorded beside it; `None` if nothing was installed there or the target no
/// longer exists.
///
/// # Errors
/// Returns an error if the recorded head cannot be read, is damaged, or belongs to another user.
pub fn bound_name(target: &Path) -> Result<Option<String>, Error> {
    Ok(kept_head(&Site::resolve(target)?)?.map(|head| head.root().identity.name.clone()))
}

/// Refuses a bundle whose name is not `bound`, that of the bundle that the target holds: a key that may sign an app must not replace the system
/// because an administrator mistyped.
///
/// # Errors
/// Returns [`Error::OtherName`].
pub(super) fn check_name(target: &Path, bound: &str, head: &Head) -> Result<(), Error> {
    let name = &head.root().identity.name;
    if bound != name {
        return Err(Error::OtherName { target: target.to_owned(), bound: bound.to_owned(), name: name.clone() });
    }
    Ok(())
}

/// Returns the floor as if the bundle of the head `kept` had been committed. A bundle that nobody trusted does not raise it.
pub(super) fn floor_of(guard: &Guard, kept: &Head) -> Floors {
    let counts = |standing: &Standing| standing.is_trusted() || matches!(standing, Standing::Revoked { listed: true });
    let signatures = guard.inspect(kept).into_iter();
    let signed = signatures.filter(|signature| signature.outcome.as_ref().is_ok_and(counts));
    let keys: BTreeSet<_> = signed.filter_map(|signature| signature.key.map(|key| key.id())).collect();
    let keys = keys.into_iter().collect();
    let record = FloorRecord { version: kept.root().identity.version, created: 0, keys };
    Floors::new(if record.keys.is_empty() { Vec::new() } else { vec![record] })
}
