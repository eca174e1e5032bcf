//! What a target keeps of the metadata of its files: as much as its file system stores, and as the process that unpacked it could, and should, set.

use sealift_format::{Attributes, XattrRef, Xattrs};

use super::stat_cache::FileTime;

/// An aspect of the metadata of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Aspect {
    /// Owners and groups. Without them, set-id bits are left out too: they would grant the rights of another user than the one that was meant.
    Owners,
    /// Device nodes.
    Devices,
    /// Permission bits.
    Modes,
    /// Access control lists.
    Acls,
    /// Extended attributes `user.*`.
    UserXattrs,
    /// `security.capability`.
    Capabilities,
    /// All other extended attributes.
    OtherXattrs,
    /// Modification times.
    Times,
}

impl Aspect {
    /// All aspects.
    pub const ALL: [Self; 8] = [
        Self::Owners,
        Self::Devices,
        Self::Modes,
        Self::Acls,
        Self::UserXattrs,
        Self::Capabilities,
        Self::OtherXattrs,
        Self::Times,
    ];

    /// Returns its position in [`Self::ALL`].
    fn at(self) -> usize {
        Self::ALL.iter().position(|aspect| *aspect == self).unwrap_or_default()
    }

    /// Returns the aspect in one word, for programs.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Owners => "owners",
            Self::Devices => "devices",
            Self::Modes => "modes",
            Self::Acls => "acls",
            Self::UserXattrs => "user-xattrs",
            Self::Capabilities => "capabilities",
            Self::OtherXattrs => "other-xattrs",
            Self::Times => "times",
        }
    }

    /// Returns the aspect of an extended attribute.
    #[must_use]
    pub fn of_xattr(name: &[u8]) -> Self {
        match name {
            b"security.capability" => Self::Capabilities,
            b"system.posix_acl_access" | b"system.posix_acl_default" => Self::Acls,
            name if name.starts_with(b"user.") => Self::UserXattrs,
            _ => Self::OtherXattrs,
        }
    }
}

/// The aspects that a target keeps, and how precisely it keeps times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeps {
    is_kept: [bool; Aspect::ALL.len()],
    /// How times are stored, if they are kept.
    pub times: Times,
}

/// The times that a file system can store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "measured by trying")]
pub struct Times {
    /// The nanoseconds of a step, at most 2 seconds; a time is stored as the last step before it.
    pub step: u32,
    /// The first second. An earlier time is stored as this one.
    pub first: i64,
    /// The last second. A later time is stored as this one.
    pub last: i64,
}

/// The bits that set the user or the group of a running program.
const SET_IDS: u16 = 0o6000;
const SECOND: u32 = 1_000_000_000;

impl Times {
    /// All times, to the nanosecond.
    pub const EXACT: Self = Self { step: 1, first: i64::MIN, last: i64::MAX };

    /// Returns how a time is stored, as Linux does it (timestamp_truncate): the first and the last second have no fraction.
    #[must_use]
    pub fn stored(self, (seconds, nanoseconds): FileTime) -> FileTime {
        if seconds <= self.first && self.first != i64::MIN {
            return (self.first, 0);
        }
        if seconds >= self.last && self.last != i64::MAX {
            return (self.last, 0);
        }
        match self.step {
            0 | 1 => (seconds, nanoseconds),
            step if step <= SECOND => (seconds, nanoseconds - nanoseconds % step),
            step => (seconds - seconds.rem_euclid(i64::from(step / SECOND)), 0),
        }
    }
}

impl Keeps {
    /// Everything, exactly.
    pub const ALL: Self = Self { is_kept: [true; Aspect::ALL.len()], times: Times::EXACT };

    /// Returns whether an aspect is kept.
    #[must_use]
    pub fn has(&self, aspect: Aspect) -> bool {
        self.is_kept[aspect.at()]
    }

    /// Sets whether an aspect is kept.
    pub fn set(&mut self, aspect: Aspect, is_kept: bool) {
        self.is_kept[aspect.at()] = is_kept;
    }

    /// Returns the aspects that are not kept.
    pub fn lacks(&self) -> impl Iterator<Item = Aspect> {
        Aspect::ALL.into_iter().filter(|aspect| !self.has(*aspect))
    }

    /// Returns whether an extended attribute is kept.
    #[must_use]
    pub fn has_xattr(&self, name: &[u8]) -> bool {
        self.has(Aspect::of_xattr(name))
    }

    /// Returns whether an extended attribute that is there counts. What grants rights was added later if it is not kept.
    #[must_use]
    pub fn counts_xattr(&self, name: &[u8]) -> bool {
        self.has_xattr(name) || matches!(Aspect::of_xattr(name), Aspect::Capabilities | Aspect::Acls)
    }

    /// Returns the extended attributes that are kept.
    pub fn xattrs<'a>(&self, all: &'a Xattrs) -> impl Iterator<Item = XattrRef<'a>> {
        let keeps = *self;
        all.iter().filter(move |xattr| keeps.has_xattr(xattr.name))
    }

    /// Returns the permission bits of a file with these bits and attributes; `None` if modes are not kept.
    #[must_use]
    pub fn permissions(&self, permissions: u16, xattrs: &Xattrs) -> Option<u16> {
        if !self.has(Aspect::Modes) {
            return None;
        }
        let mut kept = permissions & 0o7777;
        if !self.has(Aspect::Owners) {
            kept &= !SET_IDS;
        }
        // Beside an access control list, the group's bits are the most that the list grants to anyone. Without the list, they are the group's alone.
        if !self.has(Aspect::Acls)
            && let Some(group) = xattrs.get(b"system.posix_acl_access").and_then(group_of)
        {
            kept &= !0o070 | group << 3;
        }
        Some(kept)
    }

    /// Returns how a time is kept; `None` if it is not.
    #[must_use]
    pub fn time(&self, time: FileTime) -> Option<FileTime> {
        self.has(Aspect::Times).then(|| self.times.stored(time))
    }

    /// Returns whether files with these attributes are alike in all that is kept.
    #[must_use]
    pub fn are_alike(&self, a: &Attributes, b: &Attributes) -> bool {
        let owner = |of: &Attributes| self.has(Aspect::Owners).then_some((of.uid, of.gid));
        a.file_type() == b.file_type()
            && self.permissions(a.mode, &a.xattrs) == self.permissions(b.mode, &b.xattrs)
            && owner(a) == owner(b)
            && self.xattrs(&a.xattrs).eq(self.xattrs(&b.xattrs))
    }

    /// Returns the words for an install record: the aspects that are not kept, and the times.
    pub(super) fn encode(&self) -> String {
        let Times { step, first, last } = self.times;
        let lacks: Vec<&str> = self.lacks().map(Aspect::word).collect();
        let lacks = if lacks.is_empty() { "nothing".to_owned() } else { lacks.join(",") };
        format!("lacks {lacks}\ntimes {step} {first} {last}\n")
    }

    /// Parses the values of the two lines.
    pub(super) fn parse(lacks: &str, times: &str) -> Option<Self> {
        let mut keeps = Self::ALL;
        for word in lacks.split(',').filter(|_| lacks != "nothing") {
            keeps.set(Aspect::ALL.into_iter().find(|aspect| aspect.word() == word)?, false);
        }
        let mut numbers = times.split(' ');
        let step = numbers.next()?.parse().ok().filter(|step| (1..=2 * SECOND).contains(step))?;
        keeps.times = Times { step, first: numbers.next()?.parse().ok()?, last: numbers.next()?.parse().ok()? };
        Some(keeps)
    }
}

/// Returns what an access control list grants to the file's group.
fn group_of(list: &[u8]) -> Option<u16> {
    let (entries, _) = list.get(4..)?.as_chunks::<8>();
    let bits = |wanted: u16| {
        let of = entries.iter().find(|entry| u16::from_le_bytes([entry[0], entry[1]]) == wanted);
        of.map(|entry| u16::from_le_bytes([entry[2], entry[3]]) & 7)
    };
    let (group, mask) = (bits(0x04)?, bits(0x10));
    Some(group & mask.unwrap_or(7))
}

#[cfg(test)]
mod tests {
    use sealift_format::Xattr;

    use super::*;

    #[test]
    fn times_are_stored_as_the_last_step_before_them() {
        let (odd, whole) = ((1_000_000_001, 999_999_999), (1_000_000_001, 0));
        let by = |step| Times { step, ..Times::EXACT }.stored(odd);
        assert_eq!(by(1), odd);
        assert_eq!(by(100), (1_000_000_001, 999_999_900));
        assert_eq!(by(10_000_000), (1_000_000_001, 990_000_000));
        assert_eq!(by(SECOND), whole);
        assert_eq!(by(2 * SECOND), (1_000_000_000, 0));
        let early = Times { step: 2 * SECOND, ..Times::EXACT }.stored((-1, 5));
        assert_eq!(early, (-2, 0));
    }

    #[test]
    fn times_beyond_the_range_are_stored_as_its_ends() {
        let times = Times { step: 1, first: -10, last: 10 };
        for (time, stored) in
            [((-11, 5), (-10, 0)), ((-10, 5), (-10, 0)), ((-9, 5), (-9, 5)), ((10, 5), (10, 0)), ((99, 9), (10, 0))]
        {
            assert_eq!(times.stored(time), stored, "{time:?}");
        }
    }

    #[test]
    fn without_owners_no_file_sets_an_id() {
        let mut keeps = Keeps::ALL;
        assert_eq!(keeps.permissions(0o104_755, &Xattrs::default()), Some(0o4755));
        keeps.set(Aspect::Owners, false);
        assert_eq!(keeps.permissions(0o6755, &Xattrs::default()), Some(0o755));
        keeps.set(Aspect::Modes, false);
        assert_eq!(keeps.permissions(0o6755, &Xattrs::default()), None);
    }

    #[test]
    fn without_its_list_a_file_grants_its_group_no_more_than_the_list_did() {
        // user::rw-, user:42:rw-, group::r--, mask::rw-, other::---
        let list = [(1, 6, u32::MAX), (2, 6, 42), (4, 4, u32::MAX), (0x10, 6, u32::MAX), (0x20, 0, u32::MAX)];
        let mut value = 2_u32.to_le_bytes().to_vec();
        for (tag, bits, id) in list {
            value.extend(u16::to_le_bytes(tag));
            value.extend(u16::to_le_bytes(bits));
            value.extend(u32::to_le_bytes(id));
        }
        let xattrs = vec![Xattr { name: b"system.posix_acl_access".to_vec(), value }];
        let xattrs = Xattrs::try_from(xattrs).expect("it is one");
        let mut keeps = Keeps::ALL;
        assert_eq!(keeps.permissions(0o660, &xattrs), Some(0o660));
        keeps.set(Aspect::Acls, false);
        assert_eq!(keeps.permissions(0o660, &xattrs), Some(0o640));
        assert_eq!(keeps.permissions(0o660, &Xattrs::default()), Some(0o660));
    }

    #[test]
    fn what_is_written_is_read() {
        let mut keeps = Keeps { times: Times { step: 100, first: -5, last: 7 }, ..Keeps::ALL };
        for aspect in Aspect::ALL {
            let text = keeps.encode();
            let values: Vec<&str> = text.lines().filter_map(|line| line.split_once(' ')).map(|line| line.1).collect();
            assert_eq!(Keeps::parse(values[0], values[1]), Some(keeps));
            keeps.set(aspect, false);
        }
        assert_eq!(Keeps::parse("all", "1 0 0"), None);
        assert_eq!(Keeps::parse("nothing", "0 0 0"), None);
    }
}
