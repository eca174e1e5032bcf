//! `sealift key`: generates signing keys.

use std::io::{ErrorKind, Write as _};
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use sealift::Error;
use sealift::trust::PublicKey;
use sealift::trust::sign::{Zeroizing, generate_key};
use serde::Serialize;

use super::failure::Failure;
use super::show::{BOLD, Show};
use super::{escape, keys};

/// Generate a signing key
#[derive(Args, Debug)]
pub(crate) struct Key {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Generate(Generate),
}

/// Generate an Ed25519 key in OpenSSH format
///
/// Writes the private key to KEY and the public key to KEY.pub, and never overwrites either. Keys made by ssh-keygen work too: Ed25519 and
/// ECDSA P-256 as files or through ssh-agent, RSA (3072 bits or more) and security tokens through ssh-agent.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift key generate -o release --passphrase --comment release@example.org
  sealift pack /srv/os -o os.sealift --name os --bundle-version 7 --key release")]
struct Generate {
    /// The file to write
    #[arg(long, short, value_name = "KEY")]
    output: PathBuf,
    /// Ask for a passphrase on the terminal
    #[arg(long)]
    passphrase: bool,
    /// Read the passphrase from the first line of this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "passphrase")]
    passphrase_file: Option<PathBuf>,
    /// A comment in the public key, such as an email address
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    comment: String,
    #[command(flatten)]
    show: Show,
}

impl Key {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Action::Generate(generate) = self.action;
        generate.run()
    }
}

impl Generate {
    fn run(self) -> Result<(), Failure> {
        let passphrase = match &self.passphrase_file {
            Some(file) => Some(keys::read_passphrase(file)?),
            None if self.passphrase => Some(ask_twice()?),
            None => None,
        };
        let key = generate_key(&self.output, passphrase.as_ref().map(|secret| secret.as_str()), &self.comment)?;
        Ok(self.print(&key)?)
    }

    fn print(&self, key: &PublicKey) -> std::io::Result<()> {
        let mut out = self.show.out();
        let public = key.to_openssh();
        if self.show.is_told(&mut out, &JsonKey { key: key.id().to_string(), public_key: &public })? {
            return Ok(());
        }
        let path = escape::text(&self.output.display().to_string());
        writeln!(out, "{BOLD}{path}{BOLD:#}: {}", key.id())?;
        writeln!(out, "  sign with     sealift pack ... --key {path}")?;
        writeln!(out, "  trust with    sealift trust add NAME {path}.pub")?;
        writeln!(out, "  or add this line to the device's allowed signers, with the bundle's NAME:")?;
        let line = format!("NAME namespaces=\"sealift\" {public} {}", escape::text(&self.comment));
        writeln!(out, "  {}", line.trim_end())
    }
}

fn ask_twice() -> Result<Zeroizing<String>, Failure> {
    let ask = |prompt| {
        keys::ask_for(prompt).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => Error::Cancelled.into(),
            ErrorKind::UnexpectedEof => Failure::usage("no passphrase given"),
            _ => Failure::usage(format!("cannot ask for the passphrase without a terminal: {error}")),
        })
    };
    let (first, second) = (ask("Passphrase: ")?, ask("Repeat passphrase: ")?);
    match first.as_str() {
        "" => Err(Failure::usage("empty passphrase: omit --passphrase to generate a key without one")),
        same if same == second.as_str() => Ok(first),
        _ => Err(Failure::usage("the passphrases do not match")),
    }
}

#[derive(Serialize)]
struct JsonKey<'a> {
    key: String,
    public_key: &'a str,
}
