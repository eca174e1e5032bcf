//! Imports a bundle into a store: only missing objects are written; images follow once all objects are present and match the bundle, and names come
//! last.

use std::collections::HashMap;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;

use sealift_format::num;
use sealift_format::verity::{Algorithm, FileDigest, FileHasher};
use sealift_format::{Bundle, Error as FormatError, Image, Object, Opened, Part, Ref, Row};
use sealift_verify::fsverity::{self, KernelError};

use super::delta;
use super::objects::{Plan, Work};
use super::stats::ComposefsStats;
use crate::composefs::image::{self, ImageContent};
use crate::composefs::left::LeftObjects;
use crate::composefs::link::{link_image, link_ref};
use crate::composefs::records::{self, KnownObjects, StoreRecord};
use crate::composefs::repo::{Repo, object_name, parameters};
use crate::composefs::transaction::{Transaction, hash_with};
use crate::fs::FreeSpace;
use crate::fs::confined::open_user_dir;
use crate::fs::found;
use crate::fs::parent::{parent_of, shown_directory};
use crate::fs::writeback::with_writeback;
use crate::input::Input;
use crate::install::options::InstallOptions;
use crate::install::resume::{may_get_further, may_with_another_copy};
use crate::install::stats::{ImportStats, InstallStats, RefValue, SetRef};
use crate::kept_order::KeptOrder;
use crate::progress::Phase;
use crate::seal::Seal;
use crate::threads::parallel::{for_each, map};
use crate::trust::{Admission, Survey, TargetId, TargetKind, Trusted};
use crate::{Error, Progress};

/// A selected ref.
struct Chosen<'a> {
    tree: &'a Ref,
    /// The ref's name in the store.
    name: String,
    images: Vec<&'a Image>,
}

/// Imports trees of a bundle into the store at `target`, which is created if it does not exist. A delta bundle requires its base: one that is given,
/// or a store that holds it.
///
/// The device remembers the bundle before any of it can be reached in the store. After a kill at any point the store is consistent, and another run
/// completes it.
///
/// # Errors
/// Returns an error if the bundle is refused, damaged, older than the installed one, or cannot be remembered; if it does not state a requested
/// image or its tree makes a different one; or if the store cannot be used, cannot be sealed as requested, or lacks space or the base of a delta.
/// No name is changed then.
pub fn import(
    bundle: Trusted,
    target: &Path,
    options: &InstallOptions,
    progress: &Progress,
) -> Result<ComposefsStats, Error> {
    let (unopened, admission) = bundle.install(options.dry_run)?;
    let (mut input, opened) = unopened.open_any()?;
    let root = opened.head().root();
    let Some(first) = root.images.first() else {
        return Err(Error::NoImages);
    };
    let there = Repo::open(target)?.map(Arc::new);
    there.as_ref().map_or(Ok(()), |repo| repo.check_own())?;
    let algorithm = there.as_ref().map_or(first.digest.algorithm(), |repo| repo.algorithm());
    let seals = plan_seal(there.as_deref(), target, options.seal)?;
    let mut gone_back_from = None;
    let kept = match &there {
        Some(repo) => {
            let (name, state) = (&*root.identity.name, Some(admission.state()));
            let survey = Survey::of_name(TargetKind::Composefs, repo.root(), repo.path(), name, state)?;
            admission.check_bound(&survey, target)?;
            let kept = StoreRecord::look(repo, name)?;
            let survey = survey.with(&kept);
            survey.claim(options.adopt)?;
            gone_back_from = survey.gone_back_from();
            kept.whole()
        }
        None => None,
    };
    let (bundle, bases) = match options.bases.complete(opened, input.path(), progress)? {
        (Opened::Whole(bundle), bases) => (bundle, bases),
        (Opened::Delta(delta), _) => delta::complete(delta, there.as_ref(), target, kept.as_ref())?,
    };
    let bases = bases.making(&bundle, &mut input, options.jobs)?;
    let chosen = choose(&bundle, algorithm, &options.refs)?;
    let names: Vec<String> = chosen.iter().map(|chosen| chosen.name.clone()).collect();
    there.as_ref().map_or(Ok(()), |repo| repo.check_own_names(&names))?;
    let held = kept.as_ref().zip(there.as_deref());
    let mut sorted = sort_out(&bundle, &chosen, held, seals, options, progress)?;
    let left = match &there {
        Some(repo) => LeftObjects::find(repo, &bundle.index, &sorted.wanted, options.jobs.max(1), progress)?,
        None => LeftObjects::default(),
    };
    sorted.know(&left.known);
    progress.keep(left.count());
    let plan = Plan::new(&bundle, &bases, std::mem::take(&mut sorted.wanted));
    let mut stats = expected(&bundle, &chosen, &plan, &sorted);
    stats.new_objects += left.count();
    stats.import.resumed_objects = left.count();
    (stats.is_new, stats.import.install.is_sealed) = (there.is_none(), seals);
    stats.import.install.gone_back_from = gone_back_from;
    if let Some(repo) = there.as_ref().filter(|_| !options.dry_run) {
        left.discard_rest(repo)?;
    }
    if there.is_none() || kept.is_some() {
        check_room(target, &plan)?;
    }
    plan.check_bases(target, options, progress)?;
    if options.dry_run {
        stats.import.install.requests = plan.requests(&input);
        return Ok(stats);
    }
    let repo = match there {
        Some(repo) => repo,
        None => Arc::new(Repo::create(target, algorithm, seals)?),
    };
    let same = kept.as_ref().filter(|kept| kept.digest() == bundle.head.root().contents.index_digest);
    let order = bases.order_of(&bundle, same.and_then(|kept| kept.order.as_ref()));
    let run = ImportRun {
        repo: &repo,
        bundle: &bundle,
        order: order.as_ref(),
        chosen: &chosen,
        admission: &admission,
        seals,
        progress,
        jobs: options.jobs.max(1),
    };
    run.run(&mut input, &plan, sorted, left, &mut stats)?;
    Ok(stats)
}

/// Returns the stats of an import that goes as planned.
fn expected(bundle: &Bundle, chosen: &[Chosen<'_>], plan: &Plan<'_>, sorted: &Sorted) -> ComposefsStats {
    let size = |object: Row<Object>| bundle.index.object(object).size;
    let set = |chosen: &Chosen<'_>| {
        let value = RefValue::Image(chosen.images.last()?.digest.to_string());
        Some(SetRef { name: chosen.name.clone(), value })
    };
    let new_objects = count(plan.objects().filter(|object| size(*object) > Image::WITHIN_LEN_MAX));
    let known = &sorted.known;
    let install = InstallStats {
        logical_bytes: plan.objects().map(size).fold(0, u64::saturating_add),
        stored_bytes: plan.stored_bytes(),
        ..InstallStats::default()
    };
    let import = ImportStats {
        refs: chosen.iter().filter_map(set).collect(),
        install,
        checked_objects: sorted.checked,
        hashed_objects: sorted.hashed,
        ..ImportStats::default()
    };
    ComposefsStats {
        new_objects,
        objects: new_objects + count(known.digests.keys().filter(|object| !known.within.contains_key(*object))),
        import,
        ..ComposefsStats::default()
    }
}

/// Decides whether to seal what is new, before anything is written.
fn plan_seal(repo: Option<&Repo>, target: &Path, wish: Seal) -> Result<bool, Error> {
    let is_kept = repo.is_some_and(Repo::is_sealed);
    let wish = match wish {
        Seal::Off if is_kept => {
            let problem = "all of its objects are sealed, and composefs programs rely on that";
            return Err(Error::Store { path: target.to_owned(), problem: problem.into() });
        }
        // A store is sealed as a whole.
        _ if is_kept => Seal::Require,
        wish => wish,
    };
    wish.decide(is_kept, target, || {
        let supported = match repo {
            Some(repo) => fsverity::is_supported(repo.objects().unwrap_or(repo.root())),
            None => {
                let folder = standing(target)?;
                let opened =
                    open_user_dir(folder).map_err(|error| Error::io("open", shown_directory(folder), error))?;
                fsverity::is_supported(opened)
            }
        };
        supported.map_err(|error| Error::kernel(target, error))
    })
}

/// Returns the requested refs, or all, with their images for the store's hash algorithm.
fn choose<'a>(bundle: &'a Bundle, algorithm: Algorithm, names: &[String]) -> Result<Vec<Chosen<'a>>, Error> {
    let root = bundle.head.root();
    let refs = bundle.index.refs();
    if let Some(unknown) = names.iter().find(|name| bundle.index.find_ref(name).is_none()) {
        return Err(Error::no_ref("ref", unknown, refs.iter()));
    }
    let mut chosen = Vec::new();
    for (number, tree) in (0_u16..).zip(refs) {
        let is_asked = names.contains(&tree.name);
        let is_its = |image: &&Image| image.reference == number && image.digest.algorithm() == algorithm;
        let images: Vec<&Image> = root.images.iter().filter(is_its).collect();
        if images.is_empty() && is_asked {
            return Err(Error::NoImage { of: Some(tree.name.clone()), algorithm });
        }
        if !images.is_empty() && (is_asked || names.is_empty()) {
            chosen.push(Chosen { tree, name: format!("{}/{}", root.identity.name, tree.name), images });
        }
    }
    if chosen.is_empty() {
        return Err(Error::NoImage { of: None, algorithm });
    }
    // A name in a store is a symlink, so nothing can lie below it.
    let below = |a: &Chosen<'_>, b: &Chosen<'_>| b.name.strip_prefix(&a.name).is_some_and(|rest| rest.starts_with('/'));
    match chosen.iter().find_map(|a| Some((a, chosen.iter().find(|b| below(a, b))?))) {
        Some((a, b)) => Err(Error::Usage(format!(
            "a composefs store cannot have both of the refs {} and {}",
            a.tree.name, b.tree.name
        ))),
        None => Ok(chosen),
    }
}

/// The objects of the chosen trees, sorted by what has to be done.
struct Sorted {
    /// Objects that have to be read, by number.
    wanted: Vec<bool>,
    /// What is known of the others, which the store has.
    known: KnownObjects,
    /// Those of the others that must be sealed and are not, with their sizes.
    unsealed: Vec<(FileDigest, u64)>,
    /// How many were checked, and how many of these were read.
    checked: u64,
    hashed: u64,
}

impl Sorted {
    /// Takes away the wanted objects that are known by now.
    fn know(&mut self, more: &KnownObjects) {
        more.digests.keys().for_each(|object| self.wanted[object.at()] = false);
        self.known.digests.extend(more.digests.iter().map(|(object, digest)| (*object, digest.clone())));
        self.known.within.extend(more.within.iter().map(|(object, content)| (*object, content.clone())));
    }
}

fn sort_out(
    bundle: &Bundle,
    chosen: &[Chosen<'_>],
    held: Option<(&StoreRecord, &Repo)>,
    seals: bool,
    options: &InstallOptions,
    progress: &Progress,
) -> Result<Sorted, Error> {
    let index = &bundle.index;
    let mut wanted = vec![false; index.objects().len()];
    for (_, _, object) in chosen.iter().flat_map(|chosen| index.regulars(chosen.tree)) {
        wanted[object.at()] = true;
    }
    let mut sorted = Sorted { wanted, known: KnownObjects::default(), unsealed: Vec::new(), checked: 0, hashed: 0 };
    let Some((kept, repo)) = held else { return Ok(sorted) };
    let by_id: HashMap<_, _> = Row::all(kept.index.objects()).map(|(row, object)| (&object.id, row)).collect();
    let mut named = Vec::new();
    for ((number, object), wanted) in Row::all(index.objects()).zip(&mut sorted.wanted) {
        let Some(of_kept) = by_id.get(&object.id).filter(|_| *wanted) else { continue };
        let Some(digest) = kept.found.digests.get(of_kept) else { continue };
        if object.size > Image::WITHIN_LEN_MAX {
            named.push((number, digest, object));
        } else if let Some(content) = kept.found.within.get(of_kept) {
            sorted.known.within.insert(number, content.clone());
            sorted.known.digests.insert(number, digest.clone());
            *wanted = false;
        }
    }
    if options.no_check && !seals {
        for (number, digest, _) in named {
            sorted.known.digests.insert(number, digest.clone());
            sorted.wanted[number.at()] = false;
        }
        return Ok(sorted);
    }
    sorted.checked = count(named.iter());
    sorted.hashed = if options.rehash { sorted.checked } else { 0 };
    progress.enter(Phase::Hashing, 0, sorted.checked);
    let there = map(options.jobs.max(1), &named, |(_, digest, object)| {
        progress.check()?;
        let there = is_there(repo, digest, object, options.rehash)?;
        progress.add(0, 1);
        Ok(there)
    })?;
    for ((number, digest, object), there) in named.into_iter().zip(there) {
        let Some(is_sealed) = there else { continue };
        sorted.known.digests.insert(number, digest.clone());
        sorted.wanted[number.at()] = false;
        sorted.unsealed.extend((seals && !is_sealed).then(|| (digest.clone(), object.size)));
    }
    Ok(sorted)
}

/// Returns whether the store has an object that it received before, and whether that is sealed. Content is not read unless requested: it was
/// compared when it arrived, and is compared again before a mount.
fn is_there(repo: &Repo, digest: &FileDigest, object: &Object, rehash: bool) -> Result<Option<bool>, Error> {
    let Some((mut file, found)) = repo.open_object(digest)? else { return Ok(None) };
    if found != object.size {
        return Ok(None);
    }
    let is_sealed = match fsverity::check(&file, digest) {
        Ok(()) => true,
        Err(KernelError::NotSealed | KernelError::Unsupported) => false,
        Err(_) => return Ok(None),
    };
    if rehash {
        // The record may be wrong as well: both the digest and the object id are compared.
        let failed = |error| Error::io("read", repo.object_path(digest), error);
        let mut id = blake3::Hasher::new();
        let hashed = hash_with(&mut file, repo, |part| {
            id.update(part);
        })
        .map_err(failed)?;
        return Ok((hashed == *digest && *id.finalize().as_bytes() == object.id).then_some(is_sealed));
    }
    Ok(Some(is_sealed))
}

/// Returns the store's directory if it exists, or else the one in which it will be created.
fn standing(target: &Path) -> Result<&Path, Error> {
    Ok(if found::is_there(target)? { target } else { parent_of(target) })
}

fn check_room(target: &Path, plan: &Plan<'_>) -> Result<(), Error> {
    let folder = standing(target)?;
    let opened = open_user_dir(folder).map_err(|error| Error::io("open", shown_directory(folder), error))?;
    let free = FreeSpace::of(opened.as_fd()).map_err(|error| Error::io("look at", shown_directory(folder), error))?;
    free.check(target, plan.disk_bytes(), count(plan.objects()))
}

fn count(items: impl Iterator) -> u64 {
    num::wide(items.count())
}

/// The settings common to all steps of an import.
struct ImportRun<'a> {
    repo: &'a Repo,
    bundle: &'a Bundle,
    /// The order in which the contents are read, if it is known.
    order: Option<&'a KeptOrder>,
    chosen: &'a [Chosen<'a>],
    admission: &'a Admission,
    seals: bool,
    progress: &'a Progress,
    jobs: usize,
}

impl ImportRun<'_> {
    /// Imports everything. After an error, the objects that are complete stay in the stage for the next run, if that may get further.
    fn run(
        &self,
        input: &mut Input,
        plan: &Plan<'_>,
        sorted: Sorted,
        left: LeftObjects,
        stats: &mut ComposefsStats,
    ) -> Result<(), Error> {
        let mut transaction = Transaction::begin(self.repo, self.seals)?;
        let done =
            left.take(&transaction, self.repo).and_then(|()| self.run_in(&transaction, input, plan, sorted, stats));
        if let Err(error) = done {
            if may_get_further(&error) || may_with_another_copy(&error) {
                transaction.keep();
            }
            return Err(error);
        }
        stats.new_objects += left.count();
        left.remove();
        drop(transaction);
        self.admission.settle()
    }

    fn run_in(
        &self,
        transaction: &Transaction<'_>,
        input: &mut Input,
        plan: &Plan<'_>,
        sorted: Sorted,
        stats: &mut ComposefsStats,
    ) -> Result<(), Error> {
        let (repo, algorithm) = (self.repo, self.repo.algorithm());
        let work = Work::new(plan, transaction, algorithm, self.progress);
        let mut found = sorted.known;
        // The objects are durable, or nearly, when the images are made from their digests.
        let (objects, bytes) = with_writeback(
            || transaction.sync(),
            || {
                let made = work.run(input, self.jobs)?;
                input.finish(&self.bundle.head)?;
                self.seal_there(transaction, &sorted.unsealed)?;
                found.digests.extend(made.found.digests);
                found.within.extend(made.found.within);
                found.check(&self.bundle.index, algorithm)?;
                self.progress.enter(Phase::Finishing, 0, 0);
                self.make_images(transaction, &found)?;
                Ok((made.objects, made.bytes))
            },
        )?;
        transaction.seal(self.jobs, self.progress)?;
        self.progress.enter(Phase::Syncing, 0, 0);
        let place = TargetId::of_store(TargetKind::Composefs, repo.path())?;
        let records = records::records(repo);
        transaction.finish(|| {
            self.admission.commit(Some(&place))?;
            records.begin(&self.bundle.head)
        })?;
        for image in self.chosen.iter().flat_map(|chosen| &chosen.images) {
            link_image(transaction, repo, &image.digest)?;
        }
        records::write(transaction, repo, self.bundle, &found, self.order, self.seals)?;
        for Chosen { name, images, .. } in self.chosen {
            if let Some(image) = images.last() {
                link_ref(transaction, repo, name, &image.digest)?;
            }
        }
        records.end(&self.bundle.head.root().identity.name)?;
        stats.new_objects = objects;
        stats.import.install.logical_bytes = bytes;
        stats.import.repaired_objects = transaction.replaced();
        stats.import.sealed_objects = transaction.sealed();
        Ok(())
    }

    /// Seals objects that the store has, after reading them: only content that was signed may be frozen by the kernel.
    fn seal_there(&self, transaction: &Transaction<'_>, unsealed: &[(FileDigest, u64)]) -> Result<(), Error> {
        for_each(self.jobs, unsealed, |(digest, size)| {
            self.progress.check()?;
            if transaction.has(digest, *size)? {
                return Ok(());
            }
            let found = "content that does not match its name".to_owned();
            let problem = format!("{} has {found}", object_name(digest));
            Err(Error::DamagedStore { path: self.repo.path().to_owned(), problem })
        })
    }

    /// Makes the images, and compares them with those that the bundle states.
    fn make_images(&self, transaction: &Transaction<'_>, found: &KnownObjects) -> Result<(), Error> {
        for (tree, stated) in
            self.chosen.iter().flat_map(|chosen| chosen.images.iter().map(|image| (chosen.tree, image)))
        {
            self.progress.check()?;
            let content = |object: Row<Object>| match found.within.get(&object) {
                Some(bytes) => Some(ImageContent::Within(bytes)),
                None => found.digests.get(&object).map(ImageContent::Named),
            };
            let image = image::make(&self.bundle.index, tree, stated.version, self.repo.algorithm(), &content)?;
            let mut hasher = FileHasher::new(&parameters(self.repo.algorithm()));
            hasher.update(&image);
            let digest = hasher.finish();
            if digest != stated.digest {
                tracing::error!(tree = tree.name, made = %digest, stated = %stated.digest, "the image does not match the bundle");
                let what = "a composefs image that it records does not match its tree";
                return Err(FormatError::Row { part: Part::Root, what, row: stated.reference.into() }.into());
            }
            if !transaction.has(&digest, num::wide(image.len()))? {
                transaction.write(&digest, |mut file| std::io::Write::write_all(&mut file, &image))?;
            }
        }
        Ok(())
    }
}
