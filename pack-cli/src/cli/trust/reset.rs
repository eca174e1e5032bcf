//! `sealift trust reset`.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use sealift::trust::{TrustOptions, reset_floor};
use serde::Serialize;

use crate::escape;
use crate::failure::Failure;
use crate::show::{BOLD, Show};
use crate::trust_args::tell_waiting;

/// Forget the highest version seen of a name
///
/// Afterwards this device accepts any version of that name again; existing targets still refuse older versions. To install one older bundle
/// and keep the protection, use --allow-downgrade.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift trust reset os")]
pub(super) struct Reset {
    /// The name of the bundles
    name: String,
    /// Directory that records the highest version installed
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    state: Option<PathBuf>,
    #[command(flatten)]
    show: Show,
}

impl Reset {
    pub(super) fn run(self) -> Result<(), Failure> {
        let options = TrustOptions { state: self.state, waiting: Some(tell_waiting), ..TrustOptions::default() };
        let forgotten = reset_floor(&options, &self.name)?;
        let was_there = forgotten.is_some();
        let versions =
            forgotten.map_or(Vec::new(), |floors| floors.records().iter().map(|record| record.version).collect());
        let highest = versions.iter().max().copied();
        let mut out = self.show.out();
        if self.show.is_told(&mut out, &JsonReset { name: &self.name, forgotten: highest })? {
            return Ok(());
        }
        let name = escape::text(&self.name);
        match highest {
            Some(version) => {
                let still = "existing targets still refuse older versions";
                Ok(writeln!(out, "forgot version {version} of {BOLD}{name}{BOLD:#} ({still})")?)
            }
            None if was_there => Ok(writeln!(out, "removed the damaged record of {BOLD}{name}{BOLD:#}")?),
            None => Ok(writeln!(out, "{BOLD}{name}{BOLD:#}: no such name in the state directory")?),
        }
    }
}

#[derive(Serialize)]
struct JsonReset<'a> {
    name: &'a str,
    forgotten: Option<u64>,
}
