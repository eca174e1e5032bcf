//! Killed at any moment: the output is old or whole, and the same command makes it whole and leaves nothing.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::findings::Findings;
use super::ground::{Ground, difference, names};
use super::snapshot::Snapshot;
use super::trees;
use super::trial::Trial;
use crate::random::Random;

struct Case {
    name: &'static str,
    line: &'static str,
    /// What `work` is before.
    start: &'static str,
    output: Output,
    from_pipe: bool,
    /// How many runs are killed and run again.
    kills: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    /// `work/out/b.sealift`
    Bundle,
    /// `work/out/target`
    Tree,
}

const UNPACK: &str = "sealift unpack new.sealift work/out/target TRUST --quiet";
const UNPACK_PIPE: &str = "sealift unpack - work/out/target TRUST --quiet";
const UPDATE: &str = "sealift unpack new.sealift work/out/target --update --delete TRUST --quiet";
const UPDATE_PIPE: &str = "sealift unpack - work/out/target --update --delete TRUST --quiet";
const PACK: &str = "sealift pack --force new -o work/out/b.sealift --name os --bundle-version 2 --key key --quiet";

use Output::{Bundle, Tree};

#[rustfmt::skip] // a table
const CASES: [Case; 6] = [
    Case { name: "pack",                    line: PACK,        start: "start-empty",  output: Bundle, from_pipe: false, kills: 200 },
    Case { name: "pack over an old bundle", line: PACK,        start: "start-bundle", output: Bundle, from_pipe: false, kills: 50 },
    Case { name: "unpack",                  line: UNPACK,      start: "start-empty",  output: Tree,   from_pipe: false, kills: 200 },
    Case { name: "unpack from a pipe",      line: UNPACK_PIPE, start: "start-empty",  output: Tree,   from_pipe: true,  kills: 50 },
    Case { name: "update",                  line: UPDATE,      start: "start-tree",   output: Tree,   from_pipe: false, kills: 200 },
    Case { name: "update from a pipe",      line: UPDATE_PIPE, start: "start-tree",   output: Tree,   from_pipe: true,  kills: 50 },
];

/// Each so manieth run is given up by `clean` after it was killed, and the others are run again.
const CLEANED: u32 = 4;

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("kills")?;
    let mut random = Random::new()?;
    let known = prepare(&ground)?;
    let mut findings = Findings::default();
    for case in &CASES {
        kill_often(&ground, &Killed { case, known: &known }, case.kills, &mut random, &mut findings)?;
    }
    findings.finish()?;
    ground.remove()
}

/// What there was before and what there is to be.
struct Known {
    old: Snapshot,
    new: Snapshot,
    old_bundle: Vec<u8>,
    new_bundle: Vec<u8>,
}

fn prepare(ground: &Ground) -> Result<Known> {
    trees::real(&ground.path("old"), &mut Random::fixed())?;
    ground.copy("old", "new")?;
    trees::change(&ground.path("new"), &mut Random::fixed())?;
    for (tree, version) in [("old", 1), ("new", 2)] {
        ground.run(&format!(
            "sealift pack --force {tree} -o {tree}.sealift --name os --bundle-version {version} --key key --quiet"
        ))?;
    }
    for start in ["start-empty", "start-bundle", "start-tree"] {
        fs::create_dir_all(ground.path(start).join("out"))?;
        fs::create_dir(ground.path(start).join("state"))?;
    }
    fs::copy(ground.path("old.sealift"), ground.path("start-bundle/out/b.sealift"))?;
    ground.run("sealift unpack old.sealift start-tree/out/target --trust signers --state start-tree/state --quiet")?;
    Ok(Known {
        old: Snapshot::take(&ground.path("old"))?,
        new: Snapshot::take(&ground.path("new"))?,
        old_bundle: fs::read(ground.path("old.sealift"))?,
        new_bundle: fs::read(ground.path("new.sealift"))?,
    })
}

/// Kills a command at random moments, until so many runs were killed and run again.
pub(crate) fn kill_often(
    ground: &Ground,
    trial: &dyn Trial,
    kills: u32,
    random: &mut Random,
    findings: &mut Findings,
) -> Result<()> {
    let duration = measure(ground, trial)?;
    let (mut again, mut cleaned, mut late, mut number) = (0, 0, 0, 0);
    while again < kills {
        number += 1;
        ensure!(number <= 10 * kills, "{}: most runs end before they are killed", trial.name());
        let (moment, cleans) = (random.moment(duration), trial.can_clean() && number % CLEANED == 0);
        let before = findings.count();
        match kill_once(ground, trial, moment, cleans, findings)? {
            false => late += 1,
            true if cleans => cleaned += 1,
            true => again += 1,
        }
        if findings.count() > before {
            // For a look at it afterwards.
            ground.copy("work", &format!("kept-{before}"))?;
        }
    }
    let seconds = duration.as_secs_f64();
    println!(
        "   {}: killed within {seconds:.2} s and run again: {again}; and cleaned: {cleaned}; ended before: {late}",
        trial.name()
    );
    Ok(())
}

/// Returns how long a run takes that nobody disturbs.
fn measure(ground: &Ground, trial: &dyn Trial) -> Result<Duration> {
    let mut durations = Vec::new();
    for _ in 0..3 {
        ground.begin(trial.start())?;
        let start = Instant::now();
        let mut child = Running::start(ground, trial.line(), trial.is_from_pipe())?;
        ensure!(child.sealift.wait()?.success(), "{} fails undisturbed", trial.line());
        durations.push(start.elapsed());
    }
    durations.sort();
    Ok(durations[1])
}

/// Kills one run, and goes on from there. Returns whether it was still running.
fn kill_once(
    ground: &Ground,
    trial: &dyn Trial,
    moment: Duration,
    cleans: bool,
    findings: &mut Findings,
) -> Result<bool> {
    ground.begin(trial.start())?;
    let mut child = Running::start(ground, trial.line(), trial.is_from_pipe())?;
    std::thread::sleep(moment);
    child.sealift.kill()?;
    let hit = child.sealift.wait()?.signal().is_some();
    drop(child);
    let label = format!("{}, killed after {moment:?}", trial.name());
    if let Some(problem) = trial.not_whole(ground, !hit)? {
        findings.add(&format!("{label}: {problem}"))?;
    }
    if let Some(problem) = trial.after(ground, cleans)? {
        let then = if cleans { "cleaned" } else { "run again" };
        findings.add(&format!("{label}, {then}: {problem}"))?;
    }
    Ok(hit)
}

struct Killed<'a> {
    case: &'a Case,
    known: &'a Known,
}

impl Trial for Killed<'_> {
    fn name(&self) -> &str {
        self.case.name
    }

    fn line(&self) -> &str {
        self.case.line
    }

    fn start(&self) -> &str {
        self.case.start
    }

    fn is_from_pipe(&self) -> bool {
        self.case.from_pipe
    }

    fn not_whole(&self, ground: &Ground, _ended_well: bool) -> Result<Option<String>> {
        right_after(self.case, &ground.path("work/out"), self.known)
    }

    fn after(&self, ground: &Ground, cleans: bool) -> Result<Option<String>> {
        let case = self.case;
        let line = match (cleans, case.output) {
            (true, Bundle) => "sealift clean work/out/b.sealift --quiet",
            (true, Tree) => "sealift clean work/out/target --quiet",
            (false, _) => case.line,
        };
        let (is_done, said) = Running::start(ground, line, case.from_pipe && !cleans)?.output()?;
        if is_done { at_the_end(ground, case, cleans, self.known) } else { Ok(Some(format!("it fails: {said}"))) }
    }
}

fn right_after(case: &Case, out: &Path, known: &Known) -> Result<Option<String>> {
    let target = out.join("target");
    Ok(match case.output {
        Bundle => {
            let is_known = match fs::read(out.join("b.sealift")) {
                Ok(bytes) => bytes == known.new_bundle || (case.start == "start-bundle" && bytes == known.old_bundle),
                Err(_) => case.start == "start-empty",
            };
            (!is_known).then(|| "the bundle is neither old nor new".to_owned())
        }
        Tree if case.start == "start-tree" => Snapshot::take(&target)?.neither(&known.old, &known.new),
        Tree if target.exists() => {
            let found = Snapshot::take(&target)?.first_difference(&known.new);
            found.map(|path| format!("the target is there, and not whole: {}", path.display()))
        }
        Tree => None,
    })
}

/// What is not as it is to be after the end. After `clean` the old is as good as the new.
fn at_the_end(ground: &Ground, case: &Case, cleaned: bool, known: &Known) -> Result<Option<String>> {
    let out = ground.path("work/out");
    if let Some(problem) = right_after(case, &out, known)? {
        return Ok(Some(problem));
    }
    let left = names(&out)?;
    let wanted: &[&str] = match case.output {
        Bundle => &["b.sealift"],
        Tree => &[".target.sealift-state", "target"],
    };
    if left != wanted && !(cleaned && case.start == "start-empty" && left.is_empty()) {
        return Ok(Some(format!("in its folder is {}", left.join(" "))));
    }
    for (folder, wanted) in [("work", &["out", "state"][..]), ("tmp", &[])] {
        let left = names(&ground.path(folder))?;
        if left != wanted {
            return Ok(Some(format!("in {folder} is {}", left.join(" "))));
        }
    }
    let target = out.join("target");
    Ok(match case.output {
        Bundle => {
            let bytes = fs::read(out.join("b.sealift")).unwrap_or_default();
            (!cleaned && bytes != known.new_bundle).then(|| "the bundle has other bytes".to_owned())
        }
        Tree if !target.exists() => None,
        Tree => {
            let new = difference(&ground.path("new"), &target)?;
            let old = if cleaned { difference(&ground.path("old"), &target)? } else { new.clone() };
            new.and(old).map(|found| format!("the target differs: {found}"))
        }
    })
}

/// Our program, and what feeds it.
struct Running {
    sealift: Child,
    feeder: Option<Child>,
}

impl Running {
    fn start(ground: &Ground, line: &str, from_pipe: bool) -> Result<Self> {
        let mut command = ground.command(line);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut feeder = None;
        if from_pipe {
            let mut cat: Command = ground.command("cat new.sealift");
            let mut cat = cat.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().context("cannot start cat")?;
            command.stdin(cat.stdout.take().context("it is piped")?);
            feeder = Some(cat);
        }
        let sealift = command.spawn().context("cannot start sealift")?;
        // Our ends of the pipes go with the command.
        Ok(Self { sealift, feeder })
    }

    /// Returns whether it ended well, and what it said.
    fn output(mut self) -> Result<(bool, String)> {
        let mut said = String::new();
        if let Some(mut stderr) = self.sealift.stderr.take() {
            std::io::Read::read_to_string(&mut stderr, &mut said)?;
        }
        Ok((self.sealift.wait()?.success(), said.trim().to_owned()))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(feeder) = &mut self.feeder {
            // It ends by itself once nobody reads; this only takes its leave.
            let _ = feeder.kill();
            let _ = feeder.wait();
        }
    }
}
