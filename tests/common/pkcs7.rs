//! Kernel signatures built by hand (kernel-signatures 3): the layers of PKCS#7 with any fault.

use p256::ecdsa;
use p256::ecdsa::signature::Signer as _;
use sealift_format::Root;

/// The certificate of the signing key.
pub const CERTIFICATE: &[u8] = include_bytes!("../data/kernel-p256.crt");
/// signedData
pub const SIGNED_DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
/// data
pub const DATA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x01];
const SHA256: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01];
const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// Returns a value in DER: tag, length in the shortest form, and content.
pub fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let len = u16::try_from(content.len()).expect("vectors are small").to_be_bytes();
    let len: &[u8] = match len {
        [0, len] if len < 0x80 => &[len],
        [0, len] => &[0x81, len],
        [high, low] => &[0x82, high, low],
    };
    [&[tag], len, content].concat()
}

/// Returns a sequence of values.
pub fn sequence(values: &[Vec<u8>]) -> Vec<u8> {
    der(0x30, &values.concat())
}

fn oid(bytes: &[u8]) -> Vec<u8> {
    der(6, bytes)
}

/// Returns the outer layer: the content type and the signed data.
pub fn content_info(content_type: &[u8], signed_data: &[u8]) -> Vec<u8> {
    sequence(&[oid(content_type), der(0xa0, signed_data)])
}

/// Returns a kernel signature by a publicly known P-256 key, whose certificate is number 1 of `CN=test`; `signed` are the preamble and the root.
pub fn kernel_signature(signed: &[u8]) -> Vec<u8> {
    content_info(SIGNED_DATA, &signed_data(signed))
}

/// Returns the signed data alone.
pub fn signed_data(signed: &[u8]) -> Vec<u8> {
    let root = Root::parse(&signed[32..]).expect("the root is sound");
    let digest = root.contents.index_digest;
    let formatted = [&b"FSVerity\x01\x00\x20\x00"[..], &digest].concat();
    let key = ecdsa::SigningKey::from_slice(&[9; 32]).expect("it is below the order");
    let signature: ecdsa::Signature = key.sign(&formatted);
    let (r, s) = signature.split_bytes();
    let proof = sequence(&[integer(&r), integer(&s)]);

    let sha256 = sequence(&[oid(SHA256), der(5, &[])]);
    let name = sequence(&[der(0x31, &sequence(&[oid(COMMON_NAME), der(0x0c, b"test")]))]);
    let issuer_and_number = sequence(&[name, integer(&[1])]);
    let signer =
        [integer(&[1]), issuer_and_number, sha256.clone(), sequence(&[oid(ECDSA_WITH_SHA256)]), der(4, &proof)];
    let signers = der(0x31, &sequence(&signer));
    sequence(&[integer(&[1]), der(0x31, &sha256), sequence(&[oid(DATA)]), signers])
}

fn integer(number: &[u8]) -> Vec<u8> {
    let number = &number[number.iter().position(|byte| *byte != 0).unwrap_or(number.len())..];
    let sign = number.first().is_none_or(|byte| byte & 0x80 != 0);
    der(2, &[if sign { &[0][..] } else { &[] }, number].concat())
}

#[cfg(test)]
mod tests {
    use sealift_verify::kernel_signature::KernelSignError;
    use sealift_verify::kernel_signature::sign::KernelCertificate;
    use sealift_verify::kernel_signature::{of_head, signed_bytes};

    use super::*;
    use crate::bundle::{Bundle, Packing};
    use crate::reader::open_whole;
    use crate::tree::{dir, file};

    /// The signature built here verifies with the certificate's key.
    #[test]
    fn it_is_the_certificates() {
        let mut bundle = Bundle::new(&[("main", dir([("a", file("one\n"))]))], Packing::default());
        bundle.area_len = 1024;
        bundle.envelopes.push(Box::new(|signed| (2, kernel_signature(signed))));
        let head = open_whole(&bundle.encode()).expect("it is sound").head;
        let body = of_head(&head).expect("it has the form").expect("it is there");
        let certificate = KernelCertificate::from_pem(CERTIFICATE).expect("it is one");
        assert_eq!(certificate.verify(body, &signed_bytes(&head)), Ok(()));
        assert_eq!(certificate.verify(body, b"another"), Err(KernelSignError::Mismatch));
        for at in 0..body.len() {
            let mut bad = body.to_vec();
            bad[at] ^= 1;
            // Versions and names of algorithms that are not checked may differ.
            if certificate.verify(&bad, &signed_bytes(&head)).is_ok() {
                assert!(at < body.len() - 72, "flip at {at} of {}", body.len());
            }
        }
    }
}
