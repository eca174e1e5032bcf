//! Runs the contenders of one measure in turn: peer, ours, peer, ours.

use std::fs;

use anyhow::{Context, Result};

use super::contenders::Contender;
use super::job::{Job, Usage, median};
use super::measures::{Measure, State};
use super::places::Places;
use crate::tree;

/// The results of one contender's runs.
pub(crate) struct Samples {
    pub(crate) contender: &'static Contender,
    pub(crate) usages: Vec<Usage>,
    /// The size of its output file.
    pub(crate) bytes: Option<u64>,
}

impl Samples {
    pub(crate) fn median(&self) -> Usage {
        median(&self.usages)
    }

    pub(crate) fn peak_bytes(&self) -> u64 {
        self.usages.iter().map(|usage| usage.peak_bytes).max().unwrap_or_default()
    }
}

/// Returns ours first, then the peers in the measure's order.
pub(crate) fn run(measure: &Measure, runs: usize, places: &Places) -> Result<Vec<Samples>> {
    for contender in measure.needs {
        make(contender, places)?;
    }
    let samples = |contender| Samples { contender, usages: Vec::new(), bytes: None };
    let mut all: Vec<_> = [measure.ours].into_iter().chain(measure.peers.iter().copied()).map(samples).collect();
    for round in 1..=runs {
        // Peers first, so that ours comes last and the check sees its result.
        for one in all.iter_mut().rev() {
            prepare(measure, one.contender, places)?;
            let usage = Job::new(one.contender.line, places).run()?;
            println!("   {round}/{runs} {}: {:.3} s", one.contender.name, usage.wall.as_secs_f64());
            one.usages.push(usage);
            one.bytes = made_bytes(one.contender, places);
        }
        if let (1, Some(check)) = (round, measure.check) {
            Job::new(check, places).finds_nothing(measure.ours.name)?;
        }
    }
    for one in &all {
        if one.bytes.is_none() {
            make_way(measure, one.contender, places)?;
        }
    }
    Ok(all)
}

/// Makes the input of a later measure, unless an earlier one left it.
fn make(contender: &Contender, places: &Places) -> Result<()> {
    let file = places.path(contender.makes.context("it makes nothing")?);
    if !file.exists() {
        println!("   making {}", contender.makes.unwrap_or_default());
        Job::new(contender.line, places).run()?;
    }
    Ok(())
}

fn prepare(measure: &Measure, contender: &Contender, places: &Places) -> Result<()> {
    make_way(measure, contender, places)?;
    for word in measure.reads {
        tree::read_all(&places.path(word))?;
    }
    match measure.state {
        State::Warm => {}
        State::Untouched => {
            Job::new("sync -f DISK", places).run()?;
        }
        State::Cold(word) => tree::forget(&places.path(word))?,
    }
    Ok(())
}

/// Removes the output of an earlier run, or renames it if removing it would slow down later runs.
fn make_way(measure: &Measure, contender: &Contender, places: &Places) -> Result<()> {
    if measure.state == State::Untouched {
        return set_aside(contender, places);
    }
    places.remove(contender.makes.as_slice())
}

/// Renames the output of an earlier run; the whole folder is removed after the last measure.
fn set_aside(contender: &Contender, places: &Places) -> Result<()> {
    let Some(made) = contender.makes.map(|word| places.path(word)).filter(|path| path.exists()) else {
        return Ok(());
    };
    let aside = places.path("DISK/aside");
    fs::create_dir_all(&aside)?;
    let number = fs::read_dir(&aside)?.count();
    fs::rename(&made, aside.join(number.to_string())).with_context(|| format!("cannot rename {}", made.display()))
}

fn made_bytes(contender: &Contender, places: &Places) -> Option<u64> {
    let metadata = places.path(contender.makes?).metadata().ok()?;
    metadata.is_file().then_some(metadata.len())
}
