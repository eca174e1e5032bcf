//! `sealift root`: prints the bytes that signatures cover.

use std::io::Write as _;

use clap::Args;
use sealift::trust::sign::signed_bytes;

use super::bundle::BundleArg;
use super::failure::Failure;
use super::show::ErrorForm;
use super::{output, time};

/// Print the bytes to sign, for another signing tool
///
/// Writes exactly the bytes that a signature covers, in binary: the preamble and the root at the start of the file. With --kernel, writes
/// the 44 bytes that a kernel signature covers, which contain the digest of the index.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift root os.sealift > os.root
  ssh-keygen -Y sign -n sealift -f KEY os.root
  sealift sign os.sealift --attach os.root.sig
  sealift root os.sealift --kernel > os.digest
  openssl cms -sign -binary -noattr -nocerts -nosmimecap -outform DER \\
      -md sha256 -signer kernel.crt -inkey kernel.key \\
      -in os.digest -out os.p7s
  sealift sign os.sealift --attach os.p7s --kernel-cert kernel.crt")]
pub(crate) struct Root {
    #[command(flatten)]
    bundle: BundleArg,
    /// Print the bytes for a kernel signature
    #[arg(long)]
    kernel: bool,
    #[command(flatten)]
    form: ErrorForm,
}

impl Root {
    pub(crate) fn run(self) -> Result<(), Failure> {
        output::check_stdout()?;
        let head = self.bundle.read_head()?;
        time::warn_if_ahead(self.form.show(), &head.root().identity);
        let mut out = std::io::stdout().lock();
        let written = match self.kernel {
            true => out.write_all(&signed_bytes(&head)),
            false => out.write_all(head.signed()),
        };
        written.and_then(|()| out.flush()).map_err(Failure::content)
    }
}
