//! `sealift unpack`: a bundle into a new directory.

use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{ArgGroup, Args, ValueEnum, ValueHint};
use sealift::ostree::{Destination, ImportOptions, ImportStats, UsbOptions};
use sealift::seal::KernelSignature;
use sealift::unpack::{Durability, Seal, UnpackOptions, UnpackStats, is_unfinished};
use sealift::{Error, Head, Input, Kind, Limits, Progress};
use serde::Serialize;

use super::bundle::{BundleArg, jobs};
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::human::{self, Bytes, count};
use super::import;
use super::log;
use super::mount::store_of;
use super::show::{BOLD, Pace, Show, WARN, json_line};
use super::time::{Moment, source_date_epoch};
use super::trust_args::{Judge, TrustArgs};

/// Unpack a trusted bundle into a new directory, or update one
///
/// A new directory appears by one rename when everything in it is complete, checked and on the medium; until then it grows beside
/// TARGET. With --update, what TARGET lacks is made beside it, and then moved in file by file; files that the bundle does not change are
/// not looked at while what the last one left is kept, unless with --rehash. A run that was killed is gone on with by running it again.
/// Without root, owners are not set and devices are not made, and the summary says so.
///
/// A delta bundle is for a TARGET that holds its base, and updates it; what it needs of the base is compared with its hashes before
/// anything is written.
///
/// With ostree:REPO as TARGET, the OSTree commits of the bundle go into that repository, and its refs name them when all is there. With
/// --usb DIR in its place, they go into the repository DIR/.ostree/repo, where devices that have OSTree alone look for them.
///
/// With composefs:REPO, the trees of which the bundle states images (pack --composefs) go into that store, which is made if there is none:
/// each content once, named by its fs-verity digest. `sealift mount` mounts them.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("to").required(true).args(["target", "usb"]))]
#[command(override_usage = "\
sealift unpack [OPTIONS] <BUNDLE> <TARGET>
       sealift unpack [OPTIONS] <BUNDLE> --usb <DIR>")]
#[command(after_long_help = "\
Examples:
  sealift unpack os.sealift /srv/os --trust /etc/sealift/allowed_signers
  curl -s https://example.org/os.sealift | sealift unpack - /srv/second
  sealift unpack os.sealift etc --path etc --allow-unsigned
  sealift unpack os-2.sealift /srv/os --update --delete
  sealift unpack os-2.sealift ostree:/ostree/repo --remote debian
  sealift unpack os-2.sealift --usb /media/stick
  sealift unpack os.sealift composefs:/sysroot/composefs --seal try
  sealift unpack os-2-to-3.sealift ostree:/ostree/repo
  sealift unpack os.sealift /srv/os --dry-run")]
pub(crate) struct Unpack {
    #[command(flatten)]
    bundle: BundleArg,
    /// The directory to make or to update, ostree:REPO, or composefs:REPO; without --update a directory may exist if it is empty
    #[arg(value_name = "TARGET", value_hint = ValueHint::DirPath)]
    target: Option<PathBuf>,
    /// The ref to unpack, where the bundle has several; into a repository several may be named [default there: all]
    #[arg(long = "ref", value_name = "REF")]
    references: Vec<String>,
    /// Of ostree:REPO: refs become those of this remote, whose signatures it asks for
    #[arg(long, value_name = "NAME", conflicts_with = "mirror", help_heading = "OSTree")]
    remote: Option<String>,
    /// Of ostree:REPO: refs of a collection become its mirror
    #[arg(long, help_heading = "OSTree")]
    mirror: bool,
    /// In place of TARGET: the directory, of a medium, in which .ostree/repo is made or updated as `ostree create-usb` does
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["remote", "mirror"],
        help_heading = "OSTree",
    )]
    usb: Option<PathBuf>,
    /// Unpack only what lies at or below this path
    #[arg(long, value_name = "PREFIX")]
    path: Option<OsString>,
    /// Bring a directory that is there to what the bundle has; only what it lacks is read and written
    #[arg(long)]
    update: bool,
    /// With --update: remove what the bundle does not have
    #[arg(long)]
    delete: bool,
    /// With --update, or into composefs:REPO: hash what is there, whatever was kept when it took the last bundle
    #[arg(long)]
    rehash: bool,
    /// With --update, where files are looked at: size and time tell whether one is the bundle's
    #[arg(long)]
    trust_mtime: bool,
    /// Whether the kernel is to keep files as they are (fs-verity): require, try (where the file system can) or off [default: as before]
    ///
    /// A sealed file can be read and replaced, and not be written to; where its bytes change on the medium, reading it fails. What is new is
    /// sealed before it appears, and the index that is kept beside TARGET as well, with the signature for the kernel that the bundle may carry
    /// (`sign --kernel-key`). With require nothing is written where the file system has no fs-verity, or the kernel does not take that signature.
    /// An update without this seals where the last one did. Files that are there and are sealed for the first time are hashed before.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    seal: Option<SealHow>,
    /// When the medium must have everything: none, end (before TARGET appears) or each (each file, before the next)
    #[arg(long, value_name = "WHEN", value_enum, default_value = "end", hide_possible_values = true)]
    durability: When,
    /// Make files with equal content and metadata one file with several names
    #[arg(long)]
    hardlink_duplicates: bool,
    /// Say what would be written and whether there is room, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Threads [default: as many as the machine runs at once]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    pace: Pace,
}

/// [`Durability`] as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    None,
    End,
    Each,
}

/// [`Seal`] as an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SealHow {
    Require,
    Try,
    Off,
}

impl Unpack {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if let Some(medium) = &self.usb {
            return self.write_usb(medium);
        }
        let target = self.target.as_deref().unwrap_or(Path::new("")); // clap asks for it
        if let Some(store) = store_of(target) {
            return self.import_store(store);
        }
        match (ostree_target(target), reserved(target)) {
            (Some(repo), _) => self.import(&repo),
            (None, Some(kind)) => {
                let target = target.display();
                Err(Failure::usage(format!(
                    "{kind} targets are not known: for a directory of this name write ./{target}"
                )))
            }
            (None, None) => self.unpack(target),
        }
    }

    /// Into a directory.
    fn unpack(&self, target: &Path) -> Result<(), Failure> {
        if self.remote.is_some() || self.mirror {
            return Err(Failure::usage("--remote and --mirror are for ostree:REPO"));
        }
        let start = Instant::now();
        let reference = match &self.references[..] {
            [] => None,
            [only] => Some(only.clone()),
            _ => return Err(Failure::usage("a directory takes one --ref")),
        };
        let options = UnpackOptions {
            reference,
            prefix: prefix(self.path.clone().unwrap_or_default()),
            update: self.update,
            delete: self.delete,
            rehash: self.rehash,
            trust_mtime: self.trust_mtime,
            seal: self.seal(),
            durability: match self.durability {
                When::None => Durability::None,
                When::End => Durability::End,
                When::Each => Durability::Each,
            },
            hardlink_duplicates: self.hardlink_duplicates,
            dry_run: self.dry_run,
            jobs: jobs(self.jobs.map(usize::from)),
        };
        let judge = self.trust.load()?;
        let mut input = self.bundle.open()?;
        let stats = self.pace.watch(self.show, "Opening", |progress| {
            let judge = |head: &Head| {
                judge.judge(head)?;
                if let Err(Error::State { path, .. }) = sealift::trust::bound_name(target) {
                    let path = path.display();
                    self.show.warn(&format!("{path} is damaged, and counts as not there: files are looked at"));
                }
                judge.check_bound(target, head)
            };
            sealift::unpack::unpack(&mut input, target, &options, Limits::default(), judge, progress)
        });
        let goes_on = stats.as_ref().is_err_and(goes_on) && !self.dry_run && is_unfinished(target);
        let stats = match stats.about(&self.bundle.bundle) {
            Err(failure) if goes_on => {
                if !failure.is_stop() {
                    let target = target.display();
                    self.show.warn(&format!(
                        "what is done so far is kept: run it again to go on, or give it up by  sealift clean {target}"
                    ));
                }
                return Err(failure.unfinished(target));
            }
            stats => stats?,
        };
        if !self.dry_run {
            judge.commit()?;
        }
        judge.warn(self.show);
        warn_of_signature(self.show, &stats.kernel_signature);
        Ok(self.print(target, &stats, &judge, start.elapsed())?)
    }

    fn seal(&self) -> Seal {
        match self.seal {
            None => Seal::AsBefore,
            Some(SealHow::Require) => Seal::Require,
            Some(SealHow::Try) => Seal::Try,
            Some(SealHow::Off) => Seal::Off,
        }
    }

    /// Into an OSTree repository.
    fn import(&self, repo: &Path) -> Result<(), Failure> {
        let options = ImportOptions {
            refs: self.references.clone(),
            destination: match (&self.remote, self.mirror) {
                (Some(remote), _) => Destination::Remote(remote.clone()),
                (None, true) => Destination::Mirror,
                (None, false) => Destination::Heads,
            },
            seal: self.seal(),
            dry_run: self.dry_run,
            jobs: jobs(self.jobs.map(usize::from)),
        };
        self.take(self.target.as_deref().unwrap_or(repo), |input, judge, progress| {
            sealift::ostree::import(input, repo, &options, Limits::default(), judge, progress)
        })
    }

    /// Into a composefs store.
    #[cfg(feature = "composefs")]
    fn import_store(&self, store: &Path) -> Result<(), Failure> {
        if self.remote.is_some() || self.mirror {
            return Err(Failure::usage("--remote and --mirror are for ostree:REPO"));
        }
        self.check_of_repository("composefs:REPO")?;
        let options = sealift::composefs::ImportOptions {
            refs: self.references.clone(),
            seal: self.seal(),
            rehash: self.rehash,
            dry_run: self.dry_run,
            jobs: jobs(self.jobs.map(usize::from)),
        };
        let start = Instant::now();
        let judge = self.trust.load()?;
        let mut input = self.bundle.open()?;
        let stats = self.pace.watch(self.show, "Opening", |progress| {
            let by = |head: &Head| judge.judge(head);
            sealift::composefs::import(&mut input, store, &options, Limits::default(), by, progress)
        });
        let stats = stats.about(&self.bundle.bundle)?;
        if !self.dry_run {
            judge.commit()?;
        }
        judge.warn(self.show);
        let between = (self.target.as_deref().unwrap_or(store), self.bundle.bundle.as_path());
        let how = (self.dry_run, self.seal == Some(SealHow::Try));
        Ok(super::store::print(self.show, &stats, &judge, between, how, start.elapsed())?)
    }

    #[cfg(not(feature = "composefs"))]
    fn import_store(&self, _: &Path) -> Result<(), Failure> {
        self.check_of_repository("composefs:REPO").and(Err(super::mount::without_composefs()))
    }

    /// Refuses what is for directories alone.
    fn check_of_repository(&self, target: &str) -> Result<(), Failure> {
        if self.update || self.path.is_some() || self.hardlink_duplicates {
            return Err(Failure::usage(format!(
                "--update, --path and --hardlink-duplicates are for directories, and not for {target}"
            )));
        }
        if self.durability != When::End {
            return Err(Failure::usage("--durability is for directories: a repository has everything at the end"));
        }
        Ok(())
    }

    /// Into the OSTree repository of a medium.
    fn write_usb(&self, medium: &Path) -> Result<(), Failure> {
        if self.seal.is_some() {
            return Err(Failure::usage("--seal is for directories and ostree:REPO: a medium is for others to read"));
        }
        let now = source_date_epoch()?.unwrap_or_else(|| Moment::now().0);
        let options = UsbOptions {
            refs: self.references.clone(),
            now: u64::try_from(now).unwrap_or(0),
            dry_run: self.dry_run,
            jobs: jobs(self.jobs.map(usize::from)),
        };
        self.take(medium, |input, judge, progress| {
            sealift::ostree::write_usb(input, medium, &options, Limits::default(), judge, progress)
        })
    }

    fn take(
        &self,
        shown_target: &Path,
        take: impl FnOnce(&mut Input, &Judging<'_>, &Progress) -> Result<ImportStats, Error>,
    ) -> Result<(), Failure> {
        if self.update || self.path.is_some() || self.hardlink_duplicates {
            return Err(Failure::usage("--update, --path and --hardlink-duplicates are for directories"));
        }
        if self.durability != When::End {
            return Err(Failure::usage("--durability is for directories: a repository has everything at the end"));
        }
        let start = Instant::now();
        let judge = self.trust.load()?;
        let mut input = self.bundle.open()?;
        let stats = self
            .pace
            .watch(self.show, "Opening", |progress| take(&mut input, &|head: &Head| judge.judge(head), progress));
        let stats = stats.about(&self.bundle.bundle)?;
        if !self.dry_run {
            judge.commit()?;
        }
        judge.warn(self.show);
        warn_of_signature(self.show, &stats.kernel_signature);
        let between = (shown_target, self.bundle.bundle.as_path());
        Ok(import::print(self.show, &stats, &judge, between, self.dry_run, start.elapsed())?)
    }

    fn print(&self, target: &Path, stats: &UnpackStats, judge: &Judge, elapsed: Duration) -> std::io::Result<()> {
        let mut out = self.show.out();
        if self.show.json {
            return json_line(&mut out, &Summary::new(stats, judge, self.dry_run, elapsed));
        }
        if self.show.quiet {
            return Ok(());
        }
        let (target, bundle) = (target.display().to_string(), shown(&self.bundle.bundle));
        let verb = match (self.dry_run, stats.is_update) {
            (false, false) => "unpacked",
            (false, true) if stats.was_complete => "complete already, as unpacked",
            (false, true) => "updated",
            (true, false) => "would be unpacked",
            (true, true) => "would be updated",
        };
        let mark = judge.mark();
        writeln!(out, "{BOLD}{}{BOLD:#}: {verb} from {}{mark}", escape::text(&target), escape::text(&bundle))?;
        judge.print_signers(&mut out)?;
        let contents = [
            (stats.files, if stats.is_update { "new file" } else { "file" }),
            (stats.directories, "directory"),
            (stats.links, "hard link"),
        ];
        let mut parts: Vec<String> = contents.iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(*n, noun)).collect();
        if stats.others > 0 {
            parts.push(format!("{} of other types", human::Grouped(stats.others)));
        }
        if let (Some(files), true) = (parts.first_mut(), stats.copied_files > 0) {
            files.push_str(&format!(" ({} from what was there)", human::Grouped(stats.copied_files)));
        }
        if stats.is_update {
            parts.push(format!("{} kept", human::Grouped(stats.kept_files)));
            if stats.metadata_files > 0 {
                parts.push(format!("{} with new metadata", human::Grouped(stats.metadata_files)));
            }
            if stats.removed > 0 {
                parts.push(format!("{} removed", count(stats.removed, "name")));
            }
        }
        writeln!(out, "  {}", parts.join(", "))?;
        if stats.was_hashed {
            let files = if stats.hashed_files == 0 { "no file".to_owned() } else { count(stats.hashed_files, "file") };
            let why = match () {
                () if self.rehash => "as --rehash asks",
                () if stats.is_sealed => "before they were sealed",
                () if self.trust_mtime => "and size and time told of the others",
                () => "since nothing that was kept describes the target",
            };
            writeln!(out, "  {files} hashed, {why}")?;
        }
        if stats.resumed_files > 0 {
            writeln!(out, "  {} of a run before this one were right", count(stats.resumed_files, "file"))?;
        }
        if self.dry_run {
            let (disk, free) = (Bytes(stats.disk_bytes), Bytes(stats.free_bytes));
            let room = if stats.disk_bytes > stats.free_bytes {
                format!("{WARN}too little{WARN:#}: {free} are free")
            } else {
                format!("{free} are free")
            };
            writeln!(
                out,
                "  {} of content, {disk} and {} on the target; {room}",
                Bytes(stats.logical_bytes),
                count(stats.inodes, "inode")
            )?;
            return writeln!(out, "  {} would be read; nothing was written", Bytes(stats.stored_bytes));
        }
        if stats.logical_bytes == 0 {
            writeln!(out, "  in {}", human::duration(elapsed))?;
        } else {
            let (bytes, stored) = (Bytes(stats.logical_bytes), Bytes(stats.stored_bytes));
            let (time, rate) = (human::duration(elapsed), human::rate(stats.logical_bytes, elapsed));
            writeln!(out, "  {bytes} from {stored} in {time}, {rate}")?;
        }
        if stats.is_sealed {
            writeln!(out, "  {} sealed: the kernel keeps them as they are", count(stats.sealed_files, "file"))?;
            if stats.kernel_signature == KernelSignature::Taken {
                writeln!(out, "  the index is sealed with the bundle's signature for the kernel")?;
            }
        } else if self.seal == Some(SealHow::Try) {
            writeln!(out, "  {WARN}not sealed{WARN:#}: the file system has no fs-verity")?;
        }
        if stats.shared_bytes > 0 {
            writeln!(out, "  {} are shared between equal files", Bytes(stats.shared_bytes))?;
        }
        for line in skipped(stats) {
            writeln!(out, "  {WARN}skipped{WARN:#} {line}")?;
        }
        if log::is_on() {
            let (objects, inodes) = (count(stats.objects, "object"), count(stats.inodes, "inode"));
            writeln!(out, "  {objects}, {inodes}, {} on the target", Bytes(stats.disk_bytes))?;
        }
        Ok(())
    }
}

/// Says why the kernel did not take the signature for it.
fn warn_of_signature(show: Show, signature: &KernelSignature) {
    if let KernelSignature::Refused(why) = signature {
        show.warn(&format!("the index is sealed without the bundle's signature for the kernel: {why}"));
    }
}

/// What became of the signature for the kernel, for JSON.
pub(crate) fn signature_word(signature: &KernelSignature) -> Option<&'static str> {
    match signature {
        KernelSignature::None => None,
        KernelSignature::Taken => Some("taken"),
        KernelSignature::Refused(_) => Some("refused"),
    }
}

/// Whether the same run may get further when it is run again.
fn goes_on(error: &Error) -> bool {
    match error {
        Error::Io { source, .. } => !matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded),
        Error::Format(error) => error.kind() == Kind::Truncated,
        Error::Cancelled => true,
        _ => false,
    }
}

/// Decides by the head whether a bundle is to be trusted.
type Judging<'a> = dyn Fn(&Head) -> Result<(), Error> + 'a;

/// The repository of `ostree:REPO`.
pub(crate) fn ostree_target(target: &Path) -> Option<PathBuf> {
    let repo = target.as_os_str().as_bytes().strip_prefix(b"ostree:")?;
    Some(PathBuf::from(OsStr::from_bytes(repo)))
}

/// The word before the colon of a target that may be more than a directory some day.
fn reserved(target: &Path) -> Option<&'static str> {
    let target = target.as_os_str().as_bytes();
    target.starts_with(b"tar:").then_some("tar")
}

/// What was left undone for want of privilege.
pub(crate) fn skipped(stats: &UnpackStats) -> Vec<String> {
    let lines = [
        (stats.owners_skipped, "file", "not root: owned by you"),
        (stats.set_ids_skipped, "set-id file", "not root: without their set-id bits"),
        (stats.xattrs_skipped, "extended attribute", "not root: not set"),
        (stats.devices_skipped, "device", "not root: not made"),
    ];
    let some = lines.into_iter().filter(|(number, ..)| *number > 0);
    some.map(|(number, noun, why)| format!("{} ({why})", count(number, noun))).collect()
}

/// `/usr/`, `./usr` and `usr` are one path in a bundle.
fn prefix(path: OsString) -> Vec<u8> {
    let path = path.into_vec();
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    names.collect::<Vec<_>>().join(&b'/')
}

#[derive(Serialize)]
struct Summary<'a> {
    dry_run: bool,
    name: &'a str,
    version: u64,
    signers: Vec<String>,
    files: u64,
    objects: u64,
    directories: u64,
    links: u64,
    others: u64,
    logical_bytes: u64,
    disk_bytes: u64,
    stored_bytes: u64,
    shared_bytes: u64,
    sealed: bool,
    sealed_files: u64,
    kernel_signature: Option<&'static str>,
    resumed_files: u64,
    kept_files: u64,
    metadata_files: u64,
    copied_files: u64,
    removed: u64,
    was_hashed: bool,
    hashed_files: u64,
    inodes: u64,
    free_bytes: u64,
    owners_skipped: u64,
    set_ids_skipped: u64,
    xattrs_skipped: u64,
    devices_skipped: u64,
    seconds: f64,
}

impl<'a> Summary<'a> {
    fn new(stats: &UnpackStats, judge: &'a Judge, dry_run: bool, elapsed: Duration) -> Self {
        let (name, version) = judge.identity();
        Self {
            dry_run,
            name,
            version,
            signers: judge.signers(),
            files: stats.files,
            objects: stats.objects,
            directories: stats.directories,
            links: stats.links,
            others: stats.others,
            logical_bytes: stats.logical_bytes,
            disk_bytes: stats.disk_bytes,
            stored_bytes: stats.stored_bytes,
            shared_bytes: stats.shared_bytes,
            sealed: stats.is_sealed,
            sealed_files: stats.sealed_files,
            kernel_signature: signature_word(&stats.kernel_signature),
            resumed_files: stats.resumed_files,
            kept_files: stats.kept_files,
            metadata_files: stats.metadata_files,
            copied_files: stats.copied_files,
            removed: stats.removed,
            was_hashed: stats.was_hashed,
            hashed_files: stats.hashed_files,
            inodes: stats.inodes,
            free_bytes: stats.free_bytes,
            owners_skipped: stats.owners_skipped,
            set_ids_skipped: stats.set_ids_skipped,
            xattrs_skipped: stats.xattrs_skipped,
            devices_skipped: stats.devices_skipped,
            seconds: human::seconds(elapsed),
        }
    }
}
