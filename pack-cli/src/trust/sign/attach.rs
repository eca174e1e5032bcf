//! `--attach SIG`: a signature made elsewhere.

use std::path::Path;

use sealift_format::{Envelope, Head};
use sealift_verify::kernel_signature::check;
use sealift_verify::trust::SshSignature;
use sealift_verify::trust::sign::unarmored;

use super::KernelSigner;
use crate::{Error, FileFault};

/// Reads a signature file.
///
/// An SSH signature, armored as `ssh-keygen -Y sign -n sealift` writes it or in binary form, must be one over [`Head::signed`], by any key. A kernel
/// signature, PKCS#7 in DER as `fsverity sign` writes it, must be well-formed. With `kernel`, it must also be one over this index by that
/// certificate's key.
///
/// # Errors
/// Returns an error if the file cannot be read, or is not a signature of this bundle.
pub fn read_signature(path: &Path, head: &Head, kernel: Option<&KernelSigner>) -> Result<Envelope, Error> {
    let file = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
    if is_der(&file) {
        let checked = kernel.map_or_else(|| check(&file).map_err(Into::into), |kernel| kernel.verify(&file, head));
        checked.map_err(|fault| Error::file(path, FileFault::KernelSignature(fault)))?;
        return Ok(Envelope { kind: Envelope::KERNEL_SIGNATURE, body: file });
    }
    let refused = |fault| Error::file(path, FileFault::Signature(fault));
    let body = if file.starts_with(b"SSHSIG") { file } else { unarmored(&file).map_err(refused)? };
    SshSignature::parse(&body).and_then(|signature| signature.verify(head.signed()).map(|_| ())).map_err(refused)?;
    Ok(Envelope { kind: Envelope::SSH_SIGNATURE, body })
}

/// DER begins with a sequence, whose length takes one byte or more; armor begins with dashes.
fn is_der(file: &[u8]) -> bool {
    file.starts_with(&[0x30])
}
