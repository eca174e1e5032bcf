//! From one version of a tree to the next in as few bytes as may be: delta bundles beside the peers, on pairs of trees. Each way is run
//! once, since the peers take minutes.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use super::ebuilds;
use super::job::{Job, Usage};
use super::places::{Places, remove};
use super::report::{Report, Verdict, float, grouped, seconds};
use super::tree;

/// What makes the file that brings the new version, and what makes the new version of the old one and that file. `OLD` and `NEW` are the trees.
struct Way {
    name: &'static str,
    /// What is there before the clock starts.
    before: &'static [&'static str],
    make: &'static str,
    file: &'static str,
    apply: &'static str,
    /// Whether the way is too slow for trees of many files.
    is_ours: bool,
}

const BASE: &str = "sealift pack OLD -o SCRATCH/base.sealift --name tree --bundle-version 1 --level 3 --key SCRATCH/key --progress none";
const INSTALL: &str = "sealift unpack SCRATCH/base.sealift SCRATCH/target --trust SCRATCH/allowed_signers --state SCRATCH/delta-state --progress none";
const APPLY: &str = "sealift unpack SCRATCH/out.sealift SCRATCH/target --delete --trust SCRATCH/allowed_signers --state SCRATCH/delta-state --progress none";
const CHECK: &str = "rsync -aHAXnci --modify-window=-1 --delete NEW/ SCRATCH/target/";
const TARS: [&str; 2] =
    ["tar --sort=name -C OLD -cf SCRATCH/old.tar .", "tar --sort=name -C NEW -cf SCRATCH/new.tar ."];

const WAYS: [Way; 5] = [
    Way {
        name: "sealift, level 19",
        before: &[BASE],
        make: "sealift pack NEW -o SCRATCH/out.sealift --base SCRATCH/base.sealift --level 19 --name tree --bundle-version 2 --key SCRATCH/key --trust SCRATCH/allowed_signers --progress none",
        file: "SCRATCH/out.sealift",
        apply: APPLY,
        is_ours: true,
    },
    Way {
        name: "sealift, level 3",
        before: &[BASE],
        make: "sealift pack NEW -o SCRATCH/out.sealift --base SCRATCH/base.sealift --level 3 --name tree --bundle-version 2 --key SCRATCH/key --trust SCRATCH/allowed_signers --progress none",
        file: "SCRATCH/out.sealift",
        apply: APPLY,
        is_ours: true,
    },
    Way {
        name: "xdelta3 -9 on tars",
        before: &TARS,
        make: "xdelta3 -9 -f -e -s SCRATCH/old.tar SCRATCH/new.tar SCRATCH/out.xdelta",
        file: "SCRATCH/out.xdelta",
        apply: "xdelta3 -d -f -s SCRATCH/old.tar SCRATCH/out.xdelta SCRATCH/made.tar",
        is_ours: false,
    },
    Way {
        name: "zstd -19 --patch-from on tars",
        before: &TARS,
        make: "zstd -q -f -19 --long=31 --patch-from=SCRATCH/old.tar SCRATCH/new.tar -o SCRATCH/out.zst",
        file: "SCRATCH/out.zst",
        apply: "zstd -q -f -d --long=31 --patch-from=SCRATCH/old.tar SCRATCH/out.zst -o SCRATCH/made.tar",
        is_ours: false,
    },
    Way {
        name: "xdelta3 -9 on squashfs",
        before: &[
            "mksquashfs OLD SCRATCH/old.squashfs -comp zstd -noappend -no-progress -quiet",
            "mksquashfs NEW SCRATCH/new.squashfs -comp zstd -noappend -no-progress -quiet",
        ],
        make: "xdelta3 -9 -f -e -s SCRATCH/old.squashfs SCRATCH/new.squashfs SCRATCH/out.xdelta",
        file: "SCRATCH/out.xdelta",
        apply: "xdelta3 -d -f -s SCRATCH/old.squashfs SCRATCH/out.xdelta SCRATCH/made.squashfs",
        is_ours: false,
    },
];

/// A pair of trees, and what is wanted of our ways beside xdelta3's.
struct Pair {
    name: &'static str,
    title: &'static str,
    /// Bytes of level 19 and of level 3 to those of xdelta3.
    bytes: (f64, Option<f64>),
    /// Seconds of both to make, likewise.
    seconds: (f64, Option<f64>),
    /// Bytes of level 19 to those of the full bundle.
    share: Option<f64>,
}

const PAIRS: [Pair; 2] = [
    Pair {
        name: "linux",
        title: "Delta: a kernel's source, to the next security update",
        bytes: (0.6, Some(0.8)),
        seconds: (1.0, Some(0.15)),
        share: None,
    },
    Pair {
        name: "ebuilds",
        title: "Delta: a tree of small files, a week later",
        bytes: (1.35, None),
        seconds: (1.0, None),
        share: Some(0.01),
    },
];

struct Sample {
    make: Usage,
    apply: Usage,
    bytes: u64,
}

pub(crate) fn add(report: &mut Report, places: &Places) -> Result<()> {
    for pair in &PAIRS {
        let (old, new) = match pair.name {
            "linux" => (tree::unpack_previous_kernel(&places.path("SCRATCH/delta-old"))?, places.tree.clone()),
            _ => {
                let (old, new) = (places.path("SCRATCH/ebuilds-old"), places.path("SCRATCH/ebuilds-new"));
                ebuilds::write(&old, 0)?;
                ebuilds::write(&new, 1)?;
                (old, new)
            }
        };
        let mut samples = Vec::new();
        for way in &WAYS {
            samples.push(measure(pair, way, (&old, &new), places)?);
        }
        judge(report, pair, &samples, fs::metadata(places.path("SCRATCH/base.sealift"))?.len());
        remove(&old)?;
    }
    Ok(())
}

fn measure(pair: &Pair, way: &Way, (old, new): (&Path, &Path), places: &Places) -> Result<Sample> {
    let line = |text: &str| text.replace("OLD", &old.display().to_string()).replace("NEW", &new.display().to_string());
    let job = |text: &str| Job::new(&line(text), places);
    for word in ["SCRATCH/target", "SCRATCH/delta-state", way.file] {
        remove(&places.path(word))?;
    }
    way.before.iter().try_for_each(|text| job(text).run().map(drop))?;
    tree::read_all(old)?;
    tree::read_all(new)?;
    let make = job(way.make).run()?;
    let bytes = fs::metadata(places.path(way.file))?.len();
    if way.is_ours {
        job(INSTALL).run()?;
    }
    let apply = job(way.apply).run()?;
    if way.is_ours {
        let differences = job(CHECK).output()?;
        ensure!(differences.is_empty(), "{}: the delta gave another tree:\n{differences}", way.name);
    }
    println!(
        "   {}, {}: {} bytes, {} s and {} s",
        pair.name,
        way.name,
        grouped(bytes),
        seconds(make.wall),
        seconds(apply.wall)
    );
    Ok(Sample { make, apply, bytes })
}

fn judge(report: &mut Report, pair: &Pair, samples: &[Sample], full: u64) {
    let [best, fast, xdelta, ..] = samples else { return };
    let mut verdict = |what: &str, figure: f64, wanted: f64| {
        report.verdict(Verdict {
            what: format!("delta, {}: {what}", pair.name),
            figure: format!("{figure:.3}"),
            wanted: format!("at most {wanted:.2}"),
            is_reached: figure <= wanted,
        });
    };
    let bytes = |ours: &Sample| float(ours.bytes) / float(xdelta.bytes);
    let time = |ours: &Sample| ours.make.wall.as_secs_f64() / xdelta.make.wall.as_secs_f64();
    verdict("bytes of level 19, to xdelta3 -9 on tars", bytes(best), pair.bytes.0);
    verdict("seconds to make it, to xdelta3", time(best), pair.seconds.0);
    if let Some(wanted) = pair.bytes.1 {
        verdict("bytes of level 3, to xdelta3", bytes(fast), wanted);
    }
    if let Some(wanted) = pair.seconds.1 {
        verdict("seconds to make that, to xdelta3", time(fast), wanted);
    }
    if let Some(wanted) = pair.share {
        verdict("bytes of level 19, to the full bundle", float(best.bytes) / float(full), wanted);
    }
    let mut text = String::from(
        "| | bytes | to xdelta3 | make, s | CPU, s | apply, s | peak MiB |\n| --- | --: | --: | --: | --: | --: | --: |\n",
    );
    for (way, sample) in WAYS.iter().zip(samples) {
        let peak = sample.make.peak_bytes.max(sample.apply.peak_bytes) >> 20;
        text.push_str(&format!(
            "| {} | {} | {:.3} | {} | {} | {} | {peak} |\n",
            way.name,
            grouped(sample.bytes),
            bytes(sample),
            seconds(sample.make.wall),
            seconds(sample.make.cpu()),
            seconds(sample.apply.wall),
        ));
    }
    text.push_str(&format!(
        "\nThe full bundle of the old tree at level 3 has {} bytes. Our files hold the index's difference, hashes and signature as well, \
         and are applied to a tree of files; a tar or an image is made anew by the others' ways, and not unpacked.\n",
        grouped(full)
    ));
    report.section(pair.title, &text);
}
