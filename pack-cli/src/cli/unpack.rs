//! `sealift unpack`: installs a bundle.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum, ValueHint};
use sealift::ostree::OsTreeStats;
use sealift::seal::{KernelSignature, Seal};
use sealift::source::ArchiveFormat;
use sealift::status::Installed;
use sealift::trust::{TargetKind, Trusted};
use sealift::unpack::{UnpackStats, may_go_on};
use sealift::{Destination, Durability, InstallOptions, OsTreeOptions, TreeOptions};
use sealift::{Error, Progress};

use super::adopt;
use super::base_args::BaseArgs;
use super::bundle::{BundleArg, jobs};
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::human::{self, Bytes, count};
use super::import;
use super::log;
use super::pace::Pace;
use super::several::Several;
use super::show::{BOLD, Show, WARN};
use super::status::installed;
use super::taken;
use super::time::{Moment, source_date_epoch};
use super::trust_args::{Judge, TrustArgs};
use super::updated::{self, Asked};
use super::watch;

/// Unpack a trusted bundle into a new directory, or update one
///
/// A new directory appears in one rename, once it is complete, checked and flushed to disk; until then it is staged beside TARGET. With
/// --update, unpack stages what TARGET lacks, then moves it in file by file. It compares the existing files with the install record by
/// size, times and inode number, and reads and repairs those that differ. Repeat the command to resume an interrupted run. Without root,
/// unpack does not set owners or create devices, and reports how many it skipped.
///
/// A delta bundle updates a TARGET that holds its base; unpack checks the parts of the base that it needs before it writes anything. With
/// --base it makes or updates any TARGET, as the full bundle does.
///
/// Of several bundles, or of those in a DIR such as a USB stick, unpack installs the newest that this device accepts: a delta if its base
/// is installed, otherwise the full bundle, otherwise a delta whose base is among them. It reports why it passed over the others, and tries the next one if the chosen one is damaged.
///
/// With ostree:REPO as TARGET, unpack imports the bundle's OSTree commits into that repository and then sets its refs. With --usb DIR, it
/// imports them into DIR/.ostree/repo, where OSTree itself looks for updates on removable media.
#[cfg_attr(
    feature = "composefs",
    doc = "",
    doc = " With composefs:REPO, unpack imports the trees for which the bundle records images (pack --composefs) into that store, and creates it",
    doc = " if needed. Each content is stored once, named by its fs-verity digest. `sealift mount` mounts the trees."
)]
#[derive(Args, Debug)]
#[command(override_usage = "\
sealift unpack [OPTIONS] <BUNDLE|DIR>... <TARGET>
       sealift unpack [OPTIONS] <BUNDLE|DIR>... --usb <DIR>")]
#[command(after_long_help = "\
Examples:
  sealift unpack os.sealift /srv/os --trust /etc/sealift/allowed_signers
  curl -s https://example.org/os.sealift | sealift unpack - /srv/second
  sealift unpack os.sealift etc --path etc --allow-unsigned
  sealift unpack os-2.sealift /srv/os --update --delete
  sealift unpack /media/stick /srv/os --name os --update --delete
  sealift unpack os-2.sealift ostree:/ostree/repo --remote debian
  sealift unpack os-2.sealift --usb /media/stick
  sealift unpack os-2-to-3.sealift ostree:/ostree/repo
  sealift unpack os-2-to-3.sealift /srv/new --base os-2.sealift
  sealift unpack os.sealift /srv/os --dry-run")]
pub(crate) struct Unpack {
    /// The bundle, several bundles, or directories of bundles; - reads one from standard input
    #[arg(skip)]
    bundle: BundleArg,
    /// Bundles, or directories of bundles; - reads one from standard input. The last is TARGET:
    #[cfg_attr(feature = "composefs", doc = " the directory to create or update, ostree:REPO, or composefs:REPO;")]
    #[cfg_attr(not(feature = "composefs"), doc = " the directory to create or update, or ostree:REPO;")]
    /// without --update, the directory must be empty or not exist
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    #[arg(skip)]
    target: Option<PathBuf>,
    /// Install the bundle of this name, if there are several [default: the name installed in TARGET]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The ref to unpack, if the bundle has several; for a repository, repeatable [default there: all]
    #[arg(long = "ref", value_name = "REF")]
    references: Vec<String>,
    /// Import as refs of this remote of ostree:REPO, and require the signatures it requires
    #[arg(long, value_name = "NAME", conflicts_with = "mirror", help_heading = "OSTree")]
    remote: Option<String>,
    /// Import the refs of a collection as mirrored refs of ostree:REPO
    #[arg(long, help_heading = "OSTree")]
    mirror: bool,
    /// Instead of TARGET: create or update DIR/.ostree/repo on removable media, as `ostree create-usb` does
    #[arg(
        long,
        value_name = "DIR",
        value_hint = ValueHint::DirPath,
        conflicts_with_all = ["remote", "mirror"],
        help_heading = "OSTree",
    )]
    usb: Option<PathBuf>,
    /// Unpack only this path and what is below it
    #[arg(long, value_name = "PREFIX")]
    path: Option<OsString>,
    /// Update an existing directory; reads and writes only what it lacks
    #[arg(long)]
    update: bool,
    /// With --update: delete files that the bundle does not have; --dry-run and -v list them
    #[arg(long)]
    delete: bool,
    /// With --update: take over a directory that sealift did not create; asks first on a terminal
    ///
    /// Replaces existing files with those of the bundle, and with --delete deletes all others. On a terminal, shows how many files that affects,
    /// with the first names, and asks; elsewhere, this option is the consent. With --dry-run, only reports them.
    #[arg(long)]
    adopt: bool,
    /// Read and hash existing files, instead of comparing sizes and times with the install record
    #[arg(long, conflicts_with = "trust_record")]
    rehash: bool,
    /// Do not check existing files: rely on the install record alone
    #[arg(long)]
    trust_record: bool,
    /// With --update, without an install record: do not read files whose size and time match
    #[arg(long)]
    trust_mtime: bool,
    /// Protect files with fs-verity: require, try (if the file system supports it) or off [default: as before]
    ///
    /// A sealed file can be read, replaced and removed, but not written to; if its bytes change on the disk, reading it fails. Unpack seals
    /// new files before they appear, and the index in the install record too, with the bundle's kernel signature if it has one (`sign
    /// --kernel-key`). With require, it writes nothing if the file system does not support fs-verity or the kernel refuses that signature.
    /// Without this option an update seals if the last one did. Existing files are hashed before they are sealed for the first time.
    #[arg(long, value_name = "HOW", value_enum, hide_possible_values = true)]
    seal: Option<SealHow>,
    /// When to flush to disk: none, end (before TARGET appears) or each (after each file)
    #[arg(long, value_name = "WHEN", value_enum, default_value = "end", hide_possible_values = true)]
    durability: When,
    /// Hard-link files that have the same content and metadata
    #[arg(long)]
    hardlink_duplicates: bool,
    /// Only print what would be written and deleted; the exit status is that of the real run, except that damaged content is not detected
    #[arg(long)]
    dry_run: bool,
    /// Number of threads [default: the available CPUs]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    jobs: Option<u16>,
    #[command(flatten)]
    base: BaseArgs,
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
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let mut paths = std::mem::take(&mut self.paths);
        if self.usb.is_none() {
            self.target = if paths.len() > 1 { paths.pop() } else { None };
            if self.target.is_none() {
                return Err(Failure::usage(if cfg!(feature = "composefs") {
                    "give the TARGET after the bundle: a directory, ostree:REPO or composefs:REPO"
                } else {
                    "give the TARGET after the bundle: a directory or ostree:REPO"
                }));
            }
        }
        if let ([bundle], None) = (&paths[..], &self.name)
            && !bundle.is_dir()
        {
            self.bundle = BundleArg { bundle: bundle.clone() };
            return self.run_one();
        }
        if self.base.is_given() {
            return Err(Failure::usage("--base is the base of one delta: name that bundle, without --name"));
        }
        if paths.iter().any(|path| path == Path::new("-")) {
            return Err(Failure::usage(
                "standard input can only be read once: give files when you give several bundles",
            ));
        }
        let held = self.target.as_deref().map_or_else(Vec::new, held);
        let name = self.wanted_name(&held);
        let held = held.iter().map(|installed| installed.head.root().contents.index_digest).collect();
        let several = Several { paths: &paths, name, held, trust: &self.trust.clone(), show: self.show };
        several.take(|candidate| {
            self.bundle = BundleArg { bundle: candidate.path.clone() };
            self.base = BaseArgs::of(&candidate.bases);
            self.run_one()
        })
    }

    /// Returns the name given, or the one that all bundles in the target share.
    fn wanted_name(&self, held: &[Installed]) -> Option<String> {
        let only = match held {
            [only] => Some(only.head.root().identity.name.clone()),
            _ => None,
        };
        let bound = || sealift::trust::bound_name(self.target.as_deref()?).ok().flatten();
        self.name.clone().or(only).or_else(bound)
    }

    fn run_one(&self) -> Result<(), Failure> {
        if let Some(medium) = &self.usb {
            return self.write_usb(medium);
        }
        let target = self.target.as_deref().unwrap_or(Path::new("")); // clap requires it
        match TargetKind::of(target) {
            (TargetKind::Ostree, repo) => self.import(repo),
            (TargetKind::Composefs, store) => self.import_store(store),
            (TargetKind::Directory, _) => match ArchiveFormat::of(target.as_os_str()) {
                Some(format) => {
                    let (kind, target) = (format.scheme(), target.display());
                    Err(Failure::usage(format!(
                        "unknown kind of target {kind}: for a directory of this name write ./{target}"
                    )))
                }
                None => self.unpack(target),
            },
        }
    }

    /// Unpacks into a directory.
    fn unpack(&self, target: &Path) -> Result<(), Failure> {
        if self.remote.is_some() || self.mirror {
            return Err(Failure::usage("--remote and --mirror are for ostree:REPO"));
        }
        let start = Instant::now();
        if self.references.len() > 1 {
            return Err(Failure::usage("a directory can hold only one --ref"));
        }
        let options = self.options();
        let judge = self.trust.load()?;
        let input = self.bundle.open()?;
        if let Err(Error::State { path, .. }) = sealift::trust::bound_name(target) {
            let path = path.display();
            self.show.warn(&format!("ignored the damaged record {path}: comparing all files instead"));
        }
        let consent = |stats: &UnpackStats| watch::aside(|| adopt::agree(self.show, target, stats));
        let stats = self.pace.watch(self.show, "Opening", |progress| {
            sealift::unpack::unpack_asking(judge.admit(input)?, target, &options, progress, &consent)
        });
        let goes_on = stats.as_ref().is_err_and(|error| !self.dry_run && may_go_on(target, error));
        let stats = match stats.about(&self.bundle.bundle) {
            Err(failure) if goes_on => {
                if !failure.is_stop() {
                    let target = target.display();
                    self.show.warn(&format!(
                        "progress was saved: repeat the command to resume, or discard it: sealift clean {target}"
                    ));
                }
                return Err(failure.unfinished(target));
            }
            stats => stats?,
        };
        judge.warn(self.show);
        warn_of_signature(self.show, &stats.install.kernel_signature);
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

    fn options(&self) -> InstallOptions {
        InstallOptions {
            refs: self.references.clone(),
            bases: self.base.given(self.jobs),
            seal: self.seal(),
            rehash: self.rehash,
            trust_record: self.trust_record,
            dry_run: self.dry_run,
            jobs: jobs(self.jobs.map(usize::from)),
            tree: TreeOptions {
                prefix: prefix(self.path.clone().unwrap_or_default()),
                update: self.update,
                adopt: self.adopt,
                delete: self.delete,
                trust_mtime: self.trust_mtime,
                durability: match self.durability {
                    When::None => Durability::None,
                    When::End => Durability::End,
                    When::Each => Durability::Each,
                },
                hardlink_duplicates: self.hardlink_duplicates,
                list_deletions: self.dry_run || log::is_on(),
            },
            ostree: OsTreeOptions::default(),
        }
    }

    /// The options for an OSTree repository.
    fn ostree_options(&self) -> Result<InstallOptions, Failure> {
        let destination = match (&self.remote, self.mirror) {
            (Some(remote), _) => Destination::Remote(remote.clone()),
            (None, true) => Destination::Mirror,
            (None, false) => Destination::Heads,
        };
        Ok(InstallOptions { ostree: OsTreeOptions { destination, now: now()? }, ..self.options() })
    }

    /// Into an OSTree repository.
    fn import(&self, repo: &Path) -> Result<(), Failure> {
        let options = self.ostree_options()?;
        self.take(self.target.as_deref().unwrap_or(repo), |bundle, progress| {
            sealift::ostree::import(bundle, repo, &options, progress)
        })
    }

    /// Imports into a composefs store.
    #[cfg(feature = "composefs")]
    fn import_store(&self, store: &Path) -> Result<(), Failure> {
        if self.remote.is_some() || self.mirror {
            return Err(Failure::usage("--remote and --mirror are for ostree:REPO"));
        }
        self.check_of_repository("composefs:REPO")?;
        let options = self.options();
        let start = Instant::now();
        let judge = self.trust.load()?;
        let input = self.bundle.open()?;
        let stats = self.pace.watch(self.show, "Opening", |progress| {
            sealift::composefs::import(judge.admit(input)?, store, &options, progress)
        });
        let stats = stats.about(&self.bundle.bundle)?;
        judge.warn(self.show);
        let between = (self.target.as_deref().unwrap_or(store), self.bundle.bundle.as_path());
        let how = (self.dry_run, self.seal == Some(SealHow::Try), self.trust_record);
        Ok(super::store::print(self.show, &stats, &judge, between, how, start.elapsed())?)
    }

    #[cfg(not(feature = "composefs"))]
    fn import_store(&self, _: &Path) -> Result<(), Failure> {
        self.check_of_repository("composefs:REPO").and(Err(super::mount::without_composefs()))
    }

    /// Refuses options that are for directories only.
    fn check_of_repository(&self, target: &str) -> Result<(), Failure> {
        if self.update || self.adopt || self.path.is_some() || self.hardlink_duplicates {
            return Err(Failure::usage(format!(
                "--update, --adopt, --path and --hardlink-duplicates are for directories, not for {target}"
            )));
        }
        if self.durability != When::End {
            return Err(Failure::usage("--durability is for directories: a repository is always flushed at the end"));
        }
        Ok(())
    }

    /// Imports into the OSTree repository on removable media.
    fn write_usb(&self, medium: &Path) -> Result<(), Failure> {
        if self.seal.is_some() {
            return Err(Failure::usage("--seal is for directories and ostree:REPO, not for --usb"));
        }
        let options = self.ostree_options()?;
        self.take(medium, |bundle, progress| sealift::ostree::write_usb(bundle, medium, &options, progress))
    }

    fn take(
        &self,
        shown_target: &Path,
        take: impl FnOnce(Trusted, &Progress) -> Result<OsTreeStats, Error>,
    ) -> Result<(), Failure> {
        if self.update || self.adopt || self.path.is_some() || self.hardlink_duplicates {
            return Err(Failure::usage("--update, --adopt, --path and --hardlink-duplicates are for directories"));
        }
        if self.durability != When::End {
            return Err(Failure::usage("--durability is for directories: a repository is always flushed at the end"));
        }
        let start = Instant::now();
        let judge = self.trust.load()?;
        let input = self.bundle.open()?;
        let stats = self.pace.watch(self.show, "Opening", |progress| take(judge.admit(input)?, progress));
        let stats = stats.about(&self.bundle.bundle)?;
        judge.warn(self.show);
        warn_of_signature(self.show, &stats.import.install.kernel_signature);
        import::warn_of_summary(self.show, &stats, shown_target);
        let between = (shown_target, self.bundle.bundle.as_path());
        let how = (self.dry_run, self.trust_record);
        Ok(import::print(self.show, &stats, &judge, between, how, start.elapsed())?)
    }

    fn print(&self, target: &Path, stats: &UnpackStats, judge: &Judge, elapsed: Duration) -> std::io::Result<()> {
        let mut out = self.show.out();
        if self.show.json {
            return taken::print(&mut out, stats, judge, self.dry_run, elapsed);
        }
        if self.show.quiet {
            return Ok(());
        }
        let (target, bundle) = (target.display().to_string(), shown(&self.bundle.bundle));
        let verb = match (self.dry_run, stats.is_update) {
            (false, false) => "unpacked",
            (_, true) if stats.was_complete => "already unpacked",
            (false, true) => "updated",
            (true, false) => "would be unpacked",
            (true, true) => "would be updated",
        };
        let mark = judge.mark();
        writeln!(out, "{BOLD}{}{BOLD:#}: {verb} from {}{mark}", escape::text(&target), escape::text(&bundle))?;
        judge.print_signers(&mut out)?;
        writeln!(out, "  {}", updated::made(stats))?;
        if stats.copied_files > 0 {
            writeln!(out, "  {} copied from existing ones", count(stats.copied_files, "file"))?;
        }
        let asked = Asked { rehash: self.rehash, trust_mtime: self.trust_mtime, trust_record: self.trust_record };
        for line in updated::checked(stats, &asked, self.dry_run) {
            writeln!(out, "  {line}")?;
        }
        if stats.was_adopted {
            let verb = if self.dry_run { "would replace" } else { "took over: replaced" };
            writeln!(out, "  {verb} {}", updated::kinds(&stats.replaced))?;
        }
        updated::print_deletions(&mut out, stats, self.dry_run)?;
        if stats.resumed_files > 0 {
            writeln!(out, "  reused {} from the interrupted run", count(stats.resumed_files, "file"))?;
        }
        if self.dry_run {
            let (disk, free) = (Bytes(stats.disk_bytes), Bytes(stats.free_bytes));
            writeln!(
                out,
                "  {} of content, {disk} and {} on the target; {free} are free",
                Bytes(stats.install.logical_bytes),
                count(stats.inodes, "inode")
            )?;
            return writeln!(out, "  {} would be read; nothing was written", Bytes(stats.install.stored_bytes));
        }
        if stats.install.logical_bytes == 0 {
            writeln!(out, "  in {}", human::duration(elapsed))?;
        } else if stats.is_update {
            let (bytes, stored, time) =
                (Bytes(stats.install.logical_bytes), Bytes(stats.install.stored_bytes), human::duration(elapsed));
            writeln!(out, "  wrote {bytes} in {time} (read {stored} from the bundle)")?;
        } else {
            let (bytes, stored) = (Bytes(stats.install.logical_bytes), Bytes(stats.install.stored_bytes));
            let (time, rate) = (human::duration(elapsed), human::rate(stats.install.logical_bytes, elapsed));
            writeln!(out, "  {bytes} from {stored} in {time}, {rate}")?;
        }
        if stats.install.is_sealed {
            writeln!(out, "  {} sealed: the kernel protects them from changes", count(stats.sealed_files, "file"))?;
            if stats.install.kernel_signature == KernelSignature::Taken {
                writeln!(out, "  sealed the index with the bundle's kernel signature")?;
            }
        } else if self.seal == Some(SealHow::Try) {
            writeln!(out, "  {WARN}not sealed{WARN:#}: the file system does not support fs-verity")?;
        }
        if stats.shared_bytes > 0 {
            writeln!(out, "  {} shared between identical files", Bytes(stats.shared_bytes))?;
        }
        for line in skipped(stats) {
            writeln!(out, "  {WARN}{line}{WARN:#}")?;
        }
        if log::is_on() {
            let (objects, inodes) = (count(stats.objects, "object"), count(stats.inodes, "inode"));
            writeln!(out, "  {objects}, {inodes}, {} on the target", Bytes(stats.disk_bytes))?;
        }
        Ok(())
    }
}

/// Returns what is installed in a target. A damaged record binds to no name; other faults show when unpacking.
fn held(target: &Path) -> Vec<Installed> {
    installed(target).unwrap_or_default()
}

/// Warns why the kernel refused the bundle's kernel signature.
fn warn_of_signature(show: Show, signature: &KernelSignature) {
    if let KernelSignature::Refused(why) = signature {
        show.warn(&format!("sealed the index without the bundle's kernel signature: {why}"));
    }
}

/// Returns the time to record for what is written now, in seconds since 1970.
fn now() -> Result<u64, Failure> {
    let now = source_date_epoch()?.unwrap_or_else(|| Moment::now().0);
    Ok(now.max(0).cast_unsigned()) // a clock before 1970 counts as 1970
}

/// Returns what was skipped for lack of privilege.
pub(crate) fn skipped(stats: &UnpackStats) -> Vec<String> {
    let lines = [
        (stats.owners_skipped, "entry", "owned by you instead of the recorded owner"),
        (stats.set_ids_skipped, "set-id file", "unpacked without set-id bits"),
        (stats.xattrs_skipped, "extended attribute", "not set"),
        (stats.devices_skipped, "device", "not created"),
    ];
    let some = lines.into_iter().filter(|(number, ..)| *number > 0);
    some.map(|(number, noun, what)| format!("{}: {what} (not running as root)", count(number, noun))).collect()
}

/// Normalizes a path: `/usr/`, `./usr` and `usr` are the same in a bundle.
fn prefix(path: OsString) -> Vec<u8> {
    let path = path.into_vec();
    let names = path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    names.collect::<Vec<_>>().join(&b'/')
}
