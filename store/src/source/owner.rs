//! Changes of owner, mode and time, for every kind of source.

use sealift_format::FileType;

use super::modes::ModeRules;
use crate::{Metadata, Tree};

/// Changes to every file's metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MetadataOptions {
    /// Owner and group of all files that no rule of `owner_map` matches.
    pub owner: Option<(u32, u32)>,
    /// Mappings of owners and groups. The first rule that matches an id applies; its result is not mapped again.
    pub owner_map: Vec<OwnerRule>,
    /// Changes of the permission bits of all files but symbolic links. A file with an access control list keeps its bits, which belong to the list.
    pub modes: ModeRules,
    /// The latest time that a file may have, in seconds; later times are clamped to it.
    pub mtime_max: Option<i64>,
}

/// A mapping of an owner or group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_enums, reason = "a file has an owner and a group")]
pub enum OwnerRule {
    /// An owner.
    Uid {
        /// The id in the source.
        from: u32,
        /// The id in the bundle.
        to: u32,
    },
    /// A group.
    Gid {
        /// The id in the source.
        from: u32,
        /// The id in the bundle.
        to: u32,
    },
}

impl MetadataOptions {
    /// Applies the changes to a tree.
    pub fn apply(&self, tree: &mut Tree) {
        if *self != Self::default() {
            tree.map_metadata(|file_type, metadata| self.change(file_type, metadata));
        }
    }

    fn change(&self, file_type: FileType, metadata: &mut Metadata) {
        let has_list = metadata.xattrs.get(b"system.posix_acl_access").is_some();
        if file_type != FileType::Symlink && !has_list {
            metadata.permissions = self.modes.change(metadata.permissions, file_type == FileType::Directory);
        }
        let uid = self.owner_map.iter().find_map(|rule| match rule {
            OwnerRule::Uid { from, to } if *from == metadata.uid => Some(*to),
            _ => None,
        });
        let gid = self.owner_map.iter().find_map(|rule| match rule {
            OwnerRule::Gid { from, to } if *from == metadata.gid => Some(*to),
            _ => None,
        });
        metadata.uid = uid.or(self.owner.map(|(uid, _)| uid)).unwrap_or(metadata.uid);
        metadata.gid = gid.or(self.owner.map(|(_, gid)| gid)).unwrap_or(metadata.gid);
        if let Some(max) = self.mtime_max
            && metadata.mtime >= max
        {
            (metadata.mtime, metadata.mtime_ns) = (max, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(uid: u32, gid: u32, mtime: i64) -> Metadata {
        Metadata { permissions: 0o644, uid, gid, mtime, mtime_ns: 5, xattrs: sealift_format::Xattrs::default() }
    }

    #[test]
    fn rules_go_before_the_owner() {
        let options = MetadataOptions {
            owner: Some((0, 0)),
            owner_map: vec![OwnerRule::Uid { from: 1000, to: 7 }, OwnerRule::Uid { from: 7, to: 8 }],
            modes: ModeRules::default(),
            mtime_max: Some(100),
        };
        let table = [((1000, 1000, 99), (7, 0, 99, 5)), ((7, 1, 100), (8, 0, 100, 0)), ((3, 3, 101), (0, 0, 100, 0))];
        for ((uid, gid, mtime), expected) in table {
            let mut metadata = file(uid, gid, mtime);
            options.change(FileType::Regular, &mut metadata);
            assert_eq!((metadata.uid, metadata.gid, metadata.mtime, metadata.mtime_ns), expected);
        }
    }
}
