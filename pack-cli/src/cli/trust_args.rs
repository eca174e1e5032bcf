//! The options that say whose bundles are used.

use std::path::PathBuf;

use clap::Args;
use sealift::{Error, Head};

use super::failure::Failure;
use super::show::Show;

/// Whose bundles are used, on which device, and when.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Trust")]
pub(crate) struct TrustArgs {
    /// Allowed signers, as ssh-keygen and git read them
    #[arg(long, value_name = "FILE")]
    trust: Option<PathBuf>,
    /// Revoked keys, as ssh-keygen -k makes them or one public key a line
    #[arg(long, value_name = "FILE")]
    revoked: Option<PathBuf>,
    /// Distinct trusted keys that must have signed, [NAME=]N
    #[arg(long, value_name = "N")]
    threshold: Vec<String>,
    /// Where this device keeps the versions that it took
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// A tag of this device, for bundles that fit some devices only
    #[arg(long, value_name = "TAG")]
    compatible: Vec<String>,
    /// Use a bundle that no trusted key signed
    #[arg(long)]
    allow_unsigned: bool,
    /// Use a bundle that is older than what this device took
    #[arg(long)]
    allow_downgrade: bool,
    /// Judge keys and expiry as of this moment
    #[arg(long, value_name = "TIME")]
    time: Option<String>,
}

/// Judges bundles by the options.
#[derive(Debug)]
pub(crate) struct Judge {}

impl TrustArgs {
    pub(crate) fn load(&self, _show: Show) -> Result<Judge, Failure> {
        Ok(Judge {})
    }
}

impl Judge {
    pub(crate) fn judge(&self, _head: &Head) -> Result<(), Error> {
        Ok(())
    }
}

pub(crate) struct Verdict;
impl Verdict {
    pub(crate) fn line(&self) -> String {
        "?".into()
    }
}
pub(crate) struct Seen {
    pub(crate) verdict: Verdict,
    pub(crate) lines: Vec<String>,
}
impl Judge {
    pub(crate) fn inspect(&self, _: &Head) -> Seen {
        Seen { verdict: Verdict, lines: vec![] }
    }
}
