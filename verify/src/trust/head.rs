//! Judges a bundle by its head.

use sealift_format::{Envelope, Head};

use super::Error;
use super::{Claims, Policy, SignatureState, Verdict};
use crate::kernel_signature;

impl Claims {
    /// Returns what a head's root states.
    #[must_use]
    pub fn of(head: &Head) -> Self {
        let identity = &head.root().identity;
        Self {
            name: identity.name.clone(),
            version: identity.version,
            created: identity.created,
            expires: identity.expires,
            compatible: identity.compatible.clone(),
        }
    }
}

impl Policy {
    /// Judges a bundle by its head, as [`Policy::judge`]. A signature for the kernel must have the right form, but does not count.
    ///
    /// # Errors
    /// Returns an error if the bundle must not be used.
    pub fn judge_head(&self, head: &Head) -> Result<Verdict, Error> {
        kernel_signature::of_head(head)?;
        self.judge(&Claims::of(head), head.signed(), &signatures(head), &unknown_envelopes(head))
    }

    /// Returns the state of each signature, as [`Policy::inspect`].
    #[must_use]
    pub fn inspect_head(&self, head: &Head) -> Vec<SignatureState> {
        self.inspect(&Claims::of(head), head.signed(), &signatures(head))
    }
}

/// Returns the kinds of a head's envelopes that this reader does not know. They do not count.
#[must_use]
pub fn unknown_envelopes(head: &Head) -> Vec<u32> {
    let is_known = |kind| matches!(kind, Envelope::SSH_SIGNATURE | Envelope::KERNEL_SIGNATURE);
    head.envelopes().map(|(kind, _)| kind).filter(|kind| !is_known(*kind)).map(u32::from).collect()
}

pub(super) fn signatures(head: &Head) -> Vec<&[u8]> {
    head.bodies(Envelope::SSH_SIGNATURE).collect()
}
