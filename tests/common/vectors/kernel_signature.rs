//! Kernel signatures (kernel-signatures 3).

use super::signed::{NOW, ONE};
use super::*;
use crate::pkcs7::{DATA, SIGNED_DATA, content_info, der, kernel_signature, signed_data};

/// Makes a body for the preamble and root of a bundle.
type Make = fn(&[u8]) -> Vec<u8>;

/// The longest signature that a kernel accepts, in bytes.
const LEN_MAX: usize = 16_128;

pub(super) fn vectors() -> Vec<Vector> {
    let bad = |name: &str, comment: &str, make: Make| {
        vector(name, "signature", comment, with(vec![make]).encode()).trust(trusted())
    };
    let mut alone = with(vec![kernel_signature]);
    alone.signers.clear();
    vec![
        accept("kernel-signature", "a signature for the kernel beside a trusted one", with(vec![kernel_signature]))
            .trust(trusted()),
        vector("kernel-signature-alone", "untrusted", "a signature for the kernel alone", alone.encode())
            .trust(trusted()),
        vector(
            "kernel-signature-two",
            "signature",
            "two signatures for the kernel",
            with(vec![kernel_signature, |_| content_info(SIGNED_DATA, &der(0x30, &[]))]).encode(),
        )
        .trust(trusted()),
        accept("kernel-signature-longest", "one of 16128 bytes", with(vec![|_| padded(LEN_MAX)])).trust(trusted()),
        bad("kernel-signature-long", "one of 16129 bytes", |_| padded(LEN_MAX + 1)),
        bad("kernel-signature-length", "a length of one byte in two", |signed| {
            let body = kernel_signature(signed);
            assert_eq!(body[1], 0x81, "its length has one byte");
            [&body[..1], &[0x82, 0], &body[2..]].concat()
        }),
        bad("kernel-signature-indefinite", "the outermost length is indefinite", |signed| {
            [&[0x30, 0x80], &kernel_signature(signed)[3..], &[0, 0]].concat()
        }),
        bad("kernel-signature-cut", "its last byte is missing", |signed| {
            let mut body = kernel_signature(signed);
            body.pop();
            body
        }),
        bad("kernel-signature-trailing", "a byte follows it", |signed| [&kernel_signature(signed)[..], &[0]].concat()),
        bad("kernel-signature-inner", "a value follows the signed data", |signed| {
            content_info(SIGNED_DATA, &[signed_data(signed), der(5, &[])].concat())
        }),
        bad("kernel-signature-empty", "it is empty", |_| Vec::new()),
        bad("kernel-signature-type", "its content type is data", |signed| content_info(DATA, &signed_data(signed))),
    ]
}

/// Returns the small bundle, signed by key one, with these envelopes of kind 2.
fn with(makes: Vec<Make>) -> Bundle {
    let mut bundle = small().signed_by(&[ONE]);
    bundle.area_len = 20_000;
    for make in makes {
        bundle.envelopes.push(Box::new(move |signed| (2, make(signed))));
    }
    bundle
}

fn trusted() -> Trust {
    Trust { signers: vec![ONE.allowed("test")], now: Some(NOW), ..Trust::default() }
}

/// Returns signed data of zeros with a total of `len` bytes.
fn padded(len: usize) -> Vec<u8> {
    // Three layers with a two-byte length each, and the type.
    content_info(SIGNED_DATA, &der(0x30, &vec![0; len - 3 * 4 - 11]))
}
