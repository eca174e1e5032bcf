//! A Debian system booted in QEMU from a composefs store, from squashfs and from ext4; then its next version, in which a hundredth of the files are
//! changed, booted on the same kernel.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use anyhow::Result;
use xtask::shell::{remove, renew};

use super::boot::{guest, numbers, root};
use super::job::{Job, run_all};
use super::places::Places;
use super::report::Report;
use crate::tree;
use crate::vm::{COUNTED, Guest, TIMED};

const DRIVERS: [&str; 6] = ["virtio_blk", "erofs", "overlay", "squashfs", "autofs4", "sha256_ssse3"];
const PACK: &str = "sealift-composefs pack --force FROM -o SCRATCH/boot-bundles/VERSION.sealift --exclude /proc --name bootVERSION --level 3 --bundle-version VERSION --composefs --key SCRATCH/key --progress none";
const BUNDLES: &str = "mkfs.erofs --quiet SCRATCH/boot-2.disk SCRATCH/boot-bundles";
const STORE: &str = "truncate -s 2G SCRATCH/boot-1.disk && mkfs.ext4 -q -F -b 4096 -O verity SCRATCH/boot-1.disk";
/// The peers, each with the command that creates a version's disk.
const PEERS: [(&str, &str); 2] = [
    (
        "squashfs",
        "mksquashfs FROM SCRATCH/boot-VERSION.disk -comp zstd -Xcompression-level 3 -b 1M -noappend -no-progress -quiet",
    ),
    ("ext4", "truncate -s 2G SCRATCH/boot-VERSION.disk && mkfs.ext4 -q -F -b 4096 -d FROM SCRATCH/boot-VERSION.disk"),
];
const DISKS: [&str; 2] = ["SCRATCH/boot-1.disk", "SCRATCH/boot-2.disk"];
/// One in this many files is changed.
const CHANGED: usize = 100;

/// What a boot needed.
struct Boot {
    seconds: f64,
    mounting: f64,
    /// What was read from the disks until multi-user.target was reached: requests, and megabytes.
    requests: f64,
    megabytes: f64,
}

pub(crate) fn add(report: &mut Report, places: &Places) -> Result<()> {
    let script = concat!(include_str!("boot_guest.sh"), include_str!("boot_composefs.sh"));
    let guest = guest(places, "sealift-composefs", script, &DRIVERS)?;
    let next = places.path("SCRATCH/boot-next");
    Job::new(&format!("cp -a --reflink=auto {} SCRATCH/boot-next", root()?.display()), places).run()?;
    let changed = change(&next.join("usr"))?;
    let versions = [("1", root()?), ("2", next.clone())];
    let make = |line: &str| -> Result<()> {
        for (version, from) in &versions {
            Job::new(&line.replace("FROM", &from.display().to_string()).replace("VERSION", version), places).run()?;
        }
        Ok(())
    };
    renew(&places.path("SCRATCH/boot-bundles"))?;
    make(PACK)?;
    run_all(&[BUNDLES, STORE], places)?;
    places.remove(&["SCRATCH/boot-bundles"])?;
    guest.boot(TIMED, "boot=unpack", &disks(places), "over")?;
    let mut found = vec![("composefs", boot(&guest, "composefs", places)?)];
    for (kind, line) in PEERS {
        make(line)?;
        found.push((kind, boot(&guest, kind, places)?));
    }
    for path in [&next, &places.path("SCRATCH/boot-guest")].into_iter().chain(&DISKS.map(|disk| places.path(disk))) {
        remove(path)?;
    }
    judge(report, &found, changed);
    Ok(())
}

/// Appends a byte to some files below a folder, and returns their number.
fn change(folder: &Path) -> Result<usize> {
    let files = tree::files(folder)?;
    let changed = files.iter().skip(CHANGED / 2).step_by(CHANGED);
    changed.clone().try_for_each(|file| File::options().append(true).open(file)?.write_all(b"\n"))?;
    Ok(changed.count())
}

fn disks(places: &Places) -> [String; 2] {
    DISKS.map(|disk| format!("file={},cache=unsafe", places.resolve(disk)))
}

/// Boots both versions, and removes their disks.
fn boot(guest: &Guest, kind: &str, places: &Places) -> Result<[Boot; 2]> {
    let said = guest.boot(COUNTED, &format!("boot={kind}"), &disks(places), "over-2")?;
    places.remove(&DISKS)?;
    let of = |version: u8| -> Result<Boot> {
        let [init, requests, sectors] = numbers(&said, &format!("init-{version}"))?;
        let [mounted] = numbers(&said, &format!("mounted-{version}"))?;
        let [reached] = numbers(&said, &format!("multi-user-{version}"))?;
        let [_, all_requests, all_sectors] = numbers(&said, &format!("over-{version}"))?;
        let boot = Boot {
            seconds: reached - init,
            mounting: mounted - init,
            requests: all_requests - requests,
            megabytes: (all_sectors - sectors) * 512.0 / 1e6,
        };
        println!("   {kind}, version {version}: {:.2} s, {:.2} s of them mounting", boot.seconds, boot.mounting);
        Ok(boot)
    };
    Ok([of(1)?, of(2)?])
}

fn judge(report: &mut Report, found: &[(&str, [Boot; 2])], changed: usize) {
    let [(_, ours), (_, squashfs), _] = found else { return };
    let mut text = format!(
        "The system of the section before, with `sealift mount composefs:STORE` from a sealed store on ext4, from squashfs, and from ext4, each on a disk of its own with an overlay in memory for what is written. The second boot is of the next version, in which {changed} files differ, and follows on the same kernel as if only the processes had ended: the store got its bundle before the first boot, squashfs and ext4 have a second disk. Seconds to multi-user.target, from before mounting, in the guest's clock.\n\n\
         Debian's kernel, emulated by QEMU without KVM; the clock counts instructions, a thousand million to a second, so other work on this machine does not count. The disks lie in its memory: a slower disk adds its time for the reads.\n\n\
         | | boot | seconds | to squashfs | of them, mounting | reads | MB read |\n| --- | --- | --: | --: | --: | --: | --: |\n"
    );
    for (number, when) in ["first", "after the update"].into_iter().enumerate() {
        let peer = squashfs[number].seconds;
        for (kind, boots) in found {
            let Boot { seconds, mounting, requests, megabytes } = boots[number];
            text.push_str(&format!(
                "| {kind} | {when} | {seconds:.2} | {:.2} | {mounting:.2} | {requests} | {megabytes:.0} |\n",
                seconds / peer
            ));
        }
        report.at_most(
            format!("boot from composefs, {when}: seconds, to squashfs"),
            ours[number].seconds / peer,
            1.0,
            2,
            "",
        );
    }
    text.push_str(&format!("\n- `{PACK}`\n- `{STORE}`"));
    for (_, line) in PEERS {
        text.push_str(&format!("\n- `{line}`"));
    }
    report.section("A system booted from a composefs store", &text);
}
