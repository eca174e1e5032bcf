//! The one judge that every command asks before it extracts content.

use std::path::PathBuf;

use sealift_format::{Head, SignedList};
use sealift_verify::trust::{Claims, Floors, Now, Policy, SignatureState, Verdict};

use super::settings::Settings;
use super::state::Held;
use super::{DeviceState, FloorReport, KnownTarget, TargetId, TrustOptions, TrustPaths, TrustReport, now};
use crate::Error;

/// The administrator's files and the device's state, ready to judge bundles.
#[derive(Clone, Debug)]
pub struct Guard {
    settings: Settings,
    places: TrustPaths,
    state: DeviceState,
    time: Option<i64>,
    allow_unsigned: bool,
    allow_downgrade: bool,
}

/// A bundle's head and the verdict on it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Judged {
    /// Preamble, root and envelopes.
    pub head: Head,
    /// The result of judging.
    pub verdict: Verdict,
}

impl Guard {
    /// Reads the files from the standard places of the current user.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or is malformed; this is never treated as a missing file.
    pub fn load(options: &TrustOptions) -> Result<Self, Error> {
        Self::load_from(options, TrustPaths::of_this_process())
    }

    /// Reads the files from the places that the caller gives.
    pub fn load_from(options: &TrustOptions, places: TrustPaths) -> Result<Self, Error> {
        let settings = Settings::load(options, &places)?;
        let state = DeviceState::at(places.state(options)?).telling(options.waiting);
        state.check()?; // report an unreadable state at once
        Ok(Self {
            settings,
            places,
            state,
            time: options.time,
            allow_unsigned: options.allow_unsigned,
            allow_downgrade: options.allow_downgrade,
        })
    }

    /// Judges a bundle by its head.
    ///
    /// # Errors
    /// Returns [`Error::Trust`] if the bundle must not be used; also returns an error if the floor cannot be read.
    pub fn judge(&self, head: &Head) -> Result<Verdict, Error> {
        let identity = &head.root().identity;
        let floors = self.state.floors(&identity.name)?;
        self.judge_above(floors, head)
    }

    /// The same, with the head that was judged.
    ///
    /// # Errors
    /// As [`Guard::judge`].
    pub fn judge_head(&self, head: &Head) -> Result<Judged, Error> {
        Ok(Judged { verdict: self.judge(head)?, head: head.clone() })
    }

    fn judge_above(&self, floors: Floors, head: &Head) -> Result<Verdict, Error> {
        let identity = &head.root().identity;
        let taken = floors.records().iter().map(|record| record.version).max();
        let policy = self.policy(floors);
        tracing::debug!(name = identity.name, version = identity.version, taken, now = policy.now.seconds(), "judged");
        Ok(policy.judge_head(head)?)
    }

    /// Judges an installed bundle by its signatures but not by its freshness: what has changed since is reported as [`Verdict::since`].
    ///
    /// # Errors
    /// Returns [`Error::Trust`] if no key that counts or counted signed it; also returns an error if the floor cannot be read.
    pub fn judge_installed(&self, head: &Head) -> Result<Judged, Error> {
        let floors = self.state.floors(&head.root().identity.name)?;
        let verdict = self.policy(floors).judge_installed(head)?;
        Ok(Judged { head: head.clone(), verdict })
    }

    /// Judges a bundle that serves as a base, by its signatures but not by its freshness.
    ///
    /// # Errors
    /// Returns [`Error::Trust`] if too few trusted keys signed it.
    pub fn judge_base(&self, head: &Head) -> Result<Verdict, Error> {
        let floors = self.state.floors(&head.root().identity.name)?;
        Ok(self.policy(floors).judge_base(head)?)
    }

    /// Returns when a bundle expired, if it passes only because `--time` was given.
    #[must_use]
    pub fn expired_but_for_time(&self, head: &Head) -> Option<i64> {
        self.time?;
        let identity = &head.root().identity;
        let floors = self.state.floors(&identity.name).unwrap_or_default();
        let revoked = self.settings.revoked.value.clone().unwrap_or_default();
        let now = now::now(None, floors.newest_created(&revoked));
        identity.expires.filter(|expires| now.seconds() >= *expires && self.now().seconds() < *expires)
    }

    /// Reports the state of each signature and refuses nothing: for showing a bundle, not for using it.
    #[must_use]
    pub fn inspect(&self, head: &Head) -> Vec<SignatureState> {
        // A state that cannot be read, which judging reports, is left out.
        let floors = self.state.floors(&head.root().identity.name).unwrap_or_default();
        self.policy(floors).inspect_head(head)
    }

    /// Judges the list of a channel.
    ///
    /// # Errors
    /// Returns [`Error::Trust`] if the list must not be used; also returns an error if the state cannot be read.
    pub fn judge_list(&self, list: &SignedList) -> Result<Verdict, Error> {
        self.judge_list_above(self.state.lists(&list.list().name)?, list)
    }

    fn judge_list_above(&self, lists: Floors, list: &SignedList) -> Result<Verdict, Error> {
        let name = &list.list().name;
        let revoked = self.settings.revoked.value.clone().unwrap_or_default();
        let installed = self.state.floors(name)?.newest_created(&revoked);
        let taken = lists.newest_created(&revoked);
        let mut policy = self.policy(lists);
        policy.now = now::now(self.time, installed.max(taken));
        tracing::debug!(name, sequence = list.list().sequence, now = policy.now.seconds(), "judged a list");
        Ok(policy.judge_list(list)?)
    }

    /// Remembers that the device takes files because of this list, after judging it again.
    ///
    /// # Errors
    /// Returns an error if the list must no longer be used, or if the state cannot be read or written.
    pub fn take_list(&self, list: &SignedList) -> Result<Verdict, Error> {
        let claims = Claims::of_list(list);
        let held = self.state.hold()?;
        let _lock = held.lock()?;
        let (folder, before) = held.lists(&claims.name)?;
        let verdict = self.judge_list_above(before.clone(), list)?;
        let threshold = self.settings.thresholds.value.as_ref().map_or(1, |rules| rules.for_name(&claims.name));
        let after = before.after(&claims, &verdict, threshold, now::own_time());
        if after != before {
            Held::replace_lists(&folder, &claims.name, &after)?;
        }
        Ok(verdict)
    }

    /// Remembers that the device installs the bundle, after judging it again: raises the floor of the bundle's name and the newest `created`, and
    /// lists the target, if it is one of the device's own and not listed yet. Returns how to list it once the bundle is there.
    ///
    /// # Errors
    /// Returns an error if the bundle must no longer be used, or if the state cannot be read or written.
    pub(super) fn remember(
        &self,
        held: &Held,
        head: &Head,
        target: Option<&TargetId>,
    ) -> Result<Option<KnownTarget>, Error> {
        let claims = Claims::of(head);
        let _lock = held.lock()?;
        // Read again under the lock: another run may have raised it since this one judged.
        let before = held.floors(&claims.name)?;
        let verdict = self.judge_above(before.clone(), head)?;
        let threshold = self.settings.thresholds.value.as_ref().map_or(1, |rules| rules.for_name(&claims.name));
        let after = before.after(&claims, &verdict, threshold, now::own_time());
        let known = target.map(|place| Self::known(place, &claims, &verdict));
        if let Some(known) = &known {
            held.announce(known)?;
        }
        if after != before {
            held.replace(&claims.name, &after)?;
        }
        tracing::debug!(state = ?self.state.dir(), version = claims.version, "remembered as taken");
        Ok(known)
    }

    /// Lists a target as one that a run begins to fill, before anything of it can be used. Floors stay.
    ///
    /// # Errors
    /// As [`Self::remember`].
    pub(super) fn announce(&self, held: &Held, head: &Head, target: &TargetId) -> Result<(), Error> {
        let _lock = held.lock()?;
        held.announce(&Self::known(target, &Claims::of(head), &self.judge(head)?))
    }

    fn known(place: &TargetId, claims: &Claims, verdict: &Verdict) -> KnownTarget {
        KnownTarget {
            place: place.clone(),
            name: claims.name.clone(),
            version: claims.version,
            taken: now::clock_time(),
            is_begun: false,
            keys: verdict.signers.iter().map(|signer| signer.key).collect(),
        }
    }

    /// Returns the files and folders that this guard judges by, whether or not they exist.
    #[must_use]
    pub fn paths(&self) -> Vec<PathBuf> {
        let Settings { signers, revoked, thresholds, device } = &self.settings;
        let files = [&signers.path, &revoked.path, &thresholds.path, &device.path];
        files.into_iter().flatten().cloned().chain([self.state.dir().to_owned()]).collect()
    }

    /// Returns the state that this guard judges by.
    #[must_use]
    pub fn state(&self) -> &DeviceState {
        &self.state
    }

    /// Describes everything that this guard judges by.
    pub fn describe(&self) -> Result<TrustReport, Error> {
        let Settings { signers, revoked, thresholds, device } = self.settings.clone();
        let policy = self.policy(Floors::default());
        let rules = policy.thresholds.rules().map(|(pattern, number)| (pattern.map(str::to_owned), number));
        Ok(TrustReport {
            signers_path: signers.path,
            signers: signers.value.map(|signers| signers.granting().cloned().collect()),
            revoked_path: revoked.path,
            revoked: policy.revoked.ids().collect(),
            revoked_count: policy.revoked.len(),
            thresholds_path: thresholds.path,
            thresholds: rules.collect(),
            compatible_path: device.path,
            compatible: device.value.and_then(|device| device.compatible),
            passed_over: self.places.passed_over()?,
            state: self.state.dir().to_owned(),
            floors: self.floors(&policy)?,
            now: self.now(),
        })
    }

    fn floors(&self, policy: &Policy) -> Result<Vec<FloorReport>, Error> {
        let report = |name: String| {
            let floors = self.state.floors(&name)?;
            let version = floors.effective(&policy.revoked, policy.thresholds.for_name(&name));
            let newest_created = floors.newest_created(&policy.revoked);
            Ok(FloorReport { name, version, newest_created, records: floors.records().to_vec() })
        };
        self.state.names()?.into_iter().map(report).collect()
    }

    /// Returns the moment at which it judges bundles. Unless `--time` is given, it is later for a name of which a bundle with a later `created` was
    /// installed.
    #[must_use]
    pub fn now(&self) -> Now {
        now::now(self.time, None)
    }

    /// Returns the policy for bundles of the name that these floors belong to.
    pub(super) fn policy(&self, floors: Floors) -> Policy {
        let revoked = self.settings.revoked.value.clone().unwrap_or_default();
        let mut policy = Policy::at(now::now(self.time, floors.newest_created(&revoked)));
        policy.signers = self.settings.signers.value.clone();
        policy.revoked = revoked;
        policy.thresholds = self.settings.thresholds.value.clone().unwrap_or_default();
        policy.device = self.settings.device.value.clone().unwrap_or_default();
        policy.floors = floors;
        policy.allow_unsigned = self.allow_unsigned;
        policy.allow_downgrade = self.allow_downgrade;
        policy
    }
}
