//! What a bundle's head has to say to a policy.

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
    /// Judges a bundle by its head, as [`Policy::judge`]. A signature for the kernel is to have its form, and counts for nothing.
    ///
    /// # Errors
    /// Returns an error if the bundle must not be used.
    pub fn judge_head(&self, head: &Head) -> Result<Verdict, Error> {
        kernel_signature::of_head(head)?;
        self.judge(&Claims::of(head), head.signed(), &signatures(head), &unknown_envelopes(head))
    }

    /// Says of each signature what became of it, as [`Policy::inspect`].
    #[must_use]
    pub fn inspect_head(&self, head: &Head) -> Vec<SignatureState> {
        self.inspect(&Claims::of(head), head.signed(), &signatures(head))
    }
}

/// Returns the kinds of a head's envelopes that this reader does not know. They count for nothing.
#[must_use]
pub fn unknown_envelopes(head: &Head) -> Vec<u32> {
    let is_known = |kind| matches!(kind, Envelope::SSH_SIGNATURE | Envelope::KERNEL_SIGNATURE);
    let unknown = head.envelopes().iter().filter(|envelope| !is_known(envelope.kind));
    unknown.map(|envelope| envelope.kind.into()).collect()
}

pub(super) fn signatures(head: &Head) -> Vec<&[u8]> {
    head.bodies(Envelope::SSH_SIGNATURE).collect()
}
