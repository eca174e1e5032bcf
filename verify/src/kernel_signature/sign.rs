//! Makes signatures for the kernel, as `fsverity sign` does, and checks them against the kernel's certificate.
//!
//! Signatures by P-256 and by RSA with PKCS #1 v1.5 are deterministic here: equal input gives an equal bundle. Keys in hardware sign elsewhere, with
//! OpenSSL or `fsverity sign`; [`KernelCertificate::verify`] checks these signatures.

use cms::cert::IssuerAndSerialNumber;
use cms::cert::x509::Certificate;
use cms::cert::x509::der::asn1::{ObjectIdentifier, OctetString, SetOfVec, UintRef};
use cms::cert::x509::der::{Any, Decode as _, Encode as _, Header, SecretDocument, SliceReader};
use cms::cert::x509::spki::AlgorithmIdentifierOwned;
use cms::content_info::{CmsVersion, ContentInfo};
use cms::signed_data::{EncapsulatedContentInfo, SignedData, SignerIdentifier, SignerInfo, SignerInfos};
use p256::ecdsa;
use p256::ecdsa::signature::{Signer as _, Verifier as _};
use p256::pkcs8::PrivateKeyInfoRef;
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, UnparsedPublicKey};

use super::{FormError, KernelSignError, check};

const DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.1");
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const SHA256_WITH_RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const EC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const ECDSA_WITH_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");

/// Lengths in bits of the RSA keys that are accepted.
const MODULI: [usize; 3] = [2048, 3072, 4096];

/// Returns the content of a file in PEM, and its label.
fn document(pem: &[u8]) -> Option<(&str, SecretDocument)> {
    SecretDocument::from_pem(std::str::from_utf8(pem).ok()?).ok()
}

/// A certificate for a kernel's keyring `.fs-verity`.
#[derive(Clone, Debug)]
pub struct KernelCertificate(Certificate);

impl KernelCertificate {
    /// Reads a certificate in PEM.
    ///
    /// # Errors
    /// Returns an error if it is not a certificate.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KernelSignError> {
        let certificate = match document(pem) {
            Some(("CERTIFICATE", der)) => Certificate::from_der(der.as_bytes()).ok(),
            _ => None,
        };
        certificate.map(Self).ok_or(KernelSignError::NotACertificate)
    }

    /// Checks that a signature for the kernel is by this certificate's key, over `signed`, as returned by [`signed_bytes`](super::signed_bytes).
    ///
    /// # Errors
    /// Returns an error if it is not, or is of a kind that only a kernel can check.
    pub fn verify(&self, body: &[u8], signed: &[u8]) -> Result<(), KernelSignError> {
        check(body)?;
        let signed_data = ContentInfo::from_der(body).and_then(|info| info.content.decode_as::<SignedData>());
        let signed_data = signed_data.map_err(|_| FormError::Form)?;
        let signers = signed_data.signer_infos.0.into_vec();
        let signer = signers.iter().find(|signer| signer.sid == self.signer()).ok_or(KernelSignError::OtherSigner)?;
        let is_plain = signer.digest_alg.oid == SHA256 && signer.signed_attrs.is_none();
        if !is_plain || signed_data.encap_content_info.econtent.is_some() {
            return Err(KernelSignError::NotPlain);
        }
        let (key, signature) = (self.public_key(), signer.signature.as_bytes());
        let fits = match signer.signature_algorithm.oid {
            RSA | SHA256_WITH_RSA => {
                UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, key).verify(signed, signature).is_ok()
            }
            ECDSA_WITH_SHA256 => ecdsa::VerifyingKey::from_sec1_bytes(key)
                .and_then(|key| key.verify(signed, &ecdsa::Signature::from_der(signature)?))
                .is_ok(),
            _ => return Err(KernelSignError::NotPlain),
        };
        if fits { Ok(()) } else { Err(KernelSignError::Mismatch) }
    }

    /// Returns how a signature names this certificate.
    fn signer(&self) -> SignerIdentifier {
        let certificate = self.0.tbs_certificate();
        SignerIdentifier::IssuerAndSerialNumber(IssuerAndSerialNumber {
            issuer: certificate.issuer().clone(),
            serial_number: certificate.serial_number().clone(),
        })
    }

    fn public_key(&self) -> &[u8] {
        self.0.tbs_certificate().subject_public_key_info().subject_public_key.raw_bytes()
    }
}

/// A private key that signs for the kernel.
pub struct KernelKey(Secret);

enum Secret {
    EcdsaP256(ecdsa::SigningKey),
    Rsa(Box<KeyPair>),
}

impl std::fmt::Debug for KernelKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KernelKey")
    }
}

impl KernelKey {
    /// Reads an RSA or P-256 private key, in PEM and PKCS#8.
    ///
    /// # Errors
    /// Returns an error if it is not such a key.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KernelSignError> {
        match document(pem) {
            Some(("PRIVATE KEY", der)) => Self::from_pkcs8(der.as_bytes()),
            Some(("ENCRYPTED PRIVATE KEY", _)) => Err(KernelSignError::Encrypted),
            _ => Err(KernelSignError::NotAKey),
        }
    }

    fn from_pkcs8(der: &[u8]) -> Result<Self, KernelSignError> {
        let key = PrivateKeyInfoRef::from_der(der).map_err(|_| KernelSignError::NotAKey)?;
        match (key.algorithm.oid, key.algorithm.parameters_oid()) {
            (EC, Ok(P256)) => {
                let key = ecdsa::SigningKey::try_from(key).map_err(|_| KernelSignError::DamagedKey)?;
                Ok(Self(Secret::EcdsaP256(key)))
            }
            (RSA, _) => {
                let bits = 8 * modulus_len(key.private_key.as_bytes()).ok_or(KernelSignError::DamagedKey)?;
                if !MODULI.contains(&bits) {
                    return Err(KernelSignError::KeyBits { bits });
                }
                let key = KeyPair::from_pkcs8(der).map_err(|_| KernelSignError::DamagedKey)?;
                Ok(Self(Secret::Rsa(Box::new(key))))
            }
            _ => Err(KernelSignError::KeyType),
        }
    }

    /// Signs `signed`, as returned by [`signed_bytes`](super::signed_bytes), with the key of `certificate`, and returns the envelope's body.
    ///
    /// # Errors
    /// Returns an error if the certificate is for another key, or if the signature does not verify, which only broken hardware explains.
    pub fn sign(&self, certificate: &KernelCertificate, signed: &[u8]) -> Result<Vec<u8>, KernelSignError> {
        if self.public_key() != certificate.public_key() {
            return Err(KernelSignError::OtherKey);
        }
        let body = self.encode(certificate.signer(), signed).ok_or(KernelSignError::Failed)?;
        certificate.verify(&body, signed).map(|()| body)
    }

    /// Returns the public key as a certificate contains it.
    fn public_key(&self) -> Vec<u8> {
        match &self.0 {
            Secret::EcdsaP256(key) => key.verifying_key().to_sec1_point(false).as_bytes().to_vec(),
            Secret::Rsa(key) => key.public().as_ref().to_vec(),
        }
    }

    fn encode(&self, sid: SignerIdentifier, signed: &[u8]) -> Option<Vec<u8>> {
        // The parameters of SHA-256 and RSA are null; ECDSA has none.
        let null = |oid| AlgorithmIdentifierOwned { oid, parameters: Some(Any::null()) };
        let (signature_algorithm, signature) = match &self.0 {
            Secret::EcdsaP256(key) => {
                let signature: ecdsa::Signature = key.sign(signed);
                let algorithm = AlgorithmIdentifierOwned { oid: ECDSA_WITH_SHA256, parameters: None };
                (algorithm, signature.to_der().as_bytes().to_vec())
            }
            Secret::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed, &mut signature).ok()?;
                (null(RSA), signature)
            }
        };
        let signer = SignerInfo {
            version: CmsVersion::V1,
            sid,
            digest_alg: null(SHA256),
            signed_attrs: None,
            signature_algorithm,
            signature: OctetString::new(signature).ok()?,
            unsigned_attrs: None,
        };
        let signed_data = SignedData {
            version: CmsVersion::V1,
            digest_algorithms: SetOfVec::from_iter([null(SHA256)]).ok()?,
            encap_content_info: EncapsulatedContentInfo { econtent_type: DATA, econtent: None },
            certificates: None,
            crls: None,
            signer_infos: SignerInfos(SetOfVec::from_iter([signer]).ok()?),
        };
        let content = Any::encode_from(&signed_data).ok()?;
        ContentInfo { content_type: SIGNED_DATA, content }.to_der().ok()
    }
}

/// Returns the length in bytes of the modulus of an RSAPrivateKey (RFC 8017, A.1.2), which begins with a version and the modulus.
fn modulus_len(key: &[u8]) -> Option<usize> {
    let mut reader = SliceReader::new(key).ok()?;
    Header::decode(&mut reader).ok()?;
    UintRef::decode(&mut reader).ok()?;
    UintRef::decode(&mut reader).ok().map(|modulus| modulus.as_bytes().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The certificate of key 9.
    const CERTIFICATE: &[u8] = include_bytes!("../../../tests/data/kernel-p256.crt");

    fn key(number: u8) -> KernelKey {
        KernelKey(Secret::EcdsaP256(ecdsa::SigningKey::from_slice(&[number; 32]).expect("it is below the order")))
    }

    #[test]
    fn a_key_signs_for_its_own_certificate_alone() {
        let certificate = KernelCertificate::from_pem(CERTIFICATE).expect("it is one");
        let body = key(9).sign(&certificate, b"signed").expect("it is the key's");
        assert_eq!(certificate.verify(&body, b"signed"), Ok(()));
        assert_eq!(certificate.verify(&body, b"another"), Err(KernelSignError::Mismatch));
        assert_eq!(key(8).sign(&certificate, b"signed"), Err(KernelSignError::OtherKey));
    }
}
