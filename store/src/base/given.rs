//! The bases that a user names for a delta bundle, so that it is read as the full bundle that it stands for.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use sealift_format::{Bundle, Delta, Head, Limits, Opened, verity};

use super::store::of_store;
use super::{Base, Bases, Reading};
use crate::address::TargetKind;
use crate::fs::found::is_directory;
use crate::ostree::CommitSpec;
use crate::ostree::records::indexes;
use crate::ostree::repo::Repo;
use crate::slot::SlotAddress;
use crate::trust::DeviceState;
use crate::{Error, Input, Progress, Unopened};

/// Where the bases of a delta bundle are.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct GivenBases {
    /// Bundles, directories, `ostree:REPO`, `ostree:REPO:REF` for one of its commits, `composefs:STORE`, and slots (a block device, or `image:FILE`),
    /// in any order; empty if the target itself holds the bases. A bundle may be a delta over another of these places.
    pub places: Vec<OsString>,
    /// Limits on the cost of a base that is a bundle.
    pub limits: Limits,
    /// Threads; 0 counts as 1.
    pub jobs: usize,
    /// The device's state, which has the records of slots.
    pub state: Option<DeviceState>,
}

/// The ref of a tree that was packed without one.
const DEFAULT_REF: &str = "main";

/// The most bundles of which each is over the one before.
const LINKS_MAX: usize = 64;

/// The bases of a delta bundle that a place has.
pub(super) struct Held {
    /// The bases, with their numbers in the delta's root.
    pub(super) bases: Vec<(usize, Base)>,
    /// The numbers of the places over which a base is read that is a delta itself, and of copies of other places.
    pub(super) links: Vec<usize>,
    /// Whether the place has nothing recorded that could be a base.
    is_empty: bool,
    /// What the place has instead, for messages.
    pub(super) instead: String,
}

/// The search for bases that are deltas themselves. Each is opened once, however many copies of it there are, and however many others are over it.
struct Links<'a> {
    given: &'a GivenBases,
    /// The heads of those places that are bundles.
    files: &'a [Option<Head>],
    /// The deltas that were opened, by the digests of their roots; `None` while one is being opened.
    opened: HashMap<[u8; 32], Option<Link>>,
    /// How many are being opened, each for the one before.
    depth: usize,
    progress: &'a Progress,
}

/// A delta bundle that was completed with its bases.
struct Link {
    base: Base,
    /// The numbers of the places over which it is read.
    links: Vec<usize>,
}

impl GivenBases {
    /// Completes the delta bundle `path` with these bases. Without any, it stays as it is. The delta names its bases by the digests of their indexes,
    /// so they need no trust of their own.
    ///
    /// # Errors
    /// Returns an error if a place cannot be read, if one of the delta's bases is in none of them, or if the bundle is a full one.
    pub fn complete(&self, opened: Opened, path: &Path, progress: &Progress) -> Result<(Opened, Bases), Error> {
        let delta = match opened {
            opened if self.places.is_empty() => return Ok((opened, Bases::default())),
            Opened::Whole(_) => {
                return Err(Error::unexpected(path, "is a full bundle, which has no base"));
            }
            Opened::Delta(delta) => delta,
        };
        let (mut found, all) = (Vec::new(), self.held(&delta, progress)?);
        let links: Vec<usize> = all.iter().flat_map(|held| &held.links).copied().collect();
        for (number, (place, Held { bases, instead, .. })) in self.places.iter().zip(all).enumerate() {
            if bases.is_empty() && !links.contains(&number) {
                return Err(Error::wrong_base(place, delta.bases(), instead));
            }
            found.extend(bases);
        }
        assemble(delta, path, found, &[])
    }

    /// Opens a full bundle, or a delta bundle over these bases.
    ///
    /// # Errors
    /// As [`Self::complete`]; also returns an error if the bundle is damaged, or is a delta bundle and there are no bases.
    pub fn open(&self, bundle: Unopened, progress: &Progress) -> Result<(Input, Bundle, Bases), Error> {
        let (mut input, opened) = bundle.open_any()?;
        match self.complete(opened, input.path(), progress)? {
            (Opened::Whole(bundle), bases) => {
                let bases = bases.making(&bundle, &mut input, self.jobs)?;
                Ok((input, bundle, bases))
            }
            (Opened::Delta(delta), _) => Err(Error::is_delta(input.path(), &delta)),
        }
    }

    /// Returns where a missing base was looked for: the first of these places, or else in the target.
    pub(crate) fn place_or<'p>(&'p self, target: &'p Path) -> &'p Path {
        self.places.first().map_or(target, |place| Path::new(place))
    }

    /// Returns the bases of a delta bundle that each place has, in the order of the places.
    pub(super) fn held(&self, delta: &Delta, progress: &Progress) -> Result<Vec<Held>, Error> {
        let mut files = Vec::new();
        for place in &self.places {
            files.push(match TargetKind::of(place) {
                (TargetKind::Directory, path) if !is_directory(path)? => Some(self.of_file(path)?),
                _ => None,
            });
        }
        Links { given: self, files: &files, opened: HashMap::new(), depth: 0, progress }.held_over(delta)
    }

    /// Reads the head of a bundle.
    fn of_file(&self, path: &Path) -> Result<Head, Error> {
        let opened = Input::open(path).and_then(|mut input| input.read_head(self.limits.clone()));
        opened.map_err(|error| error.of_bundle(path))
    }

    /// Returns the bases of a delta bundle that a place has; for a repository, only those in its records.
    fn of_place(&self, place: &OsString, delta: &Delta, progress: &Progress) -> Result<Held, Error> {
        let candidates = match TargetKind::of(place) {
            (TargetKind::Ostree, _) => match repository(place)? {
                (repo, None) => {
                    let recorded = indexes(&repo)?.into_iter();
                    recorded.map(|index| Base::of_repository(&repo, index)).collect()
                }
                (_, Some(_)) => Vec::new(),
            },
            (TargetKind::Composefs, path) => of_store(path)?,
            (TargetKind::Slot, _) => {
                let address = SlotAddress { image: None, target: place.into() };
                let first = delta.difference.base_refs().first().map_or(DEFAULT_REF, |named| &named.name);
                vec![Base::of_slot(&address, self.state.as_ref(), first, self.jobs.max(1), progress)?]
            }
            (TargetKind::Directory, path) if is_directory(path)? => vec![self.of_directory(path, delta, progress)?],
            (TargetKind::Directory, path) => {
                let open = |unopened| Base::of_known(unopened, self.jobs.max(1));
                let opened = Input::open(path)?.begin(self.limits.clone()).and_then(open);
                vec![opened.map_err(|error| error.of_bundle(path))?]
            }
        };
        Ok(Held::of(candidates, delta))
    }

    /// Opens a directory as a base. The ref of a tree without a record is known only from the delta, which names the refs of its first base alone:
    /// for further bases, likely names are tried.
    fn of_directory(&self, path: &Path, delta: &Delta, progress: &Progress) -> Result<Base, Error> {
        let open = |name: &str| {
            Base::of_installed(path, name, self.jobs.max(1), progress).map_err(|error| error.of_bundle(path))
        };
        let first = delta.difference.base_refs().first().map_or(DEFAULT_REF, |named| &named.name);
        let base = open(first)?;
        let is_recorded = base.identity.is_some();
        if is_recorded || delta.bases().len() == 1 || number_of(&base, delta).is_some() {
            return Ok(base);
        }
        let names = delta.bases()[1..].iter().filter_map(|base| base.identity.as_ref()).map(|(name, _)| &name[..]);
        for name in std::iter::once(DEFAULT_REF).chain(names).filter(|name| *name != first) {
            let named = open(name)?;
            if number_of(&named, delta).is_some() {
                return Ok(named);
            }
        }
        Ok(base)
    }

    /// Adds the bases that a repository has among its commits: those that are `lacking`, or any if none was found there yet.
    fn read_commits(
        &self,
        place: &OsString,
        delta: &Delta,
        lacking: &[usize],
        held: &mut Held,
        progress: &Progress,
    ) -> Result<(), Error> {
        let (repo, reference) = repository(place)?;
        let reading = Reading { delta, repo: &repo, jobs: self.jobs.max(1), progress };
        let mut lacking = lacking.to_vec();
        if held.bases.is_empty() || lacking.contains(&0) {
            match reading.base(reference)? {
                Ok((index, number)) => {
                    lacking.retain(|lacking| *lacking != number);
                    held.bases.push((number, Base::of_repository(&repo, index)));
                }
                Err(why) if held.is_empty => held.instead = why,
                Err(why) => held.instead = format!("{}; {why}", held.instead),
            }
        }
        lacking.retain(|number| *number > 0);
        if !lacking.is_empty() {
            let further = reading.further(reference, &lacking)?.into_iter();
            held.bases.extend(further.map(|(index, number)| (number, Base::of_repository(&repo, index))));
        }
        Ok(())
    }
}

impl Links<'_> {
    /// Returns the bases of a delta bundle that each place has.
    fn held_over(&mut self, delta: &Delta) -> Result<Vec<Held>, Error> {
        let (given, files, progress) = (self.given, self.files, self.progress);
        let mut all: Vec<Held> = Vec::new();
        let mut there = HashSet::new();
        for (number, (place, head)) in given.places.iter().zip(files).enumerate() {
            let held = match head {
                Some(head) if !is_base_of(head, delta) => Held::none(format!("it has {}", head.root().as_base())),
                // A copy of another place.
                Some(head) if !there.insert(head.root_digest()) => {
                    Held { links: vec![number], ..Held::none(String::new()) }
                }
                Some(head) if head.root().bases.is_some() => self.of_delta(number, head.root_digest(), delta)?,
                _ => given.of_place(place, delta, progress)?,
            };
            all.push(held);
        }
        // Reading commits takes long: it is done only if a base was found nowhere, or if none was found in this repository.
        for (at, place) in given.places.iter().enumerate() {
            let is_lacking = |number: &usize| all.iter().all(|held| held.bases.iter().all(|(own, _)| own != number));
            let lacking: Vec<usize> = (0..delta.bases().len()).filter(is_lacking).collect();
            if TargetKind::of(place).0 == TargetKind::Ostree && (all[at].bases.is_empty() || !lacking.is_empty()) {
                given.read_commits(place, delta, &lacking, &mut all[at], progress)?;
            }
        }
        Ok(all)
    }

    /// Returns the delta bundle with this root, which is the place `number`, as a base of another delta. It is opened over others of the places, unless
    /// it was before.
    fn of_delta(&mut self, number: usize, root: [u8; 32], delta: &Delta) -> Result<Held, Error> {
        let base_of =
            |Link { base, links }: &Link| Held { links: links.clone(), ..Held::of(vec![base.clone()], delta) };
        if let Some(opened) = self.opened.get(&root) {
            // One that is still being opened is over the delta.
            return Ok(opened.as_ref().map_or_else(|| Held::none(String::new()), base_of));
        }
        let path = self.given.places.get(number).map_or(Path::new(""), |place| Path::new(place));
        if self.depth == LINKS_MAX {
            return Err(Error::unexpected(
                path,
                format!("is the base of more than {LINKS_MAX} deltas over each other"),
            ));
        }
        self.opened.insert(root, None);
        self.depth += 1;
        let link = self.open(path)?;
        self.depth -= 1;
        let held = base_of(&link);
        self.opened.insert(root, Some(link));
        Ok(held)
    }

    /// Opens a delta bundle over others of the places.
    fn open(&mut self, path: &Path) -> Result<Link, Error> {
        let (limits, jobs) = (self.given.limits.clone(), self.given.jobs.max(1));
        let of_bundle = |error: Error| error.of_bundle(path);
        let opened = Input::open(path)?.begin(limits).and_then(Unopened::open_any).map_err(of_bundle)?;
        let (input, Opened::Delta(own)) = opened else {
            return Err(Error::unexpected(path, "was replaced while it was read"));
        };
        let (mut found, mut links) = (Vec::new(), Vec::new());
        for (number, held) in self.held_over(&own)?.into_iter().enumerate() {
            if !held.bases.is_empty() {
                links.push(number);
            }
            links.extend(held.links);
            found.extend(held.bases);
        }
        let (Opened::Whole(bundle), bases) = assemble(own, path, found, &[])? else {
            return Err(Error::unexpected(path, "was replaced while it was read"));
        };
        let base = Base::of_delta(input, bundle, bases, jobs).map_err(of_bundle)?;
        Ok(Link { base, links })
    }
}

/// Opens the repository of `ostree:REPO` or `ostree:REPO:REF`.
fn repository(place: &OsString) -> Result<(Arc<Repo>, Option<&str>), Error> {
    let CommitSpec { repo, reference } = CommitSpec::parse(place)?;
    Ok((Arc::new(Repo::open(repo)?), reference))
}

/// Returns the number of a base among those of a delta bundle.
fn number_of(base: &Base, delta: &Delta) -> Option<usize> {
    let digest = verity::digest(base.index.bytes());
    delta.bases().iter().position(|declared| declared.index_digest == digest)
}

/// Returns whether a bundle installs one of the bases of a delta bundle.
fn is_base_of(head: &Head, delta: &Delta) -> bool {
    delta.bases().iter().any(|base| base.index_digest == head.root().contents.index_digest)
}

impl Held {
    fn none(instead: String) -> Self {
        Self { bases: Vec::new(), links: Vec::new(), is_empty: false, instead }
    }

    fn of(candidates: Vec<Base>, delta: &Delta) -> Self {
        let instead = match &candidates[..] {
            [] => "nothing was installed there".to_owned(),
            [.., last] => format!("it has {}", last.named()),
        };
        let is_empty = candidates.is_empty();
        let numbered = candidates.into_iter().filter_map(|base| Some((number_of(&base, delta)?, base)));
        Self { bases: numbered.collect(), links: Vec::new(), is_empty, instead }
    }
}

/// Completes a delta bundle with those of its bases that were found; `instead` is what the other places have.
///
/// # Errors
/// Returns an error if one is missing, or the difference does not match them.
pub(super) fn assemble(
    delta: Delta,
    path: &Path,
    found: Vec<(usize, Base)>,
    instead: &[String],
) -> Result<(Opened, Bases), Error> {
    let mut bases: Vec<Option<Base>> = delta.bases().iter().map(|_| None).collect();
    for (number, base) in found {
        // Slots hold one file each: several may hold what one bundle brought.
        bases[number] = Some(match bases[number].take() {
            Some(other) => other.together_with(base),
            None => base,
        });
    }
    if let Some(lacking) = bases.iter().position(Option::is_none) {
        let lacking = &delta.bases()[lacking..=lacking];
        return Err(match instead {
            [] => Error::missing_base(path, format!("it needs {}, which was not given", lacking[0])),
            _ => Error::wrong_base(path, lacking, instead.join("; ")),
        });
    }
    let bases = Bases::new(bases.into_iter().flatten().collect());
    let bundle = delta.complete(&bases.indexes()).map_err(|error| Error::from(error).of_bundle(path))?;
    Ok((Opened::Whole(bundle), bases))
}
