//! Images of a Debian, one update apart, written to block devices: beside zstd and dd, in memory and on a disk.

use std::fs;
use std::io::{BufReader, Read as _};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use xtask::shell::output;

use super::desktop;
use super::job::{Job, Usage, median, number, run_all};
use super::places::Places;
use super::report::{Report, float, grouped, seconds};

pub(super) const PACKAGES: [&str; 4] = ["openssh-server", "nginx-light", "python3", "vim-nox"];
/// A slot has more room than its image.
const SLOT_BYTES: u64 = 2 << 30;
const BLOCK: u64 = 4096;
const READ_LEN: usize = 1 << 20;
/// Bytes at the start that are written twice: as zeros first, and last of all.
const HEAD_BYTES: u64 = 2 << 20;
const MEMORY: f64 = 64.0;

const IMAGE: &str = "mkfs.erofs --quiet -T0 SCRATCH/slots/VERSION/root.img TREE_OF";
const PACK: &str = "sealift pack --force SCRATCH/slots/VERSION -o SCRATCH/slots/VERSION.sealift --level 3 --name os --bundle-version VERSION --key SCRATCH/key --progress none";
const DELTA: &str = "sealift pack --force SCRATCH/slots/2 -o SCRATCH/slots/delta.sealift --base SCRATCH/slots/1.sealift --trust SCRATCH/allowed_signers --name os --bundle-version 2 --key SCRATCH/key --progress none";
const ZSTD: &str = "zstd -q -f -3 SCRATCH/slots/2/root.img -o SCRATCH/slots/2.zst";
const UNPACK: &str = "sealift unpack SCRATCH/slots/BUNDLE SLOT_B --trust SCRATCH/allowed_signers --state SCRATCH/slots/state --progress none --adopt";
const FULL: &str =
    "zstd -q -d -c SCRATCH/slots/2.zst | dd of=SLOT_B bs=4M iflag=fullblock oflag=direct conv=fsync status=none";
const BY_DD: &str = "dd if=SLOT_A of=/dev/null bs=4M iflag=direct status=none && dd if=SCRATCH/slots/2/root.img of=SLOT_B bs=4M oflag=direct conv=fsync status=none";
const FIRST: &str = "sealift unpack SCRATCH/slots/1.sealift SLOT --trust SCRATCH/allowed_signers --state SCRATCH/slots/state --progress none --adopt --allow-downgrade";

/// A block device, detached on drop.
struct Loop(String);

impl Loop {
    fn new(file: &Path) -> Result<Self> {
        fs::File::create(file)?.set_len(SLOT_BYTES)?;
        let said = output(Command::new("losetup").args(["-f", "--show"]).arg(file))?;
        Ok(Self(said.trim().to_owned()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["-d", &self.0]).status();
    }
}

/// What was measured on one kind of medium.
#[derive(Default)]
struct Found {
    full: Vec<Usage>,
    full_by_dd: Vec<Usage>,
    delta: Vec<Usage>,
    delta_by_dd: Vec<Usage>,
    /// Bytes that an update of a slot with the old image wrote.
    written: u64,
    /// Bytes of the device beyond the image that are no zeros any more.
    beyond: u64,
}

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    make(places)?;
    let [old, new] = ["1", "2"].map(|version| places.path(&format!("SCRATCH/slots/{version}/root.img")));
    let (old_len, new_len) = (fs::metadata(&old)?.len(), fs::metadata(&new)?.len());
    let mut differing = 0;
    compare(&new, &old, |new, old| differing += u64::from(new != old) * u64::try_from(new.len()).unwrap_or_default())?;
    let mut text = format!(
        "An EROFS image of {} bytes, to its successor of {} bytes, {} of which are in blocks that differ; the delta has {} bytes.\n\n| | ours, s | peer, s | ratio | peak, MiB | declared, MiB |\n| --- | --: | --: | --: | --: | --: |\n",
        grouped(old_len),
        grouped(new_len),
        grouped(differing),
        grouped(fs::metadata(places.path("SCRATCH/slots/delta.sealift"))?.len())
    );
    let declared = |bundle: &str| -> Result<u64> {
        let info: Value = Job::new(&format!("sealift info SCRATCH/slots/{bundle} --json"), places).json()?;
        number(&info["cost"], "memory_bytes")
    };
    let declared = [declared("2.sealift")?, declared("delta.sealift")?];
    for medium in ["SCRATCH", "DISK"] {
        let found = measure(medium, runs, places, &new)?;
        let rows = [
            ("full", &found.full, &found.full_by_dd, 1.0, declared[0]),
            ("delta from the other slot", &found.delta, &found.delta_by_dd, 1.5, declared[1]),
        ];
        let name = if medium == "SCRATCH" { "tmpfs" } else { "the disk" };
        for (what, ours, peer, limit, declared) in rows {
            let peak = ours.iter().map(|usage| usage.peak_bytes).max().unwrap_or_default();
            let (ours, peer) = (median(ours).wall, median(peer).wall);
            let ratio = ours.as_secs_f64() / peer.as_secs_f64();
            report.at_most(format!("slots on {name}, {what}: seconds, to dd"), ratio, limit, 2, "");
            let mebibytes = |bytes: u64| float(bytes) / 1_048_576.0;
            let more = mebibytes(peak.saturating_sub(declared));
            report.at_most(format!("slots on {name}, {what}: memory beyond what is declared"), more, MEMORY, 0, " MiB");
            text.push_str(&format!(
                "| {what}, {name} | {} | {} | {ratio:.2} | {:.0} | {:.0} |\n",
                seconds(ours),
                seconds(peer),
                mebibytes(peak),
                mebibytes(declared)
            ));
        }
        report.at_most(format!("slots on {name}: bytes written beyond the image"), float(found.beyond), 0.0, 0, "");
        let more = float(found.written.saturating_sub(HEAD_BYTES)) / float(differing);
        report.at_most(
            format!("slots on {name}: bytes that an update writes, to blocks that differ"),
            more,
            1.0,
            3,
            "",
        );
    }
    text.push_str(&format!("\n- `{UNPACK}`\n- `{FULL}`\n- `{BY_DD}`\n- `{DELTA}`\n"));
    report.section("Images written to block devices", &text);
    places.remove(&["SCRATCH/slots"])
}

/// Makes both images, their bundles and the delta.
fn make(places: &Places) -> Result<()> {
    let (old, new) = desktop::roots_with(["slot-before", "slot-after"], &PACKAGES)?;
    for (version, tree) in [("1", old), ("2", new)] {
        fs::create_dir_all(places.path(&format!("SCRATCH/slots/{version}")))?;
        let tree = tree.display().to_string();
        let line = |line: &str| line.replace("TREE_OF", &tree).replace("VERSION", version);
        run_all(&[&line(IMAGE), &line(PACK)], places)?;
    }
    run_all(&[DELTA, ZSTD], places)
}

fn measure(medium: &str, runs: usize, places: &Places, new: &Path) -> Result<Found> {
    let [a, b] = ["slot-a", "slot-b"].map(|name| Loop::new(&places.path(&format!("{medium}/{name}"))));
    let (a, b) = (a?, b?);
    let line = |line: &str| line.replace("SLOT_A", &a.0).replace("SLOT_B", &b.0);
    let job = |text: &str| Job::new(&line(text), places).run();
    let forget = || places.remove(&["SCRATCH/slots/state"]);
    let mut found = Found::default();
    for round in 1..=runs {
        job("blkdiscard -f SLOT_B")?;
        found.full_by_dd.push(job(FULL)?);
        forget()?;
        job("blkdiscard -f SLOT_B")?;
        found.full.push(job(&UNPACK.replace("BUNDLE", "2.sealift"))?);
        check(&b, new)?;
        forget()?;
        job(&FIRST.replace("SLOT", &a.0))?;
        job("blkdiscard -f SLOT_B")?;
        found.delta_by_dd.push(job(BY_DD)?);
        job("blkdiscard -f SLOT_B")?;
        found.delta.push(job(&format!("{} --base SLOT_A", UNPACK.replace("BUNDLE", "delta.sealift")))?);
        found.beyond = check(&b, new)?;
        for (what, usages) in
            [("full", [&found.full, &found.full_by_dd]), ("delta", [&found.delta, &found.delta_by_dd])]
        {
            let last = usages.map(|usages| usages.last().map_or_else(String::new, |usage| seconds(usage.wall)));
            println!("   {round}/{runs} {medium}, {what}: {} s, dd {} s", last[0], last[1]);
        }
    }
    forget()?;
    job(&FIRST.replace("SLOT", &b.0))?;
    let told: Value =
        Job::new(&line(&format!("{} --update --json", UNPACK.replace("BUNDLE", "2.sealift"))), places).json()?;
    found.written = number(&told["slots"][0], "written_bytes").context("what was written")?;
    check(&b, new)?;
    forget()?;
    places.remove(&[&format!("{medium}/slot-a"), &format!("{medium}/slot-b")])?;
    Ok(found)
}

/// Checks that a device holds the image. Returns how many bytes behind it are no zeros.
fn check(device: &Loop, image: &Path) -> Result<u64> {
    let (mut is_same, mut beyond) = (true, 0);
    compare(Path::new(&device.0), image, |held, image| {
        is_same &= held.starts_with(image);
        beyond += held.iter().skip(image.len()).filter(|byte| **byte != 0).count();
    })?;
    ensure!(is_same, "the slot holds something else");
    Ok(u64::try_from(beyond)?)
}

/// Passes the blocks of a file to `take`, each with that of another one, which may be shorter or missing. Neither is held in memory: what a process has
/// when it starts another one counts as memory of that one.
fn compare(file: &Path, other: &Path, mut take: impl FnMut(&[u8], &[u8])) -> Result<()> {
    let [mut file, mut other] =
        [fs::File::open(file)?, fs::File::open(other)?].map(|file| BufReader::with_capacity(READ_LEN, file));
    let (mut block, mut other_block) = (Vec::new(), Vec::new());
    loop {
        for (file, block) in [(&mut file, &mut block), (&mut other, &mut other_block)] {
            block.clear();
            file.take(BLOCK).read_to_end(block)?;
        }
        if block.is_empty() {
            return Ok(());
        }
        take(&block, &other_block);
    }
}
