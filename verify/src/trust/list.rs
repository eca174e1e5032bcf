//! Judges the list of a channel (channel 4).

use sealift_format::{Envelope, SignedList};

use super::{Claims, Error, Namespace, Policy, Verdict};

impl Claims {
    /// Returns what a list states, with its sequence as the version.
    #[must_use]
    pub fn of_list(list: &SignedList) -> Self {
        let list = list.list();
        Self {
            name: list.name.clone(),
            version: list.sequence,
            created: list.created,
            expires: Some(list.expires),
            compatible: Vec::new(),
        }
    }
}

impl Policy {
    /// Judges the list of a channel. [`Policy::floors`] are what the device keeps of lists of this name.
    ///
    /// # Errors
    /// Returns an error if a signature is wrong, too few trusted keys signed it, it has expired, or the device has taken a later one.
    pub fn judge_list(&self, list: &SignedList) -> Result<Verdict, Error> {
        let of_kind = |is_signature: bool| {
            list.envelopes().filter(move |(kind, _)| (*kind == Envelope::SSH_SIGNATURE) == is_signature)
        };
        let signatures: Vec<&[u8]> = of_kind(true).map(|(_, body)| body).collect();
        let unknown: Vec<u32> = of_kind(false).map(|(kind, _)| kind.into()).collect();
        self.judge_as(Namespace::List, &Claims::of_list(list), list.signed(), &signatures, &unknown).map_err(|error| {
            match error {
                Error::Downgrade { name, version, floor } => Error::OldList { name, sequence: version, taken: floor },
                other => other,
            }
        })
    }
}
