//! Signatures for the kernel (kernel-signatures 3): PKCS#7 over the fs-verity digest of the index. A kernel checks them against its own certificates
//! when it seals the index. They never count for trust in a bundle.
//!
//! This module checks their form, which needs neither keys nor X.509. With the feature `kernel-sign`, `sign` makes them.

#[cfg(feature = "kernel-sign")]
pub mod sign;
mod sign_error;

use sealift_format::verity::FileDigest;
use sealift_format::{Envelope, Head};

pub use sign_error::KernelSignError;

/// The length in bytes of the longest signature that a kernel accepts.
pub const LEN_MAX: usize = 16_128;

/// The object identifier of signedData, 1.2.840.113549.1.7.2, with its tag and length.
const SIGNED_DATA: [u8; 11] = [0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x07, 0x02];
const SEQUENCE: u8 = 0x30;
/// `[0] EXPLICIT`
const CONTENT: u8 = 0xa0;

/// Why bytes are not a signature for the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormError {
    /// The kernel does not accept a signature of that length.
    #[error("it has {len} bytes, but the kernel accepts at most 16128")]
    Long {
        /// Its length in bytes.
        len: usize,
    },
    /// It is something else, is truncated, or something follows it.
    #[error("not a PKCS#7 signature in DER")]
    Form,
    /// The kernel accepts one signature for a file.
    #[error("there are several, but the kernel accepts only one")]
    Several,
}

/// Returns the signature for the kernel in a head; `None` if there is none.
///
/// # Errors
/// Returns an error if its form is wrong, or there are several.
pub fn of_head(head: &Head) -> Result<Option<&[u8]>, FormError> {
    let mut found = head.bodies(Envelope::KERNEL_SIGNATURE);
    let Some(body) = found.next() else { return Ok(None) };
    check(body)?;
    if found.next().is_some() { Err(FormError::Several) } else { Ok(Some(body)) }
}

/// Returns the bytes that a signature for the kernel signs.
#[must_use]
pub fn signed_bytes(head: &Head) -> Vec<u8> {
    FileDigest::from(head.root().contents.index_digest).formatted()
}

/// Checks the form of a signature for the kernel: its length and the outermost layers (kernel-signatures 3).
///
/// # Errors
/// Returns an error if its form is wrong.
pub fn check(body: &[u8]) -> Result<(), FormError> {
    if body.len() > LEN_MAX {
        return Err(FormError::Long { len: body.len() });
    }
    let signed_data = whole(SEQUENCE, body)
        .and_then(|info| info.strip_prefix(&SIGNED_DATA))
        .and_then(|content| whole(CONTENT, content))
        .and_then(|content| whole(SEQUENCE, content));
    signed_data.map(drop).ok_or(FormError::Form)
}

/// Returns the content of a value with this tag, if it takes all of `bytes` and its length has the shortest encoding. No length here takes more than
/// two bytes.
fn whole(tag: u8, bytes: &[u8]) -> Option<&[u8]> {
    let (head, rest) = bytes.split_first_chunk::<2>()?;
    let (len, content) = match *head {
        [found, _] if found != tag => return None,
        [_, len @ 0..=0x7f] => (usize::from(len), rest),
        [_, 0x81] => {
            let (len, content) = rest.split_first()?;
            (usize::from(*len).checked_sub(0x80)? + 0x80, content)
        }
        [_, 0x82] => {
            let (len, content) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*len)).checked_sub(0x100)? + 0x100, content)
        }
        _ => return None,
    };
    (content.len() == len).then_some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tag: u8, content: &[u8]) -> Vec<u8> {
        let len = u16::try_from(content.len()).expect("it is short").to_be_bytes();
        let len: &[u8] = match len {
            [0, len] if len < 0x80 => &[len],
            [0, len] => &[0x81, len],
            [high, low] => &[0x82, high, low],
        };
        [&[tag], len, content].concat()
    }

    /// Returns a body around `len` bytes.
    fn body(len: usize) -> Vec<u8> {
        let content = value(CONTENT, &value(SEQUENCE, &vec![7; len]));
        value(SEQUENCE, &[&SIGNED_DATA[..], &content].concat())
    }

    #[test]
    fn lengths_of_each_form_are_taken() {
        for len in (0..600).chain([0x3000]) {
            assert_eq!(check(&body(len)), Ok(()), "{len}");
        }
        let longest = (LEN_MAX - 40..).find(|len| body(*len).len() == LEN_MAX).expect("there is one");
        assert_eq!(check(&body(longest)), Ok(()));
        assert_eq!(check(&body(longest + 1)), Err(FormError::Long { len: LEN_MAX + 1 }));
    }

    /// The layers that are checked have only one encoding.
    #[test]
    fn every_flip_and_cut_of_the_layers_fails() {
        for len in [5, 100, 200, 300] {
            let good = body(len);
            for at in 0..good.len() - len {
                for bit in 0..8 {
                    let mut bad = good.clone();
                    bad[at] ^= 1 << bit;
                    assert_eq!(check(&bad), Err(FormError::Form), "bit {bit} at {at} of {len}");
                }
            }
            for end in 0..good.len() {
                assert_eq!(check(&good[..end]), Err(FormError::Form), "cut at {end} of {len}");
            }
            assert_eq!(check(&[&good[..], &[0]].concat()), Err(FormError::Form));
        }
    }
}
