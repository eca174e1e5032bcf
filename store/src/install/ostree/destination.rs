//! The names that refs get in a repository.

use crate::Error;
use crate::install::options::Destination;
use crate::ostree::refs::{RefName, RefOwner};
use crate::ostree::repo::Repo;

/// Returns the destination of a ref, by its name and its collection, which may be empty.
pub(super) fn destination(
    repo: &Repo,
    name: &str,
    collection: &str,
    destination: &Destination,
) -> Result<RefName, Error> {
    let place = match destination {
        Destination::Remote(remote) => RefOwner::Remote(remote.clone()),
        // Refs of the repository's own collection are not mirrored.
        Destination::Mirror if !collection.is_empty() && repo.config().collection_id.as_deref() != Some(collection) => {
            RefOwner::Mirror(collection.to_owned())
        }
        Destination::Heads | Destination::Mirror => RefOwner::Heads,
    };
    RefName::new(place, name).map_err(|fault| repo.fault(fault))
}
