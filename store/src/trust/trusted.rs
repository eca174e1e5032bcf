//! A judged bundle.

use std::path::Path;

use sealift_format::{Bundle, Limits, Opened};

use super::{Admission, DeviceState, Guard, Judged};
use crate::Error;
use crate::input::{Input, Unopened};

/// A bundle whose head was judged, and of which nothing more has been read. Extracting or installing content requires one, and only [`Guard::admit`]
/// makes one.
#[derive(Debug)]
pub struct Trusted {
    guard: Guard,
    bundle: Unopened,
    judged: Judged,
}

impl Guard {
    /// Judges a bundle by reading its head.
    ///
    /// # Errors
    /// As [`Guard::judge`]; also returns an error if the input cannot be read or does not begin with a bundle's head.
    pub fn admit(&self, input: Input, limits: Limits) -> Result<Trusted, Error> {
        let bundle = input.begin(limits)?;
        let judged = Judged { head: bundle.head().clone(), verdict: self.judge(bundle.head())? };
        Ok(Trusted { guard: self.clone(), bundle, judged })
    }
}

impl Trusted {
    /// Returns the bundle's head and the verdict on it.
    #[must_use]
    pub fn judged(&self) -> &Judged {
        &self.judged
    }

    /// Returns the state that the bundle was judged by.
    pub(crate) fn state(&self) -> &DeviceState {
        self.guard.state()
    }

    /// Returns the input's name for messages.
    pub fn path(&self) -> &Path {
        self.bundle.path()
    }

    /// Returns the same bundle for functions that accept any bundle.
    #[must_use]
    pub fn into_unopened(self) -> Unopened {
        self.bundle
    }

    /// Reads the layout and the index, or the delta in the index's place, for extracting content.
    pub fn open_any(self) -> Result<(Input, Opened), Error> {
        self.bundle.open_any()
    }

    /// As [`Self::open_any`], for a bundle that needs no base.
    pub fn open_bundle(self) -> Result<(Input, Bundle), Error> {
        self.bundle.open_bundle()
    }

    /// Prepares to install the bundle, or to report what installing would do: checks the state before the target is touched. A dry run writes
    /// nothing; a run that asks for confirmation before it installs begins with a dry run.
    ///
    /// # Errors
    /// Returns an error if the state cannot be opened, locked or written to, or if another user could change it.
    pub(crate) fn install(self, dry_run: bool) -> Result<(Unopened, Admission), Error> {
        let admission = Admission::new(self.guard, self.judged);
        match dry_run {
            true => admission.check_may_hold()?,
            false => admission.hold()?,
        }
        Ok((self.bundle, admission))
    }
}
