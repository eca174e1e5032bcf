//! `sealift status`: lists the installed targets.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use clap::Args;
use sealift::Error;
use sealift::status::{Installed, Present, composefs, directory, look, ostree};
use sealift::trust::{Guard, KnownTarget, TargetKind, TrustReport};
use serde::Serialize;

use super::escape;
use super::failure::Failure;
use super::show::{BAD, BOLD, DIM, Form, WARN, json_line};
use super::time::Moment;
use super::trust_args::{Judge, TrustArgs};

/// Show what is installed where, since when, and who signed it
///
/// Shows, for each TARGET, the bundle last installed of each name, from the install record; it does not read the tree, as audit does.
/// Without TARGET, shows every target that this device lists, and for each name the lowest version that it still accepts.
///
/// The list contains the directories, repositories and stores to which signed bundles were unpacked. It does not contain targets unpacked
/// with --allow-unsigned, or media written with --usb. `sealift clean TARGET` removes from the list a target that is gone.
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
    trust: TrustArgs,
    #[command(flatten)]
    form: Form,
}

#[derive(Serialize)]
struct Line<'a> {
    target: &'a str,
    name: &'a str,
    version: u64,
    created: i64,
    expires: Option<i64>,
    taken: i64,
    signers: Vec<String>,
    since: Vec<String>,
    refusal: Option<String>,
    sealed: Option<bool>,
    as_root: Option<bool>,
    of_another: bool,
}

/// A listed target that is missing or was replaced.
#[derive(Serialize)]
struct MissingLine<'a> {
    target: &'a str,
    name: &'a str,
    version: u64,
    taken: i64,
    signers: Vec<String>,
    missing: &'static str,
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
        if self.targets.is_empty() {
            return self.all(&mut out, show.json);
        }
        for target in &self.targets {
            let found = installed(target)?;
            if found.is_empty() && !show.json {
                let target = escape::text(&target.display().to_string());
                writeln!(out, "{BOLD}{target}{BOLD:#}: {WARN}no install record{WARN:#}")?;
            }
            for installed in &found {
                let judged = self.judged(installed)?;
                self.print(&mut out, target, installed, judged, show.json)?;
            }
        }
        Ok(())
    }

    /// Prints everything listed. An error of one target or floor does not hide the others.
    fn all(&self, out: &mut dyn Write, json: bool) -> Result<(), Failure> {
        let guard = Guard::load(&self.trust.options())?;
        let mut untold: Vec<Failure> = Vec::new();
        for known in guard.state().targets()? {
            let looked = known.and_then(|known| {
                let present = look(&known)?;
                let judged = match &present {
                    Present::Holds(installed) => Some(self.judged(installed)?),
                    _ => None,
                };
                Ok((known, present, judged))
            });
            match looked {
                Err(error) => untold.push(error.into()),
                Ok((known, Present::Holds(installed), Some(judged))) => {
                    self.print(out, &known.place.argument(), &installed, judged, json)?;
                }
                Ok((known, Present::Unfinished, _)) => print_missing(out, &known, "unfinished", json)?,
                Ok((known, Present::Other, _)) => print_missing(out, &known, "other", json)?,
                Ok((known, ..)) => print_missing(out, &known, "gone", json)?,
            }
        }
        match guard.describe() {
            Ok(report) => floors(out, &report, json)?,
            Err(error) => untold.push(error.into()),
        }
        // A damaged floor causes the same error for each target of its name.
        let mut told = BTreeSet::new();
        untold.iter().filter(|failure| told.insert(failure.message())).for_each(|failure| failure.tell(json));
        untold.pop().map_or(Ok(()), |failure| Err(failure.told()))
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
        target: &Path,
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
                name: &identity.name,
                version: identity.version,
                created: identity.created,
                expires: identity.expires,
                taken: installed.taken,
                signers: judge.signers(),
                since: judge.since(),
                refusal,
                sealed: installed.is_sealed,
                as_root: installed.as_root,
                of_another: installed.is_of_another,
            };
            return Ok(json_line(out, &line)?);
        }
        let (name, version) = (escape::text(&identity.name), identity.version);
        let mark = judge.mark();
        writeln!(out, "{BOLD}{}{BOLD:#}: {name} version {version}{mark}", escape::text(&target))?;
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
        if installed.as_root == Some(false) {
            writeln!(out, "  {DIM}unpacked without root{DIM:#}")?;
        }
        if installed.is_of_another {
            writeln!(out, "  {BAD}its install record belongs to another directory{BAD:#}")?;
        }
        Ok(())
    }
}

/// Returns the bundles installed in a target, the last of each name.
pub(crate) fn installed(target: &Path) -> Result<Vec<Installed>, Error> {
    match TargetKind::of(target) {
        (TargetKind::Ostree, repo) => ostree(repo),
        (TargetKind::Composefs, store) => composefs(store),
        (TargetKind::Directory, target) => Ok(directory(target)?.into_iter().collect()),
    }
}

/// Prints why a listed target is missing.
fn print_missing(out: &mut dyn Write, known: &KnownTarget, missing: &'static str, json: bool) -> io::Result<()> {
    let KnownTarget { name, version, taken, .. } = known;
    let argument = known.place.argument();
    let (shown_target, target) = (escape::percent(argument.as_os_str().as_bytes()), argument.display().to_string());
    let signers: Vec<String> = known.keys.iter().map(ToString::to_string).collect();
    if json {
        let line = MissingLine { target: &shown_target, name, version: *version, taken: *taken, signers, missing };
        return json_line(out, &line);
    }
    let (target, name) = (escape::text(&target), escape::text(name));
    let what = match missing {
        "unfinished" => "incomplete: repeat the command to resume, or discard it with",
        "other" => "no install record of this bundle; remove it from the list with",
        _ => "gone; remove it from the list with",
    };
    writeln!(out, "{BOLD}{target}{BOLD:#}: {WARN}{what}{WARN:#}  sealift clean {target}")?;
    writeln!(out, "  {name} version {version}, unpacked {}", Moment(*taken))?;
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
