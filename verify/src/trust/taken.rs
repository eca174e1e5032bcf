//! Judges bundles that were installed already, or whose content is a base: their signatures must be valid, but they may be old.

use sealift_format::Head;

use super::head::{signatures, unknown_envelopes};
use super::policy::{one_per_key, refuse_bad};
use super::{Claims, Error, Policy, SignatureState, Since, Standing, TrustedSigner, Verdict};
use crate::kernel_signature;

impl Policy {
    /// Judges a bundle that this device installed: whether it could have installed it. [`Verdict::since`] reports what has changed since: a newer
    /// version, an expiry that has passed, and keys that have expired, were revoked or were removed from the allowed signers. Of keys that are not
    /// listed any more, those count that raised a floor of this name.
    ///
    /// # Errors
    /// Returns an error if a signature is malformed or wrong, or if no signature is by a key that counts or once counted.
    pub fn judge_installed(&self, head: &Head) -> Result<Verdict, Error> {
        kernel_signature::of_head(head)?;
        let claims = Claims::of(head);
        let states = self.inspect(&claims, head.signed(), &signatures(head));
        refuse_bad(&states)?;
        let states = one_per_key(states);
        let counted = states.iter().filter_map(|state| self.once_trusted(state)).collect::<Vec<_>>();
        if counted.is_empty() && !self.allow_unsigned {
            // Its error states the standing of each key.
            self.count(&claims, &states)?;
        }
        let mut since = Vec::new();
        let threshold = self.thresholds.for_name(&claims.name);
        let floor = self.floors.effective(&self.revoked, threshold).filter(|floor| claims.version < *floor);
        since.extend(floor.map(|version| Since::Newer { version }));
        since.extend(claims.expires.filter(|at| self.now.seconds() >= *at).map(|expires| Since::Expired { expires }));
        for state in &states {
            if let (Some(key), Ok(standing)) = (&state.key, &state.outcome)
                && !standing.is_trusted()
                && self.once_trusted(state).is_some()
            {
                since.push(Since::Key { key: key.id(), standing: standing.clone() });
            }
        }
        if !counted.is_empty() && counted.len() < threshold {
            since.push(Since::Threshold { needed: threshold });
        }
        if !self.device.fits(&claims.compatible) {
            since.push(Since::OtherDevice);
        }
        Ok(Verdict {
            unsigned: counted.is_empty(),
            signers: counted,
            others: states.into_iter().filter(|state| self.once_trusted(state).is_none()).collect(),
            below_floor: None,
            unknown_envelopes: unknown_envelopes(head),
            since,
        })
    }

    /// Judges a bundle whose content is used as a base, like [`Policy::judge_head`] but regardless of version, expiry and tags: what is made from the
    /// base is checked again.
    ///
    /// # Errors
    /// Returns an error if a signature is wrong, or too few trusted keys have signed it.
    pub fn judge_base(&self, head: &Head) -> Result<Verdict, Error> {
        kernel_signature::of_head(head)?;
        let claims = Claims { expires: None, compatible: Vec::new(), ..Claims::of(head) };
        let policy = Self { floors: super::Floors::default(), ..self.clone() };
        policy.judge(&claims, head.signed(), &signatures(head), &unknown_envelopes(head))
    }

    /// Returns the signer of a valid signature whose key counts or once counted.
    fn once_trusted(&self, state: &SignatureState) -> Option<TrustedSigner> {
        let (Some(key), Ok(standing)) = (&state.key, &state.outcome) else { return None };
        if let Some(signer) = TrustedSigner::of(state) {
            return Some(signer);
        }
        let remembered = || self.floors.records().iter().any(|record| record.keys.contains(&key.id()));
        let line = match standing {
            Standing::NoLonger { line, .. } => *line,
            Standing::Revoked { listed: true } => 0,
            _ if remembered() => 0,
            _ => return None,
        };
        Some(TrustedSigner { key: key.id(), key_type: key.key_type(), line, comment: String::new() })
    }
}
