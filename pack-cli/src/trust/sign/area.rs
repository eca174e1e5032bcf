//! Which signatures a bundle has after a change.

use std::path::Path;

use sealift_format::{Envelope, Error as FormatError, Head};
use sealift_verify::trust::{KeyId, SshSignature};

use crate::Error;

/// A head with other signatures, and what became of which key.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) head: Head,
    pub(super) added: Vec<KeyId>,
    pub(super) replaced: Vec<KeyId>,
}

/// Takes away the signatures of the keys in `remove` and adds `add`; a new signature takes the place of an older one of its key. `path` is
/// the bundle's, for messages.
///
/// # Errors
/// A key of `remove` did not sign, a signature that stays is not good, or there is no room.
pub(super) fn change(head: &Head, add: Vec<Envelope>, remove: &[KeyId], path: &Path) -> Result<Changed, Error> {
    let mut envelopes = head.envelopes().to_vec();
    for key in remove {
        if !take_out(&mut envelopes, *key) {
            return Err(Error::Usage(format!("{} has no signature of {key}", path.display())));
        }
    }
    let (mut added, mut replaced) = (Vec::new(), Vec::new());
    for envelope in add {
        let Some(key) = key_of(&envelope) else { continue };
        let again = take_out(&mut envelopes, key) && !added.contains(&key);
        let list = if again { &mut replaced } else { &mut added };
        if !list.contains(&key) {
            list.push(key);
        }
        envelopes.push(envelope);
    }
    check_all(head, &envelopes)?;
    let head = head.clone().with_envelopes(envelopes).map_err(|error| match error {
        FormatError::Limit { declared: needed, limit: room, .. } => Error::NoRoom { needed, room },
        other => other.into(),
    })?;
    Ok(Changed { head, added, replaced })
}

/// Every reader refuses a bundle with one bad signature, however many good ones there are. Who signs is to learn that now.
fn check_all(head: &Head, envelopes: &[Envelope]) -> Result<(), Error> {
    let signatures = envelopes.iter().filter(|envelope| envelope.kind == Envelope::SSH_SIGNATURE);
    for (envelope, number) in signatures.zip(1..) {
        SshSignature::parse(&envelope.body)
            .and_then(|signature| signature.verify(head.signed()).map(|_| ()))
            .map_err(|problem| sealift_verify::Error::Signature { number, problem })?;
    }
    Ok(())
}

fn take_out(envelopes: &mut Vec<Envelope>, key: KeyId) -> bool {
    let before = envelopes.len();
    envelopes.retain(|envelope| key_of(envelope) != Some(key));
    envelopes.len() < before
}

fn key_of(envelope: &Envelope) -> Option<KeyId> {
    let is_ours = envelope.kind == Envelope::SSH_SIGNATURE;
    is_ours.then(|| SshSignature::parse(&envelope.body).ok()).flatten().map(|signature| signature.key().id())
}
