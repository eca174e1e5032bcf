//! The state's list of targets: what was installed where, when, and by whose keys. A target's own record is authoritative; the list only says where
//! targets are.
//!
//! ```text
//! sealift target 1
//! kind directory|ostree|composefs|slot
//! path PATH               absolute, without symlinks; unprintable characters are escaped
//! on ID|unknown           the file system at that path; of a slot, its partition and size
//! name NAME
//! version NUMBER
//! taken SECONDS           since 1970, by the clock at that time
//! state begun|whole       begun: no run that installed it has ended, and what the target holds is not known
//! keys KEY...
//! ```

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::fd::AsFd as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use crate::Site;
use sealift_format::name::is_bundle_name;
use sealift_verify::escape;
use sealift_verify::trust::KeyId;

use crate::Error;
use crate::address::TargetKind;
use crate::fs::confined::open_user_dir;
use crate::fs::identity::id_of_system;
use crate::slot::{Partition, Slot};

/// The place of an installation: its path, equal for all paths that lead to it, and what tells the file system there from others that are mounted
/// there at other times.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TargetId {
    kind: TargetKind,
    path: PathBuf,
    on: Option<String>,
}

/// A bundle that was installed to a target, as the state lists it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct KnownTarget {
    /// Where it was installed.
    pub place: TargetId,
    /// The bundle's name.
    pub name: String,
    /// The bundle's version.
    pub version: u64,
    /// When it was installed, in seconds since 1970, by the clock at that time.
    pub taken: i64,
    /// Whether its installation began and has not ended: the target may hold nothing of it.
    pub is_begun: bool,
    /// The keys that counted.
    pub keys: BTreeSet<KeyId>,
}

const TITLE: &str = "sealift target 1";
const UNKNOWN: &str = "unknown";
const BEGUN: &str = "begun";
const WHOLE: &str = "whole";

impl TargetId {
    /// Returns the place of the directory at a site.
    ///
    /// # Errors
    /// Returns an error if the current directory, which a relative path starts from, is unknown.
    pub fn of_directory(site: &Site) -> Result<Self, Error> {
        Ok(Self { kind: TargetKind::Directory, path: site.place().absolute_path()?, on: site.identity() })
    }

    /// Returns the place of an existing repository or store.
    pub fn of_store(kind: TargetKind, path: &Path) -> Result<Self, Error> {
        let path = std::fs::canonicalize(path).map_err(|error| Error::io("find", path, error))?;
        let on = open_user_dir(&path).ok().and_then(|root| id_of_system(root.as_fd()));
        Ok(Self { kind, path, on })
    }

    /// Returns the place of a slot.
    #[must_use]
    pub fn of_slot(slot: &Slot) -> Self {
        Self { kind: TargetKind::Slot, path: slot.path().to_owned(), on: slot.identity() }
    }

    /// Returns the place of a path that no longer resolves: the path itself.
    ///
    /// # Errors
    /// Returns an error if the path is empty, or if the current directory is unknown.
    pub fn of_missing(kind: TargetKind, path: &Path) -> Result<Self, Error> {
        let path = std::path::absolute(path).map_err(|error| Error::io("find", path, error))?;
        Ok(Self { kind, path, on: None })
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> TargetKind {
        self.kind
    }

    /// Returns the absolute path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the place under the path that it has now: a partition is found by its UUID, since devices change their names. `None` if it is not there,
    /// whatever has its name.
    #[must_use]
    pub fn now(&self) -> Option<Self> {
        let path = match self.partition() {
            Some(uuid) => Partition::find(uuid, &self.path)?,
            None => self.path.clone(),
        };
        Some(Self { path, ..self.clone() })
    }

    /// Returns whether both have the same path, whatever file system is there; a partition has its UUID instead, since devices change their names.
    pub(super) fn has_path_of(&self, other: &Self) -> bool {
        let is_known = self.on.is_some() && other.on.is_some();
        self.kind == other.kind && if is_known { self.key() == other.key() } else { self.path == other.path }
    }

    fn key(&self) -> &[u8] {
        self.partition().map_or(self.path.as_os_str().as_bytes(), str::as_bytes)
    }

    /// Returns the UUID of a partition.
    fn partition(&self) -> Option<&str> {
        let on = self.on.as_deref().filter(|_| self.kind == TargetKind::Slot)?;
        Some(on.strip_prefix(Slot::PARTITION)?.rsplit_once('-')?.0)
    }

    /// Returns whether both are the same, as far as is known.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let (on, other_on) = (self.on.as_ref(), other.on.as_ref());
        self.has_path_of(other) && on.zip(other_on).is_none_or(|(on, other)| on == other)
    }

    /// Returns the name of the file that lists the bundle of a name there. A directory or slot holds one bundle at a time, of any name; a repository or
    /// store holds one of each name.
    pub(super) fn file_name(&self, name: &str) -> String {
        let name = if matches!(self.kind, TargetKind::Directory | TargetKind::Slot) { "" } else { name };
        let mut hasher = blake3::Hasher::new();
        for part in [self.kind.word().as_bytes(), self.key(), name.as_bytes()] {
            hasher.update(part).update(&[0]);
        }
        hasher.finalize().to_hex().to_string()
    }

    /// Returns the place as written on the command line.
    #[must_use]
    pub fn argument(&self) -> PathBuf {
        self.kind.argument(&self.path)
    }
}

impl KnownTarget {
    /// Returns the name of the file that lists it.
    pub(super) fn file_name(&self) -> String {
        self.place.file_name(&self.name)
    }

    /// Returns whether both list the same bundle, keys and place, regardless of time.
    pub(super) fn is_as(&self, other: &Self) -> bool {
        *self == Self { taken: self.taken, ..other.clone() }
    }

    /// Encodes the file's text.
    pub(super) fn encode(&self) -> String {
        let Self { place, name, version, taken, is_begun, keys } = self;
        let path = escape::bytes(place.path.as_os_str().as_bytes());
        let keys: Vec<String> = keys.iter().map(ToString::to_string).collect();
        let (kind, keys) = (place.kind.word(), keys.join(" "));
        let state = if *is_begun { BEGUN } else { WHOLE };
        let what = format!("name {name}\nversion {version}\ntaken {taken}\nstate {state}");
        let on = place.on.as_deref().unwrap_or(UNKNOWN);
        format!("{TITLE}\nkind {kind}\npath {path}\non {on}\n{what}\nkeys {keys}\n")
    }

    /// Parses what [`KnownTarget::encode`] wrote, and nothing else.
    ///
    /// # Errors
    /// Returns a description of what is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut lines = text.lines();
        let title = lines.next().unwrap_or_default();
        if title != TITLE {
            return Err(format!("its first line is {title:?}, not {TITLE:?}; was it written by a newer version?"));
        }
        let mut field = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name)).and_then(|rest| rest.strip_prefix(' '));
            line.ok_or_else(|| format!("it has no line {name:?}"))
        };
        let word = field("kind")?;
        let kind = TargetKind::ALL.into_iter().find(|kind| kind.word() == word);
        let kind = kind.ok_or_else(|| format!("{word:?} is not a kind of target"))?;
        let path = field("path")?.as_bytes();
        let path = PathBuf::from(OsString::from_vec(escape::unescaped(path).unwrap_or_else(|| path.to_vec())));
        let on = Some(field("on")?.to_owned()).filter(|on| on != UNKNOWN);
        let name = field("name")?.to_owned();
        let version = field("version")?.parse().map_err(|_| "its version is not a number")?;
        let taken = field("taken")?.parse().map_err(|_| "its time is not a number")?;
        let is_begun = field("state")? == BEGUN;
        let keys = field("keys")?.split(' ').map(str::parse).collect::<Result<BTreeSet<KeyId>, _>>();
        let keys = keys.map_err(|error| error.to_string())?;
        let known = Self { place: TargetId { kind, path, on }, name, version, taken, is_begun, keys };
        // Only the exact encoding is accepted, so that a partial edit is noticed.
        if !is_bundle_name(&known.name) || !known.place.path.is_absolute() || known.encode() != text {
            return Err("its lines are not exactly as sealift writes them".to_owned());
        }
        Ok(known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(kind: TargetKind, path: &[u8], name: &str) -> KnownTarget {
        let path = PathBuf::from(OsString::from_vec(path.to_vec()));
        let keys = [KeyId::from_bytes([2; 32]), KeyId::from_bytes([1; 32])].into();
        KnownTarget {
            place: TargetId { kind, path, on: Some("filesystem-1f".to_owned()) },
            name: name.to_owned(),
            version: 7,
            taken: -5,
            is_begun: false,
            keys,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        for kind in TargetKind::ALL {
            for path in [&b"/srv/os"[..], b"/", b"/a b\\c\n\xff\x1b[m", "/\u{202e}é".as_bytes(), b"/\\x41"] {
                for is_begun in [false, true] {
                    let known = KnownTarget { is_begun, ..known(kind, path, "os") };
                    assert_eq!(KnownTarget::parse(&known.encode()), Ok(known));
                }
            }
        }
    }

    #[test]
    fn another_spelling_is_refused() {
        let good = known(TargetKind::Directory, b"/srv/os", "os").encode();
        assert!(KnownTarget::parse(&good).is_ok());
        for (from, to) in [
            ("target 1", "target 2"),
            ("kind directory", "kind device"),
            ("path /", "path "),
            ("/srv", "/\\x73rv"),
            ("name os", "name ../os"),
            ("version 7", "version 07"),
            ("taken -5", "taken soon"),
            ("state whole", "state half"),
            ("keys ", "keys  "),
            ("\n", "\r\n"),
        ] {
            let bad = good.replace(from, to);
            assert!(bad != good && KnownTarget::parse(&bad).is_err(), "{bad:?}");
        }
        assert!(KnownTarget::parse(&format!("{good}more\n")).is_err());
    }

    #[test]
    fn a_directory_has_one_bundle_and_a_store_one_of_each_name() {
        let file = |kind, path: &[u8], name| known(kind, path, name).file_name();
        assert_eq!(file(TargetKind::Directory, b"/a", "os"), file(TargetKind::Directory, b"/a", "app"));
        assert_ne!(file(TargetKind::Directory, b"/a", "os"), file(TargetKind::Directory, b"/b", "os"));
        assert_ne!(file(TargetKind::Ostree, b"/a", "os"), file(TargetKind::Ostree, b"/a", "app"));
        assert_ne!(file(TargetKind::Ostree, b"/a", "os"), file(TargetKind::Composefs, b"/a", "os"));
    }

    #[test]
    fn a_path_with_another_file_system_is_another_place() {
        let on =
            |on: Option<&str>| TargetId { on: on.map(str::to_owned), ..known(TargetKind::Ostree, b"/a", "os").place };
        let (one, other, unknown) = (on(Some("filesystem-1")), on(Some("filesystem-2")), on(None));
        assert!(one.is_same(&one) && !one.is_same(&other) && one.has_path_of(&other));
        assert!(one.is_same(&unknown) && unknown.is_same(&one) && unknown.is_same(&unknown));
    }
}
