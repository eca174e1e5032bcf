//! `--attach SIG`: a signature that was made elsewhere.

use std::path::Path;

use sealift_format::Envelope;
use sealift_verify::trust::SshSignature;
use sealift_verify::trust::sign::unarmored;

use crate::Error;

/// Reads a signature file, armored as `ssh-keygen -Y sign -n sealift` writes it or in its binary form, and verifies that it is one over
/// `signed`, the bytes that [`Head::signed`](sealift_format::Head::signed) gives. Whose it is does not matter here.
///
/// # Errors
/// The file cannot be read, or is no signature of these bytes.
pub fn read_signature(path: &Path, signed: &[u8]) -> Result<Envelope, Error> {
    let file = std::fs::read(path).map_err(|error| Error::io("read", path, error))?;
    let refused = |source| Error::Attach { path: path.to_owned(), source };
    let body = if file.starts_with(b"SSHSIG") { file } else { unarmored(&file).map_err(refused)? };
    SshSignature::parse(&body).and_then(|signature| signature.verify(signed).map(|_| ())).map_err(refused)?;
    Ok(Envelope { kind: Envelope::SSH_SIGNATURE, body })
}
