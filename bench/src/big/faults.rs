//! Fails each system call once: the error must be clear, the output old or complete, and a repeated command must complete it.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::findings::Findings;
use super::ground::Ground;
use super::snapshot::Snapshot;
use super::trees;
use super::trial::Trial;
use super::verbs::{Disturbed, VERBS, prepare};
use crate::random::Random;

/// What happens to a system call.
struct Fault {
    /// As strace spells it.
    name: &'static str,
    /// What the error must contain.
    reason: &'static str,
    calls: &'static str,
}

const READING: &str = "read pread64 openat openat2 getdents64 statx newfstatat fstat flock lgetxattr llistxattr fgetxattr flistxattr \
    readlinkat statfs fstatfs";
pub(crate) const CHANGING: &str = "write pwrite64 openat openat2 rename renameat renameat2 unlink unlinkat rmdir mkdir mkdirat mknodat \
    linkat symlinkat utimensat fchmod fchmodat fchown fchownat fsync fdatasync syncfs fsetxattr lsetxattr setxattr ftruncate fallocate \
    copy_file_range sendfile";
const GROWING: &str = "write pwrite64 openat openat2 mkdir mkdirat linkat symlinkat mknodat rename renameat renameat2 ftruncate \
    fallocate copy_file_range fsetxattr lsetxattr fsync syncfs";
/// Calls that a signal can interrupt on some file system, such as a slow or remote one.
const INTERRUPTIBLE: &str = "read pread64 write pwrite64 openat openat2 copy_file_range sendfile";

const FAULTS: [Fault; 6] = [
    Fault { name: "error=EIO", reason: "input/output error", calls: READING },
    Fault { name: "error=EIO", reason: "input/output error", calls: CHANGING },
    Fault { name: "error=ENOSPC", reason: "no space left", calls: GROWING },
    Fault { name: "error=EROFS", reason: "read-only file system", calls: CHANGING },
    Fault { name: INTERRUPTED, reason: "", calls: INTERRUPTIBLE },
    Fault { name: KILLED, reason: "", calls: CHANGING },
];
const INTERRUPTED: &str = "error=EINTR";
pub(crate) const KILLED: &str = "signal=KILL";
const TRIES: u32 = 16;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("faults")?;
    let mut findings = Findings::default();
    let known = prepare(&ground, |dir| trees::small(dir, &mut Random::fixed()))?;
    for verb in &VERBS {
        let trial = Disturbed { verb, known: &known };
        inject_all(&ground, &trial, TRIES, &mut findings)?;
        sync_that_fails(&ground, &trial, &mut findings)?;
        short_transfers(&ground, &trial, &mut findings)?;
    }
    let untouched = Snapshot::take(&ground.path("new"))?.first_difference(&known.new);
    if let Some(path) = untouched {
        findings.add(&format!("the source was changed: {}", path.display()))?;
    }
    findings.finish()?;
    ground.remove()
}

/// Runs a command repeatedly, each time with another fault. If a call occurs more than `tries` times, only `tries` occurrences are tested, evenly
/// spread.
pub(crate) fn inject_all(ground: &Ground, trial: &dyn Trial, tries: u32, findings: &mut Findings) -> Result<()> {
    let counts = count_calls(ground, trial)?;
    let start = Instant::now();
    let mut runs = 0;
    for fault in &FAULTS {
        for call in fault.calls.split(' ') {
            for when in moments(counts.get(call).copied().unwrap_or(0), tries)? {
                // After a kill, test both cleaning and resuming; after an error, one of them.
                let ends: &[bool] = match trial.can_clean() {
                    true if fault.name == KILLED => &[false, true],
                    true => &[when % 2 == 0],
                    false => &[false],
                };
                for &cleans in ends {
                    runs += 1;
                    inject(ground, trial, (fault, call, when), cleans, findings)?;
                }
            }
        }
    }
    println!("   {}: {runs} runs with a fault, {:.1} s", trial.name(), start.elapsed().as_secs_f64());
    Ok(())
}

/// Returns the numbers of at most `tries` of a call's occurrences, evenly spread.
pub(crate) fn moments(count: u32, tries: u32) -> Result<impl Iterator<Item = u32>> {
    Ok((1..=count).step_by(usize::try_from(count.div_ceil(tries).max(1))?))
}

/// Returns the most times that one thread makes each call: strace counts per thread.
pub(crate) fn count_calls(ground: &Ground, trial: &dyn Trial) -> Result<BTreeMap<String, u32>> {
    let wanted: BTreeSet<&str> = FAULTS.iter().flat_map(|fault| fault.calls.split(' ')).collect();
    // Some kernels lack some of these calls.
    let set: Vec<_> = wanted.iter().map(|name| format!("?{name}")).collect();
    ground.begin(trial.start())?;
    ground.run(&format!("strace -f -qq -e signal=none -o calls -e trace={} {}", set.join(","), trial.line()))?;
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
    trial: &dyn Trial,
    (fault, call, when): (&Fault, &str, u32),
    cleans: bool,
    findings: &mut Findings,
) -> Result<()> {
    let kind = format!("{}, {call} with {}", trial.name(), fault.name);
    let label = format!("{kind}, number {when}");
    ground.begin(trial.start())?;
    let inject = format!("{call}:{}:when={when}", fault.name);
    let line = format!("strace -f -qq -e signal=none -o injected -e inject={inject} {}", trial.line());
    let Some((status, said)) = run_patiently(ground, &line)? else {
        return findings.add_like(&kind, &format!("{label}: it hangs"));
    };
    // The loader makes calls before the program does.
    if said.contains("error while loading shared libraries") {
        return Ok(());
    }
    // strace counts per thread, so the write of the message itself may fail as well.
    let is_mute = call == "write" && !said.contains("os error");
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
    if let Some(problem) = trial.not_whole(ground, status == Status::Ended(0))? {
        findings.add_like(&kind, &format!("{label}: {problem}"))?;
    }
    let cleans = cleans && status != Status::Ended(0);
    if let Some(problem) = trial.after(ground, cleans)? {
        let then = if cleans { "cleaned" } else { "run again" };
        findings.add_like(&format!("{kind}, {then}"), &format!("{label}, {then}: {problem}"))?;
    }
    Ok(())
}

/// Returns whether a line names the file at fault.
fn names_a_file(said: &str) -> bool {
    ["/", "work", "new", "signers", "key", "standard"].iter().any(|name| said.contains(name))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Ended(i32),
    Killed,
}

/// Returns how a command ended and what it printed, or nothing if it does not end.
pub(crate) fn run_patiently(ground: &Ground, line: &str) -> Result<Option<(Status, String)>> {
    let mut command = ground.command(line);
    let errors = fs::File::create(ground.path("errors"))?;
    let mut child = command.stdout(Stdio::null()).stderr(errors).spawn().context("cannot start strace")?;
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let said = fs::read_to_string(ground.path("errors"))?.trim().replace('\n', "; ");
            let status = match (status.code(), status.signal()) {
                // strace ends in the same way as its child.
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

/// Checks that a medium that fails to sync is never reported as a success.
pub(crate) fn sync_that_fails(ground: &Ground, trial: &dyn Trial, findings: &mut Findings) -> Result<()> {
    ground.begin(trial.start())?;
    let calls = "fsync,fdatasync,syncfs";
    let line = format!("strace -f -qq -e signal=none -o injected -e inject={calls}:error=EIO {}", trial.line());
    match run_patiently(ground, &line)? {
        Some((Status::Ended(2), _)) => Ok(()),
        other => findings.add(&format!("{}: every sync fails, and it says {other:?}", trial.name())),
    }
}

/// Makes each read and write transfer only half of the requested bytes.
pub(crate) fn short_transfers(ground: &Ground, trial: &dyn Trial, findings: &mut Findings) -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        println!("   short reads and writes are skipped: the tracer knows x86-64 alone");
        return Ok(());
    }
    let source = env::current_dir()?.join("bench/src/big/short.c");
    let built = ground.command("cc -O1 -Wall -o short").arg(source).status()?;
    ensure!(built.success(), "short.c does not build");
    for line in [trial.line().to_owned(), trial.line().replace("--quiet", "--quiet --jobs 1")] {
        ground.begin(trial.start())?;
        let Some((status, said)) = run_patiently(ground, &format!("./short {line}"))? else {
            return findings.add(&format!("{}, short transfers: it hangs", trial.name()));
        };
        if status != Status::Ended(0) {
            findings.add(&format!("{}, short transfers: it ends with {status:?}: {said}", trial.name()))?;
        } else if let Some(problem) = trial.not_whole(ground, true)? {
            findings.add(&format!("{}, short transfers: {problem}", trial.name()))?;
        }
    }
    Ok(())
}
