//! `sealift trust export`.

use std::io::Write as _;

use clap::Args;
use sealift::trust::{TrustPaths, export_signers};
use serde::Serialize;

use super::FileArgs;
use crate::failure::Failure;
use crate::show::{Form, json_line};

/// Print the allowed signers in effect
///
/// Prints the lines that allow a key to sign bundles, unchanged, for another machine or for ssh-keygen -Y. Omits revoked keys.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift trust export > allowed_signers
  sealift trust export os | ssh device 'cat > /etc/sealift/allowed_signers'")]
pub(super) struct Export {
    /// Only the lines that allow a key to sign bundles of this name
    name: Option<String>,
    #[command(flatten)]
    files: FileArgs,
    #[command(flatten)]
    form: Form,
}

impl Export {
    pub(super) fn run(self) -> Result<(), Failure> {
        let exported = export_signers(&self.files.options(), &TrustPaths::of_this_process(), self.name.as_deref())?;
        let show = self.form.show();
        let mut out = show.out();
        for line in &exported {
            if show.json {
                let summary =
                    JsonExported { line: line.signer.line, key: line.signer.key.to_string(), text: &line.text };
                json_line(&mut out, &summary)?;
            } else {
                writeln!(out, "{}", line.text)?;
            }
        }
        if exported.is_empty() {
            show.warn(&match &self.name {
                Some(name) => format!("no line allows a key to sign {name:?}"),
                None => "no line allows a key to sign bundles".to_owned(),
            });
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct JsonExported<'a> {
    line: usize,
    key: String,
    text: &'a str,
}
