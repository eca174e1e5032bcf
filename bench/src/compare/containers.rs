//! Images and archives of a Debian, one update apart: the size of their deltas beside that of the tree's, and what applying them takes.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
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
use crate::random::Random;
use crate::tree;

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
/// The tree of the new version as an archive, to compare the time with.
const TAR: &str = "sealift pack --force SCRATCH/containers/tar -o SCRATCH/containers/full.sealift --level 19 --name os --bundle-version 2 --key SCRATCH/key --progress none";
/// The first version as it is, which is the same base, and is installed without an encoder.
const PLAIN: &str = "sealift pack --force SCRATCH/containers/1 -o SCRATCH/containers/plain.sealift --level 1 --name os --bundle-version 1 --key SCRATCH/key --progress none";
const FIRST: &str = "sealift unpack SCRATCH/containers/plain.sealift SCRATCH/containers/out --trust SCRATCH/allowed_signers --state SCRATCH/containers/state --progress none";
const APPLY: &str = "sealift unpack SCRATCH/containers/delta.sealift SCRATCH/containers/out --update --trust SCRATCH/allowed_signers --state SCRATCH/containers/state --progress none";
const COPY: &str =
    "cp -r SCRATCH/containers/1 SCRATCH/containers/read && cp -r SCRATCH/containers/2 SCRATCH/containers/written";
const SAME: &str = "diff -r SCRATCH/containers/2 SCRATCH/containers/out";
/// Images of which a tenth of the blocks is changed.
const TENTHS: [&str; 4] = ["SQUASH gzip", "SQUASH xz", "SQUASH lz4", "SQUASH zstd"];
/// Bytes of a block of squashfs.
const BLOCK: u64 = 128 << 10;
/// A container image of a root, with a compressed layer (OCI Image Layout Specification).
const OCI: &str = r#"
mkdir -p blobs/sha256
add() { of=$(sha256sum < new | cut -d' ' -f1); size=$(stat -c %s new); mv new blobs/sha256/$of; }
tar -C ROOT --sort=name --xattrs -cf layer .
layer=$(sha256sum < layer | cut -d' ' -f1)
gzip -n < layer > new; rm layer; add; compressed=$of; layer_size=$size
printf '{"architecture":"amd64","os":"linux","config":{},"rootfs":{"type":"layers","diff_ids":["sha256:%s"]}}' $layer > new; add; config=$of
printf '{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:%s","size":%s},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar+gzip","digest":"sha256:%s","size":%s}]}' $config $size $compressed $layer_size > new; add
printf '{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%s,"annotations":{"org.opencontainers.image.ref.name":"os"}}]}' $of $size > index.json
printf '{"imageLayoutVersion":"1.0.0"}' > oci-layout
"#;
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
    let tar = pack_tar(&roots[1], places)?;
    for form in &FORMS {
        for (version, root) in ["1", "2"].into_iter().zip(&roots) {
            places.remove(&[&format!("SCRATCH/containers/{version}")])?;
            fs::create_dir_all(place(version))?;
            make(form, root, &place(version))?;
        }
        let Measured { bytes, delta, packed } = deltas("--recipes", places)?;
        let (declared, encoded) = declared(places)?;
        let Applied { applied, copied, peak } = apply(runs, places)?;
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
            let took = Job::new(&FULL.replace("OPTIONS", "--recipes"), places).run()?.wall;
            let full = fs::metadata(place("full.sealift"))?.len();
            let ratio = float(full) / float(bytes);
            let what = |what: &str| format!("containers, {}: {what}", form.name);
            report.at_most(what("full bundle at level 19, to the image"), ratio, limit, 3, "");
            let ratio = took.as_secs_f64() / tar.as_secs_f64();
            report.at_most(what("packing at level 19, to a tar of the tree"), ratio, 3.0, 2, "");
            println!("   packed whole at level 19 in {} s, a tar of the tree in {} s", seconds(took), seconds(tar));
        }
    }
    text.push_str(&format!("\n- `{DELTA}`\n- `{APPLY}`\n- `{COPY}`\n- `{FULL}`\n- `{TAR}`\n"));
    report.section("Images and archives", &text);
    image(report, &roots, tree, places)?;
    let [old, _] = &roots;
    tenths(report, old, runs, places)?;
    places.remove(&["SCRATCH/containers"])
}

/// Compares the delta between two container images with that of the tree.
fn image(report: &mut Report, roots: &[PathBuf; 2], tree: u64, places: &Places) -> Result<()> {
    for (version, root) in ["1", "2"].into_iter().zip(roots) {
        let folder = places.path(&format!("SCRATCH/containers/{version}"));
        places.remove(&[&format!("SCRATCH/containers/{version}")])?;
        fs::create_dir_all(&folder)?;
        run(Command::new("bash").args(["-ec", &OCI.replace("ROOT", &root.display().to_string())]).current_dir(folder))?;
    }
    let of_image = |line: &str, version: &str| {
        let source = format!("pack --force SCRATCH/containers/{version}");
        line.replace("VERSION", version)
            .replace("OPTIONS", "--recipes")
            .replace(&source, &source.replace("SCRATCH", "oci:SCRATCH"))
    };
    Job::new(&of_image(PACK, "1"), places).run()?;
    Job::new(&of_image(DELTA, "2"), places).run()?;
    let delta = fs::metadata(places.path("SCRATCH/containers/delta.sealift"))?.len();
    let ratio = float(delta) / float(tree);
    report.at_most("containers, OCI image, decoded: delta to the tree's", ratio, 1.3, 2, "");
    println!("   OCI image: {}, {ratio:.2} of the tree's delta", grouped(delta));
    Ok(())
}

/// Packs a tar of a root at level 19. Returns how long that takes.
fn pack_tar(root: &Path, places: &Places) -> Result<Duration> {
    let folder = places.path("SCRATCH/containers/tar");
    fs::create_dir_all(&folder)?;
    let tar = ["--sort=name", "-cf", "os.tar", "-C"];
    run(Command::new("tar").args(tar).arg(root).arg(".").current_dir(&folder))?;
    let took = Job::new(TAR, places).run()?.wall;
    places.remove(&["SCRATCH/containers/tar"])?;
    Ok(took)
}

/// Applies deltas between images of which a tenth of the blocks is changed.
fn tenths(report: &mut Report, root: &Path, runs: usize, places: &Places) -> Result<()> {
    let changed = places.path("SCRATCH/containers/changed");
    run(Command::new("cp").arg("-a").arg(root).arg(&changed))?;
    let mut random = Random::fixed();
    let (mut folder, mut are_ends_changed) = (PathBuf::new(), false);
    for path in tree::files(&changed)? {
        if path.parent() != Some(&folder) {
            folder = path.parent().unwrap_or(&changed).to_owned();
            are_ends_changed = random.below(10) == 0;
        }
        let file = File::options().write(true).open(&path)?;
        let len = file.metadata()?.len();
        for block in 0..len.div_ceil(BLOCK) {
            // A block of squashfs has the ends of many files, mostly of one folder.
            let is_end = (block + 1) * BLOCK > len;
            let is_changed = if is_end { are_ends_changed } else { random.below(10) == 0 };
            if is_changed {
                file.write_all_at(&[0xaa; 16], block * BLOCK)?;
            }
        }
    }
    let mut text =
        "| image | delta | applied, s | copied, s | to that | to encode |\n| --- | --: | --: | --: | --: | --: |\n"
            .to_owned();
    for make_line in TENTHS {
        let form = Form { name: make_line, make: make_line, limit: 1.0, full: None };
        for (version, root) in [("1", root), ("2", &changed)] {
            places.remove(&[&format!("SCRATCH/containers/{version}")])?;
            let folder = places.path(&format!("SCRATCH/containers/{version}"));
            fs::create_dir_all(&folder)?;
            make(&form, root, &folder)?;
        }
        let Measured { delta, .. } = deltas("--recipes", places)?;
        let Applied { applied, copied, .. } = apply(runs, places)?;
        let ratio = applied.as_secs_f64() / copied.as_secs_f64();
        let name = make_line.replace("SQUASH ", "squashfs, ");
        report.at_most(
            format!("containers, {name}, a tenth of the blocks changed: applying the delta, to copying both images"),
            ratio,
            1.5,
            2,
            "",
        );
        let (_, encoded) = declared(places)?;
        let figures = [grouped(delta), seconds(applied), seconds(copied), format!("{ratio:.1}"), grouped(encoded)];
        println!("   {name}, a tenth changed: {}", figures.join(", "));
        text.push_str(&format!("| {name} | {} |\n", figures.join(" | ")));
    }
    report.section("Images, a tenth of whose blocks is changed", &text);
    Ok(())
}

/// What applying a delta took.
struct Applied {
    applied: Duration,
    /// Reading the old image and writing the new one.
    copied: Duration,
    peak: u64,
}

/// Installs the first version and applies the delta to it.
fn apply(runs: usize, places: &Places) -> Result<Applied> {
    let (mut applied, mut copied) = (Vec::<Usage>::new(), Vec::<Usage>::new());
    Job::new(PLAIN, places).run()?;
    for _ in 0..runs {
        let made = ["out", "state", "read", "written"].map(|name| format!("SCRATCH/containers/{name}"));
        places.remove(&made.each_ref().map(String::as_str))?;
        copied.push(Job::new(COPY, places).run()?);
        Job::new(FIRST, places).run()?;
        applied.push(Job::new(APPLY, places).run()?);
        Job::new(SAME, places).finds_nothing(APPLY)?;
    }
    let peak = applied.iter().map(|usage| usage.peak_bytes).max().unwrap_or_default();
    Ok(Applied { applied: median(&applied).wall, copied: median(&copied).wall, peak })
}

/// Returns the memory that the delta declares, and how many bytes its encoders make.
fn declared(places: &Places) -> Result<(u64, u64)> {
    let info: Value = Job::new("sealift info SCRATCH/containers/delta.sealift --json", places).json()?;
    let encoders = info["recipes"]["encoders"].as_array().into_iter().flatten();
    let encoded = encoders.filter_map(|encoder| encoder["bytes"].as_u64()).sum();
    Ok((number(&info["cost"], "memory_bytes")?, encoded))
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
