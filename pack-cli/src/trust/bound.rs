//! A target is bound to the first name that it took, and to the version that it has.

use std::io::{self, Read as _};
use std::path::Path;

use sealift_format::Head;
use sealift_verify::trust::{FloorRecord, Floors, Standing};

use super::Guard;
use crate::Error;
use crate::beneath::open_own_file;
use crate::unpack::sibling;

/// Returns the name of the bundle that `target` took, from the head that is kept beside it; `None` where it took none, or is not
/// there any more.
///
/// # Errors
/// The kept head cannot be read or is damaged.
pub fn bound_name(target: &Path) -> Result<Option<String>, Error> {
    Ok(kept_head(target)?.map(|head| head.root().identity.name.clone()))
}

fn kept_head(target: &Path) -> Result<Option<Head>, Error> {
    match std::fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(|error| Error::io("read", target, error))?,
    };
    let path = sibling(target, ".sealift-state")?.join("head");
    let mut bytes = Vec::new();
    match open_own_file(&path).and_then(|mut file| file.read_to_end(&mut bytes)) {
        Ok(_) => match Head::parse(&bytes) {
            Ok(head) => Ok(Some(head)),
            Err(error) => Err(Error::State { path, problem: error.to_string() }),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

impl Guard {
    /// Refuses a bundle of another name than the one that `target` is bound to: a key that may sign an app must not get to replace the
    /// system by a slip of the administrator's hand. Refuses a lower version than the target has, as [`Guard::judge`] does of one that the
    /// device took: an update that did not end may have been finished by [`crate::clean`], which commits nothing.
    ///
    /// A kept head that is damaged binds to nothing.
    ///
    /// # Errors
    /// [`Error::OtherName`] where it is another name, and [`Error::Trust`] where it is a lower version; else the kept head cannot be read.
    pub fn check_bound(&self, target: &Path, head: &Head) -> Result<(), Error> {
        let kept = match kept_head(target) {
            Err(error @ Error::State { .. }) => {
                tracing::warn!(%error, "the target is bound to nothing");
                return Ok(());
            }
            kept => kept?,
        };
        let Some(kept) = kept else { return Ok(()) };
        let (bound, name) = (&kept.root().identity.name, &head.root().identity.name);
        if bound != name {
            return Err(Error::OtherName { target: target.to_owned(), bound: bound.clone(), name: name.clone() });
        }
        self.policy(self.floor_of(&kept)).judge_head(head)?;
        Ok(())
    }

    /// The floor as if the bundle of this head had been committed: one that nobody trusted raises it as little.
    fn floor_of(&self, kept: &Head) -> Floors {
        let counts =
            |standing: &Standing| standing.is_trusted() || matches!(standing, Standing::Revoked { listed: true });
        let signatures = self.inspect(kept).into_iter();
        let signed = signatures.filter(|signature| signature.outcome.as_ref().is_ok_and(counts));
        let keys = signed.filter_map(|signature| signature.key.map(|key| key.id())).collect();
        let record = FloorRecord { version: kept.root().identity.version, keys };
        Floors::new(if record.keys.is_empty() { Vec::new() } else { vec![record] })
    }
}
