//! What a step finds. It goes on after each, since one cause shows in several places.

use anyhow::{Result, bail};

/// After so many the rest says nothing new.
const ENOUGH: usize = 40;

#[derive(Default)]
pub(crate) struct Findings(usize);

impl Findings {
    /// Prints what does not hold.
    ///
    /// # Errors
    ///
    /// When there were many before it.
    pub(crate) fn add(&mut self, text: &str) -> Result<()> {
        println!("   does not hold: {text}");
        self.0 += 1;
        if self.0 >= ENOUGH {
            bail!("{ENOUGH} things do not hold; stopped there");
        }
        Ok(())
    }

    pub(crate) fn count(&self) -> usize {
        self.0
    }

    /// # Errors
    ///
    /// When something did not hold.
    pub(crate) fn finish(&self) -> Result<()> {
        match self.0 {
            0 => Ok(()),
            number => bail!("{number} of what must hold does not, see above"),
        }
    }
}
