//! `sealift audit`: compares an installed tree or store with its signed bundle.

use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use sealift::CommitSpec;
use sealift::audit::{AuditOptions, StoreAuditOptions, audit, state_path};
use sealift::diff::Diff;
use sealift::slot::{self, SlotAddress};
use sealift::trust::{Guard, Judged, TargetKind};
use sealift::{LeftRun, Progress};
use serde::Serialize;

use super::audit_slot;
use super::audit_store::{self, Store};
use super::audit_words::{gone_back_from, of_run};
use super::base_args::BaseArgs;
use super::bundle::BundleArg;
use super::compare_args::CompareArgs;
use super::differences::{self, JsonDifferences, Words, lacking};
use super::digests::Digests;
use super::escape;
use super::failure::{About as _, Failure, shown, verdict_printed};
use super::human;
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::renamed::found_again;
use super::show::{BAD, BOLD, GOOD, Show, WARN, json_line};
use super::signers::Signers;
use super::trust_args::{InstalledTrustArgs, Judge};

/// Check that an installed tree or repository still matches its signed bundle
///
/// Reads every file of TARGET and compares it with the signed index in the install record, or with the index of BUNDLE. Does not read files
/// sealed by unpack --seal: the kernel reports their digests. Prints one line for each path that differs: D missing, A extra, M changed
/// (with the expected and the actual size), U no longer sealed, m metadata only. The exit status is 1 if anything differs.
///
/// Compares TARGET with what was installed there. Also reports, but does not count as differences, a newer version elsewhere on this
/// device, an expiry date that has passed, and keys revoked since. A TARGET that has gone back to an older version than this device installed
/// there is a difference, even if its install record went back with it. On a tree that root unpacked, --ignore privileged has no effect.
///
/// For ostree:REPO, compares the refs and objects that the installed bundles brought: each object with its checksum, or through the kernel
/// if it is sealed. Other objects are not differences.
///
/// For composefs:REPO, does the same with fs-verity digests. Other objects are extra, unless the store also has images from elsewhere.
#[derive(Args, Debug)]
#[command(after_long_help = "\
With --json, prints one object: target, name, version, path (if only a part is
compared), signers, since (what has changed since the installation), of_another
(the install record belongs to another directory), run (running, unfinished,
half-updated or hidden), gone_back_from (the version that this device installed
there, if TARGET is older), sound, sealed, kernel_signature, counts, seconds and
entries. An entry has kind (missing, extra, changed, unsealed, metadata), path,
fields, old (the file in the index) and new (the file in TARGET). For a
repository or store: target, bundles, trees, run, sound, sealed, extra_known,
counts, seconds and entries with kind, name, tree, path, expected and found.

Examples:
  sealift audit /srv/os --trust /etc/sealift/allowed_signers
  sealift audit /srv/os os.sealift --path usr --ignore mtime
  sealift audit ~/app --ignore privileged --allow-extra
  sealift audit ostree:/ostree/repo
  sealift audit ostree:/ostree/repo --name os")]
pub(crate) struct Audit {
    /// The installed tree, ostree:REPO or ostree:REPO:REF, or composefs:REPO
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// The bundle to compare with; - reads it from standard input [default: the install record]
    #[arg(value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Require TARGET to hold a bundle of this name; in a repository, audit only bundles of this name
    #[arg(long, value_name = "NAME")]
    name: Vec<String>,
    #[command(flatten)]
    compare: CompareArgs,
    /// Ignore files that the bundle does not have
    #[arg(long)]
    allow_extra: bool,
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    trust: InstalledTrustArgs,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

const WORDS: Words = Words { added: "extra", removed: "missing" };

impl Audit {
    pub(crate) fn uses(&self) -> crate::limits::Uses {
        crate::limits::Uses::of(self.compare.jobs)
    }

    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.base.is_given() && self.bundle.is_none() {
            return Err(Failure::usage("--base is only for a delta given as BUNDLE"));
        }
        match TargetKind::of(&self.target) {
            (TargetKind::Ostree, _) => {
                let spec = CommitSpec::parse(self.target.as_os_str())?;
                let reference = spec.one_ref(self.compare.reference())?;
                return self.run_store(Store::Ostree(spec.repo), reference);
            }
            (TargetKind::Composefs, store) => {
                return self.run_store(Store::Composefs(store), self.compare.reference());
            }
            (TargetKind::Slot, _) => return self.run_slot(),
            (TargetKind::Directory, _) => {}
        }
        let start = Instant::now();
        let options = AuditOptions {
            bases: self.base.given(self.compare.jobs, self.trust.state()),
            diff: self.compare.options()?,
            xattrs: self.compare.xattrs(),
            one_file_system: self.compare.one_file_system(),
            allow_extra: self.allow_extra,
        };
        let judge = Judge::by(&self.trust.options())?;
        let (diff, judged) =
            self.progress.watch(self.show, "Opening", |progress| self.audit(&options, judge.guard(), progress))?;
        judge.saw(judged);
        judge.warn(self.show);
        if let Some(run) = diff.run {
            self.show.warn(&of_run(run, &self.target.display().to_string()));
        }
        let wrong = self.wrong_name(&judge)?;
        verdict_printed(self.print(&diff, &judge, wrong.is_some(), start.elapsed()))?;
        if let Some(wrong) = wrong {
            return Err(Failure::differs(wrong));
        }
        match diff.is_empty() {
            true => Ok(()),
            // --quiet does not hide this error.
            false if self.show.quiet && !self.show.json => {
                let counts = match (diff.differences.is_empty(), diff.gone_back_from) {
                    (false, _) => differences::counts(&diff, WORDS),
                    (true, Some(version)) => gone_back_from(version),
                    (true, None) if diff.is_of_another => "its install record belongs to another directory".to_owned(),
                    (true, None) => "an update was interrupted".to_owned(),
                };
                Err(Failure::differs(format!("{}: {counts}", self.target.display())))
            }
            false => Err(Failure::printed()),
        }
    }

    /// Returns the message for a tree with the wrong name: not the one that --name gives or, without --name, that the device installed there.
    fn wrong_name(&self, judge: &Judge) -> Result<Option<String>, Failure> {
        let (name, _) = judge.identity();
        let target = self.target.display();
        if !self.name.is_empty() {
            let is_wrong = !self.name.iter().any(|wanted| wanted == name);
            return Ok(is_wrong.then(|| format!("{target} is {name}, not {}", self.name.join(" or "))));
        }
        if self.bundle.is_some() {
            return Ok(None);
        }
        let taken = judge.guard().state().taken_to(&self.target)?.filter(|taken| taken.name != name);
        Ok(taken.map(|taken| {
            format!(
                "{target} is {name}, but this device installed {} there: find out who replaced it; to accept it, run `sealift clean {target}`",
                taken.name
            )
        }))
    }

    /// Compares a slot with what was written to it.
    fn run_slot(&self) -> Result<(), Failure> {
        if self.bundle.is_some() || self.compare.of_trees().is_some() || self.compare.reference().is_some() {
            return Err(Failure::usage(
                "a block device or image:FILE is compared whole with its record: give no BUNDLE and no path or field",
            ));
        }
        let (start, judge) = (Instant::now(), Judge::by(&self.trust.options())?);
        let now = found_again(&self.target, judge.guard().state(), self.show)?;
        let address = SlotAddress { image: None, target: now.clone() };
        let (found, judged) = self.progress.watch(self.show, "Hashing", |progress| {
            slot::audit(&address, judge.guard(), self.compare.jobs.count(), progress)
        })?;
        judge.saw(judged);
        judge.warn(self.show);
        let target = now.display().to_string();
        if let Some(run) = found.run {
            self.show.warn(&of_run(run, &target));
        }
        let name = judge.identity().0;
        let is_wrong = !self.name.is_empty() && !self.name.iter().any(|wanted| wanted == name);
        verdict_printed(audit_slot::print(self.show, &target, &found, &judge, start.elapsed()))?;
        match () {
            () if is_wrong => Err(Failure::differs(format!("{target} is {name}, not {}", self.name.join(" or ")))),
            () if audit_slot::is_clean(&found) => Ok(()),
            () if self.show.quiet && !self.show.json => {
                Err(Failure::differs(format!("{target}: {}", audit_slot::words(&found))))
            }
            () => Err(Failure::printed()),
        }
    }

    fn run_store(&self, store: Store<'_>, reference: Option<&str>) -> Result<(), Failure> {
        if let Some(option) = self.compare.of_trees() {
            return Err(Failure::usage(format!(
                "{option} is for installed trees: for a repository or store, audit compares refs and objects"
            )));
        }
        let options = StoreAuditOptions {
            bases: self.base.given(self.compare.jobs, self.trust.state()),
            names: self.name.clone(),
            reference: reference.map(str::to_owned),
            allow_extra: self.allow_extra,
            jobs: self.compare.jobs.count(),
        };
        let (target, bundle) = (&*self.target, self.bundle.as_deref());
        audit_store::Run {
            store,
            target,
            bundle,
            options,
            trust: &self.trust,
            show: self.show,
            progress: self.progress,
        }
        .run()
    }

    fn audit(
        &self,
        options: &AuditOptions,
        guard: &Guard,
        progress: &Arc<Progress>,
    ) -> Result<(Diff, Judged), Failure> {
        let Some(bundle) = &self.bundle else {
            let done = audit(&self.target, None, options, limits(), guard, progress);
            return done.about(&state_path(&self.target)?);
        };
        let input = BundleArg::of(bundle.clone()).open()?;
        audit(&self.target, Some(input), options, limits(), guard, progress).about(bundle)
    }

    fn print(&self, diff: &Diff, judge: &Judge, is_misnamed: bool, elapsed: Duration) -> std::io::Result<()> {
        let is_sound = diff.is_empty() && !is_misnamed;
        let mut out = BufWriter::with_capacity(1 << 16, self.show.out());
        let target = self.target.display().to_string();
        let (name, version) = judge.identity();
        if self.show.json {
            json_line(
                &mut out,
                &JsonAudit::new(
                    &escape::percent(self.target.as_os_str().as_bytes()),
                    name,
                    version,
                    judge,
                    diff,
                    is_sound,
                    elapsed,
                ),
            )?;
        } else if !self.show.quiet {
            differences::print_table(&mut out, diff)?;
            let (target, mark) = (escape::text(&target), judge.mark());
            let verdict =
                if is_sound { format!("{GOOD}sound{GOOD:#}, ") } else { format!("{BAD}differs{BAD:#} from ") };
            let part = match &diff.prefix[..] {
                [] => String::new(),
                prefix => format!(" at {}", escape::bytes(prefix)),
            };
            writeln!(out, "{BOLD}{target}{BOLD:#}: {verdict}{name} version {version}{part}{mark}")?;
            judge.print_signers(&mut out)?;
            judge.print_since(&mut out)?;
            if diff.is_of_another {
                writeln!(
                    out,
                    "  {BAD}its install record belongs to another directory{BAD:#}: the directory or the record was copied or moved here"
                )?;
            }
            for mount in &diff.mounts {
                let mount = escape::bytes(mount);
                writeln!(out, "  {WARN}not compared{WARN:#}: {mount} is a mount point or a subvolume")?;
            }
            if let Some(version) = diff.gone_back_from {
                writeln!(out, "  {BAD}{}{BAD:#}", gone_back_from(version))?;
            }
            if !diff.differences.is_empty() {
                writeln!(out, "  {}", differences::counts(diff, WORDS))?;
            }
            let with = self.bundle.as_deref().map_or("its install record".to_owned(), with);
            let paths = differences::compared(diff);
            let asked = if diff.is_sealed { ", asking the kernel" } else { "" };
            writeln!(out, "  {paths} compared with {with}{asked} in {}", human::duration(elapsed))?;
            if !diff.lacks.is_empty() {
                writeln!(
                    out,
                    "  not compared, since it was unpacked without them: {}",
                    lacking(diff.lacks.iter().copied())
                )?;
            }
            if diff.is_index_signed {
                writeln!(out, "  the index is sealed with a kernel signature")?;
            }
            differences::print_privileged(&mut out, diff)?;
        }
        out.flush()
    }
}

fn with(bundle: &Path) -> String {
    escape::text(&shown(bundle))
}

#[derive(Serialize)]
struct JsonAudit<'a> {
    target: &'a str,
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    digests: Option<Digests>,
    #[serde(skip_serializing_if = "String::is_empty")]
    path: String,
    #[serde(flatten)]
    signers: Signers,
    /// What has changed since the installation.
    since: Vec<String>,
    /// Whether its install record belongs to another directory.
    of_another: bool,
    /// What was not compared, since something is mounted there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mounts: Vec<String>,
    /// What a run does there, or left.
    run: Option<LeftRun>,
    /// The version that was there before, if the target has gone back.
    gone_back_from: Option<u64>,
    /// What the target does not keep, in one word each.
    lacks: Vec<&'static str>,
    sound: bool,
    sealed: bool,
    kernel_signature: bool,
    counts: Counts,
    seconds: f64,
    entries: JsonDifferences<'a>,
}

#[derive(Serialize)]
struct Counts {
    compared: u64,
    missing: u64,
    missing_bytes: u64,
    extra: u64,
    extra_bytes: u64,
    changed: u64,
    changed_old_bytes: u64,
    changed_new_bytes: u64,
    unsealed: u64,
    metadata: u64,
    privileged: u64,
}

impl<'a> JsonAudit<'a> {
    fn new(
        target: &'a str,
        name: &'a str,
        version: u64,
        judge: &Judge,
        diff: &'a Diff,
        is_sound: bool,
        elapsed: Duration,
    ) -> Self {
        let counts = &diff.counts;
        Self {
            target,
            name,
            version,
            digests: judge.digests(),
            path: escape::percent(&diff.prefix),
            signers: judge.signers(),
            since: judge.since(),
            of_another: diff.is_of_another,
            mounts: diff.mounts.iter().map(|mount| escape::percent(mount)).collect(),
            run: diff.run,
            gone_back_from: diff.gone_back_from,
            lacks: diff.lacks.iter().map(|aspect| aspect.word()).collect(),
            sound: is_sound,
            sealed: diff.is_sealed,
            kernel_signature: diff.is_index_signed,
            counts: Counts {
                compared: counts.compared,
                missing: counts.removed,
                missing_bytes: counts.removed_bytes,
                extra: counts.added,
                extra_bytes: counts.added_bytes,
                changed: counts.changed,
                changed_old_bytes: counts.changed_old_bytes,
                changed_new_bytes: counts.changed_new_bytes,
                unsealed: counts.unsealed,
                metadata: counts.metadata,
                privileged: counts.privileged,
            },
            seconds: human::seconds(elapsed),
            entries: JsonDifferences { diff, words: WORDS },
        }
    }
}
