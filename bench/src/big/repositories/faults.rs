//! Fails each system call once: the error must be clear, the repository sound, its ref old or new, and a repeated command must complete it.

use anyhow::Result;

use super::pack;
use super::sources::Sources;
use super::target::{Target, TargetForm};
use crate::big::faults::{inject_all, short_transfers, sync_that_fails};
use crate::big::findings::Findings;
use crate::big::ground::Ground;
use crate::big::verbs::Disturbed;

const TRIES: u32 = 4;

const PLACES: [(TargetForm, bool); 4] = [
    (TargetForm::Usb, false),
    (TargetForm::Repo("bare"), true),
    (TargetForm::Repo("bare-user"), false),
    (TargetForm::Repo("bare-user-only"), true),
];

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("repo-faults")?;
    let mut findings = Findings::default();
    let sources = Sources::make(&ground, 0)?;
    for (place, has_old) in PLACES {
        let target = Target::make(&ground, &sources, place, has_old)?;
        inject_all(&ground, &target, TRIES, &mut findings)?;
        sync_that_fails(&ground, &target, &mut findings)?;
        short_transfers(&ground, &target, &mut findings)?;
    }
    let known = pack::prepare(&ground)?;
    inject_all(&ground, &Disturbed { verb: &pack::VERB, known: &known }, TRIES, &mut findings)?;
    findings.finish()?;
    ground.remove()
}
