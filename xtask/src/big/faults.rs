//! Every system call fails once: the error is clear, the output is old or whole, and the same command makes it whole afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::findings::Findings;
use super::ground::{Ground, difference, names};
use super::random::Random;
use super::snapshot::Snapshot;
use super::trees;

/// What is run, from what, and where its output is.
#[derive(Clone, Copy)]
pub(crate) struct Verb {
    pub(crate) name: &'static str,
    pub(crate) line: &'static str,
    pub(crate) start: &'static str,
    /// In `work/out`.
    pub(crate) output: &'static str,
}

#[rustfmt::skip] // a table
pub(crate) const VERBS: [Verb; 3] = [
    Verb {
        name: "pack", start: "start-empty", output: "b.sealift",
        line: "sealift pack new -o work/out/b.sealift --name os --bundle-version 2 --key key --chunk-size 64KiB --quiet",
    },
    Verb {
        name: "unpack", start: "start-empty", output: "target",
        line: "sealift unpack new.sealift work/out/target TRUST --quiet",
    },
    Verb {
        name: "update", start: "start-tree", output: "target",
        line: "sealift unpack new.sealift work/out/target --update --delete TRUST --quiet",
    },
];

/// What happens to a call.
struct Fault {
    /// As strace spells it.
    name: &'static str,
    /// What the error has to say.
    reason: &'static str,
    calls: &'static [&'static str],
}

const READING: &[&str] = &[
    "read",
    "pread64",
    "openat",
    "openat2",
    "getdents64",
    "statx",
    "newfstatat",
    "fstat",
    "flock",
    "lgetxattr",
    "llistxattr",
    "fgetxattr",
    "flistxattr",
    "readlinkat",
    "statfs",
    "fstatfs",
];
const CHANGING: &[&str] = &[
    "write",
    "pwrite64",
    "openat",
    "openat2",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "rmdir",
    "mkdir",
    "mkdirat",
    "mknodat",
    "linkat",
    "symlinkat",
    "utimensat",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fsync",
    "fdatasync",
    "syncfs",
    "fsetxattr",
    "lsetxattr",
    "setxattr",
    "ftruncate",
    "fallocate",
    "copy_file_range",
    "sendfile",
];
const GROWING: &[&str] = &[
    "write",
    "pwrite64",
    "openat",
    "openat2",
    "mkdir",
    "mkdirat",
    "linkat",
    "symlinkat",
    "mknodat",
    "rename",
    "renameat",
    "renameat2",
    "ftruncate",
    "fallocate",
    "copy_file_range",
    "fsetxattr",
    "lsetxattr",
    "fsync",
    "syncfs",
];
/// Calls that a signal interrupts on some file system, a slow or a distant one.
const INTERRUPTIBLE: &[&str] =
    &["read", "pread64", "write", "pwrite64", "openat", "openat2", "copy_file_range", "sendfile"];

const FAULTS: [Fault; 6] = [
    Fault { name: "error=EIO", reason: "input/output error", calls: READING },
    Fault { name: "error=EIO", reason: "input/output error", calls: CHANGING },
    Fault { name: "error=ENOSPC", reason: "no space left", calls: GROWING },
    Fault { name: "error=EROFS", reason: "read-only file system", calls: CHANGING },
    Fault { name: INTERRUPTED, reason: "", calls: INTERRUPTIBLE },
    Fault { name: KILLED, reason: "", calls: CHANGING },
];
const INTERRUPTED: &str = "error=EINTR";
const KILLED: &str = "signal=KILL";
/// Of a call that is made more often only so many are tried, evenly spread.
const TRIES: u32 = 16;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("faults")?;
    let mut findings = Findings::default();
    let known = prepare(&ground, |dir| trees::small(dir, &mut Random::fixed()))?;
    for verb in &VERBS {
        let counts = count_calls(&ground, verb)?;
        let start = Instant::now();
        let mut runs = 0;
        for fault in &FAULTS {
            for call in fault.calls {
                let count = counts.get(*call).copied().unwrap_or(0);
                let step = count.div_ceil(TRIES).max(1);
                for when in (1..=count).step_by(usize::try_from(step)?) {
                    runs += 1;
                    inject(&ground, verb, (fault, call, when), &known, &mut findings)?;
                }
            }
        }
        println!("   {}: {runs} runs with a fault, {:.1} s", verb.name, start.elapsed().as_secs_f64());
        sync_that_fails(&ground, verb, &mut findings)?;
        short_transfers(&ground, verb, &known, &mut findings)?;
    }
    let untouched = Snapshot::take(&ground.path("new"))?.first_difference(&known.new);
    if let Some(path) = untouched {
        findings.add(&format!("the source was changed: {}", path.display()))?;
    }
    findings.finish()?;
    ground.remove()
}

pub(crate) struct Known {
    pub(crate) old: Snapshot,
    pub(crate) new: Snapshot,
    pub(crate) bundle: Vec<u8>,
}

/// Makes `old` and `new`, their bundles, and what a run starts from.
pub(crate) fn prepare(ground: &Ground, make: impl FnOnce(&std::path::Path) -> Result<()>) -> Result<Known> {
    make(&ground.path("old"))?;
    ground.copy("old", "new")?;
    trees::change(&ground.path("new"), &mut Random::fixed())?;
    for (tree, version) in [("old", 1), ("new", 2)] {
        ground.run(&format!(
            "sealift pack {tree} -o {tree}.sealift --name os --bundle-version {version} --key key --chunk-size 64KiB --quiet"
        ))?;
    }
    for start in ["start-empty", "start-tree"] {
        fs::create_dir_all(ground.path(start).join("out"))?;
        fs::create_dir(ground.path(start).join("state"))?;
    }
    ground.run("sealift unpack old.sealift start-tree/out/target --trust signers --state start-tree/state --quiet")?;
    Ok(Known {
        old: Snapshot::take(&ground.path("old"))?,
        new: Snapshot::take(&ground.path("new"))?,
        bundle: fs::read(ground.path("new.sealift"))?,
    })
}

/// How often one thread makes each call, at most: strace counts by thread.
fn count_calls(ground: &Ground, verb: &Verb) -> Result<BTreeMap<String, u32>> {
    let wanted: BTreeSet<&str> = FAULTS.iter().flat_map(|fault| fault.calls.iter().copied()).collect();
    // Not every kernel's table has every name.
    let set: Vec<_> = wanted.iter().map(|name| format!("?{name}")).collect();
    ground.copy(verb.start, "work")?;
    ground.run(&format!("strace -f -qq -e signal=none -o calls -e trace={} {}", set.join(","), verb.line))?;
    let mut counts: BTreeMap<(String, String), u32> = BTreeMap::new();
    for line in fs::read_to_string(ground.path("calls"))?.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let Some((call, _)) = call.trim_start().split_once('(') else { continue };
        *counts.entry((thread.to_owned(), call.to_owned())).or_default() += 1;
    }
    let mut most = BTreeMap::new();
    for ((_, call), count) in counts {
        let known = most.entry(call).or_insert(0);
        *known = count.max(*known);
    }
    Ok(most)
}

fn inject(
    ground: &Ground,
    verb: &Verb,
    (fault, call, when): (&Fault, &str, u32),
    known: &Known,
    findings: &mut Findings,
) -> Result<()> {
    let kind = format!("{}, {call} with {}", verb.name, fault.name);
    let label = format!("{kind}, number {when}");
    ground.copy(verb.start, "work")?;
    let inject = format!("{call}:{}:when={when}", fault.name);
    let line = format!("strace -f -qq -e signal=none -o injected -e inject={inject} {}", verb.line);
    let Some((status, said)) = run_patiently(ground, &line)? else {
        return findings.add_like(&kind, &format!("{label}: it hangs"));
    };
    // The loader's own calls come before ours.
    if said.contains("error while loading shared libraries") {
        return Ok(());
    }
    // strace counts by thread, so that the message's own write may fail as well.
    let is_mute = *call == *"write" && !said.contains("os error");
    let problem = match status {
        Status::Ended(0) => None,
        Status::Ended(2) if is_mute => None,
        Status::Ended(2) if fault.name == INTERRUPTED => Some("it is not tried again".to_owned()),
        Status::Ended(2) if !said.to_lowercase().contains(fault.reason) => Some("the reason is not named".to_owned()),
        Status::Ended(2) if !names_a_file(&said) => Some("no file is named".to_owned()),
        Status::Ended(2) => None,
        Status::Killed if fault.name == KILLED => None,
        status => Some(format!("it ends with {status:?}")),
    };
    if let Some(problem) = problem {
        findings.add_like(&format!("{kind}: {problem}"), &format!("{label}: {problem}: {said}"))?;
    }
    if let Some(problem) = not_whole(ground, verb, status == Status::Ended(0), known)? {
        findings.add_like(&kind, &format!("{label}: {problem}"))?;
    }
    let cleans = when % 2 == 0 && status != Status::Ended(0);
    if let Some(problem) = after(ground, verb, cleans, known)? {
        let then = if cleans { "cleaned" } else { "run again" };
        findings.add_like(&format!("{kind}, {then}"), &format!("{label}, {then}: {problem}"))?;
    }
    Ok(())
}

/// A line that says where it went wrong.
fn names_a_file(said: &str) -> bool {
    ["/", "work", "new", "signers", "key", "standard"].iter().any(|name| said.contains(name))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Ended(i32),
    Killed,
}

/// Returns how a line ended and what it said, or nothing when it does not end.
fn run_patiently(ground: &Ground, line: &str) -> Result<Option<(Status, String)>> {
    let mut command = ground.command(line);
    let errors = fs::File::create(ground.path("errors"))?;
    let mut child = command.stdout(Stdio::null()).stderr(errors).spawn().context("cannot start strace")?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let said = fs::read_to_string(ground.path("errors"))?.trim().replace('\n', "; ");
            let status = match (status.code(), status.signal()) {
                // strace ends as what it traced.
                (_, Some(9)) | (Some(137), _) => Status::Killed,
                (Some(code), _) => Status::Ended(code),
                _ => Status::Ended(-1),
            };
            return Ok(Some((status, said)));
        }
        if start.elapsed() > PATIENCE {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// What is neither old nor new right after a run; nothing but new if it ended well.
pub(crate) fn not_whole(ground: &Ground, verb: &Verb, ended_well: bool, known: &Known) -> Result<Option<String>> {
    let output = ground.path("work/out").join(verb.output);
    if !output.exists() {
        return Ok((ended_well || verb.start == "start-tree").then(|| "the output is missing".to_owned()));
    }
    if output.is_file() {
        return Ok((fs::read(output)? != known.bundle).then(|| "the bundle has other bytes".to_owned()));
    }
    if verb.start == "start-empty" || ended_well {
        let found = difference(&ground.path("new"), &output)?;
        return Ok(found.map(|found| format!("the target differs: {found}")));
    }
    Ok(Snapshot::take(&output)?.neither(&known.old, &known.new))
}

/// Cleans, or runs the line again without a fault.
pub(crate) fn after(ground: &Ground, verb: &Verb, cleans: bool, known: &Known) -> Result<Option<String>> {
    let out = ground.path("work/out");
    let is_there = out.join(verb.output).exists();
    let line = match verb.output {
        output if cleans => format!("sealift clean work/out/{output} --quiet"),
        // A new tree is not made where one is.
        "target" if is_there && verb.start == "start-empty" => format!("{} --update", verb.line),
        _ => verb.line.to_owned(),
    };
    if let Err(error) = ground.run(&line) {
        return Ok(Some(format!("{error:#}")));
    }
    let left = names(&out)?;
    let wanted: &[&str] = match verb.output {
        "target" => &[".target.sealift-state", "target"],
        _ => &["b.sealift"],
    };
    if left != wanted && !(cleans && !is_there && left.is_empty()) {
        return Ok(Some(format!("in its folder is {}", left.join(" "))));
    }
    if let [left, ..] = names(&ground.path("tmp"))?.as_slice() {
        return Ok(Some(format!("in TMPDIR is {left}")));
    }
    if cleans && verb.start == "start-tree" {
        let differs = |tree| difference(&ground.path(tree), &out.join("target"));
        return Ok(differs("old")?.and(differs("new")?).map(|found| format!("it is neither old nor new: {found}")));
    }
    if cleans && !is_there { Ok(None) } else { not_whole(ground, verb, true, known) }
}

/// A medium that does not take what was written is never taken for one that did.
fn sync_that_fails(ground: &Ground, verb: &Verb, findings: &mut Findings) -> Result<()> {
    ground.copy(verb.start, "work")?;
    let calls = "fsync,fdatasync,syncfs";
    let line = format!("strace -f -qq -e signal=none -o injected -e inject={calls}:error=EIO {}", verb.line);
    match run_patiently(ground, &line)? {
        Some((Status::Ended(2), _)) => Ok(()),
        other => findings.add(&format!("{}: every sync fails, and it says {other:?}", verb.name)),
    }
}

/// Each read and each write moves only half of what was asked for.
fn short_transfers(ground: &Ground, verb: &Verb, known: &Known, findings: &mut Findings) -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        println!("   short reads and writes are skipped: the tracer knows x86-64 alone");
        return Ok(());
    }
    let source = env::current_dir()?.join("xtask/src/big/short.c");
    let built = ground.command("cc -O1 -Wall -o short").arg(source).status()?;
    ensure!(built.success(), "short.c does not build");
    for line in [verb.line.to_owned(), verb.line.replace("--quiet", "--quiet --jobs 1")] {
        ground.copy(verb.start, "work")?;
        let Some((status, said)) = run_patiently(ground, &format!("./short {line}"))? else {
            return findings.add(&format!("{}, short transfers: it hangs", verb.name));
        };
        if status != Status::Ended(0) {
            findings.add(&format!("{}, short transfers: it ends with {status:?}: {said}", verb.name))?;
        } else if let Some(problem) = not_whole(ground, verb, true, known)? {
            findings.add(&format!("{}, short transfers: {problem}", verb.name))?;
        }
    }
    Ok(())
}
