//! Sizes far beyond the usual: ten times the size may take ten times as long, and no more memory and disk than declared.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use wait4::{ResUse, Wait4 as _};
use xtask::shell::output;

use super::findings::Findings;
use super::ground::{Ground, difference};
use crate::random::Random;
use crate::tree::write_small_files;

struct Case {
    name: &'static str,
    /// A tenth of the full size, and the full size.
    sizes: [u32; 2],
    make: fn(&Path, u32) -> Result<()>,
}

#[rustfmt::skip] // a table
const CASES: [Case; 5] = [
    Case { name: "small files",                  sizes: [100_000, 1_000_000], make: write_small_files },
    Case { name: "GB of a sparse file",          sizes: [2, 20],              make: make_sparse },
    Case { name: DEEP,                           sizes: [1_000, 10_000],      make: make_deep },
    Case { name: "files in one directory",       sizes: [10_000, 100_000],    make: make_wide },
    Case { name: "names of 255 bytes of any",    sizes: [1_000, 10_000],      make: make_names },
];
const DEEP: &str = "directories, each in the last";

const AGAIN: &str = "pack again";

/// The commands run in this order, and each is measured. The second `pack` packs one more file.
const LINES: [(&str, &str); 7] = [
    ("pack", "sealift pack --force tree -o tree.sealift --name tree --bundle-version 1 --key key --quiet"),
    ("verify --deep", "sealift verify --deep tree.sealift TRUST --quiet"),
    ("unpack", "sealift unpack tree.sealift work/target TRUST --quiet"),
    ("ls", "sealift ls tree.sealift"),
    ("diff", "sealift diff tree.sealift work/target --exit-code"),
    (AGAIN, "sealift pack --force tree -o more.sealift --name tree --bundle-version 2 --key key --quiet"),
    ("update", "sealift unpack more.sealift work/target --update --delete TRUST --quiet"),
];

/// Higher limits than readers accept by default.
const LIMIT: &str = "--limit depth=20000";
/// How much longer than ten times as long the full size may take.
const TOLERANCE: f64 = 1.5;
/// Shorter durations are not precise enough.
const MOMENT: Duration = Duration::from_millis(500);
/// How often a case is measured at most, unless it passes earlier.
const ROUNDS: u32 = 3;
/// The memory of the program itself and of its allocator: `info` declares only what the bundle needs.
const PROGRAM_BYTES: u64 = 24 << 20;

struct Measure {
    wall: Duration,
    /// The time that is compared: wall time also depends on cold caches and on other load.
    cpu: Duration,
    peak_bytes: u64,
}

pub(crate) fn run() -> Result<()> {
    let mut findings = Findings::default();
    for case in &CASES {
        let mut best: Option<[Vec<Measure>; 2]> = None;
        for round in 1..=ROUNDS {
            let mut sizes =
                [measure(case, case.sizes[0], &mut findings)?, measure(case, case.sizes[1], &mut findings)?];
            if let Some(before) = &best {
                sizes.iter_mut().zip(before).for_each(|(now, before)| keep_the_least(now, before));
            }
            let problems = judge(case, &sizes);
            best = Some(sizes);
            if problems.is_empty() {
                break;
            }
            for problem in problems {
                match round {
                    ROUNDS => findings.add(&format!("{}, {problem}", case.name))?,
                    _ => println!("     {problem}; once more"),
                }
            }
        }
    }
    findings.finish()
}

/// Other load and cold caches only ever add time.
fn keep_the_least(now: &mut [Measure], before: &[Measure]) {
    for (now, before) in now.iter_mut().zip(before) {
        now.wall = now.wall.min(before.wall);
        now.cpu = now.cpu.min(before.cpu);
        now.peak_bytes = now.peak_bytes.min(before.peak_bytes);
    }
}

/// Measures all commands over a tree of that size.
fn measure(case: &Case, size: u32, findings: &mut Findings) -> Result<Vec<Measure>> {
    let ground = Ground::new("scale")?;
    let tree = ground.path("tree");
    fs::create_dir(&tree)?;
    (case.make)(&tree, size)?;
    fs::create_dir(ground.path("work"))?;
    let mut measures = Vec::new();
    for (name, line) in LINES {
        if name == AGAIN {
            fs::write(tree.join("one more"), "is added\n")?;
        }
        let measure = run_line(&ground, &format!("{line} {LIMIT}"))?;
        if name == "unpack" {
            held_to_declared(&ground, &format!("{size} {}", case.name), &measure, findings)?;
        }
        measures.push(measure);
    }
    let target = ground.path("work/target");
    let found = match case.name {
        DEEP => deep_difference(&tree, &target)?,
        _ => difference(&tree, &target)?,
    };
    if let Some(found) = found {
        findings.add(&format!("{size} {}: the target differs: {found}", case.name))?;
    }
    ground.remove()?;
    Ok(measures)
}

fn run_line(ground: &Ground, line: &str) -> Result<Measure> {
    let start = Instant::now();
    let child = ground.command(line).stdout(Stdio::null()).spawn()?;
    let ResUse { status, rusage } = child.wait4()?;
    if !status.success() {
        bail!("{line} ended with {status}");
    }
    Ok(Measure { wall: start.elapsed(), cpu: rusage.utime + rusage.stime, peak_bytes: rusage.maxrss })
}

/// Prints both sizes beside each other, and returns the failed checks.
fn judge(case: &Case, [tenth, whole]: &[Vec<Measure>; 2]) -> Vec<String> {
    let mut problems = Vec::new();
    println!("   {} and {} {}:", case.sizes[0], case.sizes[1], case.name);
    let first_pack = tenth.first().map_or(Duration::ZERO, |pack| pack.cpu);
    for (((name, _), tenth), whole) in LINES.iter().zip(tenth).zip(whole) {
        // The small tree stays in the page cache after the first time, the large one does not.
        let tenth_cpu = if *name == AGAIN { tenth.cpu.max(first_pack) } else { tenth.cpu };
        let times = whole.cpu.as_secs_f64() / tenth_cpu.as_secs_f64();
        let row = |measure: &Measure| {
            let (wall, cpu) = (measure.wall.as_secs_f64(), measure.cpu.as_secs_f64());
            format!("{wall:8.2} s {cpu:8.2} s CPU {:5} MiB", measure.peak_bytes >> 20)
        };
        println!("     {name:14} {} {} ({times:5.1} times)", row(tenth), row(whole));
        // In such a tree, the path of each directory is a page of text: the output grows with the square.
        let prints_paths = case.name == DEEP && *name == "ls";
        if times > 10.0 * TOLERANCE && whole.cpu > MOMENT && !prints_paths {
            problems.push(format!("{name}: ten times as much takes {times:.1} times as long"));
        }
        if whole.peak_bytes > tenth.peak_bytes.saturating_mul(10) {
            problems.push(format!("{name}: ten times as much takes more than ten times the memory"));
        }
    }
    problems
}

/// Checks that unpacking needs no more than `info` declares.
fn held_to_declared(ground: &Ground, label: &str, measure: &Measure, findings: &mut Findings) -> Result<()> {
    let info = ground.printed_by(&format!("sealift info tree.sealift --json {LIMIT}"))?;
    let info: serde_json::Value = serde_json::from_str(&info)?;
    let declared = |field: &str| info["cost"][field].as_u64().context("info has each cost");
    let (memory, disk) = (declared("memory_bytes")?, declared("disk_bytes")?);
    if measure.peak_bytes > memory + PROGRAM_BYTES {
        findings.add(&format!("{label}: unpack held {} bytes, declared are {memory}", measure.peak_bytes))?;
    }
    let blocks = output(Command::new("find").arg(ground.path("work/target")).args(["-type", "f", "-printf", "%b\\n"]))?;
    let used: u64 = blocks.lines().filter_map(|line| line.parse::<u64>().ok()).sum::<u64>() * 512;
    if used > disk {
        findings.add(&format!("{label}: files take {used} bytes on disk, declared are {disk}"))?;
    }
    println!("     {label}: {} of {memory} bytes of memory, {used} of {disk} on disk", measure.peak_bytes);
    Ok(())
}

/// Compares deep trees: rsync cannot handle paths longer than 4096 bytes, but find can.
fn deep_difference(a: &Path, b: &Path) -> Result<Option<String>> {
    let list = |dir: &Path| {
        let line = "find . -printf '%P %y %m %U %G %T@ %s\\n' | sed 's/ d \\(.*\\) [0-9]*$/ d \\1/' | sha256sum";
        output(Command::new("sh").args(["-eu", "-c", line]).current_dir(dir))
    };
    Ok((list(a)? != list(b)?).then(|| "find lists other files".to_owned()))
}

fn make_sparse(dir: &Path, gigabytes: u32) -> Result<()> {
    let file = File::create(dir.join("disk"))?;
    let len = u64::from(gigabytes) * 1_000_000_000;
    file.set_len(len)?;
    let mut random = Random::fixed();
    for island in 0..8 {
        file.write_all_at(&random.bytes(1 << 20), len / 8 * island + 12_345)?;
    }
    Ok(())
}

fn make_deep(dir: &Path, depth: u32) -> Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at: OwnedFd = openat(CWD, dir, flags, Mode::empty())?;
    for _ in 0..depth {
        mkdirat(&at, "d", Mode::RWXU)?;
        at = openat(&at, "d", flags, Mode::empty())?;
    }
    let file = openat(&at, "bottom", OFlags::WRONLY | OFlags::CREATE, Mode::RUSR)?;
    rustix::io::write(&file, b"here\n")?;
    Ok(())
}

fn make_wide(dir: &Path, count: u32) -> Result<()> {
    for number in 0..count {
        fs::write(dir.join(format!("file-{number}")), format!("{number}\n"))?;
    }
    Ok(())
}

/// Creates the longest names, from every byte that a name may contain.
fn make_names(dir: &Path, count: u32) -> Result<()> {
    let mut random = Random::fixed();
    let mut made = 0;
    while made < count {
        let mut name = random.bytes(255);
        name.iter_mut().filter(|byte| matches!(**byte, 0 | b'/')).for_each(|byte| *byte = b'\n');
        let path = dir.join(std::ffi::OsStr::from_bytes(&name));
        if !path.exists() {
            fs::write(path, name)?;
            made += 1;
        }
    }
    Ok(())
}
