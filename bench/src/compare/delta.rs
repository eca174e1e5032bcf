//! From one version of a tree to the next with a small file: delta bundles beside the peers, on pairs of trees. Each way runs once, since the peers
//! take minutes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use xtask::shell::{remove, run};

use super::job::{Job, Usage};
use super::places::Places;
use super::report::{Report, float, grouped, seconds};
use super::{desktop, ebuilds};
use crate::tree;

/// The command that creates the delta file, and the one that builds the new version from it and the old one. `OLD` and `NEW` are the trees.
struct Way {
    name: &'static str,
    /// The pairs to run it on: on the others, it takes hours, or more memory than this machine has.
    pairs: &'static [&'static str],
    /// Commands that run before the clock starts.
    before: &'static [&'static str],
    make: &'static str,
    file: &'static str,
    /// Commands that run before the delta is applied.
    install: &'static [&'static str],
    apply: &'static str,
    /// A command that prints something or fails if the result is not the new tree.
    check: &'static str,
}

const ALL: &[&str] = &["linux", "debian", "ebuilds", "year", "releases"];
/// Those on which a static delta of OSTree and images are measured as well.
const NEAR: &[&str] = &["linux", "debian", "ebuilds"];
const BASE: &str = "sealift pack --force OLD -o SCRATCH/base.sealift --name tree --bundle-version 1 --level 3 --key SCRATCH/key --progress none";
const INSTALL: &str = "sealift unpack SCRATCH/base.sealift SCRATCH/target --trust SCRATCH/allowed_signers --state SCRATCH/delta-state --progress none";
const APPLY: &str = "sealift unpack SCRATCH/out.sealift SCRATCH/target --delete --trust SCRATCH/allowed_signers --state SCRATCH/delta-state --progress none";
const CHECK: &str = "rsync -aHAXnci --modify-window=-1 --delete NEW/ SCRATCH/target/";
/// The check fails if something is wrong, and prints its progress.
const FSCK: &str = "ostree --repo=SCRATCH/device fsck --quiet";
const TARS: [&str; 2] =
    ["tar --sort=name -C OLD -cf SCRATCH/old.tar .", "tar --sort=name -C NEW -cf SCRATCH/new.tar ."];
/// Creates commits of both trees, and a repository with the first one.
const COMMITS: [&str; 6] = [
    "ostree --repo=SCRATCH/delta-repo init --mode=bare-user",
    "ostree --repo=SCRATCH/delta-repo commit --no-bindings --branch=tree --tree=dir=OLD",
    "ostree --repo=SCRATCH/delta-repo refs --create=old tree",
    "ostree --repo=SCRATCH/delta-repo commit --no-bindings --branch=tree --tree=dir=NEW",
    "ostree --repo=SCRATCH/device init --mode=bare-user",
    "ostree --repo=SCRATCH/device pull-local SCRATCH/delta-repo old",
];

/// What our ways have in common, and the peers that use tars.
const OURS: Way = Way {
    name: BEST,
    pairs: ALL,
    before: &[BASE],
    make: "sealift pack --force NEW -o SCRATCH/out.sealift --base SCRATCH/base.sealift --level 19 --name tree --bundle-version 2 --key SCRATCH/key --trust SCRATCH/allowed_signers --progress none",
    file: "SCRATCH/out.sealift",
    install: &[INSTALL],
    apply: APPLY,
    check: CHECK,
};
const ON_TARS: Way = Way { before: &TARS, install: &[], check: "cmp SCRATCH/new.tar SCRATCH/made.tar", ..OURS };

const WAYS: [Way; 10] = [
    OURS,
    Way {
        name: FAST,
        make: "sealift pack --force NEW -o SCRATCH/out.sealift --base SCRATCH/base.sealift --level 3 --name tree --bundle-version 2 --key SCRATCH/key --trust SCRATCH/allowed_signers --progress none",
        ..OURS
    },
    Way {
        name: ROOMY,
        pairs: &["debian"],
        make: "sealift pack --force NEW -o SCRATCH/out.sealift --base SCRATCH/base.sealift --level 12 --delta-memory 512MiB --name tree --bundle-version 2 --key SCRATCH/key --trust SCRATCH/allowed_signers --progress none",
        ..OURS
    },
    Way {
        name: XDELTA,
        make: "xdelta3 -9 -f -e -s SCRATCH/old.tar SCRATCH/new.tar SCRATCH/out.xdelta",
        file: "SCRATCH/out.xdelta",
        apply: "xdelta3 -d -f -s SCRATCH/old.tar SCRATCH/out.xdelta SCRATCH/made.tar",
        ..ON_TARS
    },
    Way {
        // Level 19 takes 17 minutes on the first pair, for a result smaller by a quarter.
        name: "zstd -12 --patch-from on tars",
        make: "zstd -q -f -12 --long=31 --patch-from=SCRATCH/old.tar SCRATCH/new.tar -o SCRATCH/out.zst",
        file: "SCRATCH/out.zst",
        apply: "zstd -q -f -d --long=31 --patch-from=SCRATCH/old.tar SCRATCH/out.zst -o SCRATCH/made.tar",
        ..ON_TARS
    },
    Way {
        name: LONG,
        pairs: &["ebuilds", "year", "releases"],
        make: "zstd -q -f -19 --long=27 --patch-from=SCRATCH/old.tar SCRATCH/new.tar -o SCRATCH/out.zst",
        file: "SCRATCH/out.zst",
        apply: "zstd -q -f -d --long=27 --patch-from=SCRATCH/old.tar SCRATCH/out.zst -o SCRATCH/made.tar",
        ..ON_TARS
    },
    Way {
        name: "bsdiff on tars",
        pairs: &["ebuilds"],
        make: "bsdiff SCRATCH/old.tar SCRATCH/new.tar SCRATCH/out.bsdiff",
        file: "SCRATCH/out.bsdiff",
        apply: "bspatch SCRATCH/old.tar SCRATCH/made.tar SCRATCH/out.bsdiff",
        ..ON_TARS
    },
    Way {
        name: "xdelta3 -9 on squashfs",
        pairs: NEAR,
        before: &[
            "mksquashfs OLD SCRATCH/old.squashfs -comp zstd -noappend -no-progress -quiet",
            "mksquashfs NEW SCRATCH/new.squashfs -comp zstd -noappend -no-progress -quiet",
        ],
        make: "xdelta3 -9 -f -e -s SCRATCH/old.squashfs SCRATCH/new.squashfs SCRATCH/out.xdelta",
        file: "SCRATCH/out.xdelta",
        apply: "xdelta3 -d -f -s SCRATCH/old.squashfs SCRATCH/out.xdelta SCRATCH/made.squashfs",
        check: "cmp SCRATCH/new.squashfs SCRATCH/made.squashfs",
        ..ON_TARS
    },
    Way {
        name: STATIC,
        pairs: NEAR,
        before: &COMMITS,
        make: "ostree --repo=SCRATCH/delta-repo static-delta generate --from=old --to=tree --inline --min-fallback-size=0 --filename=SCRATCH/out.static-delta",
        file: "SCRATCH/out.static-delta",
        apply: "ostree --repo=SCRATCH/device static-delta apply-offline SCRATCH/out.static-delta",
        check: FSCK,
        ..ON_TARS
    },
    Way {
        name: "sealift onto OSTree, level 19",
        pairs: NEAR,
        before: &COMMITS,
        make: "sealift pack --force ostree:SCRATCH/delta-repo --ref tree -o SCRATCH/out.sealift --base tree=ostree:SCRATCH/delta-repo:old --level 19 --name tree --bundle-version 2 --key SCRATCH/key --progress none",
        install: &["ostree --repo=SCRATCH/device refs --create=tree old"],
        apply: "sealift unpack SCRATCH/out.sealift ostree:SCRATCH/device --trust SCRATCH/allowed_signers --state SCRATCH/delta-state --progress none",
        check: FSCK,
        ..OURS
    },
];

/// A pair of trees, and the targets of our ways against xdelta3's and ostree's.
pub(crate) struct Pair {
    name: &'static str,
    title: &'static str,
    wanted: &'static [Wanted],
}

/// A ratio of one way's figure to another's, and its maximum.
struct Wanted {
    way: &'static str,
    of: Measure,
    peer: &'static str,
    ratio: f64,
}

#[derive(Clone, Copy)]
enum Measure {
    Bytes,
    MakeTime,
    /// Bytes, compared with the full bundle instead of a peer.
    Share,
    /// Seconds to apply it, compared with only writing the changed files.
    ApplyTime,
}

use Measure::{ApplyTime, Bytes, MakeTime, Share};

const fn wanted(way: &'static str, of: Measure, peer: &'static str, ratio: f64) -> Wanted {
    Wanted { way, of, peer, ratio }
}

const BEST: &str = "sealift, level 19";
const FAST: &str = "sealift, level 3";
const ROOMY: &str = "sealift, level 12, 512 MiB";
const XDELTA: &str = "xdelta3 -9 on tars";
const LONG: &str = "zstd -19 --long=27 --patch-from on tars";
const STATIC: &str = "ostree static-delta";
const FULL: &str = "the full bundle";
const WRITES: &str = "only writing the changed files";

pub(crate) const LINUX: Pair = Pair {
    name: "linux",
    title: "Delta: a kernel's source, to the next security update",
    wanted: &[
        wanted(BEST, Bytes, XDELTA, 0.6),
        wanted(BEST, MakeTime, XDELTA, 1.0),
        wanted(FAST, Bytes, XDELTA, 0.8),
        wanted(FAST, MakeTime, XDELTA, 0.15),
    ],
};
pub(crate) const DEBIAN: Pair = Pair {
    name: "debian",
    title: "Delta: a desktop's root, from the point release to its security updates",
    wanted: &[
        wanted(ROOMY, Bytes, XDELTA, 0.7),
        wanted(ROOMY, MakeTime, XDELTA, 0.5),
        wanted(ROOMY, Bytes, STATIC, 0.5),
    ],
};
pub(crate) const EBUILDS: Pair = Pair {
    name: "ebuilds",
    title: "Delta: a tree of small files, a week later",
    wanted: &[
        wanted(BEST, Bytes, XDELTA, 1.35),
        wanted(BEST, MakeTime, XDELTA, 1.0),
        wanted(BEST, Share, FULL, 0.01),
        wanted(BEST, ApplyTime, WRITES, 2.0),
    ],
};

pub(crate) const YEAR: Pair = Pair {
    name: "year",
    title: "Delta: a tree of small files, a year later",
    wanted: &[wanted(BEST, Bytes, XDELTA, 1.05), wanted(BEST, Bytes, LONG, 1.05), wanted(BEST, MakeTime, LONG, 1.2)],
};

/// All of it takes the peers hours.
const FOLDER: &str = "drivers/net";
pub(crate) const RELEASES: Pair =
    Pair { name: "releases", title: "Delta: drivers/net of the kernel's source, to that of the next Debian", ..YEAR };

/// Figures that do not come from a delta.
struct Bare {
    /// The size of the old tree's full bundle in bytes.
    full: u64,
    /// The time that only writing the changed files takes.
    writing: Duration,
}

/// The costs of one way.
struct Sample {
    way: &'static str,
    make: Usage,
    apply: Usage,
    bytes: u64,
}

pub(crate) fn add(report: &mut Report, pair: &Pair, places: &Places) -> Result<()> {
    let (old, new) = trees(pair, places)?;
    let mut samples = Vec::new();
    for way in WAYS.iter().filter(|way| way.pairs.contains(&pair.name)) {
        samples.push(measure(pair, way, (&old, &new), places)?);
    }
    let full = places.path("SCRATCH/base.sealift");
    let bare = Bare { full: fs::metadata(&full)?.len(), writing: write_changed((&old, &new), places)? };
    judge(report, pair, &samples, &bare);
    remove(&full)?;
    remove(&old)?;
    places.remove(&["SCRATCH/delta-new"])
}

/// Returns the old and the new tree of a pair.
fn trees(pair: &Pair, places: &Places) -> Result<(PathBuf, PathBuf)> {
    let (old, new) = (places.path("SCRATCH/delta-old"), places.path("SCRATCH/delta-new"));
    Ok(match pair.name {
        "linux" => (tree::unpack_previous_kernel(&old)?, places.tree.clone()),
        "debian" => {
            desktop::write(&old, &new)?;
            (old, new)
        }
        "releases" => {
            let later = tree::unpack_later_kernel(&new)?;
            let (earlier, later) = (places.tree.join(FOLDER), later.join(FOLDER));
            run(Command::new("cp").arg("-a").arg(earlier).arg(&old))?;
            (old, later)
        }
        _ => {
            let weeks = if pair.name == YEAR.name { 52 } else { 1 };
            ebuilds::write(&old, ebuilds::CATEGORIES, &ebuilds::WEEKLY, 0)?;
            ebuilds::write(&new, ebuilds::CATEGORIES, &ebuilds::WEEKLY, weeks)?;
            (old, new)
        }
    })
}

fn measure(pair: &Pair, way: &Way, (old, new): (&Path, &Path), places: &Places) -> Result<Sample> {
    let line = |text: &str| text.replace("OLD", &old.display().to_string()).replace("NEW", &new.display().to_string());
    let job = |text: &str| Job::new(&line(text), places);
    let run_all = |lines: &[&str]| lines.iter().try_for_each(|text| job(text).run().map(drop));
    clear(places)?;
    run_all(way.before)?;
    tree::read_all(old)?;
    tree::read_all(new)?;
    let make = job(way.make).run()?;
    let bytes = fs::metadata(places.path(way.file))?.len();
    run_all(way.install)?;
    let apply = job(way.apply).run()?;
    let said = job(way.check).output()?;
    ensure!(said.is_empty() || way.check == FSCK, "{}: something else came of it:\n{said}", way.name);
    println!(
        "   {}, {}: {} bytes, {} s and {} s",
        pair.name,
        way.name,
        grouped(bytes),
        seconds(make.wall),
        seconds(apply.wall)
    );
    Ok(Sample { way: way.name, make, apply, bytes })
}

/// Writes the files of the new tree that differ from the old one's into one folder, as fast as possible.
fn write_changed((old, new): (&Path, &Path), places: &Places) -> Result<Duration> {
    let mut changed = Vec::new();
    for path in tree::files(new)? {
        let content = fs::read(&path)?;
        let before = old.join(path.strip_prefix(new)?);
        if !before.is_file() || fs::read(before)? != content {
            changed.push(content);
        }
    }
    let folder = places.path("SCRATCH/written");
    fs::create_dir(&folder)?;
    let start = Instant::now();
    for (number, content) in changed.iter().enumerate() {
        fs::write(folder.join(number.to_string()), content)?;
    }
    let took = start.elapsed();
    println!("   {} changed files are written in {:.3} s", changed.len(), took.as_secs_f64());
    remove(&folder)?;
    Ok(took)
}

/// Removes the results of the previous way, except the bundle of the old tree.
fn clear(places: &Places) -> Result<()> {
    let names = "target delta-state delta-repo device old.tar new.tar made.tar old.squashfs new.squashfs made.squashfs out.sealift \
        out.xdelta out.zst out.bsdiff out.static-delta";
    names.split(' ').try_for_each(|name| places.remove(&[&format!("SCRATCH/{name}")]))
}

fn judge(report: &mut Report, pair: &Pair, samples: &[Sample], bare: &Bare) {
    let find = |name: &str| samples.iter().find(|sample| sample.way == name);
    for wanted in pair.wanted {
        let (Some(ours), peer) = (find(wanted.way), find(wanted.peer)) else { continue };
        let (what, figure) = match (wanted.of, peer) {
            (Bytes, Some(peer)) => ("bytes", float(ours.bytes) / float(peer.bytes)),
            (MakeTime, Some(peer)) => ("seconds to make", ours.make.wall.as_secs_f64() / peer.make.wall.as_secs_f64()),
            (Share, _) => ("bytes", float(ours.bytes) / float(bare.full)),
            (ApplyTime, _) => ("seconds to apply", ours.apply.wall.as_secs_f64() / bare.writing.as_secs_f64()),
            (Bytes | MakeTime, None) => continue,
        };
        let what = format!("delta, {}: {what} of {}, to {}", pair.name, wanted.way, wanted.peer);
        report.at_most(what, figure, wanted.ratio, 3, "");
    }
    let Some(xdelta) = find(XDELTA) else { return };
    let mut text = String::from(
        "| | bytes | to xdelta3 | make, s | CPU, s | apply, s | peak MiB |\n| --- | --: | --: | --: | --: | --: | --: |\n",
    );
    for sample in samples {
        let peak = sample.make.peak_bytes.max(sample.apply.peak_bytes) >> 20;
        text.push_str(&format!(
            "| {} | {} | {:.3} | {} | {} | {} | {peak} |\n",
            sample.way,
            grouped(sample.bytes),
            float(sample.bytes) / float(xdelta.bytes),
            seconds(sample.make.wall),
            seconds(sample.make.cpu()),
            seconds(sample.apply.wall),
        ));
    }
    text.push_str(&format!(
        "\nThe full bundle of the old tree at level 3 has {} bytes. Our files hold the index's difference, hashes and signature as well, \
         and are applied to a tree of files or to a repository; a tar or an image is made anew by the others' ways, and not unpacked. Only writing the files that \
         differ, to as many new ones, takes {:.3} s.\n",
        grouped(bare.full),
        bare.writing.as_secs_f64()
    ));
    report.section(pair.title, &text);
}
