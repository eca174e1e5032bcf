//! `sealift trust`: by what this device judges, and what it remembers.

mod add;
mod export;
mod list;
mod reset;
mod revoke;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use sealift::Error;
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

/// The files that say whose signatures count.
#[derive(Args, Debug)]
#[command(next_help_heading = "Trust")]
struct FileArgs {
    /// Allowed signers, as ssh-keygen and git read them [default: /etc/sealift/allowed_signers, or the user's own]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trust: Option<PathBuf>,
    /// Keys that count no more, as ssh-keygen -k makes it or a public key a line
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    revoked: Option<PathBuf>,
}

impl FileArgs {
    fn options(&self) -> TrustOptions {
        TrustOptions { signers: self.trust.clone(), revoked: self.revoked.clone(), ..TrustOptions::default() }
    }
}

/// What every change of those files takes.
#[derive(Args, Debug)]
struct ChangeArgs {
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    show: Show,
}

/// A key as somebody gives it: `-`, the line of a `.pub` file, or that file.
fn given_key(text: &str) -> Result<GivenKey, Error> {
    if text == "-" {
        GivenKey::from_reader(std::io::stdin().lock(), "standard input".as_ref())
    } else if text.contains(' ') && !Path::new(text).exists() {
        GivenKey::parse(text.trim())
    } else {
        GivenKey::read(text.as_ref())
    }
}
