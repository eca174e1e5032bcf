//! `sealift sign`: adds and removes the signatures of a bundle.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::Output;
use sealift::trust::KeyId;
use sealift::trust::sign::{KernelChange, KernelSigner, SignChange, SignStats, sign_bundle, sign_copy};
use sealift::{Envelope, Error, Head};
use serde::Serialize;

use super::bundle::BundleArg;
use super::failure::{About as _, Failure, shown};
use super::human::count;
use super::limits::limits;
use super::pack::parse_version;
use super::progress_args::ProgressArgs;
use super::show::{BOLD, Show};
use super::{escape, keys, output, time};
use sealift_format::num;

/// Add signatures to a bundle, or remove them
///
/// Changes only the signatures, and keeps those not named with --remove. Replaces the bundle in one rename, so that it verifies at any
/// time; with -o, writes a signed copy instead.
///
/// --kernel-key and --kernel-cert sign the index for the kernel (PKCS#7, as `fsverity sign` does): a kernel that has the certificate then
/// checks the sealed index of an installed tree (`unpack --seal`). Devices do not trust a bundle because of that signature.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift sign os.sealift --name os --bundle-version 7 --key ~/.ssh/id_ed25519
  sealift sign os.sealift --key token.pub         # its key is in ssh-agent
  build | sealift sign - -o os.sealift --name os --bundle-version 7 \\
      --key release
  sealift sign os.sealift --attach os.root.sig    # made from `sealift root`
  sealift sign os.sealift --remove SHA256:AbC...  # as `sealift info` shows it
  sealift sign os.sealift --kernel-key kernel.key --kernel-cert kernel.crt
  sealift sign os.sealift --attach index.p7s --kernel-cert kernel.crt")]
#[command(group = clap::ArgGroup::new("change").required(true).multiple(true).args(["key", "attach", "remove", "kernel_key"]))]
pub(crate) struct Sign {
    #[command(flatten)]
    bundle: BundleArg,
    /// Write a signed copy to this file, - for standard output, and leave the bundle unchanged
    #[arg(long, short, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Replace the output file if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// Sign with this OpenSSH key: a private key (Ed25519 or ECDSA P-256), or a public key (also RSA or a token) to sign through ssh-agent
    #[arg(long, value_name = "KEY")]
    key: Vec<PathBuf>,
    /// Read the passphrase of the keys from the first line of this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "key")]
    passphrase_file: Option<PathBuf>,
    /// The bundle's name, as a confirmation; required for the first signature
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The bundle's version, as a confirmation; required for the first signature
    #[arg(long, value_name = "N", value_parser = parse_version)]
    bundle_version: Option<u64>,
    /// Add a signature made by ssh-keygen -Y sign -n sealift, or a kernel signature: PKCS#7 in DER, as made by fsverity sign
    #[arg(long, value_name = "SIG")]
    attach: Vec<PathBuf>,
    /// Remove the signature of this key, or the kernel signature
    #[arg(long, value_name = "SHA256:...|kernel", value_parser = parse_removal)]
    remove: Vec<Removal>,
    /// Sign the index for the kernel with this private key: RSA or P-256, in PEM
    #[arg(long, value_name = "KEY", requires = "kernel_cert")]
    kernel_key: Option<PathBuf>,
    /// The key's certificate, in PEM, the one in the kernel's keyring .fs-verity; without --kernel-key, checks the attached signature
    #[arg(long, value_name = "CERT")]
    kernel_cert: Option<PathBuf>,
    #[command(flatten)]
    show: Show,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// A signature to remove.
#[derive(Clone, Copy, Debug)]
enum Removal {
    Of(KeyId),
    Kernel,
}

/// The word for the kernel signature; others are named by their key.
const KERNEL: &str = "kernel";

fn parse_removal(text: &str) -> Result<Removal, String> {
    if text == KERNEL {
        return Ok(Removal::Kernel);
    }
    text.parse().map(Removal::Of).map_err(|error: sealift::trust::KeyIdError| error.to_string())
}

impl Sign {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let output = self.output.as_deref().map(|output| output::of(output, self.force)).transpose()?;
        if output.is_none() && self.bundle.bundle == Path::new("-") {
            return Err(Failure::usage("cannot replace standard input: give -o FILE, or -o - for standard output"));
        }
        let mut input = self.bundle.open()?;
        let head = input.read_head(limits()).about(&self.bundle.bundle)?;
        self.check_identity(&head)?;
        if !(self.key.is_empty() && self.attach.is_empty()) {
            time::warn_if_ahead(self.show, &head.root().identity);
        }
        let signers = keys::open(&self.key, self.passphrase_file.as_deref())?;
        let kernel = self.kernel_signer()?;
        let remove = self.removed_keys();
        let change = SignChange {
            keys: &signers,
            attach: &self.attach,
            remove: &remove,
            kernel: kernel.as_ref(),
            name: self.name.as_deref(),
            version: self.bundle_version,
            remove_kernel: self.remove.iter().any(|removal| matches!(removal, Removal::Kernel)),
        };
        let stats = self.progress.watch(self.show, "Signing", |progress| match &output {
            Some(output) => sign_copy(&mut input, &head, &change, output, progress),
            None => sign_bundle(&self.bundle.bundle, &change, progress),
        });
        let stats = stats.about(&self.bundle.bundle)?;
        if !stats.owner_kept {
            self.show.warn("you now own the bundle: only root can keep another owner");
        }
        Ok(self.print(&stats, output == Some(Output::Stdout))?)
    }

    /// Requires name and version for the first signature: until then they may be defaults.
    fn check_identity(&self, head: &Head) -> Result<(), Failure> {
        if self.key.is_empty() || (self.name.is_some() && self.bundle_version.is_some()) {
            return Ok(());
        }
        if head.bodies(Envelope::SSH_SIGNATURE).next().is_some() {
            return Ok(());
        }
        let identity = &head.root().identity;
        Err(Failure::usage(format!(
            "{} is not signed yet: confirm its identity with --name {} --bundle-version {}, or pack it again",
            shown(&self.bundle.bundle),
            identity.name,
            identity.version
        )))
    }

    fn kernel_signer(&self) -> Result<Option<KernelSigner>, Error> {
        let Some(certificate) = &self.kernel_cert else { return Ok(None) };
        if self.kernel_key.is_none() && self.attach.is_empty() {
            return Err(Error::Usage("--kernel-cert needs --kernel-key or --attach".into()));
        }
        KernelSigner::open(self.kernel_key.as_deref(), certificate).map(Some)
    }

    fn removed_keys(&self) -> Vec<KeyId> {
        let keys = self.remove.iter().filter_map(|removal| match removal {
            Removal::Of(key) => Some(*key),
            Removal::Kernel => None,
        });
        keys.collect()
    }

    fn print(&self, stats: &SignStats, stdout_taken: bool) -> std::io::Result<()> {
        let mut out = self.show.summary(stdout_taken);
        let shown = |keys: &[KeyId], change| {
            let kernel = (stats.kernel == change).then(|| KERNEL.to_owned());
            keys.iter().map(ToString::to_string).chain(kernel).collect::<Vec<_>>()
        };
        let added = shown(&stats.added, KernelChange::Added);
        let replaced = shown(&stats.replaced, KernelChange::Replaced);
        let removed = shown(&self.removed_keys(), KernelChange::Removed);
        let for_kernel = stats.head.bodies(Envelope::KERNEL_SIGNATURE).count();
        let (signatures, kernel_signature) = (stats.head.envelopes().count() - for_kernel, for_kernel > 0);
        let summary = JsonSigning { added, replaced, removed, signatures, kernel_signature };
        if self.show.is_told(&mut out, &summary)? {
            return Ok(());
        }
        let has = count(num::wide(signatures), "signature");
        let for_kernel = if kernel_signature { " and a kernel signature" } else { "" };
        let written = self.output.as_deref().unwrap_or(&self.bundle.bundle);
        let bundle = escape::text(&written.display().to_string());
        writeln!(out, "{BOLD}{bundle}{BOLD:#}: has {has}{for_kernel}")?;
        for (word, keys) in [("added", summary.added), ("replaced", summary.replaced), ("removed", summary.removed)] {
            for key in keys {
                let whose = if key == KERNEL { "the kernel signature" } else { &key };
                writeln!(out, "  {word:<8} {whose}")?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct JsonSigning {
    added: Vec<String>,
    replaced: Vec<String>,
    removed: Vec<String>,
    signatures: usize,
    kernel_signature: bool,
}
