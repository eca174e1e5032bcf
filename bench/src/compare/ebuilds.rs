//! A tree such as a distribution's package descriptions: tens of thousands of files of one to four kilobytes, some of which get a new version each
//! day or week, as a copy of the previous file.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::Result;

use crate::random::Random;

/// Categories of a tree of 36,000 files.
pub(crate) const CATEGORIES: u64 = 60;
/// And of one to try things on.
pub(crate) const FEW_CATEGORIES: u64 = 4;
const PACKAGES: u64 = 150;
const VERSIONS: usize = 3;
/// Time of the files that no step changed, in seconds since 1970.
const BEGIN: u64 = 1_700_000_000;

/// How fast a tree changes.
pub(crate) struct Pace {
    /// The time from one state to the next, in seconds.
    step: u64,
    /// Packages that change in it, per thousand.
    changed: u64,
}

pub(crate) const WEEKLY: Pace = Pace { step: 7 * 24 * 3600, changed: 40 };
pub(crate) const DAILY: Pace = Pace { step: 24 * 3600, changed: 6 };

/// Writes a tree of so many categories as it is `steps` steps after the start.
pub(crate) fn write(to: &Path, categories: u64, pace: &Pace, steps: u64) -> Result<()> {
    let set_time = |path: &Path, step: u64| set_time(path, step * pace.step);
    let write_file = |path: &Path, text: &str, step: u64| -> Result<()> {
        fs::write(path, text)?;
        set_time(path, step)
    };
    for category in 0..categories {
        for package in 0..PACKAGES {
            // The history of one package does not depend on the others.
            let mut random = Random::of(category * PACKAGES + package);
            let name = format!("{}-{package}", word(&mut random));
            let dir = to.join(format!("cat-{category:02}")).join(&name);
            fs::create_dir_all(&dir)?;
            let body = body(&mut random, &name);
            // The steps of the last changes.
            let (mut first, mut edited, mut versions) = (0, None, [0; VERSIONS]);
            for step in 1..=steps {
                match random.below(1000) {
                    // A new version is added and the oldest removed, or a file is edited in place.
                    chance if chance < pace.changed / 2 => {
                        first += 1;
                        versions.rotate_left(1);
                        versions[VERSIONS - 1] = step;
                    }
                    chance if chance < pace.changed => edited = Some(step),
                    _ => {}
                }
            }
            for (version, step) in (first..).zip(versions) {
                let mut text = body.replace("VERSION", &format!("1.{version}")).replace("KEYWORDS", keywords(version));
                let edited = edited.filter(|_| version == first + 1);
                if edited.is_some() {
                    text.push_str("\nsrc_test() {\n\temake check || die\n}\n");
                }
                let path = dir.join(format!("{name}-1.{version}.ebuild"));
                write_file(&path, &text, edited.unwrap_or(0).max(step))?;
            }
            let manifest: String = (first..).zip(versions).map(|(version, _)| manifest_line(&name, version)).collect();
            let newest = versions[VERSIONS - 1];
            write_file(&dir.join("Manifest"), &manifest, newest)?;
            set_time(&dir, newest)?;
        }
        set_time(&to.join(format!("cat-{category:02}")), 0)?;
    }
    set_time(to, 0)
}

/// A file that no step touched keeps its time, as in a synchronized mirror. `after` is in seconds.
fn set_time(path: &Path, after: u64) -> Result<()> {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(BEGIN + after);
    Ok(File::open(path)?.set_modified(time)?)
}

/// Returns a word of two to four syllables. Words from a small vocabulary would make a file of two kilobytes cost only a hundred bytes in a bundle;
/// in Gentoo's tree of 153,000 files it costs 600.
fn word(random: &mut Random) -> String {
    let syllable = |number: u64| {
        let letter = |letters: &str, at: u64| letters.chars().nth(usize::try_from(at).unwrap_or(0)).unwrap_or('x');
        [letter("bdfghklmnprstvwz", number % 16), letter("aeiou", number / 16)]
    };
    (0..2 + random.below(3)).flat_map(|_| syllable(random.below(80))).collect()
}

fn keywords(version: u64) -> &'static str {
    if version.is_multiple_of(2) { "amd64 arm64 x86" } else { "~amd64 ~arm64 ~riscv" }
}

fn body(random: &mut Random, name: &str) -> String {
    let mut text = format!(
        "# Copyright 1999-2026 Authors\n# Distributed under the terms of a licence\n\nEAPI=8\n\nDESCRIPTION=\"{} {} {}\"\nHOMEPAGE=\"https://example.org/{name}\"\n\
         SRC_URI=\"https://example.org/{name}-VERSION.tar.gz\"\n\nLICENSE=\"MIT\"\nSLOT=\"0\"\nKEYWORDS=\"KEYWORDS\"\n",
        word(random),
        word(random),
        word(random)
    );
    for _ in 0..random.below(50) + 12 {
        let line =
            format!("\t{}-{}? ( cat-{:02}/{} )\n", word(random), random.below(90), random.below(60), word(random));
        text.push_str(&line);
    }
    text
}

/// Returns a manifest line (GLEP 74): two digests of 64 bytes, which are incompressible.
fn manifest_line(name: &str, version: u64) -> String {
    let digest = |kind: u64| -> String {
        let mut random = Random::of(seed(name, version, kind));
        random.bytes(64).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    let size = 10_000 + version * 37;
    format!("DIST {name}-1.{version}.tar.gz {size} BLAKE2B {} SHA512 {}\n", digest(0), digest(1))
}

fn seed(name: &str, version: u64, kind: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ (version << 8) ^ kind;
    name.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
