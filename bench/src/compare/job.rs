//! Runs a command line under the clock: its time, CPU and memory, over all of its processes.

use std::fmt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::de::DeserializeOwned;
use serde_json::Value;
use wait4::{ResUse, Wait4};
use xtask::shell::output;

use super::places::Places;

/// A line such as `zstd -dc FILE | tar -xf - && sync`, with its words resolved. No shell runs between the clock and the programs.
pub(crate) struct Job {
    text: String,
    /// The stages of a sequence, which run one after the other.
    pipelines: Vec<Pipeline>,
}

/// Stages that run in parallel, each a program with its arguments.
type Pipeline = Vec<Vec<String>>;

/// The costs of a run.
#[derive(Clone, Copy, Default)]
pub(crate) struct Usage {
    pub(crate) wall: Duration,
    pub(crate) user: Duration,
    pub(crate) system: Duration,
    /// Peak memory: the sum of the peaks of a pipeline's processes, and the largest such sum of a sequence.
    pub(crate) peak_bytes: u64,
}

impl Usage {
    pub(crate) fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// Runs command lines one after the other.
pub(super) fn run_all(lines: &[&str], places: &Places) -> Result<()> {
    lines.iter().try_for_each(|line| Job::new(line, places).run().map(drop))
}

/// Returns a number of what a command printed as JSON.
pub(super) fn number(summary: &Value, key: &str) -> Result<u64> {
    summary[key].as_u64().with_context(|| format!("no {key} in {summary}"))
}

/// Returns the run of median wall time.
pub(crate) fn median(usages: &[Usage]) -> Usage {
    let mut sorted = usages.to_vec();
    sorted.sort_unstable_by_key(|usage| usage.wall);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or_default()
}

impl Job {
    pub(crate) fn new(line: &str, places: &Places) -> Self {
        let stage = |text: &str| text.split_whitespace().map(|word| places.resolve(word)).collect();
        let pipeline = |text: &str| text.split(" | ").map(stage).collect();
        Self { text: line.to_owned(), pipelines: line.split(" && ").map(pipeline).collect() }
    }

    /// Runs it, and discards its standard output.
    ///
    /// # Errors
    ///
    /// Returns an error if a program cannot be started or fails.
    pub(crate) fn run(&self) -> Result<Usage> {
        let mut usage = Usage::default();
        let start = Instant::now();
        for pipeline in &self.pipelines {
            let ended = run_pipeline(pipeline).with_context(|| format!("cannot run {self}"))?;
            for ResUse { status, rusage } in &ended {
                ensure!(status.success(), "{self} ended with {status}");
                usage.user += rusage.utime;
                usage.system += rusage.stime;
            }
            let held = ended.iter().map(|end| end.rusage.maxrss).sum();
            usage.peak_bytes = usage.peak_bytes.max(held);
        }
        usage.wall = start.elapsed();
        Ok(usage)
    }

    /// Runs it, and returns its output.
    ///
    /// # Errors
    ///
    /// Returns an error as [`Job::run`] does, and also for a pipeline, which has no single output.
    pub(crate) fn output(&self) -> Result<String> {
        output(&mut self.command()?)
    }

    /// Runs it, and parses its output.
    pub(super) fn json<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_str(&self.output()?).with_context(|| format!("{self} prints no such JSON"))
    }

    /// Runs a comparison, which must print nothing; `what` made the tree that is compared.
    pub(super) fn finds_nothing(&self, what: &str) -> Result<()> {
        let differences = self.output()?;
        let first: Vec<_> = differences.lines().take(10).collect();
        ensure!(first.is_empty(), "{what} gave another tree:\n{}", first.join("\n"));
        Ok(())
    }

    /// Returns its only command.
    pub(super) fn command(&self) -> Result<Command> {
        let [pipeline] = self.pipelines.as_slice() else { bail!("{self} is several commands") };
        let [stage] = pipeline.as_slice() else { bail!("{self} is a pipeline") };
        Ok(command(stage))
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.text)
    }
}

fn run_pipeline(stages: &[Vec<String>]) -> Result<Vec<ResUse>> {
    let mut children: Vec<Child> = Vec::new();
    for (index, stage) in stages.iter().enumerate() {
        let mut command = command(stage);
        // The command, and with it our end of the pipe, is dropped in each iteration: otherwise a writer would never notice that its reader died.
        command.stdin(children.last_mut().and_then(|child| child.stdout.take()).map_or_else(Stdio::null, Stdio::from));
        command.stdout(if index + 1 < stages.len() { Stdio::piped() } else { Stdio::null() });
        children.push(command.spawn().with_context(|| format!("cannot start {}", stage.join(" ")))?);
    }
    children.into_iter().map(|child| child.wait4().context("cannot wait")).collect()
}

fn command(stage: &[String]) -> Command {
    let (program, args) = stage.split_first().expect("a table's line has words");
    let mut command = Command::new(program);
    command.args(args);
    command
}
