//! Collects a step's findings. The step continues after each, since one cause can show in several places.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

/// After this many, further findings tell nothing new.
const ENOUGH: usize = 100;

#[derive(Default)]
pub(crate) struct Findings {
    number: usize,
    kinds: BTreeSet<String>,
}

impl Findings {
    /// Records and prints a failed check.
    ///
    /// # Errors
    ///
    /// Returns an error if there were too many before it.
    pub(crate) fn add(&mut self, text: &str) -> Result<()> {
        println!("   does not hold: {text}");
        self.number += 1;
        if self.number >= ENOUGH {
            bail!("{ENOUGH} things do not hold; stopped there");
        }
        Ok(())
    }

    /// Does the same for the first finding of each kind only.
    pub(crate) fn add_like(&mut self, kind: &str, text: &str) -> Result<()> {
        if self.kinds.insert(kind.to_owned()) { self.add(text) } else { Ok(()) }
    }

    pub(crate) fn count(&self) -> usize {
        self.number
    }

    /// # Errors
    ///
    /// Returns an error if a check failed.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.number {
            0 => Ok(()),
            number => bail!("{number} of what must hold does not, see above"),
        }
    }
}
