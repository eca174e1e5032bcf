//! `sealift verify`: checks signatures and every byte of a bundle.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueHint};
use sealift::base::Bases;
use sealift::channel::{Chain, head_of};
use sealift::copies::together;
use sealift::dm_verity::may_have_images;
use sealift::verify::{Depth, VerifyStats, verify_opened};
use sealift::{Error, Head, Opened, Progress, SharedBases, by_set};
use serde::Serialize;

use super::base_args::BaseArgs;
use super::bundle::BundleArg;
use super::dm_verity::{self, JsonVerityImage};
use super::failure::{About as _, Failure, shown, verdict_printed};
use super::human::{self, Bytes, count};
use super::info::bases_of;
use super::jobs_arg::JobsArg;
use super::limits::limits;
use super::log;
use super::next_volume::NextVolumeArgs;
use super::progress_args::ProgressArgs;
use super::reading::{Reading, are_mirrors, channel_at};
use super::show::Show;
use super::trust_args::{AdmitArgs, Judge};
use super::verdict::Verdict;
use super::{lone_recovery, volume};

/// Check signatures and every byte of a bundle
///
/// Checks the signatures against the allowed signers, then head, layout, index and each chunk, in one pass over the file. Writes nothing,
/// and does not change which versions this device accepts.
///
/// Copies of one bundle, with the same signatures, are read as one if all of them are damaged: the bundle is sound if each part of it is whole in one of
/// them. Warnings say where each copy is damaged. Several addresses of one bundle or one channel are mirrors: each part is read from one of them, and
/// one that fails is left.
///
/// With --deep, then reads disk images in the bundle again, compares them with their dm-verity hash trees, and prints the root hashes; `sealift info
/// --help` says which images these are. If one differs, the exit status is 1, although the bundle is as it was signed.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift verify os.sealift --trust /etc/sealift/allowed_signers
  sealift verify --deep os.sealift
  sealift verify /media/stick/*.sealift
  sealift verify --deep os-7.sealift os-7-to-8.sealift os-8-to-9.sealift
  sealift verify https://example.org/os/
  sealift verify https://a.example/os.sealift https://b.example/os.sealift
  sealift verify /media/stick/os.sealift /media/disc/os.sealift
  ssh nas cat os.sealift | sealift verify -")]
pub(crate) struct Verify {
    /// The bundles; - reads one from standard input. Of a channel's directory or address, the newest version. A delta is checked over the others to which
    /// it leads back. Volumes of one bundle, or their directory, are one bundle; a volume whose others are not
    /// there is checked alone. With several, the exit status is that of the most severe failure: 1, then 3, then 2, then 4
    #[arg(value_name = "BUNDLE", required = true, value_hint = ValueHint::FilePath)]
    bundles: Vec<PathBuf>,
    #[arg(skip)]
    bundle: BundleArg,
    /// Also decompress, and check each file's content, fs-verity digest and OSTree checksum, and dm-verity of disk images
    #[arg(long)]
    deep: bool,
    #[command(flatten)]
    next_volume: NextVolumeArgs,
    #[command(flatten)]
    jobs: JobsArg,
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    trust: AdmitArgs,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Verify {
    pub(crate) fn uses(&self) -> crate::limits::Uses {
        crate::limits::Uses::of(self.jobs)
    }

    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let bundles = std::mem::take(&mut self.bundles);
        let bundles = if are_mirrors(&bundles) { vec![bundles] } else { by_set(bundles) };
        if let [group] = &bundles[..] {
            let next_volume = Some((self.next_volume.clone(), self.show));
            let guard = || Ok(self.trust.load()?.guard().clone());
            let Reading { bundle, base } = Reading::of(group.clone(), self.base.clone(), self.show, guard)?;
            self.bundle = BundleArg { next_volume, ..bundle };
            let given = base.given(self.jobs, self.trust.state());
            let done = self.verify(|opened, path, progress| given.complete(opened, path, progress));
            if !self.bundle.damaged_beside_sound().is_empty() {
                self.bundle.tell_of_copies(self.show);
            }
            return done;
        }
        if self.next_volume.is_given() {
            return Err(Failure::usage("--next-volume reads one bundle: give the one place to which its volumes come"));
        }
        let given = self.base.given(self.jobs, self.trust.state());
        let mut bases = SharedBases::new(&given);
        let mut worst: Option<Failure> = None;
        let bundles = grouped(bundles);
        for place in bundles.iter().map(|bundle| &bundle.bundle) {
            if channel_at(place)?.is_some() {
                return Err(Failure::usage(format!("{}: a channel is verified alone", shown(place))));
            }
        }
        let heads =
            bundles.iter().filter_map(|bundle| Some((bundle.bundle.clone(), head_of(&bundle.bundle, &limits())?)));
        let heads: Vec<(PathBuf, Head)> = heads.collect();
        for bundle in bundles {
            // A delta is read over those of the other bundles to which it leads back.
            let below = BaseArgs::of(&Chain::below(&bundle.bundle, &heads));
            let below = below.is_given().then(|| below.given(self.jobs, self.trust.state()));
            self.bundle = bundle;
            let mut failures = Vec::new();
            let done = self.verify(|opened, path, progress| match &below {
                Some(below) => below.complete(opened, path, progress),
                None => bases.complete(opened, path, progress),
            });
            failures.extend(done.err());
            // If one of the copies is sound, the others are not needed, and each is judged alone.
            for bundle in self.bundle.damaged_beside_sound() {
                self.bundle = BundleArg::of(bundle);
                failures.extend(self.verify(|opened, path, progress| bases.complete(opened, path, progress)).err());
            }
            for failure in failures {
                if failure.is_stop() {
                    return Err(failure);
                }
                failure.tell(self.show.json);
                if worst.as_ref().is_none_or(|worst| failure.gravity() > worst.gravity()) {
                    worst = Some(failure);
                }
            }
        }
        match worst {
            Some(worst) => Err(worst.told()),
            // Whether a bundle that cannot be read would have used a base is unknown.
            None => Ok(bases.check_used()?),
        }
    }

    /// Verifies the bundle, which `complete` completes with its bases.
    fn verify(
        &self,
        complete: impl FnOnce(Opened, &Path, &Progress) -> Result<(Opened, Bases), Error>,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        let judge = self.trust.load()?;
        let input = match self.bundle.open() {
            Ok(input) => input,
            Err(failure) => {
                if let Some(file) = lone_recovery::given(&self.bundle)? {
                    return lone_recovery::verify(&file, &judge, self.show, self.progress);
                }
                return match volume::alone(&self.bundle, &failure)? {
                    Some(alone) => volume::verify(&alone, &judge, self.show, self.progress),
                    None => Err(failure),
                };
            }
        };
        let depth = if self.deep { Depth::Objects } else { Depth::Stored };
        let jobs = self.jobs.count();
        let verified = self.progress.watch(self.show, "Opening", |progress| {
            let (input, opened) = judge.admit(input)?.into_unopened().open_any()?;
            let (opened, bases) = complete(opened, input.path(), progress)?;
            let origin = input.origin().cloned();
            let verified = verify_opened(input, opened, bases, depth, jobs, progress)?;
            if let Some(origin) = origin {
                origin.examine_copies(&verified.opened.layout().chunks, jobs, progress)?;
            }
            Ok(verified)
        });
        if self.bundle.damaged_beside_sound().is_empty() {
            self.bundle.tell_of_copies(self.show);
        }
        let verified = verified.about(&self.bundle.bundle)?;
        judge.warn(self.show);
        verdict_printed(self.print(&verified, &judge, start.elapsed()))?;
        match (&verified.opened, &verified.dm_verity) {
            (Opened::Whole(bundle), Some(found)) => {
                dm_verity::warn_left_out(self.show, found);
                dm_verity::judged(found, bundle, &shown(&self.bundle.bundle))
            }
            (Opened::Whole(bundle), None) if self.deep && may_have_images(bundle) => {
                self.show.warn("disk images are not compared with dm-verity hash trees: that takes a file, not a pipe");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn print(&self, verified: &VerifyStats, judge: &Judge, elapsed: Duration) -> std::io::Result<()> {
        let mut out = self.show.out();
        let head = verified.opened.head();
        let (root, path) = (head.root(), self.bundle.sound_path());
        let label = format!("{} version {}", root.identity.name, root.identity.version);
        let verdict = Verdict { path: &path, head, label, word: "sound", judge };
        let rest = JsonVerified {
            kernel_signature: judge.has_kernel_signature(),
            deep: self.deep,
            file_bytes: verified.file_bytes,
            chunks: root.maxima.chunks,
            objects: root.maxima.objects,
            dm_verity: verified.dm_verity.as_ref().map(JsonVerityImage::all),
            seconds: human::seconds(elapsed),
        };
        if verdict.is_told(&mut out, self.show, rest)? {
            return Ok(());
        }
        verdict.print(&mut out)?;
        self.bundle.print_copies(&mut out)?;
        judge.print_signers(&mut out)?;
        if judge.has_kernel_signature() {
            writeln!(out, "  also has a kernel signature, which only kernels check")?;
        }
        let what = if matches!(verified.opened, Opened::Delta(_)) {
            format!("every byte; unpacking checks its objects against {}", bases_of(root))
        } else if self.deep {
            format!("every byte and the content of {}", count(root.maxima.objects, "object"))
        } else {
            "every byte".to_owned()
        };
        writeln!(
            out,
            "  {what}: {} in {}, {}",
            Bytes(verified.file_bytes),
            human::duration(elapsed),
            human::rate(verified.file_bytes, elapsed),
        )?;
        if let (Opened::Whole(bundle), Some(found)) = (&verified.opened, &verified.dm_verity) {
            dm_verity::print_compared(&mut out, found, bundle)?;
        }
        if log::is_on() {
            judge.print_signatures(&mut out, verified.opened.head())?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct JsonVerified<'a> {
    kernel_signature: bool,
    deep: bool,
    file_bytes: u64,
    chunks: u64,
    objects: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    dm_verity: Option<Vec<JsonVerityImage<'a>>>,
    seconds: f64,
}

/// Returns the bundles in these sets of volumes, and in these files, of which several may be copies of one.
fn grouped(sets: Vec<Vec<PathBuf>>) -> Vec<BundleArg> {
    let order: Vec<PathBuf> = sets.iter().flatten().cloned().collect();
    let (alone, sets): (Vec<_>, Vec<_>) = sets.into_iter().partition(|set| set.len() == 1);
    let files: Vec<PathBuf> = alone.into_iter().flatten().collect();
    let copies = together(&files, &limits()).into_iter().map(|mut copies| {
        let first = copies.remove(0);
        BundleArg::with_copies(first, copies)
    });
    let mut bundles: Vec<BundleArg> = copies.chain(sets.into_iter().map(BundleArg::of_group)).collect();
    bundles.sort_by_key(|bundle| order.iter().position(|path| *path == bundle.bundle));
    bundles
}
