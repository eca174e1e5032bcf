//! `--base`: where the bases of a delta are.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::trust::{DeviceState, TrustOptions};
use sealift::{GivenBases, Opened, Progress};

use super::bundle::BundleArg;
use super::failure::Failure;
use super::jobs_arg::JobsArg;
use super::limits::limits;

/// The bases of a delta.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BaseArgs {
    /// Read a delta over its base: a bundle, or what it was unpacked to; repeat for each of its bases
    #[arg(long, value_name = "BUNDLE|TARGET", value_hint = ValueHint::AnyPath)]
    base: Vec<OsString>,
}

impl BaseArgs {
    /// Returns these bundles as bases.
    pub(crate) fn of(bundles: &[PathBuf]) -> Self {
        Self { base: bundles.iter().map(OsString::from).collect() }
    }

    /// Returns these bases, and bundles that were given otherwise.
    pub(crate) fn and(&self, bundles: &[PathBuf]) -> Self {
        Self { base: self.base.iter().cloned().chain(bundles.iter().map(OsString::from)).collect() }
    }

    /// Returns whether there are any.
    pub(crate) fn is_given(&self) -> bool {
        !self.base.is_empty()
    }

    /// Returns the bases in the library's form; `state` is the directory that the user gave.
    pub(crate) fn given(&self, jobs: JobsArg, state: Option<&Path>) -> GivenBases {
        // Without a state directory, nothing is known of slots.
        let options = TrustOptions { state: state.map(Path::to_owned), ..TrustOptions::default() };
        let state = DeviceState::of_this_process(&options).ok();
        GivenBases { places: self.base.clone(), limits: limits(), jobs: jobs.count(), state }
    }

    /// Reads everything before the content, whoever signed it, and completes a delta with its bases: for display only, never for extraction.
    pub(crate) fn read_untrusted(&self, bundle: &BundleArg) -> Result<Opened, Failure> {
        let opened = bundle.read_untrusted()?;
        Ok(self.given(JobsArg::default(), None).complete(opened, &bundle.bundle, &Progress::default())?.0)
    }
}
