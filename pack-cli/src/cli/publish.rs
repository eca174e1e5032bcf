//! `sealift publish`: publishes bundles in a channel.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::pack::PackOptions;
use sealift::publish::{
    DeltaPlan, Made, Missing, PublishError, PublishOptions, PublishStats, VersionRule, make_planned, plan, publish,
};
use sealift::trust::{Guard, TrustOptions};
use serde::Serialize;

use super::failure::{About as _, Failure};
use super::human::count;
use super::jobs_arg::JobsArg;
use super::limits::limits;
use super::progress_args::ProgressArgs;
use super::show::{BOLD, Show, json_line};
use super::time::Moment;
use super::{escape, keys};
use sealift_format::num;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Publish bundles in a channel: a directory with one signed list
///
/// Copies the bundles into DIR, which any web server or stick carries, and replaces its list last. Devices then take the cheapest way to the newest
/// version: `sealift unpack DIR TARGET`. A run that was killed, or is repeated, never shows anything half-done. What is there already stays. Without
/// a BUNDLE, the list is signed again, so that it does not expire.
///
/// RULE is PERIOD:NUMBER, separated by commas: last:7 names the last seven versions, and daily:, weekly:, monthly: and yearly: name the last version
/// of each of so many such periods, by the time at which the bundles were made.
///
/// Deltas can be made by several processes, or on several machines that share DIR: --plan prints a command for each, and --commit lists what they
/// made.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift publish os-7.sealift /srv/www/os --key ~/.ssh/id_ed25519
  sealift publish os-8.sealift /srv/www/os --key release \\
      --deltas last:7,weekly:8 --keep last:14,monthly:12
  sealift publish /srv/www/os --key release       # before the list expires
  sealift publish os-9.sealift /srv/www/os --deltas last:60 --plan > plan
  jq -r '.argv | @sh' plan | parallel
  sealift publish /srv/www/os --key release --commit")]
pub(crate) struct Publish {
    /// Bundles, full ones or deltas, and last the directory of the channel
    #[arg(value_name = "PATH", required = true, value_hint = ValueHint::AnyPath)]
    paths: Vec<PathBuf>,
    /// Sign the list, and deltas that are made, with this OpenSSH key, as for `sealift sign`
    #[arg(long, value_name = "KEY", required_unless_present_any = ["plan", "make"])]
    key: Vec<PathBuf>,
    /// Read the passphrase of the keys from the first line of this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "key")]
    passphrase_file: Option<PathBuf>,
    /// Make deltas to the newest version from the versions that this rule names, where they are smaller
    #[arg(long, value_name = "RULE")]
    deltas: Option<VersionRule>,
    /// Make no delta: copy the bundles into DIR, list nothing yet, and print for each delta a command that makes it, as a line of JSON
    ///
    /// The commands are independent of each other, need no key, and can be run again, at the same time, and on other machines that have DIR under
    /// the same path. What they make appears in DIR when it is complete.
    #[arg(long, requires = "deltas", conflicts_with_all = ["commit", "make", "keep", "key"], help_heading = "Plans")]
    plan: bool,
    /// List what was planned and has come: checks the bundles and deltas, signs deltas, and says which are missing
    #[arg(long, conflicts_with_all = ["deltas", "make"], help_heading = "Plans")]
    commit: bool,
    /// Make this delta of the plan, as the commands of --plan do
    #[arg(long, value_name = "FILE", conflicts_with_all = ["deltas", "keep", "key"], help_heading = "Plans")]
    make: Option<String>,
    /// Remove what this rule does not name; the newest version and deltas between those that stay are kept
    #[arg(long, value_name = "RULE")]
    keep: Option<VersionRule>,
    /// For how many days devices accept the list
    #[arg(long, value_name = "DAYS", default_value = "30", value_parser = clap::value_parser!(u16).range(1..))]
    expires_in: u16,
    /// zstd compression level of deltas, 1 to 22
    #[arg(long, value_name = "N", default_value_t = PackOptions::LEVEL, value_parser = clap::value_parser!(i32).range(1..=22))]
    level: i32,
    #[command(flatten)]
    jobs: JobsArg,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Publish {
    pub(crate) fn run(mut self) -> Result<(), Failure> {
        let Some(directory) = self.paths.pop() else { return Err(Failure::usage("give the directory of the channel")) };
        // Not SOURCE_DATE_EPOCH: a list that is as old as its sources might have expired.
        let now = Moment::now().0;
        let keys = keys::open(&self.key, self.passphrase_file.as_deref())?;
        // The list vouches for the bases of deltas; this machine need not trust them.
        let guard = Guard::load(&TrustOptions { allow_unsigned: true, ..TrustOptions::default() })?;
        let options = PublishOptions {
            keys: &keys,
            now,
            lifetime: i64::from(self.expires_in) * DAY,
            deltas: self.deltas.take(),
            commit: self.commit,
            keep: self.keep.take(),
            level: self.level,
            guard: &guard,
            limits: limits(),
            jobs: self.jobs.count(),
        };
        if let Some(file) = &self.make {
            if !self.paths.is_empty() {
                return Err(Failure::usage(
                    "--make makes a delta that was planned: give no bundle, only the directory",
                ));
            }
            let made = self
                .progress
                .watch(self.show, "Opening", |progress| make_planned(file, &directory, &options, progress))?;
            return Ok(self.print_made(&directory.join(file), made)?);
        }
        if self.plan {
            let planned =
                self.progress.watch(self.show, "Opening", |progress| plan(&self.paths, &directory, &options, progress));
            return Ok(self.print_plan(&directory, &about_bundle(planned)?)?);
        }
        let published =
            self.progress.watch(self.show, "Opening", |progress| publish(&self.paths, &directory, &options, progress));
        Ok(self.print(&directory, &about_bundle(published)?)?)
    }

    /// Prints the plan: commands, one a line.
    fn print_plan(&self, directory: &Path, plan: &DeltaPlan) -> std::io::Result<()> {
        let mut out = self.show.out();
        let place = directory.display().to_string();
        for (file, from, to) in &plan.deltas {
            let mut argv = vec!["sealift".into(), "publish".into(), place.clone(), "--make".into(), file.clone()];
            argv.extend(["--level".into(), self.level.to_string()]);
            argv.extend(self.jobs.given().into_iter().flat_map(|jobs| ["--jobs".into(), jobs.to_string()]));
            let [from, to] = [from, to].map(|path| path.display().to_string());
            let output = directory.join(file).display().to_string();
            json_line(&mut out, &JsonDelta { argv, inputs: [from, to], output })?;
        }
        for file in &plan.commits {
            self.show
                .warn(&format!("{file} has OSTree commits: pack deltas to it from the repository, and publish them"));
        }
        let deltas = count(num::wide(plan.deltas.len()), "delta");
        self.show.note(&format!("{deltas} to be made; then list them: sealift publish {place} --key KEY --commit"));
        Ok(())
    }

    /// Prints what became of a delta of a plan.
    fn print_made(&self, path: &Path, made: Made) -> std::io::Result<()> {
        let mut out = self.show.out();
        let (path, unchanged) = (path.display().to_string(), made == Made::Unchanged);
        if self.show.is_told(&mut out, &JsonMade { output: &path, unchanged })? {
            return Ok(());
        }
        let verb = if unchanged { "unchanged" } else { "made" };
        writeln!(out, "{BOLD}{}{BOLD:#}: {verb}", escape::text(&path))
    }

    fn print(&self, directory: &Path, stats: &PublishStats) -> std::io::Result<()> {
        let mut out = self.show.out();
        let list = stats.list.list();
        let version = list.files.iter().map(|row| row.version).max().unwrap_or(0);
        let line = JsonPublished {
            name: &list.name,
            version,
            sequence: list.sequence,
            expires: Moment(list.expires).to_string(),
            unchanged: !stats.is_changed,
            files: list.files.len(),
            bytes: list.files.iter().map(|row| row.len).sum(),
            added: &stats.added,
            deltas: &stats.deltas,
            not_smaller: &stats.not_smaller,
            commits: &stats.commits,
            missing: stats.missing.iter().map(JsonMissing::of).collect(),
            removed: &stats.removed,
        };
        if self.show.is_told(&mut out, &line)? {
            return Ok(());
        }
        let place = escape::text(&directory.display().to_string());
        let verb = if stats.is_changed { "published" } else { "unchanged" };
        writeln!(out, "{BOLD}{place}{BOLD:#}: {verb}, {} up to version {version}", list.name)?;
        for (word, files, why) in [
            ("added", &stats.added, ""),
            ("delta", &stats.deltas, ""),
            ("removed", &stats.removed, ""),
            ("no delta", &stats.not_smaller, " would not be smaller than the full bundle"),
            (
                "no delta",
                &stats.commits,
                " has OSTree commits: pack deltas to it from the repository, and publish them",
            ),
        ] {
            for file in files {
                writeln!(out, "  {word:<8} {file}{why}")?;
            }
        }
        for Missing { file, error } in &stats.missing {
            let why = error.as_ref().map_or_else(|| "it is not there".to_owned(), ToString::to_string);
            writeln!(out, "  {:<8} {file}: {}", "missing", escape::text(&why))?;
        }
        let files = count(num::wide(list.files.len()), "file");
        writeln!(out, "  {files}; the list expires at {}", Moment(list.expires))
    }
}

/// Adds the bundle at fault to a failure.
fn about_bundle<T>(done: Result<T, PublishError>) -> Result<T, Failure> {
    match done {
        Err(PublishError { bundle: Some(bundle), error }) => Err(error).about(&bundle),
        done => done.map_err(|failed| failed.error.into()),
    }
}

#[derive(Serialize)]
struct JsonPublished<'a> {
    name: &'a str,
    version: u64,
    sequence: u64,
    expires: String,
    unchanged: bool,
    files: usize,
    bytes: u64,
    added: &'a [String],
    deltas: &'a [String],
    not_smaller: &'a [String],
    commits: &'a [String],
    missing: Vec<JsonMissing<'a>>,
    removed: &'a [String],
}

/// A command that makes a delta.
#[derive(Serialize)]
struct JsonDelta {
    argv: Vec<String>,
    inputs: [String; 2],
    output: String,
}

#[derive(Serialize)]
struct JsonMade<'a> {
    output: &'a str,
    unchanged: bool,
}

/// What was planned, and was not listed.
#[derive(Serialize)]
struct JsonMissing<'a> {
    file: &'a str,
    /// `null` if it is not there.
    message: Option<String>,
}

impl<'a> JsonMissing<'a> {
    fn of(missing: &'a Missing) -> Self {
        Self { file: &missing.file, message: missing.error.as_ref().map(ToString::to_string) }
    }
}
