//! `sealift join`: the full bundle, of a delta and its base.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use sealift::Input;
use sealift::join::{JoinOptions, JoinStats};
use sealift::pack::Output;
use serde::Serialize;

use super::bundle::jobs;
use super::escape;
use super::failure::{About as _, Failure};
use super::human::{self, Bytes, count};
use super::json_file::hex;
use super::limits::limits;
use super::output;
use super::pace::Pace;
use super::show::{BOLD, Show, json_line};
use super::trust_args::{Judge, TrustArgs};

/// Rebuild the full bundle from a delta and its base
///
/// For a mirror that fetches deltas and serves full bundles: the result is the publisher's file, byte for byte, with its signatures. The
/// delta must have been packed with --full and must be trusted; it vouches for the base and the result. Join copies chunks that the base
/// has and compresses the others again. Another version of sealift may compress them differently: join detects that and writes nothing.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift join os-8.sealift os-8-to-9.sealift -o os-9.sealift --trust /etc/sealift/allowed_signers
  sealift join os-8.sealift apps-3.sealift all.sealift -o os-9.sealift
  sealift info os-8-to-9.sealift")]
pub(crate) struct Join {
    /// The full bundle of the delta's base; if it has several, one for each
    #[arg(value_name = "BASE", required = true)]
    bases: Vec<PathBuf>,
    /// The delta bundle
    #[arg(value_name = "DELTA", required = true)]
    delta: PathBuf,
    /// The full bundle to write; - writes it to standard output
    #[arg(long, short, value_name = "BUNDLE")]
    output: PathBuf,
    /// Replace the bundle if it exists
    #[arg(long)]
    force: bool,
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

impl Join {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let start = Instant::now();
        let judge = self.trust.load()?;
        let output = output::of(&self.output, self.force)?;
        let bases = self.bases.iter().map(|base| Input::open(base)).collect::<Result<Vec<_>, _>>()?;
        let delta = Input::open(&self.delta)?;
        let options = JoinOptions { limits: limits(), jobs: jobs(self.jobs.map(usize::from)) };
        let stats = self.pace.watch(self.show, "Opening", |progress| {
            let delta = judge.admit(delta).about(&self.delta)?;
            Ok::<_, Failure>(sealift::join::join(bases, delta, &output, &options, progress)?)
        })?;
        judge.warn(self.show);
        Ok(self.print(&stats, &judge, output == Output::Stdout, start.elapsed())?)
    }

    fn print(&self, stats: &JoinStats, judge: &Judge, stdout_taken: bool, elapsed: Duration) -> std::io::Result<()> {
        let mut out = self.show.summary(stdout_taken);
        let identity = &stats.root.identity;
        if self.show.json {
            return json_line(
                &mut out,
                &Summary {
                    name: &identity.name,
                    version: identity.version,
                    signers: judge.signers(),
                    index_digest: hex(&stats.root.contents.index_digest),
                    file_bytes: stats.file_bytes,
                    copied_chunks: stats.copied_chunks,
                    copied_bytes: stats.copied_bytes,
                    encoded_chunks: stats.encoded_chunks,
                    encoded_bytes: stats.encoded_bytes,
                    seconds: human::seconds(elapsed),
                },
            );
        }
        if self.show.quiet {
            return Ok(());
        }
        let bundle = escape::text(&self.output.display().to_string());
        let (name, version, mark) = (&identity.name, identity.version, judge.mark());
        writeln!(out, "{BOLD}{bundle}{BOLD:#}: rebuilt, identical to the publisher's {name} version {version}{mark}")?;
        judge.print_signers(&mut out)?;
        writeln!(
            out,
            "  {} copied, {} compressed again: {} in {}",
            count(stats.copied_chunks, "chunk"),
            stats.encoded_chunks,
            Bytes(stats.file_bytes),
            human::duration(elapsed),
        )
    }
}

#[derive(Serialize)]
struct Summary<'a> {
    name: &'a str,
    version: u64,
    signers: Vec<String>,
    index_digest: String,
    file_bytes: u64,
    copied_chunks: u64,
    copied_bytes: u64,
    encoded_chunks: u64,
    encoded_bytes: u64,
    seconds: f64,
}
