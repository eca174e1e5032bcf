//! `--kernel-key KEY --kernel-cert CERT`: signs the index for kernels that have the certificate.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use sealift_format::{Envelope, Head};
use sealift_store::fs::check_secret;
use sealift_verify::kernel_signature::sign::{KernelCertificate, KernelKey};
use sealift_verify::kernel_signature::{KernelSignError, signed_bytes};
use zeroize::Zeroizing;

use crate::{Error, FileFault};

/// A signer for the kernel, or the certificate of one elsewhere.
#[derive(Debug)]
pub struct KernelSigner {
    key: Option<(PathBuf, KernelKey)>,
    certificate: KernelCertificate,
}

impl KernelSigner {
    /// Opens the certificate that kernels have, and its private key. Without the key, an attached signature is checked against the certificate.
    ///
    /// # Errors
    /// Returns an error if one of the files cannot be read, or is malformed, or if other users can read or change the key.
    pub fn open(key: Option<&Path>, certificate: &Path) -> Result<Self, Error> {
        let read = |path: &Path| std::fs::read(path).map_err(|error| Error::io("read", path, error));
        let parsed = KernelCertificate::from_pem(&read(certificate)?);
        let certificate = parsed.map_err(|source| refused(certificate, source))?;
        let key = key.map(|path| {
            let failed = |error| Error::io("read", path, error);
            let mut file = File::open(path).map_err(failed)?;
            let mut pem = Zeroizing::new(Vec::new());
            file.read_to_end(&mut pem).map_err(failed)?;
            let key = KernelKey::from_pem(&pem).map_err(|source| refused(path, source))?;
            check_secret(file.as_fd(), path)?;
            Ok::<_, Error>((path.to_owned(), key))
        });
        Ok(Self { key: key.transpose()?, certificate })
    }

    /// Signs the index of a head; returns `None` without a key.
    ///
    /// # Errors
    /// Returns an error if the certificate belongs to another key.
    pub(super) fn sign(&self, head: &Head) -> Result<Option<Envelope>, Error> {
        let Some((path, key)) = &self.key else { return Ok(None) };
        let body = key.sign(&self.certificate, &signed_bytes(head)).map_err(|source| refused(path, source))?;
        Ok(Some(Envelope { kind: Envelope::KERNEL_SIGNATURE, body }))
    }

    pub(super) fn verify(&self, body: &[u8], head: &Head) -> Result<(), KernelSignError> {
        self.certificate.verify(body, &signed_bytes(head))
    }
}

fn refused(path: &Path, fault: KernelSignError) -> Error {
    Error::file(path, FileFault::KernelKey(fault))
}
