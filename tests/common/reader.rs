//! The Rust reader for a vector: acts like a caller that receives bytes in arbitrary portions.

use std::io::Read;
use std::path::PathBuf;

use sealift::recovery::{LoneRecovery, RepairOptions, repair_volumes};
use sealift::trust::{Guard, TrustOptions, TrustPaths, Trusted};
use sealift::verify::{Depth, verify};
use sealift::volume::verify_volume;
use sealift::{Bundle, Error, Head, Input, Limits, OpenVolume, Progress, RecoveryFault, VolumeSet};
use sealift_format::{
    Envelope, Index, Kind, Object, Opened, Opener, Part, RecoveryHeader, Request, Row, SignedList, Step, verity,
};
use sealift_verify::carried::CarriedChecker;
use sealift_verify::checker::ObjectChecker;
use sealift_verify::content::{ContentError, check_stored};
use sealift_verify::kernel_signature;
use sealift_verify::objects::VerityTable;
use sealift_verify::trust::{
    AllowedSigners, Claims, Device, FloorRecord, Floors, Now, Policy, RevocationList, Standing, Thresholds, Verdict,
    unknown_envelopes,
};

use crate::complete::complete;
use crate::content::{of_bundle, of_list, of_recovery, of_request, of_volume};
use crate::made::check_all_made;
use crate::vector::{Check, Trust, Vector};

/// A pipe that returns portions of these sizes, over and over.
#[derive(Clone, Debug)]
pub struct Portions {
    bytes: Vec<u8>,
    at: usize,
    sizes: Vec<usize>,
    next: usize,
}

impl Portions {
    /// Returns a pipe of `bytes` whose reads return these sizes.
    pub fn new(bytes: &[u8], sizes: &[usize]) -> Self {
        Self { bytes: bytes.to_vec(), at: 0, sizes: sizes.to_vec(), next: 0 }
    }
}

impl Read for Portions {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let size = self.sizes[self.next % self.sizes.len()];
        self.next += 1;
        let len = size.min(buffer.len()).min(self.bytes.len() - self.at);
        buffer[..len].copy_from_slice(&self.bytes[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

/// Opens a file with these bytes, read in these portions.
///
/// # Errors
/// Returns the fault of the bytes.
pub fn open(bytes: &[u8], sizes: &[usize]) -> Result<Opened, sealift_format::Error> {
    let mut opener = Opener::new(u64::try_from(bytes.len()).ok(), Limits::default());
    let mut sizes = sizes.iter().cycle();
    while let Step::Need(range) = opener.step() {
        let at = |offset: u64| usize::try_from(offset).expect("it lies in the input");
        let size = *sizes.next().expect("it goes round");
        let end = at(range.end).min(at(range.start).saturating_add(size));
        opener.supply(range.start, &bytes[at(range.start)..end])?;
    }
    opener.finish()
}

/// Opens a bundle that needs no bases.
///
/// # Errors
/// Returns the fault of the bundle.
pub fn open_whole(bytes: &[u8]) -> Result<Bundle, sealift_format::Error> {
    open(bytes, &[usize::MAX]).map(|opened| match opened {
        Opened::Whole(bundle) => bundle,
        Opened::Delta(delta) => panic!("{} bases are wanted", delta.bases().len()),
    })
}

/// Checks a file with these bytes, opened in these portions, to the depth of `check` with the page's checker.
/// Signatures are not judged. The error is the kind of failure.
///
/// # Errors
/// Returns an error if the bundle is rejected.
pub fn walk(bytes: &[u8], sizes: &[usize], check: Check) -> Result<Opened, Kind> {
    let opened = open(bytes, sizes).map_err(|error| error.kind())?;
    check_chunks(&opened, bytes, check).map_err(|error| error.kind())?;
    Ok(opened)
}

fn check_chunks(opened: &Opened, bytes: &[u8], check: Check) -> Result<(), ContentError> {
    let (head, layout) = (opened.head(), opened.layout());
    let mut checker = match opened {
        Opened::Whole(bundle) if check >= Check::Deep => {
            Some((bundle, ObjectChecker::new(bundle), VerityTable::new(bundle)))
        }
        _ => None,
    };
    let mut carried = match opened {
        Opened::Delta(delta) if check >= Check::Deep => Some((delta, CarriedChecker::new(delta))),
        _ => None,
    };
    for (number, chunk) in Row::all(&layout.chunks) {
        let start = usize::try_from(head.chunks_at() + chunk.offset).expect("it lies in the input");
        let stored = &bytes[start..][..usize::try_from(chunk.stored_len).expect("it lies in the input")];
        match (&mut checker, &mut carried) {
            (Some((bundle, checker, table)), _) => {
                checker.check(bundle, number, stored, &[], |checked| table.take(checked))?;
            }
            (_, Some((delta, checker))) => checker.check_alone(delta, number, stored)?,
            _ => check_stored(number, chunk, stored)?,
        }
    }
    if let Some((delta, mut checker)) = carried {
        while checker.check_bare(delta)?.is_some() {}
    }
    let Some((bundle, checker, mut table)) = checker else { return Ok(()) };
    for portion in checker.without_data(bundle) {
        table.take(checker.check_bare(bundle, portion)?);
    }
    check_all_made(bundle, bytes, &[])?.into_iter().for_each(|checked| table.take(checked));
    checker.finish(bundle)?;
    table.check(bundle).map(drop)
}

/// Reads an input to the depth of `check`, as far as possible without bases. The error is the kind of failure.
///
/// # Errors
/// Returns an error if the bundle is rejected.
pub fn read(input: Input, check: Check, trust: Option<&Trust>) -> Result<Opened, Kind> {
    let progress = Progress::default();
    let read = || {
        let unopened = input.begin(Limits::default())?;
        judge(unopened.head(), trust)?;
        match check {
            Check::Open => unopened.open_any().map(|(_, opened)| opened),
            Check::Verify => verify(unopened, Depth::Stored, 1, &progress).map(|done| done.opened),
            Check::Deep | Check::Apply | Check::Request | Check::List | Check::Volume | Check::Recovery => {
                verify(unopened, Depth::Objects, 2, &progress).map(|done| done.opened)
            }
        }
    };
    read().map_err(|error: Error| error.kind().unwrap_or_else(|| panic!("not about the bundle: {error}")))
}

/// Continues reading a vector: if it says so, a delta bundle is completed with its bases, which are among `all`, and its
/// objects are checked.
///
/// # Errors
/// Returns an error if the bundle is rejected.
pub fn apply(opened: Opened, vector: &Vector, all: &[Vector]) -> Result<Opened, Kind> {
    if vector.check != Check::Apply {
        return Ok(opened);
    }
    let Opened::Delta(delta) = opened else { panic!("{} needs no base", vector.name) };
    let base = |name: &String| all.iter().find(|vector| vector.name == *name).expect("its bases are vectors");
    let bases: Vec<&[u8]> = vector.bases.iter().map(|name| &base(name).bytes[..]).collect();
    complete(delta, &vector.bytes, &bases).map(Opened::Whole).map_err(|error| error.kind())
}

/// Reads a request and completes it with the bases of its vector, which are among `all`.
///
/// # Errors
/// Returns an error if it is rejected, or does not match its base.
pub fn complete_request(vector: &Vector, all: &[Vector]) -> Result<Index, sealift_format::Error> {
    let request = Request::parse(&vector.bytes, &Limits::default())?;
    let base = |name: &String| all.iter().find(|vector| vector.name == *name).expect("its bases are vectors");
    let bases: Vec<Bundle> = vector.bases.iter().map(|name| open_whole(&base(name).bytes)).collect::<Result<_, _>>()?;
    let objects: Vec<&Object> = bases.iter().flat_map(|base| base.index.objects()).collect();
    let known = |start: &[u8; 8], size| {
        objects.iter().find(|object| object.id.starts_with(start) && object.size == size).map(|object| object.id)
    };
    let index = request.complete(known)?;
    if bases.is_empty() || verity::digest(index.bytes()) == request.base.index_digest {
        return Ok(index);
    }
    Err(sealift_format::Error::Digest { part: Part::Index })
}

/// Reads a volume alone or, if its vector has bases among `all`, in a set with these, as a bundle. Returns the content.
///
/// # Errors
/// Returns an error if it is rejected.
///
/// # Panics
/// Panics if the files cannot be written.
pub fn read_volumes(vector: &Vector, all: &[Vector]) -> Result<String, Kind> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |vector: &Vector| {
        let path = folder.path().join(&vector.name);
        std::fs::write(&path, &vector.bytes).expect("there is room");
        path
    };
    let read = || {
        let progress = Progress::default();
        if vector.bases.is_empty() {
            let volume = OpenVolume::open(&write(vector))?.ok_or(sealift_format::Error::Magic)?;
            judge(volume.head(), vector.trust.as_ref())?;
            let stats = verify_volume(&volume, &Limits::default(), &progress)?;
            return Ok(of_volume(&volume, &stats));
        }
        let base = |name: &String| all.iter().find(|vector| vector.name == *name).expect("its bases are vectors");
        let paths: Vec<PathBuf> = [vector].into_iter().chain(vector.bases.iter().map(base)).map(write).collect();
        let set = VolumeSet::of_files(&paths)?;
        let unopened = Input::volumes(&paths[0], set).begin(Limits::default())?;
        match verify(unopened, Depth::Objects, 2, &progress)?.opened {
            Opened::Whole(bundle) => Ok(of_bundle(&bundle)),
            Opened::Delta(_) => panic!("{}: the set is a delta", vector.name),
        }
    };
    read().map_err(|error: Error| error.kind().unwrap_or_else(|| panic!("not about the volumes: {error}")))
}

/// Reads a recovery file alone or, if its vector has bases among `all`, makes the lost volumes of the bundle again with these, and reads the bundle.
/// Returns the content.
///
/// # Errors
/// Returns an error if it is rejected.
///
/// # Panics
/// Panics if the files cannot be written.
pub fn read_recovery(vector: &Vector, all: &[Vector]) -> Result<String, Kind> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write = |vector: &Vector| {
        let path = folder.path().join(&vector.name);
        std::fs::write(&path, &vector.bytes).expect("there is room");
        path
    };
    let progress = Progress::default();
    let read = || {
        if vector.bases.is_empty() {
            let Some(file) = LoneRecovery::open(&write(vector), &Limits::default())? else {
                return Err(RecoveryHeader::parse(&vector.bytes).expect_err("it is no recovery file").into());
            };
            judge(file.head(), vector.trust.as_ref())?;
            file.verify(&progress)?;
            return Ok(of_recovery(file.head(), file.recovery()));
        }
        let base = |name: &String| all.iter().find(|vector| vector.name == *name).expect("its bases are vectors");
        let paths: Vec<PathBuf> = [vector].into_iter().chain(vector.bases.iter().map(base)).map(write).collect();
        let options = RepairOptions { replaces: false, jobs: 2, limits: Limits::default() };
        let made = repair_volumes(&paths, &folder.path().join("made"), &options, &progress)?;
        let is_replaced = |path: &PathBuf| made.volumes.iter().any(|volume| volume.source.as_ref() == Some(path));
        let is_volume = |path: &PathBuf| matches!(OpenVolume::open(path), Ok(Some(_)));
        let mut volumes: Vec<PathBuf> =
            paths.into_iter().filter(|path| is_volume(path) && !is_replaced(path)).collect();
        volumes.extend(made.volumes.iter().map(|volume| volume.path.clone()));
        let set = VolumeSet::of_files(&volumes)?;
        let unopened = Input::volumes(&volumes[0], set).begin(Limits::default())?;
        match verify(unopened, Depth::Objects, 2, &progress)?.opened {
            Opened::Whole(bundle) => Ok(of_bundle(&bundle)),
            Opened::Delta(_) => panic!("{}: the set is a delta", vector.name),
        }
    };
    read().map_err(|error: Error| match &error {
        Error::Recovery(fault) => match &**fault {
            RecoveryFault::Wrong { source, .. } => source.kind().expect("it is about the bundle"),
            _ => Kind::Truncated,
        },
        _ if error.word() == "unrepairable" => Kind::Truncated,
        _ => error.kind().unwrap_or_else(|| panic!("{}: not about the files: {error}", vector.name)),
    })
}

/// Returns the content of an accepted vector, with bases among `all`, as JSON.
///
/// # Errors
/// Returns an error if it is rejected.
pub fn content(vector: &Vector, all: &[Vector]) -> Result<String, Kind> {
    if vector.check == Check::Request {
        let index = complete_request(vector, all).map_err(|error| error.kind())?;
        let request = Request::parse(&vector.bytes, &Limits::default()).map_err(|error| error.kind())?;
        return Ok(of_request(&request, &index));
    }
    if vector.check == Check::List {
        return Ok(of_list(&read_list(&vector.bytes, vector.trust.as_ref())?));
    }
    if vector.check == Check::Volume {
        return read_volumes(vector, all);
    }
    if vector.check == Check::Recovery {
        return read_recovery(vector, all);
    }
    let opened = open(&vector.bytes, &[usize::MAX]).map_err(|error| error.kind())?;
    match apply(opened, vector, all)? {
        Opened::Whole(bundle) => Ok(of_bundle(&bundle)),
        Opened::Delta(_) => panic!("{}: a delta bundle has content with its bases alone", vector.name),
    }
}

/// Reads the list of a channel, and judges it. Without `trust`, only the signatures themselves are checked.
///
/// # Errors
/// Returns the reason why it is rejected.
pub fn read_list(bytes: &[u8], trust: Option<&Trust>) -> Result<SignedList, Kind> {
    let list = SignedList::parse(bytes).map_err(|error| error.kind())?;
    let mut policy = Policy::at(Now::exactly(list.list().created));
    policy.allow_unsigned = true;
    let policy = trust.map_or(policy, Trust::policy);
    policy.judge_list(&list).map_err(|error| error.kind())?;
    Ok(list)
}

/// Returns a guard that accepts unsigned bundles and remembers nothing.
///
/// # Panics
/// Panics if files exist where there can be none.
pub fn anyone() -> Guard {
    let nowhere = PathBuf::from("/nonexistent");
    let places = TrustPaths { user_config: None, system_config: nowhere.clone(), state: Some(nowhere) };
    let options = TrustOptions { allow_unsigned: true, time: Some(0), ..TrustOptions::default() };
    Guard::load_from(&options, places).expect("there are no files")
}

/// Opens a bundle without requiring a signature.
///
/// # Errors
/// Returns an error if it does not begin with a bundle's head.
pub fn anyones(input: Input) -> Result<Trusted, Error> {
    anyone().admit(input, Limits::default())
}

/// Judges a head. Without `trust`, only the envelopes themselves are checked.
///
/// # Errors
/// Returns the reason why it is rejected.
pub fn judge(head: &Head, trust: Option<&Trust>) -> Result<Verdict, sealift_verify::Error> {
    let mut policy = match trust {
        Some(trust) => trust.policy(),
        None => Policy::at(Now::exactly(0)),
    };
    if trust.is_none() {
        // Accepts everything that the bundle declares.
        policy.allow_unsigned = true;
        policy.device = Device::with_tags(head.root().identity.compatible.iter().cloned());
        kernel_signature::of_head(head)?;
        let claims = Claims { expires: None, ..Claims::of(head) };
        let signatures: Vec<&[u8]> = head.bodies(Envelope::SSH_SIGNATURE).collect();
        return policy.judge(&claims, head.signed(), &signatures, &unknown_envelopes(head));
    }
    policy.judge_head(head)
}

impl Trust {
    /// Returns the described policy.
    pub fn policy(&self) -> Policy {
        let mut policy = Policy::at(Now::exactly(self.now.unwrap_or(1_700_000_000)));
        let lines = |lines: &[String]| lines.join("\n").into_bytes();
        policy.signers =
            Some(AllowedSigners::parse(&lines(&self.signers)).expect("the vector's signers are well-formed"));
        policy.revoked =
            RevocationList::parse(&lines(&self.revoked)).expect("the vector's revocations are well-formed");
        let threshold = self.threshold.unwrap_or(1).to_string();
        policy.thresholds = Thresholds::parse([threshold.as_str()]).expect("a number");
        policy.device = Device::with_tags(self.compatible.iter().cloned());
        let record = self.floor.map(|version| FloorRecord { version, created: 0, keys: Vec::new() });
        policy.floors = Floors::new(record.into_iter().collect());
        policy.allow_unsigned = self.allow_unsigned;
        policy
    }
}

/// Returns whether a verdict is based on a trusted key's signature.
pub fn is_trusted(verdict: &Verdict) -> bool {
    !verdict.unsigned
        && !verdict.signers.is_empty()
        && verdict.others.iter().all(|other| !other.outcome.as_ref().is_ok_and(Standing::is_trusted))
}
