//! `--attach SIG`: a signature made elsewhere.

use std::path::Path;

use sealift_format::{Envelope, Head};
use sealift_verify::kernel_signature::check;
use sealift_verify::trust::SshSignature;
use sealift_verify::trust::sign::unarmored;

use super::KernelSigner;
use crate::Error;

/// Reads a signature file.
///
/// One of SSH, armored as `ssh-keygen -Y sign -n sealift` writes it or in its binary form, is verified to be one over
/// [`Head::signed`]; whose it is does not matter here. One for the kernel, PKCS#7 in DER as `fsverity sign` writes it, is to have its form, and
/// with `kernel` to be that certificate's, of this index.
///
/// # Errors
/// The file cannot be read, or is no signature of this bundle.
pub fn read_signature(path: &Path, head: &Head, kernel: Option<&KernelSigner>) -> Result<Envelope, Error> {
    let file = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
    if is_der(&file) {
        let checked = kernel.map_or_else(|| check(&file).map_err(Into::into), |kernel| kernel.verify(&file, head));
        checked.map_err(|source| Error::AttachKernel { path: path.to_owned(), source })?;
        return Ok(Envelope { kind: Envelope::KERNEL_SIGNATURE, body: file });
    }
    let refused = |source| Error::Attach { path: path.to_owned(), source };
    let body = if file.starts_with(b"SSHSIG") { file } else { unarmored(&file).map_err(refused)? };
    SshSignature::parse(&body).and_then(|signature| signature.verify(head.signed()).map(|_| ())).map_err(refused)?;
    Ok(Envelope { kind: Envelope::SSH_SIGNATURE, body })
}

/// A sequence, whose length follows in one byte or more; armor begins with dashes.
fn is_der(file: &[u8]) -> bool {
    file.starts_with(&[0x30])
}
