//! A channel in a directory, or at an address.

use std::cmp::Reverse;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use sealift_store::fs::found::is_directory;
use sealift_store::threads::parallel::map;
use sealift_store::{address_beside, is_address, read_at_address};

use super::{Chain, Edge, ListedFile, SignedList, cheapest};
use crate::trust::{Guard, Verdict};
use crate::{Error, Head, Input, Limits};

/// A channel whose list was read, and is not judged yet.
#[derive(Debug)]
pub struct Channel {
    place: PathBuf,
    /// Other addresses that have its files.
    mirrors: Vec<PathBuf>,
    list: SignedList,
}

impl Channel {
    /// Opens the channel in a directory, or at an address that ends with a slash; `None` if there is no list.
    ///
    /// # Errors
    /// Returns an error if the list cannot be read, or is malformed.
    pub fn open(directory: &Path) -> Result<Option<Self>, Error> {
        let path = list_path(directory);
        let Some(bytes) = read(&path)? else { return Ok(None) };
        let list = SignedList::parse(&bytes).map_err(|error| fault(&path, &error))?;
        Ok(Some(Self { place: directory.to_owned(), mirrors: Vec::new(), list }))
    }

    /// Returns whether this is the address of a directory: it ends with a slash.
    #[must_use]
    pub fn is_address(place: &Path) -> bool {
        let address = place.to_string_lossy();
        is_address(place) && address.split(['?', '#']).next().is_some_and(|path| path.ends_with('/'))
    }

    /// Opens the channel at a place, if it is one: a directory with a list, or an address that ends with a slash. `None` for anything else.
    ///
    /// # Errors
    /// Returns an error if the list cannot be read or is malformed, or if such an address has none.
    pub fn at(place: &Path) -> Result<Option<Self>, Error> {
        if !is_address(place) {
            return if is_directory(place)? { Self::open(place) } else { Ok(None) };
        }
        if !Self::is_address(place) {
            return Ok(None);
        }
        match Self::open(place)? {
            Some(channel) => Ok(Some(channel)),
            None => Err(Error::unexpected(place, "is no channel: the address has no list")),
        }
    }

    /// Opens a channel at several addresses, of which each may have the files that the newest list names. That list is the one with the highest
    /// sequence of those that are accepted. Returns also the addresses that are left, each with the reason.
    ///
    /// # Errors
    /// Returns the error of the first address if none has a list that is accepted.
    pub fn of_mirrors(places: &[PathBuf], guard: &Guard) -> Result<(Self, Vec<(PathBuf, Error)>), Error> {
        let open = |place: &PathBuf| {
            let channel = Self::at(place)?.ok_or_else(|| Error::unexpected(place, "is no channel"))?;
            channel.judge(guard)?;
            Ok(channel)
        };
        // Servers are waited for at the same time.
        let opened = map(places.len(), places, |place| Ok(open(place)))?;
        let (mut channels, mut left) = (Vec::new(), Vec::new());
        for (place, channel) in places.iter().zip(opened) {
            match channel {
                Ok(channel) => channels.push(channel),
                Err(error) => left.push((place.clone(), error)),
            }
        }
        // Of equal ones, the first.
        channels.sort_by_key(|channel| Reverse(channel.list.list().sequence));
        let mut channels = channels.into_iter();
        let Some(mut newest) = channels.next() else {
            let none = || Error::Usage("give the address of a channel".into());
            return Err(left.into_iter().next().map_or_else(none, |(_, error)| error));
        };
        for other in channels {
            let (own, name) = (&newest.list.list().name, &other.list.list().name);
            if own == name {
                newest.mirrors.push(other.place);
            } else {
                let why = format!("is a channel of {name}, and {} one of {own}", newest.place.display());
                left.push((other.place.clone(), Error::unexpected(&other.place, why)));
            }
        }
        Ok((newest, left))
    }

    /// Returns its directory or address.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Returns the list.
    #[must_use]
    pub fn list(&self) -> &SignedList {
        &self.list
    }

    /// Returns the place of the list in a directory or at an address, for messages.
    #[must_use]
    pub fn list_in(place: &Path) -> PathBuf {
        list_path(place)
    }

    /// Judges the list, without remembering it.
    ///
    /// # Errors
    /// As [`Guard::judge_list`].
    pub fn judge(&self, guard: &Guard) -> Result<Verdict, Error> {
        guard.judge_list(&self.list)
    }

    /// Returns the path of a file of the channel.
    #[must_use]
    pub fn path_of(&self, row: &ListedFile) -> PathBuf {
        place_of(&self.place, &row.file)
    }

    /// Returns the other places of a file of the channel.
    #[must_use]
    pub fn copies_of(&self, row: &ListedFile) -> Vec<PathBuf> {
        self.mirrors.iter().map(|place| place_of(place, &row.file)).collect()
    }

    /// As [`Self::copies_of`], of the file at this path.
    #[must_use]
    pub fn copies_at(&self, path: &Path) -> Vec<PathBuf> {
        let row = self.list.list().files.iter().find(|row| self.path_of(row) == path);
        row.map_or_else(Vec::new, |row| self.copies_of(row))
    }

    /// Opens a file of the channel, at the first of its addresses that has it. Returns its head, and what that was read from.
    ///
    /// # Errors
    /// Returns the error of the first address if it cannot be read from any, or is not the bundle that the list names.
    pub fn open_file(&self, row: &ListedFile, limits: Limits) -> Result<(Head, Input), Error> {
        let path = self.path_of(row);
        if self.mirrors.is_empty() {
            return self.check_file(row, Input::open(&path)?, limits);
        }
        let mut failed = None;
        for path in std::iter::once(path).chain(self.copies_of(row)) {
            match Input::open_mirror(&path).and_then(|input| self.check_file(row, input, limits.clone())) {
                Ok(found) => return Ok(found),
                Err(error) => {
                    failed.get_or_insert(error);
                }
            }
        }
        Err(failed.unwrap_or_else(|| Error::Usage("give the address of a channel".into())))
    }

    fn check_file(&self, row: &ListedFile, mut input: Input, limits: Limits) -> Result<(Head, Input), Error> {
        let head = input.read_head(limits)?;
        let identity = &head.root().identity;
        let (name, is_named) = (&self.list.list().name, identity.version == row.version);
        if identity.name != *name || !is_named || head.root_digest() != row.root_digest {
            return Err(Error::unexpected(input.path(), "is not the bundle that the channel's list names"));
        }
        Ok((head, input))
    }

    /// Returns what to read for the highest version in the list: its full bundle, or a full bundle with the deltas that lead from it to this version.
    ///
    /// # Errors
    /// Returns an error if nothing leads there, if a file cannot be read, or if it is not the bundle that the list names.
    pub fn newest(&self, limits: &Limits) -> Result<Chain, Error> {
        let list = self.list.list();
        let highest = list.files.iter().map(|row| row.version).max();
        let goals = || list.files.iter().filter(|row| Some(row.version) == highest);
        // Reading takes little of a bundle, so that one is better than several that are smaller.
        let full = goals().filter(|row| row.bases.is_empty()).min_by_key(|row| row.len).map(|row| vec![row]);
        let way = full.or_else(|| {
            let way = goals().find_map(|row| self.way(&[], row.index_digest, &[], false))?;
            Some(way.into_iter().filter_map(|number| list.files.get(number)).collect())
        });
        let Some((newest, bases)) = way.as_ref().and_then(|rows| rows.split_last()) else {
            let version = highest.unwrap_or_default();
            let problem = format!("has no full bundle that leads to version {version}, the newest in its list");
            return Err(Error::unexpected(&self.place, problem));
        };
        for row in bases.iter().chain([newest]) {
            self.open_file(row, limits.clone())?;
        }
        Ok(Chain { newest: self.path_of(newest), bases: bases.iter().map(|row| self.path_of(row)).collect() })
    }

    /// Returns the rows of the cheapest way from what the target holds to a content, without those in `passed_over`.
    #[must_use]
    pub fn way(&self, held: &[[u8; 32]], goal: [u8; 32], passed_over: &[usize], only_one: bool) -> Option<Vec<usize>> {
        let files = &self.list.list().files;
        let usable: Vec<usize> = (0..files.len())
            .filter(|number| !passed_over.contains(number))
            .filter(|number| !only_one || files.get(*number).is_some_and(|row| row.index_digest == goal))
            .collect();
        let rows = usable.iter().filter_map(|number| files.get(*number));
        let edges: Vec<Edge<'_>> =
            rows.map(|row| Edge { bases: &row.bases, result: row.index_digest, len: row.len }).collect();
        let way = cheapest(&edges, held, goal)?;
        way.into_iter().map(|step| usable.get(step).copied()).collect()
    }
}

/// Returns the path of the list in a directory.
pub(crate) fn list_path(directory: &Path) -> PathBuf {
    place_of(directory, SignedList::FILE)
}

/// Returns the place of a file in a directory or at an address.
fn place_of(directory: &Path, file: &str) -> PathBuf {
    if is_address(directory) { address_beside(directory, file) } else { directory.join(file) }
}

/// Reads a list, which has a limit.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let failed = |error| Error::io("read", path, error);
    if is_address(path) {
        return read_at_address(path, SignedList::FILE_LEN_MAX + 1).map_err(failed);
    }
    let file = match File::open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        opened => opened.map_err(failed)?,
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Error::unexpected(path, "is not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(SignedList::FILE_LEN_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

pub(crate) fn fault(path: &Path, error: &crate::FormatError) -> Error {
    tracing::info!(?path, %error, "the list of the channel is malformed");
    error.clone().into()
}
