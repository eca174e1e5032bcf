//! A composefs store beside a plain directory, and a tree mounted from it beside mkcomposefs's image and overlayfs over images of the files: the time
//! of `ls -lR`, with cold and with warm caches.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::desktop;
use super::job::{Job, Usage, median};
use super::mounted::{Mounts, drop_caches};
use super::places::Places;
use super::report::{Report, float, grouped, seconds};
use crate::tree;

const PACK: &str = "sealift-composefs pack --force FROM -o SCRATCH/images.sealift --name tree --level 3 --bundle-version 1 --composefs --key SCRATCH/key --progress none";
const PLAIN: &str = "sealift-composefs unpack SCRATCH/images.sealift DISK/plain --trust SCRATCH/allowed_signers --state SCRATCH/images-state --progress none";
const STORE: &str = "sealift-composefs unpack SCRATCH/images.sealift composefs:DISK/store --trust SCRATCH/allowed_signers --state SCRATCH/images-state --progress none";

/// A way to mount a tree at `DISK/mounted`.
struct Way {
    name: &'static str,
    make: &'static [&'static str],
    /// The image: names, attributes and, except for composefs, all contents.
    image: &'static str,
    mount: &'static [&'static str],
}

const WAYS: [Way; 4] = [
    Way {
        name: OURS,
        make: &[],
        image: IMAGE,
        mount: &[
            "sealift-composefs mount composefs:DISK/store1 tree DISK/mounted --trust SCRATCH/allowed_signers --state SCRATCH/images-state --quiet",
        ],
    },
    Way {
        name: PEER,
        make: &["mkcomposefs --min-version=1 FROM DISK/peer.img"],
        image: "DISK/peer.img",
        mount: &[
            "mount -t erofs -o ro,loop DISK/peer.img DISK/lower",
            "mount -t overlay -o ro,metacopy=on,redirect_dir=on,lowerdir=DISK/lower::DISK/store1/objects peer DISK/mounted",
        ],
    },
    Way {
        name: "overlayfs over squashfs",
        make: &["mksquashfs FROM DISK/tree.squashfs -comp zstd -noappend -no-progress -quiet"],
        image: "DISK/tree.squashfs",
        mount: &["mount -t squashfs -o ro,loop DISK/tree.squashfs DISK/lower", OVERLAY],
    },
    Way {
        name: "overlayfs over erofs",
        make: &["mkfs.erofs --quiet DISK/tree.erofs FROM"],
        image: "DISK/tree.erofs",
        mount: &["mount -t erofs -o ro,loop DISK/tree.erofs DISK/lower", OVERLAY],
    },
];

const OURS: &str = "sealift mount";
const PEER: &str = "mkcomposefs";
const IMAGE: &str = "DISK/store1/images/refs/tree/main";
/// The overlay is read-only, so it needs two layers.
const OVERLAY: &str = "mount -t overlay -o ro,lowerdir=DISK/empty:DISK/lower overlay DISK/mounted";
const LIST: &str = "ls -lR DISK/mounted";

/// How often a tree is listed: each way goes first twice, since the first in a round may be slower.
const LISTINGS: usize = 2 * WAYS.len();

impl Way {
    /// Returns a line or word with the folders of this way.
    fn at(&self, line: &str) -> String {
        let own = self.name.replace(' ', "-");
        ["lower", "mounted"]
            .iter()
            .fold(line.to_owned(), |line, word| line.replace(&format!("DISK/{word}"), &format!("DISK/{word}-{own}")))
    }
}

/// The times of listing a tree.
struct Sample {
    way: &'static Way,
    image_bytes: u64,
    cold: Vec<Usage>,
    warm: Vec<Usage>,
}

pub(crate) fn add(report: &mut Report, runs: usize, places: &Places) -> Result<()> {
    let trees = [("linux-source", places.tree.clone()), ("a desktop's Debian root", desktop::roots()?.0)];
    for (name, tree) in trees {
        let (plain, store) = unpack(&tree, runs, places)?;
        let samples = list(&tree, places)?;
        judge(report, name, (&plain, &store), &samples);
        for number in 1..=runs {
            places.remove(&[&format!("DISK/store{number}"), &format!("DISK/plain{number}")])?;
        }
    }
    Ok(())
}

/// Unpacks the tree to directories and to stores in turn, new ones each time.
fn unpack(tree: &Path, runs: usize, places: &Places) -> Result<(Vec<Usage>, Vec<Usage>)> {
    job(PACK, tree, places).run()?;
    let mut usages = (Vec::new(), Vec::new());
    for number in 1..=runs {
        for (line, usages, name) in [(PLAIN, &mut usages.0, "plain"), (STORE, &mut usages.1, "store")] {
            tree::read_all(&places.path("SCRATCH/images.sealift"))?;
            Job::new("sync -f DISK", places).run()?;
            let line = line.replace(&format!("DISK/{name}"), &format!("DISK/{name}{number}"));
            let usage = Job::new(&line, places).run()?;
            println!("   {number}/{runs} {name}: {:.3} s", usage.wall.as_secs_f64());
            usages.push(usage);
        }
    }
    places.remove(&["SCRATCH/images.sealift"])?;
    Ok(usages)
}

fn job(line: &str, tree: &Path, places: &Places) -> Job {
    Job::new(&line.replace("FROM", &tree.display().to_string()), places)
}

/// Lists the tree in each way in turn.
fn list(tree: &Path, places: &Places) -> Result<Vec<Sample>> {
    let mut mounts = Mounts(Vec::new());
    let mut samples = Vec::new();
    for way in &WAYS {
        way.make.iter().try_for_each(|line| job(line, tree, places).run().map(drop))?;
        for word in ["DISK/empty", "DISK/lower", "DISK/mounted"].map(|word| way.at(word)) {
            let folder = places.path(&word);
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            mounts.0.push(folder);
        }
        way.mount.iter().try_for_each(|line| Job::new(&way.at(line), places).run().map(drop))?;
        let image = places.path(way.image);
        let image_bytes = fs::metadata(&image).with_context(|| format!("cannot find {}", image.display()))?.len();
        if way.name == PEER && tree == places.tree {
            // mkcomposefs writes a file with several names several times; this tree has none.
            ensure!(fs::read(&image)? == fs::read(places.path(IMAGE))?, "mkcomposefs makes another image");
        }
        samples.push(Sample { way, image_bytes, cold: Vec::new(), warm: Vec::new() });
    }
    for round in 0..LISTINGS {
        let (before, from) = samples.split_at_mut(round % WAYS.len());
        for sample in from.iter_mut().chain(before) {
            let list = Job::new(&sample.way.at(LIST), places);
            // Dropped twice: an overlay's entries pin those of the file systems below it, which are freed only afterwards, and the next way may share
            // these.
            drop_caches()?;
            drop_caches()?;
            sample.cold.push(list.run()?);
            sample.warm.push(list.run()?);
        }
    }
    drop(mounts);
    for sample in &samples {
        println!(
            "   {}: {} s cold, {} s warm",
            sample.way.name,
            seconds(median(&sample.cold).wall),
            seconds(median(&sample.warm).wall)
        );
        if !sample.way.make.is_empty() {
            places.remove(&[sample.way.image])?;
        }
    }
    Ok(samples)
}

fn judge(report: &mut Report, tree: &str, (plain, store): (&[Usage], &[Usage]), samples: &[Sample]) {
    let wall = |usages: &[Usage]| median(usages).wall;
    let mut verdict = |what: String, figure: f64, limit: f64| report.at_most(what, figure, limit, 2, "");
    let ratio = wall(store).as_secs_f64() / wall(plain).as_secs_f64();
    verdict(format!("composefs, {tree}: seconds to unpack, to a plain directory"), ratio, 1.25);
    let [ours, peers @ ..] = samples else { return };
    for peer in peers {
        for (state, ours, theirs) in [("cold", &ours.cold, &peer.cold), ("warm", &ours.warm, &peer.warm)] {
            let ratio = median(ours).wall.as_secs_f64() / median(theirs).wall.as_secs_f64();
            verdict(format!("composefs, {tree}: ls -lR, {state}, to {}", peer.way.name), ratio, 1.0);
        }
    }
    let mut text = format!(
        "To the disk, everything written when it ends: {} s into a plain directory, {} s into a store.\n\n\
         | | image, bytes | ls -lR cold, s | warm, s |\n| --- | --: | --: | --: |\n",
        seconds(wall(plain)),
        seconds(wall(store))
    );
    for sample in samples {
        text.push_str(&format!(
            "| {} | {} | {} | {} |\n",
            sample.way.name,
            grouped(sample.image_bytes),
            seconds(median(&sample.cold).wall),
            seconds(median(&sample.warm).wall)
        ));
    }
    let megabytes = samples.first().map_or(0.0, |ours| float(ours.image_bytes) / 1e6);
    text.push_str(&format!(
        "\nThe images of composefs, of {megabytes:.1} MB, have names and attributes; contents lie in the store. Those of squashfs and erofs hold \
         both.\n\n- `{PLAIN}`\n- `{STORE}`\n- `{LIST}`, of each in turn {LISTINGS} times, with caches dropped and again; the medians\n"
    ));
    report.section(&format!("composefs: {tree}"), &text);
}
