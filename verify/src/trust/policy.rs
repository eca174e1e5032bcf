//! Judges a bundle by the administrator's policy.

use super::Error;
use super::{
    AllowedSigners, Claims, Device, Floors, KeyId, Namespace, Now, PublicKey, RevocationList, Shortfall,
    SignatureError, SignatureState, SshSignature, Standing, Thresholds, TrustedSigner, Verdict,
};

/// The most signatures that a bundle may have: far more than any threshold requires, and few enough to be checked quickly (trust 3).
pub const SIGNATURES_MAX: usize = 64;

/// Everything that the administrator and the device contribute to the
/// judgement of a bundle of one name.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Policy {
    /// The keys that are trusted. `None` if there is no file, which trusts no key.
    pub signers: Option<AllowedSigners>,
    /// The keys that are not trusted any more.
    pub revoked: RevocationList,
    /// How many keys must have signed.
    pub thresholds: Thresholds,
    /// The device's tags.
    pub device: Device,
    /// The versions that the device installed of the bundle's name.
    pub floors: Floors,
    /// The time of the judgement.
    pub now: Now,
    /// Waives the need for a trusted signature, and nothing else.
    pub allow_unsigned: bool,
    /// Accepts a version below the floor, without lowering the floor.
    pub allow_downgrade: bool,
}

impl Policy {
    /// Returns the strictest policy: no key is trusted, and nothing is waived.
    #[must_use]
    pub fn at(now: Now) -> Self {
        Self {
            signers: None,
            revoked: RevocationList::default(),
            thresholds: Thresholds::default(),
            device: Device::default(),
            floors: Floors::default(),
            now,
            allow_unsigned: false,
            allow_downgrade: false,
        }
    }

    /// Judges a bundle: `claims` is what its root states, `signed_bytes` are its
    /// preamble and root, `signatures` the binary SSH signatures in its
    /// envelopes, `unknown_envelopes` the unknown kinds of envelopes.
    ///
    /// # Errors
    /// Returns the first that applies: a signature is malformed or wrong, even if
    /// others are valid, unless it is an [`UnknownSignature`](super::UnknownSignature); too few trusted keys signed; no tag of this device; the
    /// bundle has expired; its version is below the floor.
    pub fn judge(
        &self,
        claims: &Claims,
        signed_bytes: &[u8],
        signatures: &[&[u8]],
        unknown_envelopes: &[u32],
    ) -> Result<Verdict, Error> {
        self.judge_as(Namespace::Bundle, claims, signed_bytes, signatures, unknown_envelopes)
    }

    /// Judges what was signed for this namespace, as [`Self::judge`].
    pub(super) fn judge_as(
        &self,
        namespace: Namespace,
        claims: &Claims,
        signed_bytes: &[u8],
        signatures: &[&[u8]],
        unknown_envelopes: &[u32],
    ) -> Result<Verdict, Error> {
        if signatures.len() > SIGNATURES_MAX {
            let problem = SignatureError::TooMany { number: signatures.len() };
            return Err(Error::Signature { number: SIGNATURES_MAX + 1, problem });
        }
        let mut states = Vec::new();
        for state in self.states(namespace, claims, signed_bytes, signatures) {
            // The first bad one decides: the others are not checked.
            refuse_bad(std::slice::from_ref(&state))?;
            states.push(state);
        }
        // The claims matter only once it is known who made them.
        let unsigned = match self.count(claims, &states) {
            Ok(()) => false,
            Err(_) if self.allow_unsigned => true,
            Err(error) => return Err(error),
        };
        self.refuse_other_device(claims)?;
        self.refuse_expired(claims)?;
        let below_floor = self.below_floor(claims)?;

        let states = one_per_key(states);
        Ok(Verdict {
            signers: states.iter().filter_map(TrustedSigner::of).collect(),
            others: states.into_iter().filter(|state| TrustedSigner::of(state).is_none()).collect(),
            unsigned,
            below_floor,
            unknown_envelopes: unknown_envelopes.to_vec(),
            since: Vec::new(),
        })
    }

    /// Returns the state of each signature, without failing: for showing a
    /// bundle that must not be used. If there are too many, none is checked,
    /// and that is all it returns.
    #[must_use]
    pub fn inspect(&self, claims: &Claims, signed_bytes: &[u8], signatures: &[&[u8]]) -> Vec<SignatureState> {
        if signatures.len() > SIGNATURES_MAX {
            let problem = SignatureError::TooMany { number: signatures.len() };
            return vec![SignatureState { number: SIGNATURES_MAX + 1, key: None, outcome: Err(problem) }];
        }
        self.states(Namespace::Bundle, claims, signed_bytes, signatures).collect()
    }

    /// Returns the state of each signature, each checked when it is requested.
    fn states<'s>(
        &'s self,
        namespace: Namespace,
        claims: &'s Claims,
        signed_bytes: &'s [u8],
        signatures: &'s [&[u8]],
    ) -> impl Iterator<Item = SignatureState> + 's {
        let state = move |(blob, number): (&&[u8], usize)| match SshSignature::parse_for(namespace, blob) {
            Ok(signature) => SignatureState {
                number,
                key: Some(signature.key().clone()),
                outcome: signature.verify(signed_bytes).map(|key| self.standing_as(namespace, key, &claims.name)),
            },
            Err(error) => SignatureState { number, key: None, outcome: Err(error) },
        };
        signatures.iter().zip(1..).map(state)
    }

    /// Returns whether this device trusts a key for a bundle's name, or why not.
    #[must_use]
    pub fn standing(&self, key: &PublicKey, name: &str) -> Standing {
        self.standing_as(Namespace::Bundle, key, name)
    }

    fn standing_as(&self, namespace: Namespace, key: &PublicKey, name: &str) -> Standing {
        let standing = self
            .signers
            .as_ref()
            .map_or(Standing::NotListed, |signers| signers.standing_as(namespace, key.id(), name, self.now));
        if self.revoked.contains(key) {
            let listed = standing.is_trusted();
            return Standing::Revoked { listed };
        }
        standing
    }

    pub(super) fn count(&self, claims: &Claims, states: &[SignatureState]) -> Result<(), Error> {
        let needed = self.thresholds.for_name(&claims.name);
        let counted = distinct(states, Standing::is_trusted);
        if counted >= needed {
            return Ok(());
        }
        let revoked = distinct(states, |standing| matches!(standing, Standing::Revoked { listed: true }));
        let shortfall = Box::new(Shortfall {
            name: claims.name.clone(),
            needed,
            counted,
            has_signers_file: self.signers.is_some(),
            states: one_per_key(states.to_vec()),
        });
        if counted.saturating_add(revoked) >= needed {
            Err(Error::Revoked(shortfall))
        } else {
            Err(Error::Untrusted(shortfall))
        }
    }

    fn refuse_other_device(&self, claims: &Claims) -> Result<(), Error> {
        if self.device.fits(&claims.compatible) {
            return Ok(());
        }
        Err(match &self.device.compatible {
            Some(own) => Error::Incompatible { tags: claims.compatible.clone(), device: own.clone() },
            None => Error::DeviceUnknown { tags: claims.compatible.clone() },
        })
    }

    fn refuse_expired(&self, claims: &Claims) -> Result<(), Error> {
        match claims.expires {
            Some(expires) if self.now.seconds() >= expires => Err(Error::Expired { expires, now: self.now }),
            _ => Ok(()),
        }
    }

    /// Returns the floor if the version is below it and that is waived.
    fn below_floor(&self, claims: &Claims) -> Result<Option<u64>, Error> {
        let threshold = self.thresholds.for_name(&claims.name);
        let floor = self.floors.effective(&self.revoked, threshold).filter(|floor| claims.version < *floor);
        match floor {
            Some(floor) if !self.allow_downgrade => {
                Err(Error::Downgrade { name: claims.name.clone(), version: claims.version, floor })
            }
            other => Ok(other),
        }
    }
}

impl TrustedSigner {
    /// Returns the signer if the signature counts.
    pub(super) fn of(state: &SignatureState) -> Option<Self> {
        match (&state.key, &state.outcome) {
            (Some(key), Ok(Standing::Trusted { line, comment })) => {
                Some(Self { key: key.id(), key_type: key.key_type(), line: *line, comment: comment.clone() })
            }
            _ => None,
        }
    }
}

/// Refuses a wrong signature. One that this version cannot check is only reported.
pub(super) fn refuse_bad(states: &[SignatureState]) -> Result<(), Error> {
    for SignatureState { number, outcome, .. } in states {
        if let Err(problem) = outcome
            && problem.unknown().is_none()
        {
            return Err(Error::Signature { number: *number, problem: problem.clone() });
        }
    }
    Ok(())
}

/// Counts keys, not signatures or lines: a key that signed twice, or that
/// several principals share, counts once.
fn distinct(states: &[SignatureState], counts: impl Fn(&Standing) -> bool) -> usize {
    let mut keys: Vec<KeyId> = states
        .iter()
        .filter(|state| state.outcome.as_ref().is_ok_and(&counts))
        .filter_map(|state| state.key.as_ref().map(PublicKey::id))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    keys.len()
}

pub(super) fn one_per_key(mut states: Vec<SignatureState>) -> Vec<SignatureState> {
    // There are at most 64 states, so a list is fast enough.
    let mut seen = Vec::new();
    states.retain(|state| {
        let id = state.key.as_ref().map(PublicKey::id);
        let is_new = id.is_none() || !seen.contains(&id);
        seen.push(id);
        is_new
    });
    states
}

#[cfg(test)]
mod tests {
    use sealift_format::Kind;

    use super::super::sshsig::envelope;
    use super::super::{FloorRecord, sample};
    use super::*;

    const SIGNED: &[u8] = b"preamble and root";

    fn claims() -> Claims {
        Claims { name: "os".into(), version: 7, ..Claims::default() }
    }

    /// Keys 1 and 2 may sign `os`, key 3 may sign apps.
    fn policy() -> Policy {
        let mut file = String::new();
        for (principals, number) in [("os", 1), ("os", 2), ("app-*", 3)] {
            let line = sample::line(number);
            file.push_str(&format!("{principals} namespaces=\"sealift\" {line} key{number}\n"));
        }
        let mut policy = Policy::at(Now::exactly(1000));
        policy.signers = AllowedSigners::parse(file.as_bytes()).ok();
        policy
    }

    fn judge(policy: &Policy, claims: &Claims, keys: &[u8]) -> Result<Verdict, Error> {
        let blobs: Vec<_> = keys.iter().map(|number| sample::signature(*number, SIGNED)).collect();
        let blobs: Vec<_> = blobs.iter().map(Vec::as_slice).collect();
        policy.judge(claims, SIGNED, &blobs, &[])
    }

    fn kind(policy: &Policy, claims: &Claims, keys: &[u8]) -> Option<Kind> {
        judge(policy, claims, keys).err().map(|error| error.kind())
    }

    fn threshold(number: &str) -> Policy {
        let mut policy = policy();
        policy.thresholds = Thresholds::parse([number]).expect("a rule");
        policy
    }

    fn revoke(policy: &mut Policy, number: u8) {
        policy.revoked.ids.push(sample::key(number).id());
    }

    #[test]
    fn one_trusted_signature_suffices() {
        let verdict = judge(&policy(), &claims(), &[1, 9]).expect("trusted");
        assert_eq!(verdict.signers.len(), 1);
        assert_eq!(verdict.signers[0].key, sample::key(1).id());
        assert_eq!(verdict.signers[0].comment, "key1");
        assert_eq!(verdict.others.len(), 1);
        assert_eq!(verdict.others[0].outcome, Ok(Standing::NotListed));
        assert!(!verdict.unsigned);
    }

    #[test]
    fn nobody_else_suffices() {
        for keys in [&[][..], &[9], &[3], &[3, 9]] {
            assert_eq!(kind(&policy(), &claims(), keys), Some(Kind::Untrusted));
        }
        let mut without_file = policy();
        without_file.signers = None;
        assert_eq!(kind(&without_file, &claims(), &[1]), Some(Kind::Untrusted));
        without_file.signers = AllowedSigners::parse(b"").ok();
        assert_eq!(kind(&without_file, &claims(), &[1]), Some(Kind::Untrusted));
    }

    #[test]
    fn a_threshold_counts_keys_once() {
        let policy = threshold("os=2");
        assert!(judge(&policy, &claims(), &[1, 2]).is_ok());
        assert_eq!(kind(&policy, &claims(), &[1]), Some(Kind::Untrusted));
        assert_eq!(kind(&policy, &claims(), &[1, 1]), Some(Kind::Untrusted));
        assert_eq!(kind(&policy, &claims(), &[1, 3, 9]), Some(Kind::Untrusted));

        // One key under two principals and on two lines is still one key.
        let mut doubled = threshold("2");
        let line = sample::line(1);
        let file = format!("os namespaces=\"sealift\" {line} a\no*,os namespaces=\"sealift\" {line} b");
        doubled.signers = AllowedSigners::parse(file.as_bytes()).ok();
        assert_eq!(kind(&doubled, &claims(), &[1, 1]), Some(Kind::Untrusted));
        let verdict = judge(&self::policy(), &claims(), &[1, 1]).expect("trusted");
        assert_eq!(verdict.signers.len(), 1);
    }

    #[test]
    fn one_bad_signature_fails_the_bundle() {
        let good = sample::signature(1, SIGNED);
        let elsewhere = sample::signature(9, b"another root");
        let mut lax = policy();
        lax.allow_unsigned = true;
        for bad in [&elsewhere[..], b"", b"SSHSIG", &good[..50]] {
            for policy in [&policy(), &lax] {
                let error = policy.judge(&claims(), SIGNED, &[&good, bad], &[]);
                assert!(matches!(&error, Err(Error::Signature { number: 2, .. })), "{error:?}");
            }
        }
    }

    #[test]
    fn a_revoked_key_is_named_as_the_reason() {
        let mut policy = policy();
        revoke(&mut policy, 1);
        revoke(&mut policy, 9);
        assert_eq!(kind(&policy, &claims(), &[1]), Some(Kind::Revoked));
        assert_eq!(kind(&policy, &claims(), &[9]), Some(Kind::Untrusted));
        let verdict = judge(&policy, &claims(), &[1, 2]).expect("key 2 suffices");
        assert_eq!(verdict.signers.len(), 1);
        assert_eq!(verdict.others[0].outcome, Ok(Standing::Revoked { listed: true }));
    }

    #[test]
    fn unsigned_waives_the_signature_alone() {
        let mut policy = policy();
        policy.allow_unsigned = true;
        for keys in [&[][..], &[9], &[3]] {
            assert!(judge(&policy, &claims(), keys).is_ok_and(|verdict| verdict.unsigned));
        }
        assert!(judge(&policy, &claims(), &[1]).is_ok_and(|verdict| !verdict.unsigned));

        let expired = Claims { expires: Some(1000), ..claims() };
        assert_eq!(kind(&policy, &expired, &[]), Some(Kind::Expired));
        let other_device = Claims { compatible: vec!["board".into()], ..claims() };
        assert_eq!(kind(&policy, &other_device, &[]), Some(Kind::Incompatible));
        policy.floors = Floors::new(vec![FloorRecord { version: 8, created: 0, keys: [sample::key(1).id()].into() }]);
        assert_eq!(kind(&policy, &claims(), &[]), Some(Kind::Downgrade));
    }

    #[test]
    fn expiry_is_judged_at_now() {
        let expires = |expires| Claims { expires: Some(expires), created: i64::MAX, ..claims() };
        assert_eq!(kind(&policy(), &expires(999), &[1]), Some(Kind::Expired));
        assert_eq!(kind(&policy(), &expires(1000), &[1]), Some(Kind::Expired));
        assert_eq!(kind(&policy(), &expires(1001), &[1]), None);
        assert_eq!(kind(&policy(), &expires(i64::MIN), &[1]), Some(Kind::Expired));
    }

    #[test]
    fn a_floor_holds_and_is_not_lowered() {
        let mut policy = policy();
        policy.floors = Floors::new(vec![FloorRecord { version: 7, created: 0, keys: [sample::key(2).id()].into() }]);
        let version = |version| Claims { version, ..claims() };
        assert_eq!(kind(&policy, &version(7), &[1]), None);
        assert_eq!(kind(&policy, &version(6), &[1]), Some(Kind::Downgrade));

        policy.allow_downgrade = true;
        let verdict = judge(&policy, &version(6), &[1]).expect("allowed");
        assert_eq!(verdict.below_floor, Some(7));
        let after = policy.floors.after(&version(6), &verdict, 1, 0);
        assert_eq!(after.effective(&policy.revoked, 1), Some(7));

        policy.allow_downgrade = false;
        revoke(&mut policy, 2);
        assert_eq!(kind(&policy, &version(6), &[1]), None);
    }

    #[test]
    fn many_signatures_are_refused_before_any_is_checked() {
        let good = sample::signature(1, SIGNED);
        let judge = |number: usize, last: &[u8]| {
            let mut blobs = vec![&good[..]; number - 1];
            blobs.push(last);
            (policy().judge(&claims(), SIGNED, &blobs, &[]), policy().inspect(&claims(), SIGNED, &blobs))
        };
        assert!(judge(SIGNATURES_MAX, &good).0.is_ok());
        let (refused, shown) = judge(SIGNATURES_MAX + 1, &good);
        let is_many = |problem: &SignatureError| matches!(problem, SignatureError::TooMany { number: 65 });
        assert!(matches!(refused, Err(Error::Signature { problem, .. }) if is_many(&problem)));
        assert_eq!(shown.len(), 1, "none was checked");
        assert!(shown.last().is_some_and(|last| last.outcome.as_ref().is_err_and(is_many)));
        // A bad one decides wherever it is.
        assert!(judge(SIGNATURES_MAX, b"bad").0.is_err());
    }

    #[test]
    fn unknown_envelopes_are_reported_and_count_for_nothing() {
        let unsigned = policy().judge(&claims(), SIGNED, &[], &[7]);
        assert!(unsigned.is_err_and(|error| error.kind() == Kind::Untrusted));
        let good = sample::signature(1, SIGNED);
        let verdict = policy().judge(&claims(), SIGNED, &[&good], &[7, 8]);
        assert!(verdict.is_ok_and(|verdict| verdict.unknown_envelopes == [7, 8]));
    }

    /// Returns a signature by a key of a type that is not known.
    fn later_signature(key_type: &[u8]) -> Vec<u8> {
        envelope(Namespace::Bundle, &sample::strings(&[key_type, b"x"]), &sample::strings(&[b"ssh-later", b"y"]))
    }

    #[test]
    fn a_signature_of_a_later_algorithm_is_reported_and_not_counted() {
        let (good, later) = (sample::signature(1, SIGNED), later_signature(b"ssh-later"));
        for signatures in [[&good[..], &later], [&later, &good]] {
            let verdict = policy().judge(&claims(), SIGNED, &signatures, &[]).expect("trusted");
            assert_eq!((verdict.signers.len(), verdict.others.len(), verdict.unsigned), (1, 1, false));
            assert!(verdict.others[0].unknown().is_some_and(|unknown| unknown.key_type == "ssh-later"));
        }
        let alone = policy().judge(&claims(), SIGNED, &[&later], &[]).expect_err("nobody signed");
        assert_eq!(alone.kind(), Kind::Untrusted);
        assert!(alone.to_string().contains("not counted: this version does not accept keys of type \"ssh-later\""));
        let two = threshold("2").judge(&claims(), SIGNED, &[&good, &later], &[]);
        assert!(two.is_err_and(|error| error.kind() == Kind::Untrusted));
        let mut lax = policy();
        lax.allow_unsigned = true;
        assert!(lax.judge(&claims(), SIGNED, &[&later], &[]).is_ok_and(|verdict| verdict.unsigned));

        // A hostile name is short, and stays within its quotation marks.
        let hostile = later_signature("x; \u{202e}\"\x1b\n".repeat(99).as_bytes());
        let shown = policy().judge(&claims(), SIGNED, &[&hostile], &[]).expect_err("nobody signed").to_string();
        assert!(shown.len() < 600 && !shown.contains(['\u{202e}', '\u{1b}', '\n']), "{shown}");
        assert!(!shown.contains("x; "), "{shown}");
    }

    #[test]
    fn inspection_never_fails() {
        let (good, other) = (sample::signature(1, SIGNED), sample::signature(2, b"x"));
        let states = policy().inspect(&claims(), SIGNED, &[&good, &other, b"?"]);
        assert!(states[0].outcome.as_ref().is_ok_and(Standing::is_trusted));
        assert_eq!(states[1].outcome, Err(SignatureError::Mismatch));
        assert_eq!(states[1].key, Some(sample::key(2)));
        assert!(states[2].key.is_none() && states[2].outcome.is_err());
    }

    #[test]
    fn messages_say_who_signed() {
        let stranger = judge(&policy(), &claims(), &[9]).expect_err("a stranger").to_string();
        for part in ["\"os\"", &sample::key(9).id().to_string(), "not listed"] {
            assert!(stranger.contains(part), "{stranger}");
        }
        let elsewhere = judge(&policy(), &claims(), &[3]).expect_err("apps only").to_string();
        assert!(elsewhere.contains("listed on line 3 for \"app-*\" only"), "{elsewhere}");
        let unsigned = judge(&policy(), &claims(), &[]).expect_err("unsigned").to_string();
        assert!(unsigned.contains("it is not signed"), "{unsigned}");

        // A hostile name cannot leave its line, or change the direction of the text.
        for name in ["o\u{202e}s\u{1b}[2J\n", "*", "os,*", ""] {
            let name = name.into();
            let hostile = Claims { name, ..claims() };
            let shown = judge(&policy(), &hostile, &[9]).expect_err("a stranger").to_string();
            assert!(!shown.contains(['\u{202e}', '\u{1b}', '\n']), "{shown}");
        }
    }
}
