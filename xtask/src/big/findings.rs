//! What a step finds. It goes on after each, since one cause shows in several places.

use std::collections::BTreeSet;

use anyhow::{Result, bail};

/// After so many the rest says nothing new.
const ENOUGH: usize = 100;

#[derive(Default)]
pub(crate) struct Findings {
    number: usize,
    kinds: BTreeSet<String>,
}

impl Findings {
    /// Prints what does not hold.
    ///
    /// # Errors
    ///
    /// When there were many before it.
    pub(crate) fn add(&mut self, text: &str) -> Result<()> {
        println!("   does not hold: {text}");
        self.number += 1;
        if self.number >= ENOUGH {
            bail!("{ENOUGH} things do not hold; stopped there");
        }
        Ok(())
    }

    /// The same, for the first of its kind alone.
    pub(crate) fn add_like(&mut self, kind: &str, text: &str) -> Result<()> {
        if self.kinds.insert(kind.to_owned()) { self.add(text) } else { Ok(()) }
    }

    pub(crate) fn count(&self) -> usize {
        self.number
    }

    /// # Errors
    ///
    /// When something did not hold.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.number {
            0 => Ok(()),
            number => bail!("{number} of what must hold does not, see above"),
        }
    }
}
