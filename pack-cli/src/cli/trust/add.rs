//! `sealift trust add`.

use std::io::Write as _;

use clap::{Args, ValueHint};
use sealift::trust::{TrustPaths, add_signer};
use serde::Serialize;

use super::{ChangeArgs, given_key};
use crate::escape;
use crate::failure::Failure;
use crate::show::BOLD;

/// Allow a key to sign bundles of a name
///
/// Adds a line to the allowed signers, unless one already says so, and creates the file if needed. Compare the fingerprint with the key's owner first. If the machine
/// has no /etc/sealift/allowed_signers and the user no such file either, uses ~/.config/sealift/allowed_signers.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift trust add os release.pub
  sealift trust add 'os,app-*' release.pub --trust allowed_signers
  ssh publisher cat release.pub | sealift trust add os -")]
pub(super) struct Add {
    /// The name of the bundles, a pattern such as 'app-*', or a comma-separated list of these
    name: String,
    /// The public key: a .pub file, the content of one, or - for standard input
    #[arg(value_name = "KEY", value_hint = ValueHint::FilePath)]
    key: String,
    #[command(flatten)]
    change: ChangeArgs,
}

impl Add {
    pub(super) fn run(self) -> Result<(), Failure> {
        let given = given_key(&self.key)?;
        let added = add_signer(&self.change.files.options(), &TrustPaths::of_this_process(), &self.name, &given)?;
        let mut out = self.change.show.out();
        let (key, path) = (given.key.id().to_string(), added.path.display().to_string());
        let (principals, comment) = (&self.name, &given.comment);
        let summary =
            JsonAdded { path: &path, line: added.line, principals, key: &key, comment, unchanged: added.unchanged };
        if self.change.show.is_told(&mut out, &summary)? {
            return Ok(());
        }
        let had = if added.unchanged { "already has" } else { "added" };
        writeln!(out, "{BOLD}{}{BOLD:#}: {had} line {}", escape::text(&path), added.line)?;
        writeln!(out, "  {}", format!("{key} {}", escape::text(&given.comment)).trim_end())?;
        Ok(writeln!(out, "  may sign {}", self.name)?)
    }
}

#[derive(Serialize)]
struct JsonAdded<'a> {
    path: &'a str,
    line: usize,
    principals: &'a str,
    key: &'a str,
    comment: &'a str,
    unchanged: bool,
}
