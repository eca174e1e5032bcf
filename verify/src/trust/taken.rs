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

#[cfg(test)]
mod tests {
    use sealift_format::{Envelope, Identity};

    use super::super::{AllowedSigners, Device, FloorRecord, Floors, Now, Thresholds, sample};
    use super::*;

    /// Returns version 7 of `os` for one kind of device, which expires at second 1000, with the signature of each of these keys.
    fn head(keys: &[u8]) -> Head {
        let (name, compatible) = ("os".into(), vec!["board-a".into()]);
        let identity = Identity { name, version: 7, created: 0, expires: Some(1000), compatible };
        let head = sample::head(identity);
        let sign = |key: &u8| Envelope { kind: Envelope::SSH_SIGNATURE, body: sample::signature(*key, head.signed()) };
        let envelopes = keys.iter().map(sign).collect();
        head.with_envelopes(envelopes).expect("there is room")
    }

    /// Keys 1 and 2 may sign `os`.
    fn policy() -> Policy {
        let line = |number| format!("os namespaces=\"sealift\" {}\n", sample::line(number));
        let mut policy = Policy::at(Now::exactly(999));
        policy.signers = AllowedSigners::parse((line(1) + &line(2)).as_bytes()).ok();
        policy.device = Device::with_tags(["board-a"]);
        policy
    }

    fn since(policy: &Policy, head: &Head) -> Vec<String> {
        let verdict = policy.judge_installed(head).expect("a key counts or once counted");
        verdict.since.iter().map(ToString::to_string).collect()
    }

    /// The same policy on another device, after the bundle expired and a newer one was installed.
    fn later() -> Policy {
        let floor = FloorRecord { version: 8, created: 0, keys: vec![sample::key(1).id()] };
        let (now, device) = (Now::exactly(1000), Device::with_tags(["board-b"]));
        Policy { now, device, floors: Floors::new(vec![floor]), ..policy() }
    }

    #[test]
    fn a_base_may_be_old_and_for_another_device() {
        let head = head(&[1]);
        let now = Policy { now: Now::exactly(1000), ..policy() };
        let device = Policy { device: later().device, ..policy() };
        let floors = Policy { floors: later().floors, ..policy() };
        for later in [now, device, floors, later()] {
            assert!(later.judge_head(&head).is_err());
            let verdict = later.judge_base(&head).expect("it is signed");
            assert_eq!((verdict.signers.len(), verdict.unsigned), (1, false));
        }
    }

    #[test]
    fn a_base_needs_a_trusted_signature() {
        for keys in [&[][..], &[9]] {
            assert!(matches!(policy().judge_base(&head(keys)), Err(Error::Untrusted(_))));
        }
    }

    #[test]
    fn what_has_changed_since_the_installation_is_said() {
        assert_eq!(since(&policy(), &head(&[1])), [""; 0]);
        let expected = [
            "version 8 was installed on this device",
            "it expired at 1970-01-01 00:16:40 UTC",
            "its tags no longer match this device",
        ];
        assert_eq!(since(&later(), &head(&[1])), expected);
    }

    #[test]
    fn keys_that_have_lost_their_trust_since_are_named() {
        let mut policy = policy();
        policy.thresholds = Thresholds::parse(["2"]).expect("a rule");
        policy.revoked.ids.push(sample::key(1).id());
        let key = format!("its key {} is now revoked", sample::key(1).id());
        assert_eq!(since(&policy, &head(&[1, 2])), [key]);
        assert_eq!(since(&policy, &head(&[2])), ["2 signatures are now required"]);
    }
}
