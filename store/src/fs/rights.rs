//! What this process may do, by its capabilities and the ids of its user namespace: being user 0 says neither.

use rustix::thread::{CapabilitySet, capabilities};

/// The rights of this process.
#[derive(Clone, Debug)]
pub struct Rights {
    effective: CapabilitySet,
    /// Its own user and group.
    pub own: (u32, u32),
    users: IdMap,
    groups: IdMap,
}

/// The ids that exist in a user namespace: first ids and numbers of ids.
#[derive(Clone, Debug, PartialEq, Eq)]
struct IdMap(Vec<(u32, u32)>);

impl Rights {
    /// Returns the rights of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let own = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        // The call cannot fail for the calling thread.
        let effective = capabilities(None).map_or(CapabilitySet::empty(), |sets| sets.effective);
        Self { effective, own, users: IdMap::read("uid_map"), groups: IdMap::read("gid_map") }
    }

    /// Returns which of these capabilities it lacks first.
    #[must_use]
    pub fn lacks(&self, needed: CapabilitySet) -> Option<String> {
        let lacking = needed.difference(self.effective);
        lacking.iter_names().next().map(|(name, _)| format!("CAP_{name}"))
    }

    /// Returns whether it may do anything with the files and directories of this user.
    #[must_use]
    pub fn commands(&self, user: u32) -> bool {
        let powers = CapabilitySet::CHOWN | CapabilitySet::FOWNER | CapabilitySet::DAC_OVERRIDE;
        user == self.own.0 || self.effective.contains(powers) && self.users.has(user)
    }

    /// Returns whether it may change the metadata of a file of this user. One whose id does not exist here is another one's for sure.
    #[must_use]
    pub fn may_change(&self, user: u32) -> bool {
        user == self.own.0 || self.effective.contains(CapabilitySet::FOWNER) && self.users.has(user)
    }

    /// Returns whether it may change the metadata of any file.
    #[must_use]
    pub fn may_change_all(&self) -> bool {
        self.effective.contains(CapabilitySet::FOWNER) && self.users.is_all()
    }

    /// Returns whether permission bits do not restrict it.
    #[must_use]
    pub fn overrides_modes(&self) -> bool {
        self.effective.contains(CapabilitySet::DAC_OVERRIDE)
    }

    /// Returns whether a user and a group exist here.
    #[must_use]
    pub fn maps(&self, (user, group): (u32, u32)) -> bool {
        self.users.has(user) && self.groups.has(group)
    }

    /// Returns whether it is in a user namespace that is not the system's own.
    #[must_use]
    pub fn is_in_namespace(&self) -> bool {
        !self.users.is_all()
    }
}

impl IdMap {
    const ALL: u32 = u32::MAX;

    /// Reads a map of this process (user_namespaces(7)). Without /proc, all ids are assumed to exist: trying tells.
    fn read(name: &str) -> Self {
        let text = std::fs::read_to_string(format!("/proc/self/{name}"));
        text.map_or(Self(vec![(0, Self::ALL)]), |text| Self::parse(&text))
    }

    fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut numbers = line.split_ascii_whitespace().map(|number| number.parse().ok());
            let (first, _, count) = (numbers.next()??, numbers.next()??, numbers.next()??);
            let _: u32 = count;
            Some((first, count))
        };
        Self(text.lines().filter_map(line).collect())
    }

    fn has(&self, id: u32) -> bool {
        self.0.iter().any(|(first, count)| id.checked_sub(*first).is_some_and(|at| at < *count))
    }

    fn is_all(&self) -> bool {
        self.0 == [(0, Self::ALL)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_exist_where_the_map_says() {
        let map = IdMap::parse("         0       1000          1\n         1     100000      65536\n");
        assert!(map.has(0) && map.has(1) && map.has(65_536) && !map.has(65_537) && !map.is_all());
        assert!(IdMap::parse("         0          0 4294967295\n").is_all());
        assert!(!IdMap::parse("").has(0));
    }

    #[test]
    fn the_first_missing_capability_is_named() {
        let mut rights = Rights::of_process();
        rights.effective = CapabilitySet::CHOWN;
        assert_eq!(rights.lacks(CapabilitySet::CHOWN), None);
        assert_eq!(rights.lacks(CapabilitySet::CHOWN | CapabilitySet::MKNOD).as_deref(), Some("CAP_MKNOD"));
    }

    #[test]
    fn user_0_commands_others_by_its_capabilities_alone() {
        let users = IdMap(vec![(0, 200)]);
        let mut rights = Rights { own: (0, 0), users, ..Rights::of_process() };
        rights.effective = CapabilitySet::CHOWN | CapabilitySet::FOWNER;
        assert!(rights.commands(0) && !rights.commands(105));
        rights.effective |= CapabilitySet::DAC_OVERRIDE;
        assert!(rights.commands(105) && !rights.commands(1000));
    }
}
