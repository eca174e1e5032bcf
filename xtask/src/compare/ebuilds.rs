//! A tree such as a distribution's package descriptions: tens of thousands of files of one to four kilobytes, of which each week some get
//! a new version, as a file that is copied from the one before.

use std::fs;
use std::path::Path;

use anyhow::Result;

use crate::random::Random;

const CATEGORIES: u64 = 60;
const PACKAGES: u64 = 150;
const VERSIONS: u64 = 3;
/// Of a thousand packages, those that change in a week.
const CHANGED: u64 = 40;
const WORDS: [&str; 24] = [
    "library", "support", "enable", "parser", "python", "build", "toolkit", "network", "protocol", "static", "plugin",
    "system", "daemon", "client", "server", "config", "debug", "test", "doc", "crypto", "image", "audio", "video",
    "font",
];

/// Writes the tree as it is `weeks` after the first.
pub(crate) fn write(to: &Path, weeks: u64) -> Result<()> {
    for category in 0..CATEGORIES {
        for package in 0..PACKAGES {
            // What comes to be of one package is nothing to the next.
            let mut random = Random::of(category * PACKAGES + package);
            let name = format!("{}-{package}", word(&mut random));
            let dir = to.join(format!("cat-{category:02}")).join(&name);
            fs::create_dir_all(&dir)?;
            let body = body(&mut random, &name);
            let (mut first, mut edited) = (0, false);
            for _ in 0..weeks {
                match random.below(1000) {
                    // A new version comes and the oldest goes, or a file is edited where it is.
                    chance if chance < CHANGED / 2 => first += 1,
                    chance if chance < CHANGED => edited = true,
                    _ => {}
                }
            }
            for version in first..first + VERSIONS {
                let mut text = body.replace("VERSION", &format!("1.{version}")).replace("KEYWORDS", keywords(version));
                if edited && version == first + 1 {
                    text.push_str("\nsrc_test() {\n\temake check || die\n}\n");
                }
                fs::write(dir.join(format!("{name}-1.{version}.ebuild")), text)?;
            }
            let manifest: String = (first..first + VERSIONS).map(|version| manifest_line(&name, version)).collect();
            fs::write(dir.join("Manifest"), manifest)?;
        }
    }
    Ok(())
}

fn word(random: &mut Random) -> &'static str {
    let at = random.below(u64::try_from(WORDS.len()).unwrap_or(1));
    WORDS[usize::try_from(at).unwrap_or(0)]
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

/// As a manifest has it: digests, which do not compress.
fn manifest_line(name: &str, version: u64) -> String {
    let digest: String =
        (0..4).map(|part| format!("{:016x}", seed(name, version, part).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    format!("DIST {name}-1.{version}.tar.gz {} BLAKE2B {digest}\n", 10_000 + version * 37)
}

fn seed(name: &str, version: u64, part: u64) -> u64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ (version << 8) ^ part;
    name.bytes().fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
