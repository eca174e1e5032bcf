//! `sealift root`: the bytes that signatures are over.

use std::io::{IsTerminal as _, Write as _};

use clap::Args;

use super::bundle::BundleArg;
use super::failure::Failure;
use super::show::ErrorForm;

/// Print the bytes to sign, for signing with a tool of your own
///
/// Writes the preamble and the root as they stand at the start of the file: binary, and the whole of what a signature is over.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift root os.sealift > os.root
  ssh-keygen -Y sign -n sealift -f KEY os.root
  sealift sign os.sealift --attach os.root.sig")]
pub(crate) struct Root {
    #[command(flatten)]
    bundle: BundleArg,
    #[command(flatten)]
    form: ErrorForm,
}

impl Root {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        if out.is_terminal() {
            return Err(Failure::usage(
                "standard output is a terminal, and the root is binary: write it to a file with >",
            ));
        }
        out.write_all(self.bundle.read_head()?.signed())?;
        Ok(out.flush()?)
    }
}
