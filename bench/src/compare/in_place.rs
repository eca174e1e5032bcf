//! Reading a bundle in place, through `sealift mount`, beside the kernel's squashfs, with blocks of 1 MiB and with mksquashfs's own of 128 KiB, and
//! squashfuse_ll: archiving the whole tree, and listing it.

use std::fs;
use std::path::PathBuf;

use anyhow::Result;
use xtask::shell::remove;

use super::job::{Job, Usage, median, run_all};
use super::mounted::{Mounted, Mounts, drop_caches};
use super::places::Places;
use super::report::{Report, seconds};

const PACK: &str = "sealift pack --force TREE -o DISK/in-place.sealift --level 3 --name tree --bundle-version 1 --key SCRATCH/key --progress none";
const IMAGE: &str =
    "mksquashfs TREE DISK/in-place.squashfs -comp zstd -Xcompression-level 3 -b 1M -noappend -no-progress -quiet";
const USUAL_IMAGE: &str =
    "mksquashfs TREE DISK/in-place-128.squashfs -comp zstd -Xcompression-level 3 -noappend -no-progress -quiet";
const MOUNT: &str = "sealift mount DISK/in-place.sealift DISK/by-sealift --trust SCRATCH/allowed_signers --state SCRATCH/in-place-state --json";
const KERNEL: &str = "mount -t squashfs -o ro,loop DISK/in-place.squashfs DISK/by-kernel";
const USUAL_KERNEL: &str = "mount -t squashfs -o ro,loop DISK/in-place-128.squashfs DISK/by-kernel-128";
const FUSE: &str = "squashfuse_ll DISK/in-place.squashfs DISK/by-squashfuse";
const ARCHIVE: &str = "tar -cf - -C FOLDER . | cat";
const LIST: &str = "ls -lR FOLDER";

/// The mount points of the ways, ours first.
const FOLDERS: [&str; 4] = ["DISK/by-sealift", "DISK/by-kernel", "DISK/by-kernel-128", "DISK/by-squashfuse"];
/// The commands, which run in this order after caches were dropped.
const STEPS: [(&str, &str); 4] =
    [("tar c, cold", ARCHIVE), ("tar c, warm", ARCHIVE), ("ls -lR, cold", LIST), ("ls -lR, warm", LIST)];

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    run_all(&[PACK, IMAGE, USUAL_IMAGE], places)?;
    let folders: Vec<PathBuf> = FOLDERS.iter().map(|folder| places.path(folder)).collect();
    folders.iter().try_for_each(fs::create_dir_all)?;
    let mut usages = [const { [const { Vec::new() }; FOLDERS.len()] }; STEPS.len()];
    for run in 1..=runs {
        let mut mounted = None;
        let mut mounts = Mounts(Vec::new());
        for (step, (what, line)) in STEPS.iter().enumerate() {
            if what.ends_with("cold") {
                // Each is mounted again, since caches inside a file system's server are not dropped with the page cache.
                drop((mounted.take(), std::mem::replace(&mut mounts, Mounts(Vec::new()))));
                drop_caches()?;
                mounted = Some(Mounted::of_bundle(MOUNT, folders[0].clone(), places)?);
                run_all(&[KERNEL, USUAL_KERNEL, FUSE], places)?;
                mounts.0.extend(folders[1..].iter().cloned());
            }
            for turn in 0..FOLDERS.len() {
                let way = (run + turn) % FOLDERS.len();
                let usage = Job::new(&line.replace("FOLDER", FOLDERS[way]), places).run()?;
                println!("   {run}/{runs} {what}, {}: {} s", FOLDERS[way], seconds(usage.wall));
                usages[step][way].push(usage);
            }
        }
    }
    judge(report, &usages);
    folders.iter().try_for_each(|folder| remove(folder))?;
    let files = ["DISK/in-place.sealift", "DISK/in-place.squashfs", "DISK/in-place-128.squashfs"];
    places.remove(&files)
}

fn judge(report: &mut Report, usages: &[[Vec<Usage>; FOLDERS.len()]; STEPS.len()]) {
    let mut text =
        "| | `sealift mount`, s | squashfs of the kernel | the same, blocks of 128 KiB | squashfuse_ll |\n| --- | --: | --: | --: | --: |\n"
            .to_owned();
    for ((what, _), all) in STEPS.iter().zip(usages) {
        let [ours, kernel, usual, fuse] = all.each_ref().map(|all| median(all).wall);
        let shown = [ours, kernel, usual, fuse].map(seconds);
        text.push_str(&format!("| {what} | {} |\n", shown.join(" | ")));
        let [to_kernel, to_usual, to_fuse] = [kernel, usual, fuse].map(|peer| peer.as_secs_f64() / ours.as_secs_f64());
        let what = format!("mounted linux-source, {what}: speed");
        if what.contains("tar") {
            report.at_least(format!("{what}, to the kernel's squashfs"), to_kernel, 0.7, 2, "");
            report.at_least(format!("{what}, to the kernel's squashfs of 128 KiB"), to_usual, 0.7, 2, "");
            report.at_least(format!("{what}, to squashfuse_ll"), to_fuse, 1.0, 2, "");
        } else {
            report.at_least(format!("{what}, to the kernel's squashfs"), to_kernel, 1.0 / 3.0, 2, "");
        }
    }
    text.push_str(&format!(
        "\nOn the disk, the squashfs by zstd 3, with blocks of 1 MiB and with mksquashfs's own of 128 KiB; squashfuse_ll reads the former. Each is mounted anew and with cold caches before the first of each pair.\n\n- `{MOUNT}`\n- `{IMAGE}`\n- `{KERNEL}`\n- `{USUAL_IMAGE}`\n- `{USUAL_KERNEL}`\n- `{FUSE}`\n- `{ARCHIVE}`\n- `{LIST}`\n"
    ));
    report.section("A tree read in place", &text);
}
