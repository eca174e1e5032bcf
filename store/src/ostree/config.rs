//! A repository's `config` file.

use std::time::Duration;

use sealift_format::name::is_collection_id;

use super::keyfile::KeyFile;
use super::remote::Remote;
use crate::error::RepoFault;

/// How a repository stores its objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Files as they are, with owners and set-id bits.
    Bare,
    /// Files owned by the user, with their real attributes in an extended attribute.
    BareUser,
    /// Files owned by the user, without owners, extended attributes and set-id bits.
    BareUserOnly,
    /// Compressed files behind headers, as served over HTTP.
    Archive,
}

impl Mode {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::BareUser => "bare-user",
            Self::BareUserOnly => "bare-user-only",
            Self::Archive => "archive-z2",
        }
    }
}

/// How much space must stay free when objects are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MinFree {
    /// This percentage of the file system.
    Percent(u64),
    /// This many bytes.
    Bytes(u64),
}

/// A repository's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) mode: Mode,
    /// The collection that its refs belong to, if any.
    pub(crate) collection_id: Option<String>,
    pub(crate) min_free: MinFree,
    /// Whether written data must be durable before it counts.
    pub(crate) fsync: bool,
    /// Whether transactions lock the repository.
    pub(crate) locking: bool,
    /// How long to wait for another program's lock; `None` means forever.
    pub(crate) lock_timeout: Option<Duration>,
    /// The compression level of files in an archive, from 1 to 9, if set.
    pub(crate) zlib_level: Option<u32>,
    /// Whether removing a commit leaves a tombstone.
    pub(crate) tombstones: bool,
    /// The remotes that commits come from, in file order.
    pub(crate) remotes: Vec<Remote>,
}

/// Seconds that libostree waits for a lock.
const LOCK_TIMEOUT: u64 = 300;

impl Config {
    /// Parses the file.
    ///
    /// # Errors
    /// Returns an error if its version or mode is unknown, or if a setting is invalid.
    pub(crate) fn parse(text: &str) -> Result<Self, RepoFault> {
        let file = KeyFile::parse(text)?;
        let core = |key| file.value("core", key);
        check(core("repo_version") == Some("1"), "core.repo_version", core("repo_version"))?;
        // Objects in a parent repository would be missing here, and remotes, keys and refs are the parent's too.
        if let Some(parent) = core("parent").filter(|parent| !parent.is_empty()) {
            return Err(RepoFault::Parent { parent: parent.to_owned() });
        }
        let mode = match core("mode").unwrap_or("bare") {
            "bare" => Mode::Bare,
            "bare-user" => Mode::BareUser,
            "bare-user-only" => Mode::BareUserOnly,
            "archive-z2" | "archive" => Mode::Archive,
            other => return Err(RepoFault::Config { key: "core.mode", value: other.to_owned() }),
        };
        // 0 stands for a missing value.
        let zlib_level = file.number("archive", "zlib-level", "archive.zlib-level", 0)?;
        Ok(Self {
            mode,
            collection_id: collection_id(core("collection-id"))?,
            min_free: min_free(core("min-free-space-percent"), core("min-free-space-size"))?,
            fsync: file.boolean("core", "fsync", "core.fsync", true)?,
            locking: file.boolean("core", "locking", "core.locking", true)?,
            lock_timeout: match core("lock-timeout-secs") {
                Some("-1") => None,
                _ => Some(Duration::from_secs(file.number(
                    "core",
                    "lock-timeout-secs",
                    "core.lock-timeout-secs",
                    LOCK_TIMEOUT,
                )?)),
            },
            zlib_level: u32::try_from(zlib_level.min(9)).ok().filter(|level| *level > 0),
            tombstones: file.boolean("core", "tombstone-commits", "core.tombstone-commits", false)?,
            remotes: Remote::all(&file),
        })
    }
}

fn check(holds: bool, key: &'static str, value: Option<&str>) -> Result<(), RepoFault> {
    if holds { Ok(()) } else { Err(RepoFault::Config { key, value: value.unwrap_or_default().to_owned() }) }
}

fn collection_id(value: Option<&str>) -> Result<Option<String>, RepoFault> {
    let Some(id) = value.filter(|id| !id.is_empty()) else { return Ok(None) };
    check(is_collection_id(id), "collection-id", value)?;
    Ok(Some(id.to_owned()))
}

/// Parses the limit; a size takes precedence over a percentage, as in libostree.
fn min_free(percent: Option<&str>, size: Option<&str>) -> Result<MinFree, RepoFault> {
    if let Some(size) = size {
        let split = size.len().checked_sub(2).and_then(|at| size.split_at_checked(at));
        let shift = split.and_then(|(_, unit)| match unit {
            "MB" => Some(20),
            "GB" => Some(30),
            "TB" => Some(40),
            _ => None,
        });
        let bytes = split.and_then(|(number, _)| number.parse::<u64>().ok()?.checked_mul(1 << shift?));
        let wrong = || RepoFault::Config { key: "core.min-free-space-size", value: size.to_owned() };
        return bytes.map(MinFree::Bytes).ok_or_else(wrong);
    }
    let text = percent.unwrap_or("3");
    let wrong = || RepoFault::Config { key: "core.min-free-space-percent", value: text.to_owned() };
    text.parse().ok().filter(|percent| *percent <= 99).map(MinFree::Percent).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings() {
        let text = "[core]\nrepo_version=1\nmode=bare-user\ncollection-id=org.example.Os\nmin-free-space-size=2GB\n\n\
            [remote \"os\"]\nurl=https://example.org\ngpg-verify=false\nsign-verify=ed25519\n# note\n[remote \"other\"]\n";
        let config = Config::parse(text).expect("it is a config");
        assert_eq!(config.mode, Mode::BareUser);
        assert_eq!(config.collection_id.as_deref(), Some("org.example.Os"));
        assert_eq!(config.min_free, MinFree::Bytes(2 << 30));
        assert_eq!((config.fsync, config.locking, config.zlib_level), (true, true, None));
        let names: Vec<_> = config.remotes.iter().map(|remote| &*remote.name).collect();
        assert_eq!(names, ["os", "other"]);
        let plain = Config::parse("[core]\nrepo_version=1\n").expect("it is a config");
        assert_eq!((plain.mode, plain.min_free), (Mode::Bare, MinFree::Percent(3)));
    }

    #[test]
    fn what_is_not_known() {
        let with =
            |line: &str| Config::parse(&format!("[core]\nrepo_version=1\n{line}\n")).expect_err(line).to_string();
        assert_eq!(
            with("mode=bare-split-xattrs"),
            "its config has core.mode = \"bare-split-xattrs\", which sealift does not support"
        );
        assert!(with("repo_version=2").contains("core.repo_version"));
        assert!(
            with("parent=/other")
                .starts_with("objects are missing; they may be in its parent \"/other\" (core.parent)")
        );
        assert!(Config::parse("[core]\nrepo_version=1\nparent=\n").is_ok());
        assert!(with("min-free-space-percent=100").contains("min-free-space-percent"));
        assert!(with("min-free-space-size=1").contains("min-free-space-size"));
        assert!(with("collection-id=one").contains("collection-id"));
        assert!(with("fsync=maybe").contains("core.fsync"));
        assert!(with("nonsense").contains("line 3"));
        assert!(Config::parse("repo_version=1").is_err() && Config::parse("").is_err());
    }
}
