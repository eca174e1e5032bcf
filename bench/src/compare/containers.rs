//! Images and archives of a Debian, one update apart: the size of their deltas beside that of the tree's, and what applying them takes.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;
use xtask::shell::run;

use super::desktop;
use super::job::{Job, Usage, median, number};
use super::places::Places;
use super::report::{Report, float, grouped, seconds};
use super::slots::PACKAGES;

/// Each form: its name, how a root becomes one, and the limits for the size of its delta and of its full bundle at level 19.
#[rustfmt::skip] // a table
const FORMS: [Form; 10] = [
    Form { name: "squashfs, gzip", make: "SQUASH gzip",                limit: 1.25, full: Some(0.9) },
    Form { name: "squashfs, xz",   make: "SQUASH xz",                  limit: 1.25, full: Some(1.01) },
    Form { name: "squashfs, lz4",  make: "SQUASH lz4",                 limit: 1.25, full: Some(0.9) },
    Form { name: "squashfs, zstd", make: "SQUASH zstd",                limit: 1.25, full: Some(1.01) },
    Form { name: "EROFS, lz4hc",   make: "mkfs.erofs --quiet -T0 -U00000000-0000-0000-0000-000000000000 -zlz4hc os.erofs ROOT", limit: 1.25, full: None },
    Form { name: "ISO 9660 with squashfs, gzip", make: "SQUASH gzip; mkdir iso; mv os.squashfs iso; xorrisofs -quiet -r --modification-date=2024010100000000 -o os.iso iso; rm -r iso", limit: 1.25, full: None },
    Form { name: "GPT with ext4",  make: "DISK", limit: 1.3, full: None },
    Form { name: "squashfs with GPT with ext4", make: "DISK; mkdir disk; mv disk.img disk; mksquashfs disk os.squashfs -comp gzip MADE; rm -r disk", limit: 1.35, full: None },
    Form { name: "tar, gzip by Python", make: "python3 -c 'import tarfile; tarfile.open(\"os.tar.gz\", \"w:gz\").add(\"ROOT\", \"\")'", limit: 1.25, full: None },
    Form { name: "tar, zstd",      make: "tar -C ROOT --sort=name -cf os.tar .; zstd -q --rm os.tar", limit: 1.25, full: None },
];

struct Form {
    name: &'static str,
    make: &'static str,
    limit: f64,
    full: Option<f64>,
}

/// What the words in [`Form::make`] stand for.
const WORDS: [(&str, &str); 3] = [
    ("SQUASH", "mksquashfs ROOT os.squashfs MADE -comp"),
    ("MADE", "-noappend -quiet -no-progress -mkfs-time 1700000000"),
    (
        "DISK",
        "mke2fs -q -t ext4 -U 11111111-1111-1111-1111-111111111111 -E hash_seed=11111111-1111-1111-1111-111111111111 -d ROOT fs 900M; \
         truncate -s 904M disk.img; echo 'label: gpt\nlabel-id: 11111111-1111-1111-1111-111111111111\nstart=2048, size=1843200, \
         uuid=11111111-1111-1111-1111-111111111112' | sfdisk -q disk.img; dd if=fs of=disk.img bs=1M seek=1 conv=notrunc,sparse status=none; rm fs",
    ),
];

const PACK: &str = "sealift pack --force SCRATCH/containers/VERSION -o SCRATCH/containers/VERSION.sealift --level 3 --name os --bundle-version VERSION --key SCRATCH/key --progress none OPTIONS";
const DELTA: &str = "sealift pack --force SCRATCH/containers/2 -o SCRATCH/containers/delta.sealift --base SCRATCH/containers/1.sealift --trust SCRATCH/allowed_signers --level 3 --name os --bundle-version 2 --key SCRATCH/key --progress none OPTIONS";
const FULL: &str = "sealift pack --force SCRATCH/containers/2 -o SCRATCH/containers/full.sealift --level 19 --name os --bundle-version 2 --key SCRATCH/key --progress none OPTIONS";
const FIRST: &str = "sealift unpack SCRATCH/containers/1.sealift SCRATCH/containers/out --trust SCRATCH/allowed_signers --state SCRATCH/containers/state --progress none";
const APPLY: &str = "sealift unpack SCRATCH/containers/delta.sealift SCRATCH/containers/out --update --trust SCRATCH/allowed_signers --state SCRATCH/containers/state --progress none";
const COPY: &str =
    "cp -r SCRATCH/containers/1 SCRATCH/containers/read && cp -r SCRATCH/containers/2 SCRATCH/containers/written";
const SAME: &str = "diff -r SCRATCH/containers/2 SCRATCH/containers/out";
/// What applying any delta may take, in bytes.
const MEMORY: u64 = 256 << 20;

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    let (old, new) = desktop::roots_with(["slot-before", "slot-after"], &PACKAGES)?;
    let roots = [old, new];
    let place = |name: &str| places.path(&format!("SCRATCH/containers/{name}"));
    let mut text = "| | bytes | delta | to the tree's | packed, s | applied, s | copied, s | peak, MiB | declared, MiB | to encode |\n| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n".to_owned();
    for (version, root) in ["1", "2"].into_iter().zip(&roots) {
        places.remove(&[&format!("SCRATCH/containers/{version}")])?;
        fs::create_dir_all(place(""))?;
        std::os::unix::fs::symlink(root, place(version))?;
    }
    let trees = ["", "--recipes"].map(|options| deltas(options, places).map(|measured| measured.delta));
    let [tree, tree_with_recipes] = trees;
    let (tree, tree_with_recipes) = (tree?, tree_with_recipes?);
    let ratio = float(tree_with_recipes) / float(tree);
    report.at_most("containers: delta of the tree with recipes, to that without", ratio, 0.87, 2, "");
    text.push_str(&format!("| the tree | | {} | | | | | | | |\n", grouped(tree)));
    text.push_str(&format!("| the tree, with recipes | | {} | {ratio:.2} | | | | | | |\n", grouped(tree_with_recipes)));
    for form in &FORMS {
        for (version, root) in ["1", "2"].into_iter().zip(&roots) {
            places.remove(&[&format!("SCRATCH/containers/{version}")])?;
            fs::create_dir_all(place(version))?;
            make(form, root, &place(version))?;
        }
        let Measured { bytes, delta, packed } = deltas("--recipes", places)?;
        let info: Value = Job::new("sealift info SCRATCH/containers/delta.sealift --json", places).json()?;
        let declared = number(&info["cost"], "memory_bytes")?;
        let encoded = info["recipes"]["encoders"].as_array().into_iter().flatten();
        let encoded: u64 = encoded.filter_map(|encoder| encoder["bytes"].as_u64()).sum();
        let (mut applied, mut copied) = (Vec::<Usage>::new(), Vec::<Usage>::new());
        for _ in 0..runs {
            places.remove(&[
                "SCRATCH/containers/out",
                "SCRATCH/containers/state",
                "SCRATCH/containers/read",
                "SCRATCH/containers/written",
            ])?;
            copied.push(Job::new(COPY, places).run()?);
            Job::new(FIRST, places).run()?;
            applied.push(Job::new(APPLY, places).run()?);
            Job::new(SAME, places).finds_nothing(APPLY)?;
        }
        let peak = applied.iter().map(|usage| usage.peak_bytes).max().unwrap_or_default();
        let (applied, copied) = (median(&applied).wall, median(&copied).wall);
        let ratio = float(delta) / float(tree);
        report.at_most(format!("containers, {}: delta to the tree's", form.name), ratio, form.limit, 2, "");
        report.at_most(
            format!("containers, {}: memory to 256 MiB", form.name),
            float(peak) / float(MEMORY),
            1.0,
            2,
            "",
        );
        let mebibytes = |bytes: u64| float(bytes) / 1_048_576.0;
        text.push_str(&format!(
            "| {} | {} | {} | {ratio:.2} | {} | {} | {} | {:.0} | {:.0} | {} |\n",
            form.name,
            grouped(bytes),
            grouped(delta),
            seconds(packed),
            seconds(applied),
            seconds(copied),
            mebibytes(peak),
            mebibytes(declared),
            grouped(encoded),
        ));
        println!(
            "   {}: {} of {}, {ratio:.2} of the tree's delta, packed in {} s, applied in {} s, copied in {} s",
            form.name,
            grouped(delta),
            grouped(bytes),
            seconds(packed),
            seconds(applied),
            seconds(copied)
        );
        if let Some(limit) = form.full {
            Job::new(&FULL.replace("OPTIONS", "--recipes"), places).run()?;
            let full = fs::metadata(place("full.sealift"))?.len();
            let ratio = float(full) / float(bytes);
            report.at_most(
                format!("containers, {}: full bundle at level 19, to the image", form.name),
                ratio,
                limit,
                3,
                "",
            );
        }
    }
    text.push_str(&format!("\n- `{DELTA}`\n- `{APPLY}`\n- `{COPY}`\n- `{FULL}`\n"));
    report.section("Images and archives", &text);
    places.remove(&["SCRATCH/containers"])
}

/// What was packed.
struct Measured {
    /// The bytes of the new version.
    bytes: u64,
    delta: u64,
    packed: Duration,
}

/// Packs the first version and the delta.
fn deltas(options: &str, places: &Places) -> Result<Measured> {
    let job =
        |line: &str, version: &str| Job::new(&line.replace("VERSION", version).replace("OPTIONS", options), places);
    job(PACK, "1").run()?;
    let packed = job(DELTA, "2").run()?.wall;
    let delta = fs::metadata(places.path("SCRATCH/containers/delta.sealift"))?.len();
    let files = fs::read_dir(places.path("SCRATCH/containers/2"))?.filter_map(Result::ok);
    let bytes =
        files.filter_map(|file| file.metadata().ok()).filter(fs::Metadata::is_file).map(|file| file.len()).sum();
    Ok(Measured { bytes, delta, packed })
}

/// Makes a form of a root in a folder.
fn make(form: &Form, root: &Path, folder: &Path) -> Result<()> {
    let line = WORDS.iter().fold(form.make.to_owned(), |line, (word, stands_for)| line.replace(word, stands_for));
    let line = line.replace("ROOT", &root.display().to_string());
    run(Command::new("bash").args(["-ec", &line]).current_dir(folder))
}
