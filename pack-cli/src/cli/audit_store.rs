//! `sealift audit ostree:REPO` and `sealift audit composefs:REPO`.

use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anstyle::Style;
use sealift::audit::{Finding, FindingKind, StoreAudit, StoreAuditOptions, StoreCounts};
use sealift::diff::Change;
use sealift::trust::{Guard, Judged};
use sealift::{Input, LeftRun, Progress};
use serde::Serialize;

use super::audit_words::{gone_back_from, of_run};
use super::bundle::BundleArg;
use super::differences;
use super::digests::Digests;
use super::escape;
use super::failure::{About as _, Failure, shown, verdict_printed};
use super::human::{self, Bytes, Grouped, count};
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::show::{BAD, BOLD, DIM, GOOD, Show, json_line};
use super::signers::Signers;
use super::trust_args::{InstalledTrustArgs, Judge};

/// A repository or store, as TARGET names it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Store<'a> {
    Ostree(&'a Path),
    Composefs(&'a Path),
}

/// The input of a store's audit.
pub(crate) struct Run<'a> {
    pub(crate) store: Store<'a>,
    /// TARGET as the user wrote it.
    pub(crate) target: &'a Path,
    pub(crate) bundle: Option<&'a Path>,
    pub(crate) options: StoreAuditOptions,
    pub(crate) trust: &'a InstalledTrustArgs,
    pub(crate) show: Show,
    pub(crate) progress: ProgressArgs,
}

impl Run<'_> {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let start = Instant::now();
        let judge = Judge::by(&self.trust.options())?;
        let input = match self.bundle {
            Some(bundle) => Some(BundleArg::of(bundle.to_owned()).open()?),
            None => None,
        };
        let run = |progress: &Arc<Progress>| self.audit(input, judge.guard(), progress);
        let (audit, judged) = self.progress.watch(self.show, "Opening", run)?;
        let judges: Vec<Judge> = judged.into_iter().map(|judged| judge.of(judged)).collect();
        judges.iter().for_each(|judge| judge.warn(self.show));
        if let Some(run) = audit.run {
            self.show.warn(&of_run(run, &self.target.display().to_string()));
        }
        verdict_printed(self.print(&audit, &judges, start.elapsed()))?;
        match audit.is_empty() {
            true => Ok(()),
            false if self.show.quiet && !self.show.json => {
                Err(Failure::differs(format!("{}: {}", self.target.display(), counts(&audit))))
            }
            false => Err(Failure::printed()),
        }
    }

    fn audit(
        &self,
        bundle: Option<Input>,
        guard: &Guard,
        progress: &Progress,
    ) -> Result<(StoreAudit, Vec<Judged>), Failure> {
        let (options, limits, about) = (&self.options, limits(), self.bundle.unwrap_or(self.target));
        match self.store {
            Store::Ostree(repo) => sealift::ostree::audit(repo, bundle, options, limits, guard, progress).about(about),
            Store::Composefs(store) => {
                sealift::composefs::audit(store, bundle, options, limits, guard, progress).about(about)
            }
        }
    }

    fn print(&self, audit: &StoreAudit, judges: &[Judge], elapsed: Duration) -> std::io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, self.show.out());
        let target = self.target.display().to_string();
        if self.show.json {
            json_line(
                &mut out,
                &JsonStoreAudit::new(&escape::percent(self.target.as_os_str().as_bytes()), audit, judges, elapsed),
            )?;
        } else if !self.show.quiet {
            for finding in &audit.findings {
                print_finding(&mut out, finding)?;
            }
            let bundles: Vec<String> = judges.iter().map(identity).collect();
            let verdict = match audit.is_empty() {
                true => format!("{GOOD}sound{GOOD:#}, "),
                false => format!("{BAD}differs{BAD:#} from "),
            };
            writeln!(out, "{BOLD}{}{BOLD:#}: {verdict}{}", escape::text(&target), bundles.join(" and "))?;
            for judge in judges {
                judge.print_signers(&mut out)?;
                judge.print_since(&mut out)?;
            }
            for (name, version) in &audit.gone_back {
                writeln!(out, "  {BAD}{name}{BAD:#}: {}", gone_back_from(*version))?;
            }
            if !audit.findings.is_empty() {
                writeln!(out, "  {}", counts(audit))?;
            }
            self.print_work(&mut out, audit, elapsed)?;
        }
        out.flush()
    }

    fn print_work(&self, out: &mut dyn Write, audit: &StoreAudit, elapsed: Duration) -> std::io::Result<()> {
        let counts = &audit.counts;
        let with = self.bundle.map_or("its install record".to_owned(), |bundle| escape::text(&shown(bundle)));
        let asked = if audit.is_sealed { ", asking the kernel" } else { "" };
        let (objects, time) = (count(counts.objects, "object"), human::duration(elapsed));
        writeln!(out, "  {objects} compared with {with}{asked} in {time}")?;
        if counts.hashed > 0 {
            writeln!(out, "  {} hashed, {}", count(counts.hashed, "object"), Bytes(counts.hashed_bytes))?;
        }
        if !audit.is_extra_known && !matches!(self.store, Store::Ostree(_)) && !self.options.allow_extra {
            let why = match audit.run {
                Some(_) => "an import is not complete, and no image names its objects yet",
                None => "the store has other images, which may use them",
            };
            writeln!(out, "  extra objects not checked: {why}")?;
        }
        Ok(())
    }
}

/// Returns name and version of a bundle.
fn identity(judge: &Judge) -> String {
    let (name, version) = judge.identity();
    format!("{name} version {version}{}", judge.mark())
}

/// The letters are the same as for directories.
fn mark(kind: FindingKind) -> (char, Style) {
    differences::mark(match kind {
        FindingKind::Missing => Change::Removed,
        FindingKind::Extra => Change::Added,
        FindingKind::Changed => Change::Changed,
        FindingKind::Unsealed => Change::Unsealed,
    })
}

fn print_finding(out: &mut dyn Write, finding: &Finding) -> std::io::Result<()> {
    let (letter, style) = mark(finding.kind);
    write!(out, "{style}{letter}{style:#}  {}", escape::text(&finding.name))?;
    match (&finding.tree, &finding.path) {
        (Some(tree), Some(path)) => write!(out, "  {}:{}", escape::text(tree), escape::bytes(path))?,
        (Some(tree), None) => write!(out, "  {}", escape::text(tree))?,
        _ => {}
    }
    match &finding.found {
        Some(found) => writeln!(out, "  {DIM}is {}{DIM:#}", escape::text(found)),
        None => writeln!(out),
    }
}

/// Returns the counts in words, without those that are 0.
fn counts(audit: &StoreAudit) -> String {
    if let (true, Some((_, version))) = (audit.findings.is_empty(), audit.gone_back.first()) {
        return gone_back_from(*version);
    }
    let counts = &audit.counts;
    let parts = [
        (counts.missing, "missing"),
        (counts.extra, "extra"),
        (counts.changed, "changed"),
        (counts.unsealed, "not sealed"),
    ];
    let some = parts.into_iter().filter(|(number, _)| *number > 0);
    some.map(|(number, word)| format!("{} {word}", Grouped(number))).collect::<Vec<_>>().join(", ")
}

#[derive(Serialize)]
struct JsonStoreAudit<'a> {
    target: &'a str,
    bundles: Vec<JsonBundle<'a>>,
    trees: &'a [String],
    /// What a run does there, or left.
    run: Option<LeftRun>,
    sound: bool,
    sealed: bool,
    extra_known: bool,
    counts: &'a StoreCounts,
    seconds: f64,
    entries: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct JsonBundle<'a> {
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    digests: Option<Digests>,
    #[serde(flatten)]
    signers: Signers,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    since: Vec<String>,
    /// The version that was there before, if the bundle has gone back to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    gone_back_from: Option<u64>,
}

#[derive(Serialize)]
struct Entry<'a> {
    kind: FindingKind,
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'a str>,
}

impl<'a> JsonStoreAudit<'a> {
    fn new(target: &'a str, audit: &'a StoreAudit, judges: &'a [Judge], elapsed: Duration) -> Self {
        let bundle = |judge: &'a Judge| {
            let (name, version) = judge.identity();
            let gone_back = audit.gone_back.iter().find(|(gone, _)| gone == name);
            let gone_back_from = gone_back.map(|(_, version)| *version);
            JsonBundle {
                name,
                version,
                digests: judge.digests(),
                signers: judge.signers(),
                since: judge.since(),
                gone_back_from,
            }
        };
        Self {
            target,
            bundles: judges.iter().map(bundle).collect(),
            trees: &audit.trees,
            run: audit.run,
            sound: audit.is_empty(),
            sealed: audit.is_sealed,
            extra_known: audit.is_extra_known,
            counts: &audit.counts,
            seconds: human::seconds(elapsed),
            entries: audit.findings.iter().map(Entry::of).collect(),
        }
    }
}

impl<'a> Entry<'a> {
    fn of(finding: &'a Finding) -> Self {
        Self {
            kind: finding.kind,
            name: &finding.name,
            tree: finding.tree.as_deref(),
            path: finding.path.as_deref().map(escape::percent),
            expected: finding.expected.as_deref(),
            found: finding.found.as_deref(),
        }
    }
}
