//! `sealift trust revoke`.

use std::io::Write as _;

use clap::{Args, ValueHint};
use sealift::trust::{Revoked, TrustPaths, Withdrawn, revoke_key};
use serde::Serialize;

use super::{ChangeArgs, given_key};
use crate::escape;
use crate::failure::Failure;
use crate::show::BOLD;

/// Revoke a key
///
/// Adds the key to the list of revoked keys, and creates the list if needed. Its signatures no longer count, and the device forgets the
/// versions that it signed. Its lines in the allowed signers need not be removed.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift trust revoke release.pub
  sealift trust revoke SHA256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg")]
pub(super) struct Revoke {
    /// The key: its .pub file, the content of that file, - for standard input, or the fingerprint of a key in the allowed signers
    #[arg(value_name = "KEY", value_hint = ValueHint::FilePath)]
    key: String,
    #[command(flatten)]
    change: ChangeArgs,
}

impl Revoke {
    pub(super) fn run(self) -> Result<(), Failure> {
        let withdrawn = if self.key.starts_with("SHA256:") {
            Withdrawn::Id(self.key.parse().map_err(|error| Failure::usage(format!("{error}")))?)
        } else {
            Withdrawn::Key(given_key(&self.key)?)
        };
        let revoked = revoke_key(&self.change.files.options(), &TrustPaths::of_this_process(), &withdrawn)?;
        let mut out = self.change.show.out();
        let (key, path) = (revoked.key.to_string(), revoked.path.display().to_string());
        let Revoked { lines, unchanged, .. } = &revoked;
        if self.change.show.is_told(&mut out, &JsonRevoked { path: &path, key: &key, lines, unchanged: *unchanged })? {
            return Ok(());
        }
        let already = if *unchanged { "already " } else { "" };
        writeln!(out, "{BOLD}{}{BOLD:#}: {key} is {already}revoked", escape::text(&path))?;
        match &lines[..] {
            [] => Ok(writeln!(out, "  not in the allowed signers")?),
            [line] => Ok(writeln!(out, "  line {line} of the allowed signers no longer counts")?),
            lines => {
                let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
                Ok(writeln!(out, "  lines {} of the allowed signers no longer count", lines.join(", "))?)
            }
        }
    }
}

#[derive(Serialize)]
struct JsonRevoked<'a> {
    path: &'a str,
    key: &'a str,
    lines: &'a [usize],
    unchanged: bool,
}
