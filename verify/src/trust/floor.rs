//! The version below which a name never goes again on this device.

use std::collections::BTreeSet;

use super::{Claims, KeyId, RevocationList, Verdict};

/// The highest version that one set of keys raised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FloorRecord {
    /// The version.
    pub version: u64,
    /// Every trusted key that had signed it.
    pub keys: BTreeSet<KeyId>,
}

/// What a device keeps of the versions that it committed for one name.
///
/// Only trusted signatures raise a floor. A record falls when so many of its
/// keys are revoked that the rest would not have sufficed: a stolen key that
/// signed version 2^64 - 1 does not lock the device for ever.
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

    /// Returns the lowest version that is not a downgrade, or `None` where
    /// any is good. `threshold` is the number of keys that the name needs.
    #[must_use]
    pub fn effective(&self, revoked: &RevocationList, threshold: usize) -> Option<u64> {
        self.records.iter().filter(|record| record.stands(revoked, threshold)).map(|record| record.version).max()
    }

    /// Returns the records after a bundle was committed. A version below the
    /// floor that was let through lowers nothing.
    #[must_use]
    pub fn after(&self, claims: &Claims, verdict: &Verdict) -> Self {
        let mut floors = self.clone();
        if verdict.unsigned {
            return floors;
        }
        let keys: BTreeSet<_> = verdict.signers.iter().map(|signer| signer.key).collect();
        match floors.records.iter_mut().find(|record| record.keys == keys) {
            Some(record) => record.version = record.version.max(claims.version),
            None => floors.records.push(FloorRecord { version: claims.version, keys }),
        }
        floors
    }
}

impl FloorRecord {
    /// A threshold that was raised since withdraws nothing by itself: the
    /// record was good when it was made, and an older bundle is still older.
    fn stands(&self, revoked: &RevocationList, threshold: usize) -> bool {
        let good = self.keys.iter().filter(|key| !revoked.contains_id(**key)).count();
        good == self.keys.len() || good >= threshold
    }
}

#[cfg(test)]
mod tests {
    use super::super::Signer;
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
        let signers = numbers.iter().map(|number| Signer {
            key: key(*number),
            key_type: KeyType::Ed25519,
            line: 1,
            comment: String::new(),
        });
        let verdict = Verdict { signers: signers.collect(), unsigned, ..Verdict::default() };
        floors.after(&claims, &verdict)
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
