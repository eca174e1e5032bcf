//! Images written to a slot by a delta over another one, killed at random moments: the old slot is untouched, the new one whole or begun with zeros, and
//! the next run completes it.

use std::fs;

use anyhow::{Result, ensure};
use xtask::shell::remove;

use super::findings::Findings;
use super::ground::Ground;
use super::kills::kill_often;
use super::trial::Trial;
use crate::random::Random;

const KILLS: u32 = 200;
const MIB: usize = 1 << 20;
const HEAD_LEN: usize = MIB;
/// Bytes that are written at the very end.
const BLOCK_LEN: usize = 4096;

/// The command, and what the slots hold before and after it.
struct SlotTrial {
    name: &'static str,
    line: &'static str,
    images: [Vec<u8>; 2],
}

#[rustfmt::skip] // a table
const CASES: [(&str, &str); 3] = [
    ("a delta over the other slot", "sealift unpack delta.sealift image:work/out/b --base image:work/out/a --adopt TRUST --quiet"),
    ("a full image", "sealift unpack 2.sealift image:work/out/b --adopt TRUST --quiet"),
    ("a full image over the old one", "sealift unpack 2.sealift image:work/out/b --adopt --update TRUST --quiet"),
];

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("slots")?;
    let (mut random, mut findings) = (Random::new()?, Findings::default());
    let images = prepare(&ground)?;
    for (name, line) in CASES {
        let trial = SlotTrial { name, line, images: images.clone() };
        kill_often(&ground, &trial, KILLS, &mut random, &mut findings)?;
    }
    findings.finish()?;
    ground.remove()
}

/// Makes two versions of an image, their bundles, and a start at which the first slot holds the first version, and the second one something else.
fn prepare(ground: &Ground) -> Result<[Vec<u8>; 2]> {
    let mut old = Random::of(7).bytes(48 * MIB + 1000);
    old[20 * MIB..24 * MIB].fill(0);
    let mut new = old.clone();
    for at in (0..40).map(|number| number * MIB + 4321) {
        new[at..at + 2000].copy_from_slice(&Random::of(9).bytes(2000));
    }
    for (version, image) in [(1, &old), (2, &new)] {
        fs::create_dir_all(ground.path(&version.to_string()))?;
        fs::write(ground.path(&format!("{version}/root.img")), image)?;
        ground.run(&format!(
            "sealift pack {version} -o {version}.sealift --name os --bundle-version {version} --key key --level 1 --quiet"
        ))?;
    }
    ground.run("sealift pack 2 -o delta.sealift --name os --bundle-version 2 --key key --base 1.sealift --trust signers --quiet")?;
    for folder in ["out", "state"] {
        fs::create_dir_all(ground.path("work").join(folder))?;
    }
    // The state names the slot by its path.
    ground.run("sealift unpack 1.sealift image:work/out/a TRUST --quiet")?;
    fs::write(ground.path("work/out/b"), Random::of(11).bytes(48 * MIB))?;
    ground.copy("work", "start-slots")?;
    remove(&ground.path("work"))?;
    ensure!(old != new, "the versions differ");
    Ok([old, new])
}

impl Trial for SlotTrial {
    fn name(&self) -> &str {
        self.name
    }

    fn line(&self) -> &str {
        self.line
    }

    fn start(&self) -> &str {
        "start-slots"
    }

    fn not_whole(&self, ground: &Ground, ended_well: bool) -> Result<Option<String>> {
        let [old, new] = &self.images;
        let [a, b] = ["a", "b"].map(|name| fs::read(ground.path("work/out").join(name)));
        let (a, b, before) = (a?, b?, fs::read(ground.path("start-slots/out/b"))?);
        if a != *old {
            return Ok(Some("the old slot was changed".to_owned()));
        }
        // The first block comes last of all. Before it comes the rest of the start, once everything behind that is there.
        let is_zero = |bytes: &[u8]| bytes.iter().all(|byte| *byte == 0);
        let (own, wanted) = (b.chunks(BLOCK_LEN), new.chunks(BLOCK_LEN));
        let mut head = own.zip(wanted).take(HEAD_LEN / BLOCK_LEN).skip(1);
        let is_ending =
            b.get(HEAD_LEN..) == new.get(HEAD_LEN..) && head.all(|(own, wanted)| is_zero(own) || own == wanted);
        let is_begun = b.get(..BLOCK_LEN).is_some_and(is_zero) && (is_ending || b.get(..HEAD_LEN).is_some_and(is_zero));
        // Until the first zeros are there, and while they are written, nothing else is.
        let is_old = b.len() >= HEAD_LEN && before.len() <= b.len() && b[HEAD_LEN..before.len()] == before[HEAD_LEN..];
        let is_new = b == *new;
        let is_right = is_new || (!ended_well && (is_begun || is_old || b == before));
        Ok((!is_right).then(|| "the new slot is neither whole nor without a start".to_owned()))
    }

    fn after(&self, ground: &Ground, cleans: bool) -> Result<Option<String>> {
        let clean = "sealift clean image:work/out/b --state work/state --quiet";
        let lines = [self.line, "sealift audit image:work/out/b TRUST --quiet"];
        // What was given up can be begun again.
        let clean = cleans.then_some(clean);
        for line in clean.into_iter().chain(lines) {
            if let Err(error) = ground.run(line) {
                return Ok(Some(format!("{line}: {error:#}")));
            }
        }
        self.not_whole(ground, true)
    }
}
