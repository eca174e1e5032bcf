//! `--kernel-key KEY --kernel-cert CERT`: a signature of the index, for the kernel that seals it.

use std::path::{Path, PathBuf};

use sealift_format::{Envelope, Head};
use sealift_verify::kernel_signature::sign::{KernelCertificate, KernelKey, KernelSignError};
use sealift_verify::kernel_signature::signed_bytes;
use zeroize::Zeroizing;

use crate::Error;

/// Who signs for the kernel, or has signed elsewhere.
#[derive(Debug)]
pub struct KernelSigner {
    key: Option<(PathBuf, KernelKey)>,
    certificate: KernelCertificate,
}

impl KernelSigner {
    /// Opens the certificate that kernels have, and its private key. Without the key, what is attached is checked with the certificate.
    ///
    /// # Errors
    /// One of the files cannot be read, or is none.
    pub fn open(key: Option<&Path>, certificate: &Path) -> Result<Self, Error> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| Error::io("read", path, error));
        let parsed = KernelCertificate::from_pem(&read(certificate)?);
        let certificate = parsed.map_err(|source| refused(certificate, source))?;
        let key = key.map(|path| {
            let key = KernelKey::from_pem(&Zeroizing::new(read(path)?)).map_err(|source| refused(path, source))?;
            Ok::<_, Error>((path.to_owned(), key))
        });
        Ok(Self { key: key.transpose()?, certificate })
    }

    /// Signs the index of a head; `None` without a key.
    ///
    /// # Errors
    /// The certificate is of another key.
    pub(super) fn sign(&self, head: &Head) -> Result<Option<Envelope>, Error> {
        let Some((path, key)) = &self.key else { return Ok(None) };
        let body = key.sign(&self.certificate, &signed_bytes(head)).map_err(|source| refused(path, source))?;
        Ok(Some(Envelope { kind: Envelope::KERNEL_SIGNATURE, body }))
    }

    pub(super) fn verify(&self, body: &[u8], head: &Head) -> Result<(), KernelSignError> {
        self.certificate.verify(body, &signed_bytes(head))
    }
}

fn refused(path: &Path, source: KernelSignError) -> Error {
    Error::KernelKey { path: path.to_owned(), source }
}
