//! A Debian package built in scratch roots: over an image in a bundle, over a bundle's tree, on a disk and in memory.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use xtask::shell::{put_program, renew};

use super::job::{Job, Usage, median};
use super::mounted::{Mounted, Mounts};
use super::places::Places;
use super::report::{Report, each, grouped, seconds};
use crate::debian::{apt, kept};
use crate::products;

const PACKAGE: &str = "hello";
/// Installs the build dependencies, which are in apt's cache, and builds the package.
const BUILD: &str = "#!/bin/sh -e
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
exec > /build.log 2>&1
apt-get -qq --yes --no-install-recommends --no-download build-dep hello
cd /hello-*/
dpkg-buildpackage -us -uc -b
";
const RUN: &str =
    "unshare --mount --fork --pid --kill-child --mount-proc=SCRATCH/root/proc chroot SCRATCH/root /build.sh";
const COUNT: &str =
    "strace -f -c --seccomp-bpf -e trace=fsync,fdatasync,sync_file_range,syncfs,sync,msync -o SCRATCH/flushes ";
const PACK: &str = "--level 3 --name scratch --bundle-version 1 --key SCRATCH/key --progress none";
const IMAGE: &str = "truncate -s 3G DISK/root.img && mkfs.ext4 -q -F -d TREE_OF DISK/root.img";
const CHUNKS: &str = "--chunk-size 256KiB";
const NBDKIT_ALONE: &str =
    "nbdkit --foreground --exit-with-parent --unix SCRATCH/root.sock --filter=cow file DISK/root.img";
const NBDKIT: &str = "nbdkit --foreground --exit-with-parent --unix SCRATCH/root.sock --filter=cow PLUGIN DISK/image.sealift trust=SCRATCH/allowed_signers state=SCRATCH/root-state";
const NBDFUSE: &str = "nbdfuse SCRATCH/fuse/disk nbd+unix:///?socket=SCRATCH/root.sock";
const LOOP_OVER_FUSE: &str = "mount -o loop,nobarrier,noatime SCRATCH/fuse/disk SCRATCH/root";
const MOUNT: &str =
    "sealift mount DISK/root.sealift SCRATCH/lower --trust SCRATCH/allowed_signers --state SCRATCH/root-state --json";
const OVERLAY: &str = "mount -t tmpfs tmpfs SCRATCH/upper && mkdir SCRATCH/upper/upper SCRATCH/upper/work && mount -t overlay overlay -o lowerdir=SCRATCH/lower,upperdir=SCRATCH/upper/upper,workdir=SCRATCH/upper/work,volatile SCRATCH/root";
const ON_DISK: &str =
    "cp --sparse=always DISK/root.img DISK/copy.img && sync -f DISK && mount -o loop DISK/copy.img SCRATCH/root";
const IN_MEMORY: &str = "mount -t tmpfs tmpfs SCRATCH/root && cp -a TREE_OF/. SCRATCH/root";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Image,
    Bare,
    Tree,
    Disk,
    Memory,
}

const KINDS: [(Kind, &str); 5] = [
    (Kind::Image, "an image in a bundle, by nbdkit, cow, nbdfuse and loop"),
    (Kind::Bare, "the image itself, by the same without Sealift"),
    (Kind::Tree, "a bundle, mounted under an overlay with tmpfs"),
    (Kind::Disk, "ext4 on the disk, by loop"),
    (Kind::Memory, "tmpfs"),
];

/// A mounted root. It is unmounted before the programs that serve it end.
struct Root {
    _mounts: Mounts,
    _servers: Vec<Mounted>,
}

/// The results in one kind of root.
#[derive(Default)]
struct Found {
    usages: Vec<Usage>,
    /// The time to create the root and to build, together, in each run.
    with_root: Vec<Duration>,
    /// How often the disk was flushed in each run, including by other programs.
    reached: Vec<u64>,
    called: u64,
}

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    let tree = tree()?.display().to_string();
    let plugin = products::nbdkit_plugin()?.display().to_string();
    let line = |line: &str| line.replace("TREE_OF", &tree).replace("PLUGIN", &plugin);
    let job = |text: &str| Job::new(&line(text), places).run();
    job(&format!("sealift pack TREE_OF -o DISK/root.sealift {PACK}"))?;
    job(IMAGE)?;
    job(&format!("sealift pack DISK/root.img -o DISK/image.sealift {PACK} {CHUNKS}"))?;
    let mut found = KINDS.map(|_| Found::default());
    // The first round counts calls, which takes time, and is not measured.
    for round in 0..=runs {
        for ((kind, name), found) in KINDS.iter().zip(&mut found) {
            let since = Instant::now();
            let root = mount(*kind, &line, places)?;
            let made = since.elapsed();
            let before = flushes_of_disk(places)?;
            let usage = job(&if round == 0 { format!("{COUNT}{RUN}") } else { RUN.to_owned() })?;
            found.reached.push(flushes_of_disk(places)?.saturating_sub(before));
            drop(root);
            if round == 0 {
                found.called = counted(places)?;
            } else {
                println!("   {round}/{runs} {name}: {} s", seconds(usage.wall));
                found.with_root.push(made + usage.wall);
                found.usages.push(usage);
            }
        }
    }
    judge(report, &found);
    places.remove(&["DISK/root.sealift", "DISK/image.sealift", "DISK/root.img", "DISK/copy.img"])
}

/// Returns a system that can build packages, with all build dependencies of this one.
fn tree() -> Result<PathBuf> {
    kept("scratch", &[], |root| {
        let sources = root.join("etc/apt/sources.list");
        let binaries = fs::read_to_string(&sources).context("debootstrap names no sources")?;
        fs::write(&sources, format!("{binaries}{}", binaries.replace("deb ", "deb-src ")))?;
        apt(root, &["update"])?;
        apt(root, &["install", "build-essential"])?;
        apt(root, &["clean"])?;
        apt(root, &["--download-only", "build-dep", PACKAGE])?;
        apt(root, &["source", PACKAGE])?;
        put_program(&root.join("build.sh"), BUILD)
    })
}

fn mount(kind: Kind, line: &dyn Fn(&str) -> String, places: &Places) -> Result<Root> {
    for word in ["SCRATCH/root", "SCRATCH/fuse", "SCRATCH/lower", "SCRATCH/upper"] {
        renew(&places.path(word))?;
    }
    let job = |text: &str| Job::new(&line(text), places).run().map(drop);
    let mut mounts = vec![places.path("SCRATCH/root")];
    let mut servers = Vec::new();
    match kind {
        Kind::Image | Kind::Bare => {
            places.remove(&["SCRATCH/root.sock"])?;
            let nbdkit = if kind == Kind::Bare { NBDKIT_ALONE } else { NBDKIT };
            let nbdkit = serve(&line(nbdkit), "SCRATCH/root.sock", "SCRATCH/root.sock", places)?;
            servers.extend([serve(NBDFUSE, "SCRATCH/fuse", "SCRATCH/fuse/disk", places)?, nbdkit]);
            job(LOOP_OVER_FUSE)?;
        }
        Kind::Tree => {
            servers.push(Mounted::of_bundle(MOUNT, places.path("SCRATCH/lower"), places)?);
            mounts.insert(0, places.path("SCRATCH/upper"));
            job(OVERLAY)?;
        }
        Kind::Disk => job(ON_DISK)?,
        Kind::Memory => job(IN_MEMORY)?,
    }
    Ok(Root { _mounts: Mounts(mounts), _servers: servers })
}

/// Starts a program that serves files, and waits until they appear.
fn serve(line: &str, mountpoint: &str, shown: &str, places: &Places) -> Result<Mounted> {
    let shown = places.path(shown);
    Mounted::start(&mut Job::new(line, places).command()?, places.path(mountpoint), || shown.exists())
}

/// Returns how often the disk was flushed since the machine started.
fn flushes_of_disk(places: &Places) -> Result<u64> {
    let device = fs::metadata(places.path("DISK"))?.dev();
    let number = [rustix::fs::major(device), rustix::fs::minor(device)].map(|number| number.to_string());
    let disks = fs::read_to_string("/proc/diskstats").context("cannot read /proc/diskstats")?;
    let mut disks = disks.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let disk = disks.find(|words| words.starts_with(&[&number[0], &number[1]])).context("DISK lies on no disk")?;
    Ok(disk.get(18).context("this kernel counts no flushes")?.parse()?)
}

/// Returns the calls that strace counted.
fn counted(places: &Places) -> Result<u64> {
    let table = fs::read_to_string(places.path("SCRATCH/flushes")).context("cannot read the counts")?;
    let total = table.lines().last().and_then(|line| line.split_whitespace().nth(3));
    Ok(total.context("strace counted no calls")?.parse()?)
}

fn judge(report: &mut Report, found: &[Found; KINDS.len()]) {
    let [.., memory] = found.each_ref().map(|found| median(&found.usages).wall);
    let mut text = "| root | seconds | to tmpfs | each run | with making the root | flushes called | flushes of the disk |\n| --- | --: | --: | --- | --: | --: | --: |\n".to_owned();
    for ((kind, name), found) in KINDS.iter().zip(found) {
        let wall = median(&found.usages).wall;
        let ratio = wall.as_secs_f64() / memory.as_secs_f64();
        let mut with_root = found.with_root.clone();
        with_root.sort_unstable();
        let with_root = with_root.get(with_root.len() / 2).copied().unwrap_or_default();
        let reached = found.reached.iter().min().copied().unwrap_or_default();
        text.push_str(&format!(
            "| {name} | {} | {ratio:.2} | {} | {} | {} | {} |\n",
            seconds(wall),
            each(&found.usages),
            seconds(with_root),
            grouped(found.called),
            grouped(reached)
        ));
        if matches!(kind, Kind::Image | Kind::Tree) {
            report.at_most(format!("a package built in {name}: seconds, to tmpfs"), ratio, 1.1, 2, "");
        }
    }
    text.push_str(&format!(
        "\nIn each root, apt installs the build dependencies of {PACKAGE} from its cache, and dpkg-buildpackage builds it. Calls that flush were counted by strace, in a run of their own; flushes of the disk are those of the whole machine, the fewest of all runs.\n\n\
         - `{RUN}`\n- `sealift pack DISK/root.img -o DISK/image.sealift {PACK} {CHUNKS}`\n- `{NBDKIT}`\n- `{NBDKIT_ALONE}`\n- `{NBDFUSE}`\n- `{LOOP_OVER_FUSE}`\n- `{MOUNT}`\n- `{OVERLAY}`\n- `{ON_DISK}`\n- `{IN_MEMORY}`"
    ));
    report.section("A package built in scratch roots", &text);
}
