//! Audits a store: whether names, images and the objects that the images name still match the signed bundles.
//!
//! The bundle's root states the digest of each image, and an image names its objects by their digests. A missing image is rebuilt from the index,
//! so that its objects are known.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::path::Path;

use parking_lot::Mutex;

use rustix::io::Errno;
use sealift_format::hex;
use sealift_format::num;
use sealift_format::verity::FileDigest;
use sealift_format::{Bundle, Image, Index, Limits, Object, Ref, Row};

pub use super::mount::mount;
pub use super::mount_stats::{ImageChecked, MountStats};
use super::{Finding, FindingKind, StoreAudit, StoreAuditOptions, kept_names};
use crate::base::GivenBases;
use crate::composefs::check::{Check, Fault, RightImage, digest_of, objects_of};
use crate::composefs::image::{self, ImageContent};
use crate::composefs::link::{Link, Standing};
use crate::composefs::records::{KnownObjects, StoreRecord, records};
use crate::composefs::repo::{Repo, object_name};
use crate::fs::confined::names_below;
use crate::input::Input;
use crate::trust::{Guard, Judged, Survey, TargetKind};
use crate::{Error, Progress};

/// Compares a store with a bundle, or with its record of the bundles installed into it.
///
/// `guard` decides by each bundle's head whether its index can be trusted, as [`Guard::judge_installed`] does; the judgements come with the result.
/// Extra objects are searched for only if the store has no images other than those of the audited trees.
///
/// # Errors
/// Returns an error if there is no store or it has no record, if a bundle or a record is refused or damaged, or if something cannot be read.
pub fn audit(
    store: &Path,
    bundle: Option<Input>,
    options: &StoreAuditOptions,
    limits: Limits,
    guard: &Guard,
    progress: &Progress,
) -> Result<(StoreAudit, Vec<Judged>), Error> {
    let Some(repo) = Repo::open(store)? else {
        return Err(Error::NoStore { path: store.to_owned() });
    };
    let mut audit = StoreAudit::default();
    let survey =
        |name: &str| Survey::of_name(TargetKind::Composefs, repo.root(), repo.path(), name, Some(guard.state()));
    let mut held = match bundle {
        Some(input) => {
            let held = Held::of_bundle(input, &repo, &options.bases, limits, guard, progress)?;
            audit.run = survey(&held.judged.head.root().identity.name)?.run;
            vec![held]
        }
        None => {
            let names = kept_names(repo.path(), records(&repo).names()?, &options.names)?;
            for name in &names {
                audit.take(name, &survey(name)?);
            }
            let held = names.iter().filter_map(|name| Held::of_kept(&repo, name, guard).transpose());
            held.collect::<Result<_, _>>()?
        }
    };
    let judged = held.iter().map(|held| held.judged.clone()).collect();
    // Sealed bundles come first: the first tree that has an object decides whether it should be sealed.
    held.sort_by_key(|held| !held.is_sealed);
    let trees = trees(&held, &repo, options)?;
    let faults = Mutex::new(Vec::new());
    let note = |digest: &FileDigest, fault: Fault| {
        faults.lock().push((digest.clone(), fault));
        Ok(())
    };
    let check = Check { repo: &repo, progress, jobs: options.jobs.max(1), note: &note };
    let mut job = AuditRun { repo: &repo, trees: &trees, audit, owners: HashMap::new(), unsealed: Vec::new() };
    let known = job.check_images(&check)?;
    job.check_objects(&check, known.objects)?;
    job.report(&faults.into_inner());
    // An import that is running or was interrupted has put objects there which no image names yet.
    if known.are_all && job.audit.run.is_none() && job.is_all_ours()? {
        job.audit.is_extra_known = true;
        if !options.allow_extra {
            job.find_extra()?;
        }
    }
    job.audit.is_sealed = trees.iter().any(|tree| tree.is_sealed);
    job.audit.trees = trees.iter().map(|tree| tree.name.clone()).collect();
    job.audit.sum_up();
    Ok((job.audit, judged))
}

/// A bundle that the store is compared with.
struct Held {
    judged: Judged,
    index: Index,
    found: KnownObjects,
    is_sealed: bool,
}

impl Held {
    fn of_kept(repo: &Repo, name: &str, guard: &Guard) -> Result<Option<Self>, Error> {
        let loaded = StoreRecord::load_judged(repo, name, |head| guard.judge_installed(head))?;
        let is_sealed = records(repo).is_sealed(name);
        Ok(loaded.map(|(judged, StoreRecord { index, found, .. })| Self { judged, index, found, is_sealed }))
    }

    fn of_bundle(
        input: Input,
        repo: &Repo,
        bases: &GivenBases,
        limits: Limits,
        guard: &Guard,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let unopened = input.begin(limits)?;
        let judged = guard.judge_installed(unopened.head())?;
        let (_, Bundle { head, index, .. }, _) = bases.open(unopened, progress)?;
        let name = &head.root().identity.name;
        // The record has the digests of the objects that both have: for the paths of findings, and to rebuild images, which are then compared.
        let mut found = KnownObjects::default();
        let is_sealed = records(repo).is_sealed(name);
        if let Some(kept) = StoreRecord::load(repo, name)? {
            let ids: HashMap<_, _> = Row::all(kept.index.objects()).map(|(row, object)| (object.id, row)).collect();
            for (number, object) in Row::all(index.objects()) {
                let Some(of_kept) = ids.get(&object.id) else { continue };
                found.digests.extend(kept.found.digests.get(of_kept).map(|digest| (number, digest.clone())));
                found.within.extend(kept.found.within.get(of_kept).map(|content| (number, content.clone())));
            }
        }
        Ok(Self { judged, index, found, is_sealed })
    }
}

/// A tree that the store should have.
struct Tree<'a> {
    held: &'a Held,
    tree: &'a Ref,
    /// The tree's name in the store.
    name: String,
    /// The images; at least one.
    images: Vec<&'a Image>,
    /// Whether its objects should be sealed.
    is_sealed: bool,
}

/// Returns the trees that the store holds: those with a name or an image in it; all trees of a bundle if the store has none of them.
fn trees<'a>(held: &'a [Held], repo: &Repo, options: &StoreAuditOptions) -> Result<Vec<Tree<'a>>, Error> {
    let mut trees = Vec::new();
    for held in held {
        let root = held.judged.head.root();
        let (mut taken, mut others) = (Vec::new(), Vec::new());
        for (number, tree) in (0_u16..).zip(held.index.refs()) {
            let is_asked = options.reference.as_ref().is_some_and(|name| *name == tree.name);
            let is_its = |image: &&Image| image.reference == number && image.digest.algorithm() == repo.algorithm();
            let images: Vec<&Image> = root.images.iter().filter(is_its).collect();
            if images.is_empty() || options.reference.is_some() && !is_asked {
                continue;
            }
            let name = format!("{}/{}", root.identity.name, tree.name);
            let tree = Tree { held, tree, name, images, is_sealed: repo.is_sealed() || held.is_sealed };
            if is_asked || tree.is_taken(repo)? { taken.push(tree) } else { others.push(tree) }
        }
        trees.append(if taken.is_empty() { &mut others } else { &mut taken });
    }
    if !trees.is_empty() {
        return Ok(trees);
    }
    Err(Error::NoImage { of: options.reference.clone(), algorithm: repo.algorithm() })
}

impl Tree<'_> {
    /// Returns the link that gives the tree its name.
    fn link(&self) -> Option<Link> {
        self.images.last().map(|image| Link::of_ref(&self.name, &image.digest))
    }

    fn is_taken(&self, repo: &Repo) -> Result<bool, Error> {
        let links = self.images.iter().map(|image| Link::of_image(&image.digest)).chain(self.link());
        for link in links {
            if link.look(repo)? != Standing::Missing {
                return Ok(true);
            }
        }
        for image in &self.images {
            if repo.open_object(&image.digest)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Builds the bytes of an image from the index. Returns `None` if they do not match the stated digest because some input is unknown.
    fn make(&self, image: &Image, repo: &Repo) -> Option<Vec<u8>> {
        let found = &self.held.found;
        let content = |object: Row<Object>| match found.within.get(&object) {
            Some(bytes) => Some(ImageContent::Within(bytes)),
            None => found.digests.get(&object).map(ImageContent::Named),
        };
        let made = image::make(&self.held.index, self.tree, image.version, repo.algorithm(), &content).ok()?;
        (digest_of(&made, repo) == image.digest).then_some(made)
    }

    /// Returns the paths in the tree of these objects.
    fn paths_of(&self, digests: &HashSet<&FileDigest>) -> HashMap<&FileDigest, Vec<u8>> {
        let (index, mut paths) = (&self.held.index, HashMap::new());
        for (directory, entry, object) in index.regulars(self.tree) {
            if let Some(digest) = self.held.found.digests.get(&object)
                && digests.contains(digest)
            {
                paths.entry(digest).or_insert_with(|| index.path(directory, entry));
            }
        }
        paths
    }
}

/// The audit's results, collected step by step.
struct AuditRun<'a> {
    repo: &'a Repo,
    trees: &'a [Tree<'a>],
    audit: StoreAudit,
    /// For each expected image and object, the first tree that has it.
    owners: HashMap<FileDigest, &'a Tree<'a>>,
    /// Objects that are correct but not sealed.
    unsealed: Vec<FileDigest>,
}

/// The objects that the images name.
struct Known {
    objects: Vec<FileDigest>,
    /// Whether all of the images could be read or rebuilt.
    are_all: bool,
}

impl<'a> AuditRun<'a> {
    /// Checks images and their names.
    fn check_images(&mut self, check: &Check<'_>) -> Result<Known, Error> {
        let mut known = Known { objects: Vec::new(), are_all: true };
        let mut seen = HashSet::new();
        for tree in self.trees {
            for digest in tree.images.iter().map(|image| &image.digest) {
                self.check_link(&Link::of_image(digest), tree)?;
            }
            if let Some(link) = tree.link() {
                self.check_link(&link, tree)?;
            }
            for image in tree.images.iter().filter(|image| seen.insert(&image.digest)) {
                self.owners.entry(image.digest.clone()).or_insert(tree);
                self.audit.counts.objects += 1;
                let bytes = match check.image(&image.digest)? {
                    None => tree.make(image, self.repo),
                    Some(right) => {
                        self.count_image(&right, &image.digest);
                        Some(right.bytes)
                    }
                };
                let Some(bytes) = bytes else {
                    known.are_all = false;
                    continue;
                };
                for object in objects_of(&bytes, &image.digest, self.repo)? {
                    if let Entry::Vacant(place) = self.owners.entry(object.clone()) {
                        place.insert(tree);
                        known.objects.push(object);
                    }
                }
            }
        }
        Ok(known)
    }

    fn count_image(&mut self, image: &RightImage, digest: &FileDigest) {
        let counts = &mut self.audit.counts;
        if image.is_sealed {
            counts.vouched += 1;
            return;
        }
        counts.hashed += 1;
        counts.hashed_bytes = counts.hashed_bytes.saturating_add(num::wide(image.bytes.len()));
        self.unsealed.push(digest.clone());
    }

    fn check_link(&mut self, link: &Link, tree: &Tree<'_>) -> Result<(), Error> {
        let (kind, found) = match link.look(self.repo)? {
            Standing::Right => return Ok(()),
            Standing::Missing => (FindingKind::Missing, None),
            Standing::Other(found) => (FindingKind::Changed, found),
        };
        let expected = (kind == FindingKind::Changed).then(|| link.to.clone());
        let tree = Some(tree.name.clone());
        self.audit.findings.push(Finding { tree, expected, found, ..Finding::new(kind, link.path.clone()) });
        Ok(())
    }

    fn check_objects(&mut self, check: &Check<'_>, mut objects: Vec<FileDigest>) -> Result<(), Error> {
        objects.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        let checked = check.objects(&objects)?;
        let counts = &mut self.audit.counts;
        counts.objects += num::wide(objects.len());
        counts.vouched += checked.vouched;
        counts.hashed += checked.hashed;
        counts.hashed_bytes = counts.hashed_bytes.saturating_add(checked.hashed_bytes);
        self.unsealed.extend(checked.unsealed);
        Ok(())
    }

    /// Reports each fault and each unsealed object, with its path in the first tree that has it.
    fn report(&mut self, faults: &[(FileDigest, Fault)]) {
        let unsealed = std::mem::take(&mut self.unsealed);
        let is_wrong = |digest: &&FileDigest| self.owners.get(*digest).is_some_and(|tree| tree.is_sealed);
        let unsealed: Vec<&FileDigest> = unsealed.iter().filter(is_wrong).collect();
        let digests: HashSet<&FileDigest> =
            faults.iter().map(|(digest, _)| digest).chain(unsealed.iter().copied()).collect();
        if digests.is_empty() {
            return;
        }
        let paths: HashMap<&str, HashMap<&FileDigest, Vec<u8>>> =
            self.trees.iter().map(|tree| (&*tree.name, tree.paths_of(&digests))).collect();
        let finding = |kind, digest: &FileDigest| {
            let tree = self.owners.get(digest).map(|tree| tree.name.clone());
            let path = tree.as_deref().and_then(|tree| paths.get(tree)?.get(digest).cloned());
            Finding { tree, path, ..Finding::new(kind, format!("objects/{}", object_name(digest))) }
        };
        let faults = faults.iter().map(|(digest, fault)| match fault {
            Fault::Missing => finding(FindingKind::Missing, digest),
            Fault::Other(found) | Fault::OtherSealed(found) => Finding {
                expected: Some(digest.to_string()),
                found: Some(found.to_string()),
                ..finding(FindingKind::Changed, digest)
            },
        });
        let unsealed = unsealed.iter().map(|digest| finding(FindingKind::Unsealed, digest));
        self.audit.findings.extend(faults.chain(unsealed));
    }

    /// Returns whether the store has only images of the audited trees, and no composefs streams: other images could name any object.
    fn is_all_ours(&self) -> Result<bool, Error> {
        let names = |path| names_below(self.repo.root(), path).map_err(|error| self.unread(path, error));
        let is_ours = |name: &String| {
            let is_image = |digest: &FileDigest| hex(digest.as_bytes()) == *name;
            name == "refs" || self.trees.iter().flat_map(|tree| &tree.images).any(|image| is_image(&image.digest))
        };
        Ok(names("images")?.iter().all(is_ours) && names("streams")?.is_empty())
    }

    /// Finds objects that no image names.
    fn find_extra(&mut self) -> Result<(), Error> {
        let ours: HashSet<String> = self.owners.keys().map(object_name).collect();
        let mut found = Vec::new();
        for folder in names_below(self.repo.root(), "objects").map_err(|error| self.unread("objects", error))? {
            let path = format!("objects/{folder}");
            for name in names_below(self.repo.root(), &path).map_err(|error| self.unread(&path, error))? {
                if !ours.contains(&format!("{folder}/{name}")) {
                    found.push(Finding::new(FindingKind::Extra, format!("{path}/{name}")));
                }
            }
        }
        self.audit.findings.extend(found);
        Ok(())
    }

    fn unread(&self, path: &str, error: Errno) -> Error {
        Error::io("read", self.repo.path().join(path), error)
    }
}
