//! What a device keeps of one name: the lowest version that it still accepts, and a time that has certainly passed.

use super::{Claims, KeyId, RevocationList, Verdict};

/// How many seconds after the device's clock a `created` counts that only one key signed: clocks differ, and so do their time zones.
pub const CREATED_MARGIN: i64 = 24 * 60 * 60;

/// What bundles signed by one set of keys raised.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it is what a device stores")]
pub struct FloorRecord {
    /// The highest version.
    pub version: u64,
    /// The newest `created`, limited as trust 8 says, in seconds since 1970.
    pub created: i64,
    /// Every trusted key that had signed it, once and in ascending order.
    pub keys: Vec<KeyId>,
}

/// What a device keeps of the versions that it installed of one name.
///
/// Only trusted signatures raise a floor. A record no longer counts once so many
/// of its keys are revoked that the rest would not have sufficed: otherwise a
/// stolen key could sign version 2^64 - 1 and block all updates for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Floors {
    records: Vec<FloorRecord>,
}

impl Floors {
    /// Takes the records that the device kept.
    #[must_use]
    pub fn new(records: Vec<FloorRecord>) -> Self {
        Self { records }
    }

    /// Returns the records to keep.
    #[must_use]
    pub fn records(&self) -> &[FloorRecord] {
        &self.records
    }

    /// Returns the lowest version that is not a downgrade, or `None` if every
    /// version is accepted. `threshold` is the number of keys that the name needs.
    #[must_use]
    pub fn effective(&self, revoked: &RevocationList, threshold: usize) -> Option<u64> {
        self.records.iter().filter(|record| record.stands(revoked, threshold)).map(|record| record.version).max()
    }

    /// Returns the newest `created` that counts toward *now* for this name. A
    /// record with a revoked key does not count: the date of a thief must not
    /// let everything expire, and other records or the clock are better sources.
    #[must_use]
    pub fn newest_created(&self, revoked: &RevocationList) -> Option<i64> {
        let stands = |record: &&FloorRecord| record.keys.iter().all(|key| !revoked.contains_id(*key));
        self.records.iter().filter(stands).map(|record| record.created).max()
    }

    /// Returns the records after a bundle was installed. A version below the
    /// floor that was accepted lowers nothing.
    ///
    /// `threshold` is the number of keys that the name needs, and `clock` the
    /// later of the device's clock and the tool's build time. A `created`
    /// counts in full if at least two keys signed it, and as many as the
    /// name needs; otherwise it counts up to [`CREATED_MARGIN`] after the clock:
    /// a single key must not move the time so far that everything has expired.
    #[must_use]
    pub fn after(&self, claims: &Claims, verdict: &Verdict, threshold: usize, clock: i64) -> Self {
        let mut floors = self.clone();
        if verdict.unsigned {
            return floors;
        }
        let mut keys: Vec<_> = verdict.signers.iter().map(|signer| signer.key).collect();
        keys.sort_unstable();
        keys.dedup();
        let is_borne_out = keys.len() >= threshold.max(2);
        let latest = if is_borne_out { i64::MAX } else { clock.saturating_add(CREATED_MARGIN) };
        let created = claims.created.min(latest);
        match floors.records.iter_mut().find(|record| record.keys == keys) {
            Some(record) => {
                record.version = record.version.max(claims.version);
                record.created = record.created.max(created);
            }
            None => floors.records.push(FloorRecord { version: claims.version, created, keys }),
        }
        floors
    }
}

impl FloorRecord {
    /// Returns whether the record still counts. A higher threshold alone does not
    /// withdraw it: it was valid when it was made, and an older bundle is still
    /// older.
    fn stands(&self, revoked: &RevocationList, threshold: usize) -> bool {
        let good = self.keys.iter().filter(|key| !revoked.contains_id(**key)).count();
        good == self.keys.len() || good >= threshold
    }
}

#[cfg(test)]
mod tests {
    use super::super::TrustedSigner;
    use super::super::public_key::KeyType;
    use super::*;

    fn key(number: u8) -> KeyId {
        KeyId::from_bytes([number; 32])
    }

    fn revoked(numbers: &[u8]) -> RevocationList {
        let mut list = RevocationList::default();
        list.ids.extend(numbers.iter().copied().map(key));
        list
    }

    fn commit(floors: &Floors, version: u64, numbers: &[u8], unsigned: bool) -> Floors {
        let claims = Claims { version, ..Claims::default() };
        floors.after(&claims, &verdict(numbers, unsigned), 1, 0)
    }

    fn verdict(numbers: &[u8], unsigned: bool) -> Verdict {
        let signers = numbers.iter().map(|number| TrustedSigner {
            key: key(*number),
            key_type: KeyType::Ed25519,
            line: 1,
            comment: String::new(),
        });
        Verdict { signers: signers.collect(), unsigned, ..Verdict::default() }
    }

    #[test]
    fn a_date_counts_as_far_as_clock_or_keys_bear_it_out() {
        let clock = 1_000_000;
        let newest = |created: i64, numbers: &[u8], threshold: usize, list: &[u8]| {
            let claims = Claims { created, ..Claims::default() };
            let floors = Floors::default().after(&claims, &verdict(numbers, false), threshold, clock);
            floors.newest_created(&revoked(list))
        };
        for believed in [0, clock, clock + CREATED_MARGIN] {
            assert_eq!(newest(believed, &[1], 1, &[]), Some(believed));
        }
        for beyond in [clock + CREATED_MARGIN + 1, 1 << 62, i64::MAX] {
            assert_eq!(newest(beyond, &[1], 1, &[]), Some(clock + CREATED_MARGIN));
            assert_eq!(newest(beyond, &[1, 2], 3, &[]), Some(clock + CREATED_MARGIN), "let through with too few");
            assert_eq!(newest(beyond, &[1, 2], 1, &[]), Some(beyond));
            assert_eq!(newest(beyond, &[1, 2], 2, &[]), Some(beyond));
            assert_eq!(newest(beyond, &[1, 2], 2, &[2]), None, "one of the two was a thief's");
        }
        // Many steps lead no further than one.
        let mut floors = Floors::default();
        for step in 1..9 {
            let claims = Claims { created: clock + step * CREATED_MARGIN, version: 1, ..Claims::default() };
            floors = floors.after(&claims, &verdict(&[1], false), 1, clock);
        }
        assert_eq!(floors.newest_created(&revoked(&[])), Some(clock + CREATED_MARGIN));
        let earlier = Claims { created: 5, version: 1, ..Claims::default() };
        let floors = floors.after(&earlier, &verdict(&[1], false), 1, clock);
        assert_eq!(floors.newest_created(&revoked(&[])), Some(clock + CREATED_MARGIN));
    }

    #[test]
    fn a_floor_only_rises() {
        let floors = commit(&Floors::default(), 5, &[1], false);
        let floors = commit(&floors, 3, &[1], false);
        assert_eq!(floors.records().len(), 1);
        assert_eq!(floors.effective(&revoked(&[]), 1), Some(5));
        let floors = commit(&floors, 4, &[2], false);
        assert_eq!(floors.effective(&revoked(&[]), 1), Some(5));
        assert_eq!(Floors::default().effective(&revoked(&[]), 1), None);
    }

    #[test]
    fn nothing_unsigned_raises_it() {
        let floors = commit(&Floors::default(), u64::MAX, &[], true);
        assert_eq!(floors, Floors::default());
        assert_eq!(commit(&floors, u64::MAX, &[1], true), Floors::default());
    }

    #[test]
    fn revoking_keys_withdraws_what_they_raised() {
        let floors = commit(&Floors::default(), 5, &[1, 2], false);
        let floors = commit(&floors, u64::MAX, &[2, 3], false);
        assert_eq!(floors.effective(&revoked(&[3]), 2), Some(5));
        assert_eq!(floors.effective(&revoked(&[3]), 1), Some(u64::MAX));
        assert_eq!(floors.effective(&revoked(&[2]), 2), None);
        assert_eq!(floors.effective(&revoked(&[2, 3]), 1), Some(5));
    }

    #[test]
    fn a_higher_threshold_withdraws_nothing() {
        let floors = commit(&Floors::default(), 5, &[1], false);
        assert_eq!(floors.effective(&revoked(&[]), 2), Some(5));
        assert_eq!(floors.effective(&revoked(&[1]), 2), None);
    }
}
