//! `sealift status`: lists the installed targets.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use sealift::status::{Installed, Present, Target, look, targets};
use sealift::trust::{Guard, KnownTarget, TargetKind, TrustReport};
use sealift::{Aspect, Error, LeftRun, RecordFault};
use serde::Serialize;

use super::differences::lacking;
use super::digests::Digests;
use super::escape;
use super::failure::Failure;
use super::show::{BAD, BOLD, DIM, Form, WARN, json_line};
use super::signers::Signers;
use super::time::Moment;
use super::trust_args::{InstalledTrustArgs, Judge};

/// Show what is installed where, since when, and who signed it
///
/// Shows, for each TARGET, the bundle last installed of each name, from the install record; it does not read the tree, as audit does.
/// Without TARGET, shows every target that this device lists, and for each name the lowest version that it still accepts.
///
/// The list contains the directories, repositories and stores to which signed bundles were unpacked. It does not contain targets unpacked
/// with --allow-unsigned, or media written with --usb. `sealift clean TARGET` removes from the list a target that is gone.
///
/// The exit status is 1 if an update of a target was interrupted while it changed the files, or failed there.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift status
  sealift status /srv/os ostree:/ostree/repo
  sealift status /srv/os --json")]
pub(crate) struct Status {
    /// Installed trees, ostree:REPO, or composefs:REPO
    #[arg(value_name = "TARGET")]
    targets: Vec<PathBuf>,
    #[command(flatten)]
    trust: InstalledTrustArgs,
    #[command(flatten)]
    form: Form,
}

/// How a target is called, and how a partition's device was when it was written, if that was otherwise.
#[derive(Clone, Copy)]
struct Named<'a> {
    target: &'a Path,
    was: Option<&'a PathBuf>,
}

#[derive(Serialize)]
struct Line<'a> {
    target: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    was: Option<String>,
    name: &'a str,
    version: u64,
    #[serde(flatten)]
    digests: Digests,
    created: i64,
    expires: Option<i64>,
    taken: i64,
    #[serde(flatten)]
    signers: Signers,
    since: Vec<String>,
    refusal: Option<String>,
    sealed: Option<bool>,
    lacks: Option<Vec<&'static str>>,
    of_another: bool,
    /// What a run does there, or left.
    run: Option<&'static str>,
    /// The version that an interrupted update brings.
    next_version: Option<u64>,
    /// The version that was there before, if the target has gone back to this one.
    gone_back_from: Option<u64>,
}

/// A target that is missing, was replaced, or is not complete; with what the list has of it.
#[derive(Serialize)]
struct MissingLine<'a> {
    target: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    taken: Option<i64>,
    signers: Vec<String>,
    missing: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_version: Option<u64>,
}

#[derive(Serialize)]
struct FloorLine<'a> {
    name: &'a str,
    version: Option<u64>,
}

impl Status {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let show = self.form.show();
        let mut out = show.out();
        let guard = Guard::load(&self.trust.options())?;
        if self.targets.is_empty() {
            return self.all(&mut out, &guard, show.json);
        }
        let mut halves = Vec::new();
        for target in &self.targets {
            let now = guard.state().slot_now(target)?;
            let found = targets(&now, guard.state())?;
            if found.is_empty() {
                print_unrecorded(&mut out, target, show.json)?;
            }
            for Target { listed, present, .. } in found {
                let judged = self.judged_of(&present)?;
                halves.extend(present.is_half_updated().then(|| now.clone()));
                let named = Named { target: &now, was: Some(target).filter(|target| **target != now) };
                self.print(&mut out, named, listed.as_ref(), present, judged, show.json)?;
            }
        }
        half_updated(halves)
    }

    /// Prints everything listed. An error of one target or floor does not hide the others.
    fn all(&self, out: &mut dyn Write, guard: &Guard, json: bool) -> Result<(), Failure> {
        let (mut untold, mut halves): (Vec<Failure>, Vec<PathBuf>) = (Vec::new(), Vec::new());
        for known in guard.state().targets()? {
            let looked = known.and_then(|known| {
                let present = look(&known, guard.state())?;
                let judged = self.judged_of(&present)?;
                Ok((known, present, judged))
            });
            match looked {
                Err(error) => untold.push(error.into()),
                Ok((known, present, judged)) => {
                    let was = known.place.argument();
                    let target = known.place.now().map_or_else(|| was.clone(), |place| place.argument());
                    halves.extend(present.is_half_updated().then(|| target.clone()));
                    let named = Named { target: &target, was: Some(&was).filter(|was| **was != target) };
                    self.print(out, named, Some(&known), present, judged, json)?;
                }
            }
        }
        match guard.describe() {
            Ok(report) => floors(out, &report, json)?,
            Err(error) => untold.push(error.into()),
        }
        // A damaged floor causes the same error for each target of its name.
        let mut told = BTreeSet::new();
        untold.iter().filter(|failure| told.insert(failure.message())).for_each(|failure| failure.tell(json));
        untold.pop().map_or_else(|| half_updated(halves), |failure| Err(failure.told()))
    }

    fn judged_of(&self, present: &Present) -> Result<Option<(Judge, Option<String>)>, Error> {
        match present {
            Present::Holds(installed) => self.judged(installed).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the signers of an installed bundle, and why it is not trusted, if so.
    fn judged(&self, installed: &Installed) -> Result<(Judge, Option<String>), Error> {
        let judge = Judge::by(&self.trust.options())?;
        let refusal = match judge.judge_installed(&installed.head) {
            Err(error) if error.kind().is_none() => return Err(error),
            judged => judged.err().map(|error| error.to_string()),
        };
        Ok((judge, refusal))
    }

    fn print(
        &self,
        out: &mut dyn Write,
        named: Named<'_>,
        listed: Option<&KnownTarget>,
        present: Present,
        judged: Option<(Judge, Option<String>)>,
        json: bool,
    ) -> Result<(), Failure> {
        match (present, judged) {
            (Present::Holds(installed), Some(judged)) => self.print_installed(out, named, &installed, judged, json),
            (present, _) => Ok(print_missing(out, named.target, listed, &present, json)?),
        }
    }

    fn print_installed(
        &self,
        out: &mut dyn Write,
        Named { target, was }: Named<'_>,
        installed: &Installed,
        (judge, refusal): (Judge, Option<String>),
        json: bool,
    ) -> Result<(), Failure> {
        let identity = &installed.head.root().identity;
        let shown_target = escape::percent(target.as_os_str().as_bytes());
        let target = target.display().to_string();
        if json {
            let line = Line {
                target: &shown_target,
                was: was.map(|was| escape::percent(was.as_os_str().as_bytes())),
                name: &identity.name,
                version: identity.version,
                digests: Digests::of(&installed.head),
                created: identity.created,
                expires: identity.expires,
                taken: installed.taken,
                signers: judge.signers(),
                since: judge.since(),
                refusal,
                sealed: installed.is_sealed,
                lacks: installed.keeps.map(|keeps| keeps.lacks().map(Aspect::word).collect()),
                of_another: installed.of_another.is_some(),
                run: installed.run.map(LeftRun::word),
                next_version: installed.next.as_ref().map(|(_, version)| *version),
                gone_back_from: installed.gone_back_from,
            };
            return Ok(json_line(out, &line)?);
        }
        let (name, version) = (escape::text(&identity.name), identity.version);
        let mark = judge.mark();
        let is_slot = TargetKind::of(&target).0 == TargetKind::Slot;
        let target = escape::text(&target);
        match (installed.run, &installed.next) {
            (Some(LeftRun::Mixed), next) if is_slot => {
                let what =
                    next.as_ref().map_or_else(String::new, |(_, version)| format!(" version {version} of {name}"));
                writeln!(
                    out,
                    "{BOLD}{target}{BOLD:#}: {BAD}incomplete{BAD:#}{mark}: writing{what} was interrupted: repeat the command"
                )?;
            }
            (Some(LeftRun::Mixed), _) => {
                let half = format!("partly updated from {name} version {version}");
                writeln!(out, "{BOLD}{target}{BOLD:#}: {BAD}{half}{BAD:#}{mark}: unpack either bundle again")?;
            }
            (Some(LeftRun::HalfUpdated), next) => {
                let to = next.as_ref().map_or(String::new(), |(_, version)| format!(" to version {version}"));
                let half = format!("partly updated from {name} version {version}{to}");
                writeln!(out, "{BOLD}{target}{BOLD:#}: {BAD}{half}{BAD:#}{mark}: {TO_FINISH}  sealift clean {target}")?;
            }
            _ => writeln!(out, "{BOLD}{target}{BOLD:#}: {name} version {version}{mark}")?,
        }
        if let Some(was) = was {
            writeln!(out, "  was {} when it was written", escape::text(&was.display().to_string()))?;
        }
        writeln!(out, "  unpacked {}, made {}", Moment(installed.taken), Moment(identity.created))?;
        judge.print_signers(out)?;
        judge.print_since(out)?;
        self.print_rest(out, installed, refusal).map_err(Into::into)
    }

    fn print_rest(&self, out: &mut dyn Write, installed: &Installed, refusal: Option<String>) -> io::Result<()> {
        if let Some(refusal) = refusal {
            super::show::clauses(out, 2, &format!("{BAD}not trusted{BAD:#}: {}", escape::text(&refusal)))?;
        }
        if installed.is_sealed == Some(true) {
            writeln!(out, "  sealed: the kernel protects its files from changes")?;
        }
        let lacks = installed.keeps.map(|keeps| lacking(keeps.lacks()));
        if let Some(lacks) = lacks.filter(|lacks| !lacks.is_empty()) {
            writeln!(out, "  {DIM}unpacked without {lacks}{DIM:#}")?;
        }
        match &installed.of_another {
            None => {}
            Some(RecordFault::OfAnother) => {
                writeln!(out, "  {BAD}its install record belongs to another directory{BAD:#}")?;
            }
            Some(fault) => super::show::clauses(out, 2, &format!("{BAD}it {fault}{BAD:#}"))?,
        }
        if let Some(version) = installed.gone_back_from {
            writeln!(out, "  {BAD}it has gone back{BAD:#}: this device installed version {version} here")?;
        }
        match installed.run {
            Some(LeftRun::Running) => writeln!(out, "  {WARN}another sealift run is working on it{WARN:#}"),
            Some(LeftRun::Unfinished) => {
                writeln!(
                    out,
                    "  {WARN}a run was interrupted{WARN:#} before it changed anything: repeat the command to resume"
                )
            }
            Some(LeftRun::Hidden) => {
                writeln!(out, "  {WARN}another user's run is working on it, or was interrupted{WARN:#}")
            }
            Some(LeftRun::HalfUpdated | LeftRun::Mixed) | None => Ok(()),
        }
    }
}

/// How to end an update that was interrupted while it changed the target.
const TO_FINISH: &str = "repeat the update, or finish it with";

/// Fails if a target has files of two versions: there is none that it holds.
fn half_updated(mut targets: Vec<PathBuf>) -> Result<(), Failure> {
    targets.pop().map_or(Ok(()), |target| Err(Failure::from(Error::HalfUpdated { target }).told()))
}

fn print_unrecorded(out: &mut dyn Write, target: &Path, json: bool) -> io::Result<()> {
    if json {
        let target = &escape::percent(target.as_os_str().as_bytes());
        let (name, version, taken, signers, next_version) = (None, None, None, Vec::new(), None);
        return json_line(out, &MissingLine { target, name, version, taken, signers, missing: "other", next_version });
    }
    let target = escape::text(&target.display().to_string());
    writeln!(out, "{BOLD}{target}{BOLD:#}: {WARN}no install record{WARN:#}")
}

/// Prints why a target shows no bundle.
fn print_missing(
    out: &mut dyn Write,
    target: &Path,
    listed: Option<&KnownTarget>,
    present: &Present,
    json: bool,
) -> io::Result<()> {
    let (missing, what) = match (present, listed) {
        (Present::HalfUpdated(_), _) => ("half-updated", format!("partly updated: {TO_FINISH}")),
        (Present::Running, _) => ("running", "another sealift run is working on it".to_owned()),
        (Present::Unfinished, _) if TargetKind::of(target).0 != TargetKind::Directory => {
            ("unfinished", "incomplete: repeat the command".to_owned())
        }
        (Present::Unfinished, _) => {
            ("unfinished", "incomplete: repeat the command to resume, or discard it with".to_owned())
        }
        (Present::Other, None) => return print_unrecorded(out, target, json),
        (Present::Other, Some(_)) => {
            ("other", "no install record of this bundle; remove it from the list with".to_owned())
        }
        _ => ("gone", "gone; remove it from the list with".to_owned()),
    };
    let next = match present {
        Present::HalfUpdated(next) => next.as_ref(),
        _ => None,
    };
    let (shown_target, target) = (escape::percent(target.as_os_str().as_bytes()), target.display().to_string());
    let signers: Vec<String> = listed.iter().flat_map(|known| &known.keys).map(ToString::to_string).collect();
    if json {
        let (name, version) = listed.map_or((None, None), |known| (Some(&*known.name), Some(known.version)));
        let taken = listed.filter(|known| !known.is_begun).map(|known| known.taken);
        let next_version = next.map(|(_, version)| *version);
        return json_line(
            out,
            &MissingLine { target: &shown_target, name, version, taken, signers, missing, next_version },
        );
    }
    let target = escape::text(&target);
    let clean = if what.ends_with("with") { format!("  sealift clean {target}") } else { String::new() };
    writeln!(out, "{BOLD}{target}{BOLD:#}: {WARN}{what}{WARN:#}{clean}")?;
    if let Some((name, version)) = next {
        writeln!(out, "  the update brings {} version {version}", escape::text(name))?;
    }
    if let Some(KnownTarget { name, version, taken, is_begun, .. }) = listed {
        let what = if *is_begun { "begun" } else { "unpacked" };
        writeln!(out, "  {} version {version}, {what} {}", escape::text(name), Moment(*taken))?;
    }
    signers.iter().try_for_each(|key| writeln!(out, "  signed by {key}"))
}

fn floors(out: &mut dyn Write, report: &TrustReport, json: bool) -> io::Result<()> {
    for floor in &report.floors {
        if json {
            json_line(out, &FloorLine { name: &floor.name, version: floor.version })?;
            continue;
        }
        let version = floor.version.map_or("any version".into(), |version| format!("version {version} or newer"));
        writeln!(out, "{BOLD}{}{BOLD:#}: accepts {version}", escape::text(&floor.name))?;
    }
    if report.floors.is_empty() && !json {
        writeln!(out, "no bundles installed: {} is empty", escape::text(&report.state.display().to_string()))?;
    }
    Ok(())
}
