//! The signatures of a bundle after a change.

use std::path::Path;

use sealift_format::{Envelope, Error as FormatError, Head};
use sealift_verify::kernel_signature;
use sealift_verify::trust::{KeyId, SignatureError, SshSignature};

use crate::Error;

/// A head with new signatures, and the change for each key.
#[derive(Debug)]
pub(super) struct Changed {
    pub(super) head: Head,
    pub(super) added: Vec<KeyId>,
    pub(super) replaced: Vec<KeyId>,
    pub(super) kernel: KernelChange,
}

/// The change of the kernel signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "there is no fifth")]
pub enum KernelChange {
    /// It is unchanged, or there is none.
    #[default]
    None,
    /// There was none before.
    Added,
    /// It replaced another one.
    Replaced,
    /// It was removed.
    Removed,
}

/// The signatures to remove.
#[derive(Clone, Copy, Debug)]
pub(super) struct Removals<'a> {
    pub(super) keys: &'a [KeyId],
    pub(super) kernel: bool,
}

/// Removes the signatures in `remove` and adds `add`. A new signature replaces an older one by the same key, or for the kernel. `path` is the
/// bundle's, for messages.
///
/// # Errors
/// Returns an error if a key of `remove` did not sign, if a remaining signature is invalid, if there are several for the kernel, or if there is no
/// room.
pub(super) fn change(head: &Head, add: Vec<Envelope>, remove: Removals<'_>, path: &Path) -> Result<Changed, Error> {
    let mut envelopes: Vec<Envelope> = head.envelopes().map(Envelope::from).collect();
    for key in remove.keys {
        if !take_out(&mut envelopes, *key) {
            return Err(Error::unexpected(path, format!("has no signature of {key}")));
        }
    }
    let mut kernel = KernelChange::None;
    if remove.kernel {
        if !take_out_kernel(&mut envelopes) {
            return Err(Error::unexpected(path, "has no kernel signature"));
        }
        kernel = KernelChange::Removed;
    }
    let (for_kernel, add): (Vec<_>, Vec<_>) =
        add.into_iter().partition(|envelope| envelope.kind == Envelope::KERNEL_SIGNATURE);
    if !for_kernel.is_empty() {
        let again = take_out_kernel(&mut envelopes) || remove.kernel;
        kernel = if again { KernelChange::Replaced } else { KernelChange::Added };
        envelopes.extend(for_kernel);
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
    kernel_signature::of_head(&head).map_err(sealift_verify::Error::from)?;
    Ok(Changed { head, added, replaced, kernel })
}

/// Checks all SSH signatures. Every reader refuses a bundle with an invalid one, even beside valid ones, so the signer should learn of it now. One
/// that this version cannot check stays: it may be for newer readers.
fn check_all(head: &Head, envelopes: &[Envelope]) -> Result<(), Error> {
    let signatures = envelopes.iter().filter(|envelope| envelope.kind == Envelope::SSH_SIGNATURE);
    for (envelope, number) in signatures.zip(1..) {
        match SshSignature::parse(&envelope.body).and_then(|signature| signature.verify(head.signed()).map(|_| ())) {
            Ok(()) | Err(SignatureError::Unknown(_)) => {}
            Err(problem) => return Err(sealift_verify::Error::Signature { number, problem }.into()),
        }
    }
    Ok(())
}

fn take_out(envelopes: &mut Vec<Envelope>, key: KeyId) -> bool {
    let before = envelopes.len();
    envelopes.retain(|envelope| key_of(envelope) != Some(key));
    envelopes.len() < before
}

/// Removes everything that is, or claims to be, a kernel signature.
fn take_out_kernel(envelopes: &mut Vec<Envelope>) -> bool {
    let before = envelopes.len();
    envelopes.retain(|envelope| envelope.kind != Envelope::KERNEL_SIGNATURE);
    envelopes.len() < before
}

fn key_of(envelope: &Envelope) -> Option<KeyId> {
    if envelope.kind != Envelope::SSH_SIGNATURE {
        return None;
    }
    match SshSignature::parse(&envelope.body) {
        Ok(signature) => Some(signature.key().id()),
        Err(error) => error.unknown().map(|unknown| unknown.key),
    }
}
