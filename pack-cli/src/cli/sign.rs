//! `sealift sign`: signatures into and out of a bundle.

use std::io::Write as _;
use std::path::PathBuf;

use clap::Args;
use sealift::trust::sign::{KeyId, SignChange, SignStats, sign_bundle};
use serde::Serialize;

use super::failure::{About as _, Failure};
use super::human::count;
use super::show::{BOLD, Pace, Show, json_line};
use super::{escape, keys};

/// Add signatures to a bundle, or take them away
///
/// Only the signature area changes, and other signatures stay: no content is read or written again. The bundle is replaced by one
/// rename, so that it verifies at every moment.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift sign os.sealift --key ~/.ssh/id_ed25519
  sealift sign os.sealift --key token.pub               the private half is in ssh-agent
  sealift sign os.sealift --attach os.root.sig          made elsewhere from `sealift root`
  sealift sign os.sealift --remove SHA256:AbC...        as `sealift info` shows it")]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true).args(["key", "attach", "remove"]))]
pub(crate) struct Sign {
    /// The bundle, a file
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Sign with this OpenSSH key; a public key asks ssh-agent
    #[arg(long, value_name = "KEY")]
    key: Vec<PathBuf>,
    /// Add a signature made by ssh-keygen -Y sign -n sealift
    #[arg(long, value_name = "SIG")]
    attach: Vec<PathBuf>,
    /// Take away the signature of this key
    #[arg(long, value_name = "SHA256:...", value_parser = parse_id)]
    remove: Vec<KeyId>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    pace: Pace,
}

fn parse_id(text: &str) -> Result<KeyId, String> {
    text.parse().map_err(|error: sealift::trust::sign::KeyIdError| error.to_string())
}

impl Sign {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let signers = keys::open(&self.key)?;
        let change = SignChange { keys: &signers, attach: &self.attach, remove: &self.remove };
        let stats = self.pace.watch(self.show, "Signing", |progress| sign_bundle(&self.bundle, &change, progress));
        let stats = stats.about(&self.bundle)?;
        if !stats.owner_kept {
            self.show.warn("the bundle belongs to you now: only root may write a file and leave it to another");
        }
        Ok(self.print(&stats)?)
    }

    fn print(&self, stats: &SignStats) -> std::io::Result<()> {
        let mut out = self.show.out();
        let ids = |keys: &[KeyId]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
        let signatures = stats.head.envelopes().len();
        if self.show.json {
            let (added, replaced) = (ids(&stats.added), ids(&stats.replaced));
            return json_line(&mut out, &Summary { added, replaced, removed: ids(&self.remove), signatures });
        }
        if self.show.quiet {
            return Ok(());
        }
        let has = count(u64::try_from(signatures).unwrap_or(u64::MAX), "signature");
        writeln!(out, "{BOLD}{}{BOLD:#}: has {has}", escape::text(&self.bundle.display().to_string()))?;
        let lines = [("added", ids(&stats.added)), ("replaced", ids(&stats.replaced)), ("removed", ids(&self.remove))];
        for (word, keys) in lines {
            for key in keys {
                writeln!(out, "  {word:<8} {key}")?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Summary {
    added: Vec<String>,
    replaced: Vec<String>,
    removed: Vec<String>,
    signatures: usize,
}
