//! `sealift request`: describes a target, so that a delta can be packed for it.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::Output;
use sealift::request::{RequestStats, request};
use sealift::trust::{DeviceState, TrustOptions};
use serde::Serialize;

use super::audit_words::gone_back_from;
use super::escape;
use super::failure::Failure;
use super::human::{Bytes, count};
use super::info::JsonBase;
use super::jobs_arg::JobsArg;
use super::output;
use super::progress_args::ProgressArgs;
use super::renamed::found_again;
use super::show::{BOLD, Show};

/// Describe a target, so that a publisher can pack a delta for it
///
/// The request holds names, metadata and the first bytes of each file's hash, but no content. Carry it to the publisher: pack --for REQUEST
/// makes a delta of what the target lacks, without knowing its history. Request uses the install record of TARGET; without one, or with that
/// of another directory, it reads all of TARGET.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift request /srv/os -o os.request
  sealift pack /srv/os-8 --for os.request -o os.sealift --bundle-version 8
  sealift unpack os.sealift /srv/os")]
pub(crate) struct Request {
    /// The target to describe: a directory, or ostree:REPO:REF, a commit of a repository
    #[arg(value_name = "TARGET", value_hint = ValueHint::DirPath)]
    target: OsString,
    /// The request to write; - writes it to standard output
    #[arg(long, short, value_name = "REQUEST")]
    output: PathBuf,
    /// Replace the request if it exists
    #[arg(long)]
    force: bool,
    /// Directory with the list of targets
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    state: Option<PathBuf>,
    #[command(flatten)]
    jobs: JobsArg,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Request {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let output = output::of(&self.output, self.force)?;
        output::warn_of_signed(&output, "a request", self.show);
        // Without a state directory there is no list of targets.
        let state =
            DeviceState::of_this_process(&TrustOptions { state: self.state.clone(), ..TrustOptions::default() });
        let state = state.ok();
        let target = match &state {
            Some(state) => found_again(Path::new(&self.target), state, self.show)?.into_os_string(),
            None => self.target.clone(),
        };
        let stats = self.progress.watch(self.show, "Listing", |progress| {
            request(&target, &output, state.as_ref(), self.jobs.count(), progress)
        })?;
        if let Some(version) = stats.gone_back_from {
            self.show.warn(&format!("{}: {}", self.target.display(), gone_back_from(version)));
        }
        Ok(self.print(&stats, output == Output::Stdout)?)
    }

    fn print(&self, stats: &RequestStats, stdout_taken: bool) -> std::io::Result<()> {
        let mut out = self.show.summary(stdout_taken);
        if self.show.is_told(&mut out, &JsonRequest::new(stats))? {
            return Ok(());
        }
        let request = escape::text(&self.output.display().to_string());
        let target = escape::text(&self.target.display().to_string());
        writeln!(out, "{BOLD}{request}{BOLD:#}: {target} holds {}", stats.base)?;
        let (entries, objects) = (count(stats.entries, "entry"), count(stats.objects, "object"));
        writeln!(out, "  {entries}, {objects} in {}", Bytes(stats.file_bytes))?;
        writeln!(out, "  pack a delta for it with  sealift pack SOURCE --for {request} -o BUNDLE")
    }
}

#[derive(Serialize)]
struct JsonRequest<'a> {
    #[serde(flatten)]
    base: JsonBase<'a>,
    entries: u64,
    objects: u64,
    file_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gone_back_from: Option<u64>,
}

impl<'a> JsonRequest<'a> {
    fn new(stats: &'a RequestStats) -> Self {
        Self {
            base: JsonBase::of(&stats.base),
            entries: stats.entries,
            objects: stats.objects,
            file_bytes: stats.file_bytes,
            gone_back_from: stats.gone_back_from,
        }
    }
}
