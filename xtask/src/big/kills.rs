//! Killed at any moment: the output is old or whole, and the same command makes it whole and leaves nothing.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::findings::Findings;
use super::ground::{Ground, difference, names};
use super::random::Random;
use super::snapshot::Snapshot;
use super::trees;

struct Case {
    name: &'static str,
    line: &'static str,
    /// What `work` is before.
    start: &'static str,
    output: Output,
    from_pipe: bool,
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
const PACK: &str = "sealift pack new -o work/out/b.sealift --name os --bundle-version 2 --key key --quiet";

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

/// Each so manieth killed run is given up by `clean`, and the others are run again.
const CLEANED: u32 = 4;

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("kills")?;
    let mut random = Random::new()?;
    let known = prepare(&ground)?;
    let mut findings = Findings::default();
    for case in &CASES {
        let duration = measure(&ground, case)?;
        let mut hit = 0;
        for number in 1..=case.kills {
            let moment = random.moment(duration);
            let before = findings.count();
            hit += u32::from(kill_once(&ground, case, moment, number % CLEANED == 0, &known, &mut findings)?);
            if findings.count() > before {
                // For a look at it afterwards.
                ground.copy("work", &format!("kept-{before}"))?;
            }
        }
        println!("   {}: {hit} of {} runs killed within {:.2} s", case.name, case.kills, duration.as_secs_f64());
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
            "sealift pack {tree} -o {tree}.sealift --name os --bundle-version {version} --key key --quiet"
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

/// Returns how long a run takes that nobody disturbs.
fn measure(ground: &Ground, case: &Case) -> Result<Duration> {
    let mut durations = Vec::new();
    for _ in 0..3 {
        ground.copy(case.start, "work")?;
        let start = Instant::now();
        let mut child = Running::start(ground, case.line, case.from_pipe)?;
        ensure!(child.sealift.wait()?.success(), "{} fails undisturbed", case.line);
        durations.push(start.elapsed());
    }
    durations.sort();
    Ok(durations[1])
}

/// Kills one run, and goes on from there. Returns whether it was still running.
fn kill_once(
    ground: &Ground,
    case: &Case,
    moment: Duration,
    cleans: bool,
    known: &Known,
    findings: &mut Findings,
) -> Result<bool> {
    ground.copy(case.start, "work")?;
    let mut child = Running::start(ground, case.line, case.from_pipe)?;
    std::thread::sleep(moment);
    child.sealift.kill()?;
    let hit = child.sealift.wait()?.signal().is_some();
    drop(child);
    let label = format!("{}, killed after {moment:?}", case.name);
    let out = ground.path("work/out");
    if let Some(problem) = right_after(case, &out, known)? {
        findings.add(&format!("{label}: {problem}"))?;
    }
    let (then, line) = match (cleans, case.output) {
        (true, Bundle) => ("cleaned", "sealift clean work/out/b.sealift --quiet".to_owned()),
        (true, Tree) => ("cleaned", "sealift clean work/out/target --quiet".to_owned()),
        (false, _) => ("run again", case.line.to_owned()),
    };
    let done = Running::start(ground, &line, case.from_pipe && !cleans)?.output()?;
    if !done.0 {
        findings.add(&format!("{label}: {then}, it fails: {}", done.1))?;
    } else if let Some(problem) = at_the_end(ground, case, cleans, known)? {
        findings.add(&format!("{label}, {then}: {problem}"))?;
    }
    Ok(hit)
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
