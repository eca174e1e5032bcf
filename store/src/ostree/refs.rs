//! Refs of a repository.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode as Permissions, OFlags, readlinkat, statat};
use rustix::io::Errno;
use sealift_format::name::{is_collection_id, is_ref_name};
use sealift_format::ostree::Checksum;

use super::object::parse_checksum;
use super::repo::Repo;
use crate::Error;
use crate::error::RepoFault;
use crate::fs::confined::{known_type, names_in, open_beneath};
use crate::fs::own_store::check_own_folders;

/// The owner of a ref.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RefOwner {
    /// The repository itself.
    Heads,
    /// The remote of this name.
    Remote(String),
    /// The collection of this id; the ref mirrors one of that collection.
    Mirror(String),
}

/// A ref's name, in a form that libostree accepts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RefName {
    place: RefOwner,
    name: String,
}

/// Levels of directories searched for refs: a name has at most 255 bytes.
const DEPTH_MAX: usize = 128;

/// The maximum length of a chain of aliases.
const ALIASES_MAX: usize = 16;

impl RefName {
    /// Creates a ref's name.
    ///
    /// # Errors
    /// Returns an error if a name is malformed.
    pub(crate) fn new(place: RefOwner, name: &str) -> Result<Self, RepoFault> {
        let fault = |what, name: &str| RepoFault::Name { what, name: name.to_owned() };
        match &place {
            RefOwner::Remote(remote) if !is_remote_name(remote) => return Err(fault("remote", remote)),
            RefOwner::Mirror(id) if !is_collection_id(id) => return Err(fault("collection", id)),
            _ => {}
        }
        if is_ref_name(name) { Ok(Self { place, name: name.to_owned() }) } else { Err(fault("ref", name)) }
    }

    pub(crate) fn place(&self) -> &RefOwner {
        &self.place
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the path of its file in a repository.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", folder(&self.place), self.name)
    }
}

/// As it is written on a command line: a remote or a collection, a colon, and the name.
impl std::fmt::Display for RefName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.place {
            RefOwner::Heads => f.write_str(&self.name),
            RefOwner::Remote(owner) | RefOwner::Mirror(owner) => write!(f, "{owner}:{}", self.name),
        }
    }
}

fn folder(place: &RefOwner) -> String {
    match place {
        RefOwner::Heads => "refs/heads".to_owned(),
        RefOwner::Remote(remote) => format!("refs/remotes/{remote}"),
        RefOwner::Mirror(id) => format!("refs/mirrors/{id}"),
    }
}

fn is_remote_name(name: &str) -> bool {
    is_ref_name(name) && !name.contains('/')
}

impl Repo {
    /// Checks that the folders on the way to these refs belong to the user that owns the repository, and that nobody else can write to them.
    pub(crate) fn check_own_refs(&self, names: &[RefName]) -> Result<(), Error> {
        let paths: Vec<String> = names.iter().map(RefName::path).collect();
        check_own_folders(self.root(), &paths, self.path())
    }

    /// Returns all refs, in order. Links, which libostree uses for aliases, are left out.
    ///
    /// # Errors
    /// Returns an error if a directory or file cannot be read, or has invalid content.
    pub(crate) fn refs(&self) -> Result<Vec<(RefName, Checksum)>, Error> {
        let mut refs = Vec::new();
        self.collect(RefOwner::Heads, &mut refs)?;
        for remote in self.remotes_with_refs()? {
            self.collect(RefOwner::Remote(remote), &mut refs)?;
        }
        for id in self.names_below("refs/mirrors")?.into_iter().filter(|name| is_collection_id(name)) {
            self.collect(RefOwner::Mirror(id), &mut refs)?;
        }
        refs.sort();
        Ok(refs)
    }

    /// Returns the remotes that have refs, configured or not.
    pub(crate) fn remotes_with_refs(&self) -> Result<Vec<String>, Error> {
        Ok(self.names_below("refs/remotes")?.into_iter().filter(|name| is_remote_name(name)).collect())
    }

    fn open_ref_dir(&self, path: &str) -> Result<Option<OwnedFd>, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        match open_beneath(self.root(), path.as_bytes(), flags, Permissions::empty()) {
            Ok(directory) => Ok(Some(directory)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(Error::io("read", self.path().join(path), error)),
        }
    }

    fn names_below(&self, path: &str) -> Result<Vec<String>, Error> {
        let Some(directory) = self.open_ref_dir(path)? else { return Ok(Vec::new()) };
        let names = names_in(directory.as_fd()).map_err(|error| Error::io("read", self.path().join(path), error))?;
        Ok(names.into_iter().filter_map(|(name, _)| String::from_utf8(name).ok()).collect())
    }

    fn collect(&self, place: RefOwner, refs: &mut Vec<(RefName, Checksum)>) -> Result<(), Error> {
        let folder = folder(&place);
        let mut pending = vec![String::new()];
        while let Some(below) = pending.pop() {
            let path = format!("{folder}/{below}");
            let path = path.trim_end_matches('/');
            let Some(directory) = self.open_ref_dir(path)? else { continue };
            let names =
                names_in(directory.as_fd()).map_err(|error| Error::io("read", self.path().join(path), error))?;
            for (name, listed) in names {
                let file_type = known_type(directory.as_fd(), &name, listed).map_err(|error| {
                    Error::io("look at", self.path().join(path).join(crate::error::path_of(&name)), error)
                })?;
                let Ok(name) = String::from_utf8(name) else { continue };
                let name = if below.is_empty() { name } else { format!("{below}/{name}") };
                // Skips files that are being written, and anything else that is not a ref.
                let Ok(found) = RefName::new(place.clone(), &name) else { continue };
                match file_type {
                    FileType::Directory if name.split('/').count() < DEPTH_MAX => pending.push(name),
                    FileType::RegularFile => {
                        if let Some(checksum) = self.read_ref(&found)? {
                            refs.push((found, checksum));
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Checks that refs of these names can coexist with each other and with the existing ones: of `os` and `os/main`, one has to be a file and the
    /// other needs a directory.
    ///
    /// # Errors
    /// Returns an error if they cannot, or if this cannot be determined.
    pub(crate) fn check_places(&self, names: &[RefName]) -> Result<(), Error> {
        let paths: BTreeSet<String> = names.iter().map(RefName::path).collect();
        for path in &paths {
            let conflict =
                |other: &str| Err(self.fault(RepoFault::RefConflict { name: path.clone(), other: other.to_owned() }));
            if self.kind_of(path)? == Some(FileType::Directory) {
                return conflict(path);
            }
            for (end, _) in path.match_indices('/') {
                let above = &path[..end];
                let kind = self.kind_of(above)?;
                if paths.contains(above) || kind.is_some_and(|kind| kind != FileType::Directory) {
                    return conflict(above);
                }
            }
        }
        Ok(())
    }

    fn kind_of(&self, path: &str) -> Result<Option<FileType>, Error> {
        match statat(self.root(), path, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(FileType::from_raw_mode(stat.st_mode))),
            Err(Errno::NOENT | Errno::NOTDIR) => Ok(None),
            Err(error) => Err(Error::io("look at", self.path().join(path), error)),
        }
    }

    /// Returns the commit that a ref names, following aliases; `None` if there is no such ref.
    ///
    /// # Errors
    /// Returns an error if its file cannot be read or does not hold a checksum, or if a link leads to no ref.
    pub(crate) fn read_ref(&self, name: &RefName) -> Result<Option<Checksum>, Error> {
        let mut at = name.clone();
        for _ in 0..ALIASES_MAX {
            let path = at.path();
            let failed = |error: std::io::Error| Error::io("read", self.path().join(&path), error);
            let flags = OFlags::RDONLY | OFlags::NONBLOCK;
            match open_beneath(self.root(), path.as_bytes(), flags, Permissions::empty()) {
                Ok(file) => return self.read_ref_file(&at, File::from(file)),
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                Err(Errno::LOOP) => at = self.alias(name, &at)?,
                Err(error) => return Err(failed(error.into())),
            }
        }
        Err(self.strayed(name))
    }

    fn read_ref_file(&self, name: &RefName, file: File) -> Result<Option<Checksum>, Error> {
        let failed = |error: std::io::Error| Error::io("read", self.path().join(name.path()), error);
        if file.metadata().map_err(failed)?.is_dir() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        file.take(66).read_to_end(&mut bytes).map_err(failed)?;
        let text = std::str::from_utf8(&bytes).ok().map(|text| text.strip_suffix('\n').unwrap_or(text));
        let checksum = text.and_then(parse_checksum);
        checksum.map(Some).ok_or_else(|| self.fault(RepoFault::RefContent { name: name.name.clone() }))
    }

    /// Returns the ref that `at`, reached from `name`, is an alias of: a link made by `ostree refs --alias`. The link is read and not followed, so
    /// that it can only lead to a ref of the same place.
    fn alias(&self, name: &RefName, at: &RefName) -> Result<RefName, Error> {
        let target = readlinkat(self.root(), at.path(), Vec::new()).ok().and_then(|target| target.into_string().ok());
        let mut path: Vec<&str> = at.name.split('/').collect();
        path.pop();
        for part in target.as_deref().unwrap_or_default().split('/') {
            match part {
                ".." => path.pop().map(|_| ()).ok_or_else(|| self.strayed(name))?,
                part => path.push(part),
            }
        }
        RefName::new(at.place.clone(), &path.join("/")).map_err(|_| self.strayed(name))
    }

    fn strayed(&self, name: &RefName) -> Error {
        self.fault(RepoFault::RefLink { name: name.to_string(), path: self.path().join(name.path()) })
    }

    /// Returns the commit that `text` names, with its ref unless `text` is a checksum. A name without an owner is that of the repository's own ref,
    /// or else of the only ref of this name.
    ///
    /// # Errors
    /// Returns an error if there is none, or if there are several.
    pub(crate) fn find_commit(&self, text: &str) -> Result<(Checksum, Option<RefName>), Error> {
        if let Some(checksum) = parse_checksum(text) {
            return Ok((checksum, None));
        }
        if let Some((owner, name)) = text.split_once(':') {
            let checksum = self.resolve(text)?;
            let place = match is_collection_id(owner) && !self.config().remotes.iter().any(|own| own.name == owner) {
                true => RefOwner::Mirror(owner.to_owned()),
                false => RefOwner::Remote(owner.to_owned()),
            };
            return Ok((checksum, RefName::new(place, name).ok()));
        }
        let own = RefName::new(RefOwner::Heads, text).map_err(|fault| self.fault(fault))?;
        if let Some(checksum) = self.read_ref(&own)? {
            return Ok((checksum, Some(own)));
        }
        let mut others = self.refs()?.into_iter().filter(|(name, _)| name.name == text);
        match (others.next(), others.next()) {
            (Some((name, checksum)), None) => Ok((checksum, Some(name))),
            (Some((first, _)), Some((second, _))) => {
                Err(self.fault(RepoFault::SeveralRefs { refs: vec![first.to_string(), second.to_string()] }))
            }
            (None, _) => Err(self.fault(RepoFault::NoRef { name: text.to_owned() })),
        }
    }

    /// Returns the commit that `text` names: a checksum, `REF`, `COLLECTION:REF` or `REMOTE:REF`. Does not check that the commit exists.
    ///
    /// # Errors
    /// Returns an error if it is none of these, or if there is no such ref.
    pub(crate) fn resolve(&self, text: &str) -> Result<Checksum, Error> {
        if let Some(checksum) = parse_checksum(text) {
            return Ok(checksum);
        }
        let mut places = Vec::new();
        let name = match text.split_once(':') {
            None => {
                places.push(RefOwner::Heads);
                text
            }
            Some((owner, name)) => {
                if is_collection_id(owner) {
                    if self.config().collection_id.as_deref() == Some(owner) {
                        places.push(RefOwner::Heads);
                    }
                    places.push(RefOwner::Mirror(owner.to_owned()));
                    let of = |id: &Option<String>| id.as_deref() == Some(owner);
                    let remotes = self.config().remotes.iter().filter(|remote| of(&remote.collection_id));
                    places.extend(remotes.map(|remote| RefOwner::Remote(remote.name.clone())));
                }
                places.push(RefOwner::Remote(owner.to_owned()));
                name
            }
        };
        for place in places {
            let name = RefName::new(place, name).map_err(|fault| self.fault(fault))?;
            if let Some(checksum) = self.read_ref(&name)? {
                return Ok(checksum);
            }
        }
        Err(self.fault(RepoFault::NoRef { name: text.to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collection_ids() {
        for good in ["a.b", "org.example.Os", "_a._1", "A.b_2"] {
            assert!(is_collection_id(good), "{good}");
        }
        for bad in ["", "a", ".", "a.", ".a", "a..b", "1.a", "a.1", "a-b.c", "a/b.c", "\u{e4}.b"] {
            assert!(!is_collection_id(bad), "{bad}");
        }
        let long = |len| format!("a.{}", "b".repeat(len));
        assert!(is_collection_id(&long(253)) && !is_collection_id(&long(254)));
    }

    #[test]
    fn names_do_not_lead_elsewhere() {
        for (place, name) in [
            (RefOwner::Heads, "../x"),
            (RefOwner::Heads, ".x"),
            (RefOwner::Remote("..".to_owned()), "x"),
            (RefOwner::Remote("a/b".to_owned()), "x"),
            (RefOwner::Mirror("a..b".to_owned()), "x"),
        ] {
            assert!(RefName::new(place, name).is_err(), "{name}");
        }
        let name = RefName::new(RefOwner::Mirror("a.b".to_owned()), "c/d").expect("these are names");
        assert_eq!(name.path(), "refs/mirrors/a.b/c/d");
    }
}
