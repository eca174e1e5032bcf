//! A trusted bundle.

use std::path::Path;

use sealift_format::{Bundle, Limits, Opened};

use super::{Admission, Guard, Judged};
use crate::Error;
use crate::input::{Input, Unopened};

/// A bundle whose head was judged, and behind it nothing was read. What hands out content or installs it takes one, and only
/// [`Guard::admit`] makes one.
#[derive(Debug)]
pub struct Trusted {
    guard: Guard,
    bundle: Unopened,
    judged: Judged,
}

impl Guard {
    /// Judges a bundle, of which the head is read.
    ///
    /// # Errors
    /// As [`Guard::judge`]; or the input cannot be read, or does not begin with a bundle's head.
    pub fn admit(&self, input: Input, limits: Limits) -> Result<Trusted, Error> {
        let bundle = input.begin(limits)?;
        let judged = Judged { head: bundle.head().clone(), verdict: self.judge(bundle.head())? };
        Ok(Trusted { guard: self.clone(), bundle, judged })
    }
}

impl Trusted {
    /// Who it is, and what was found.
    #[must_use]
    pub fn judged(&self) -> &Judged {
        &self.judged
    }

    /// The input's name for messages.
    pub fn path(&self) -> &Path {
        self.bundle.path()
    }

    /// The same bundle for what takes any.
    #[must_use]
    pub fn into_unopened(self) -> Unopened {
        self.bundle
    }

    /// Reads layout and index, or the difference in the index's place, for handing out content.
    pub fn open_any(self) -> Result<(Input, Opened), Error> {
        self.bundle.open_any()
    }

    /// The same of a bundle that needs no base.
    pub fn open_bundle(self) -> Result<(Input, Bundle), Error> {
        self.bundle.open_bundle()
    }

    /// For what installs the bundle, or only says what it would do: begins with the state, before the target is touched. In a dry run
    /// nothing is written, and what asks somebody before it installs begins with one.
    ///
    /// # Errors
    /// The state cannot be opened, locked or written to, or another user could change it.
    pub(crate) fn install(self, dry_run: bool) -> Result<(Unopened, Admission), Error> {
        let admission = Admission::new(self.guard, self.judged);
        match dry_run {
            true => admission.check_may_hold()?,
            false => admission.hold()?,
        }
        Ok((self.bundle, admission))
    }
}
