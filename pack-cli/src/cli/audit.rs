//! `sealift audit`: whether an installed tree, or a store, is what its bundle says.

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use sealift::audit::{AuditOptions, StoreAuditOptions, audit, state_path};
use sealift::diff::Diff;
use sealift::unpack::is_half_updated;
use sealift::{Limits, Progress};
use serde::Serialize;

use super::audit_store::{self, Store};
use super::bundle::BundleArg;
use super::compare_args::CompareArgs;
use super::differences::{self, JsonDifference, Words};
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::human;
use super::mount::store_of;
use super::show::{BAD, BOLD, GOOD, Pace, Show, json_line};
use super::trust_args::{Judge, TrustArgs};
use super::unpack::ostree_target;

/// Check that an installed tree, or a store, still is what its signed bundle says
///
/// Reads every file of TARGET, and compares it with the signed index that was kept when TARGET was unpacked, or with that of BUNDLE. Where
/// files were sealed by unpack --seal, the kernel says what they are, and none is read that still is. A
/// line a path that differs: D missing, A extra, M changed (with the size that it should have, and the one that it has), U not sealed any
/// more, m other metadata alone. The exit status is 1 where anything differs.
///
/// Of ostree:REPO and composefs:REPO, the names and objects are compared that the bundles brought which it took: each with its checksum or digest, by
/// the kernel where it is sealed. Other objects are extra in a composefs store, if nobody else has images there; in a repository they are usual.
#[derive(Args, Debug)]
#[command(after_long_help = "\
With --json one object: target, name, version, path (where only a part is
compared), signers, sound, sealed, kernel_signature, counts, seconds and
entries. An entry has kind (missing, extra, changed, unsealed, metadata), path,
fields, and old and new, the file as the index has it and as it is. Of a store:
target, bundles, trees, sound, sealed, extra_known, counts, seconds and entries
with kind, name, tree, path, expected and found.

Examples:
  sealift audit /srv/os --trust /etc/sealift/allowed_signers
  sealift audit /srv/os os.sealift --path usr --ignore mtime
  sealift audit ~/app --ignore privileged --allow-extra
  sealift audit ostree:/ostree/repo
  sealift audit composefs:/sysroot/composefs --name os")]
pub(crate) struct Audit {
    /// The installed tree, ostree:REPO, or composefs:REPO
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// The bundle to compare it with; - reads it from standard input [default: what was kept beside TARGET]
    #[arg(value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// Of ostree:REPO and composefs:REPO: look only at what was taken of the bundles of this name
    #[arg(long, value_name = "NAME", conflicts_with = "bundle")]
    name: Vec<String>,
    #[command(flatten)]
    compare: CompareArgs,
    /// Files that the bundle does not have make no difference
    #[arg(long)]
    allow_extra: bool,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    pace: Pace,
}

const WORDS: Words = Words { added: "extra", removed: "missing" };

impl Audit {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let repo = ostree_target(&self.target);
        match (repo.as_deref(), store_of(&self.target)) {
            (Some(repo), _) => return self.run_store(Store::Ostree(repo)),
            #[cfg(feature = "composefs")]
            (None, Some(store)) => return self.run_store(Store::Composefs(store)),
            #[cfg(not(feature = "composefs"))]
            (None, Some(_)) => return Err(super::mount::without_composefs()),
            (None, None) if !self.name.is_empty() => {
                return Err(Failure::usage("--name is for ostree:REPO and composefs:REPO: a tree is of one bundle"));
            }
            (None, None) => {}
        }
        let start = Instant::now();
        let options = AuditOptions {
            diff: self.compare.options()?,
            xattrs: self.compare.xattrs(),
            one_file_system: self.compare.one_file_system(),
            allow_extra: self.allow_extra,
        };
        let judge = self.trust.load()?;
        let diff = self.pace.watch(self.show, "Opening", |progress| self.audit(&options, &judge, progress))?;
        judge.warn(self.show);
        if is_half_updated(&self.target) {
            let target = self.target.display();
            self.show.warn(&format!(
                "an update of {target} did not end: run it again, or have it finished by  sealift clean {target}"
            ));
        }
        self.print(&diff, &judge, start.elapsed())?;
        match diff.is_empty() {
            true => Ok(()),
            // Who asked for errors only is told of this one.
            false if self.show.quiet && !self.show.json => {
                let counts = differences::counts(&diff, WORDS);
                Err(Failure::differs(format!("{}: {counts}", self.target.display())))
            }
            false => Err(Failure::printed()),
        }
    }

    fn run_store(&self, store: Store<'_>) -> Result<(), Failure> {
        if let Some(option) = self.compare.of_trees() {
            return Err(Failure::usage(format!(
                "{option} is for installed trees: of a store, names and objects are compared"
            )));
        }
        let options = StoreAuditOptions {
            names: self.name.clone(),
            reference: self.compare.reference().map(str::to_owned),
            allow_extra: self.allow_extra,
            jobs: self.compare.jobs(),
        };
        let (target, bundle) = (&*self.target, self.bundle.as_deref());
        audit_store::Run { store, target, bundle, options, trust: &self.trust, show: self.show, pace: self.pace }.run()
    }

    fn audit(&self, options: &AuditOptions, judge: &Judge, progress: &Arc<Progress>) -> Result<Diff, Failure> {
        let by = |head: &sealift::Head| judge.judge(head);
        let Some(bundle) = &self.bundle else {
            let done = audit(&self.target, None, options, Limits::default(), by, progress);
            return done.about(&state_path(&self.target)?);
        };
        let mut input = BundleArg { bundle: bundle.clone() }.open()?;
        audit(&self.target, Some(&mut input), options, Limits::default(), by, progress).about(bundle)
    }

    fn print(&self, diff: &Diff, judge: &Judge, elapsed: Duration) -> std::io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, self.show.out());
        let target = self.target.display().to_string();
        let (name, version) = judge.identity();
        if self.show.json {
            json_line(&mut out, &Summary::new(&target, (name, version), judge, diff, elapsed))?;
        } else if !self.show.quiet {
            differences::print_table(&mut out, diff)?;
            let (target, mark) = (escape::text(&target), judge.mark());
            let verdict =
                if diff.is_empty() { format!("{GOOD}sound{GOOD:#}, ") } else { format!("{BAD}differs{BAD:#} from ") };
            let part = match &diff.prefix[..] {
                [] => String::new(),
                prefix => format!(" at {}", escape::bytes(prefix)),
            };
            writeln!(out, "{BOLD}{target}{BOLD:#}: {verdict}{name} version {version}{part}{mark}")?;
            judge.print_signers(&mut out)?;
            if !diff.is_empty() {
                writeln!(out, "  {}", differences::counts(diff, WORDS))?;
            }
            let with = self.bundle.as_deref().map_or("what was kept of its bundle".to_owned(), with);
            let paths = differences::compared(diff);
            let asked = if diff.is_sealed { ", asking the kernel" } else { "" };
            writeln!(out, "  {paths} compared with {with}{asked} in {}", human::duration(elapsed))?;
            if diff.is_index_signed {
                writeln!(out, "  the index is sealed with a signature for the kernel")?;
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
struct Summary<'a> {
    target: &'a str,
    name: &'a str,
    version: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    path: String,
    signers: Vec<String>,
    sound: bool,
    sealed: bool,
    kernel_signature: bool,
    counts: Counts,
    seconds: f64,
    entries: Vec<JsonDifference<'a>>,
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

impl<'a> Summary<'a> {
    fn new(target: &'a str, (name, version): (&'a str, u64), judge: &Judge, diff: &'a Diff, elapsed: Duration) -> Self {
        let counts = &diff.counts;
        Self {
            target,
            name,
            version,
            path: escape::percent(&diff.prefix),
            signers: judge.signers(),
            sound: diff.is_empty(),
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
            entries: differences::json(diff, WORDS),
        }
    }
}
