//! `sealift trust`: the keys that this device trusts, and the versions that it accepts.

mod add;
mod export;
mod list;
mod reset;
mod revoke;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use sealift::Error;
use sealift::fs::is_there;
use sealift::trust::{GivenKey, TrustOptions};

use super::failure::Failure;
use super::show::Show;

/// Show or change which keys this device trusts
#[derive(Args, Debug)]
pub(crate) struct Trust {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    List(list::List),
    Add(add::Add),
    Revoke(revoke::Revoke),
    Export(export::Export),
    Reset(reset::Reset),
}

impl Trust {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.action {
            Action::List(list) => list.run(),
            Action::Add(add) => add.run(),
            Action::Revoke(revoke) => revoke.run(),
            Action::Export(export) => export.run(),
            Action::Reset(reset) => reset.run(),
        }
    }
}

/// The files of trusted and revoked keys.
#[derive(Args, Debug)]
#[command(next_help_heading = "Trust")]
struct FileArgs {
    /// Allowed signers file, as for ssh-keygen and git [default: /etc/sealift/allowed_signers, or the user's own]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trust: Option<PathBuf>,
    /// Revoked keys: a list made by ssh-keygen -k, or one public key per line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    revoked: Option<PathBuf>,
}

impl FileArgs {
    fn options(&self) -> TrustOptions {
        TrustOptions { signers: self.trust.clone(), revoked: self.revoked.clone(), ..TrustOptions::default() }
    }
}

/// The options of every change to those files.
#[derive(Args, Debug)]
struct ChangeArgs {
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    show: Show,
}

/// Reads a key given as `-`, as the content of a `.pub` file, or as that file.
fn given_key(text: &str) -> Result<GivenKey, Error> {
    if text == "-" {
        GivenKey::from_reader(std::io::stdin().lock(), "standard input".as_ref())
    } else if text.contains(' ') && !is_there(text.as_ref())? {
        GivenKey::parse(text.trim())
    } else {
        GivenKey::read(text.as_ref())
    }
}
