//! The one judge that every verb asks before it hands out content.

use sealift_format::Head;
use sealift_verify::trust::{Claims, Floors, Now, Policy, SignatureState, Verdict};

use super::settings::Settings;
use super::{FloorReport, Places, Store, TrustOptions, TrustReport, now};
use crate::Error;

/// The administrator's files and the device's state, ready to judge bundles.
#[derive(Clone, Debug)]
pub struct Guard {
    settings: Settings,
    places: Places,
    store: Store,
    now: Now,
    allow_unsigned: bool,
    allow_downgrade: bool,
}

impl Guard {
    /// Reads the files where they lie for the user whose process this is.
    ///
    /// # Errors
    /// A file cannot be read or is malformed; that is never taken for its absence.
    pub fn load(options: &TrustOptions) -> Result<Self, Error> {
        Self::load_from(options, Places::of_this_process())
    }

    /// Reads the files where the caller says.
    ///
    /// # Errors
    /// As [`Guard::load`].
    pub fn load_from(options: &TrustOptions, places: Places) -> Result<Self, Error> {
        let settings = Settings::load(options, &places)?;
        let store = Store::at(places.state(options)?);
        let revoked = settings.revoked.value.clone().unwrap_or_default();
        // Read even where --time overrides it: a damaged state is to be noticed at once.
        let newest = store.newest_created(&revoked)?;
        Ok(Self {
            settings,
            places,
            store,
            now: now::now(options.time, newest),
            allow_unsigned: options.allow_unsigned,
            allow_downgrade: options.allow_downgrade,
        })
    }

    /// Judges a bundle by its head.
    ///
    /// # Errors
    /// [`Error::Trust`] where the bundle must not be used; else the floor cannot be read.
    pub fn judge(&self, head: &Head) -> Result<Verdict, Error> {
        let identity = &head.root().identity;
        let floors = self.store.floors(&identity.name)?;
        let taken = floors.records().iter().map(|record| record.version).max();
        tracing::debug!(name = identity.name, version = identity.version, taken, now = self.now.seconds(), "judged");
        Ok(self.policy(floors).judge_head(head)?)
    }

    /// Says of each signature what became of it, and refuses nothing: for showing a bundle, not for using it.
    #[must_use]
    pub fn inspect(&self, head: &Head) -> Vec<SignatureState> {
        self.policy(Floors::default()).inspect_head(head)
    }

    /// Remembers that the device took the bundle: raises the floor of its name and the newest `created`. To be called once the
    /// target is complete; until then a bundle that failed on the way must not have shut out the one before it.
    ///
    /// # Errors
    /// The state cannot be read or written.
    pub fn commit(&self, head: &Head, verdict: &Verdict) -> Result<(), Error> {
        tracing::debug!(state = ?self.store.dir(), version = head.root().identity.version, "remembered as taken");
        self.store.commit(&Claims::of(head), verdict)
    }

    /// Describes everything by which this guard judges.
    ///
    /// # Errors
    /// The state cannot be read.
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
            state: self.store.dir().to_owned(),
            floors: self.floors(&policy)?,
            now: self.now,
        })
    }

    fn floors(&self, policy: &Policy) -> Result<Vec<FloorReport>, Error> {
        let report = |name: String| {
            let floors = self.store.floors(&name)?;
            let version = floors.effective(&policy.revoked, policy.thresholds.for_name(&name));
            Ok(FloorReport { name, version, records: floors.records().to_vec() })
        };
        self.store.names()?.into_iter().map(report).collect()
    }

    /// The moment of all its judgements.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    pub(super) fn policy(&self, floors: Floors) -> Policy {
        let mut policy = Policy::at(self.now);
        policy.signers = self.settings.signers.value.clone();
        policy.revoked = self.settings.revoked.value.clone().unwrap_or_default();
        policy.thresholds = self.settings.thresholds.value.clone().unwrap_or_default();
        policy.device = self.settings.device.value.clone().unwrap_or_default();
        policy.floors = floors;
        policy.allow_unsigned = self.allow_unsigned;
        policy.allow_downgrade = self.allow_downgrade;
        policy
    }
}
