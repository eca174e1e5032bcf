//! Kills runs at random moments: the repository must be sound, its ref old or new, and a repeated command must complete it and leave nothing behind.

use anyhow::Result;

use super::pack;
use super::sources::Sources;
use super::target::Target;
use crate::big::findings::Findings;
use crate::big::ground::Ground;
use crate::big::kills::kill_often;
use crate::big::verbs::Disturbed;
use crate::random::Random;

const KILLS: u32 = 20;

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("repo-kills")?;
    let mut random = Random::new()?;
    let mut findings = Findings::default();
    let sources = Sources::make(&ground, 24)?;
    for target in &Target::all(&ground, &sources)? {
        kill_often(&ground, target, KILLS, &mut random, &mut findings)?;
    }
    let known = pack::prepare(&ground)?;
    kill_often(&ground, &Disturbed { verb: &pack::VERB, known: &known }, KILLS, &mut random, &mut findings)?;
    findings.finish()?;
    ground.remove()
}
