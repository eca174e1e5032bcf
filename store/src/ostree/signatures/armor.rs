//! ASCII armor of OpenPGP keys (RFC 9580, 6.2), which gpgv does not read.

use base64ct::{Base64, Encoding as _};

const BEGIN: &[u8] = b"-----BEGIN PGP PUBLIC KEY BLOCK-----";
const END: &[u8] = b"-----END PGP PUBLIC KEY BLOCK-----";

/// Returns the keys of all blocks of a text, concatenated. Like GnuPG, it stops at a damaged block.
pub(super) fn keys(text: &[u8]) -> Vec<u8> {
    let mut keys = Vec::new();
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    while lines.any(|line| line == BEGIN) {
        let Some(block) = block(&mut lines) else { break };
        keys.extend(block);
    }
    keys
}

/// Decodes the lines between the first and the last: headers, an empty line, base64 and an optional checksum.
fn block<'a>(lines: &mut impl Iterator<Item = &'a [u8]>) -> Option<Vec<u8>> {
    lines.find(|line| line.is_empty())?;
    let (mut text, mut sum) = (Vec::new(), None);
    loop {
        match lines.next()? {
            END => break,
            [b'=', rest @ ..] => sum = Some(rest),
            line => text.extend_from_slice(line),
        }
    }
    let decode = |text: &[u8]| Base64::decode_vec(std::str::from_utf8(text).ok()?).ok();
    let block = decode(&text)?;
    match sum {
        Some(sum) if decode(sum)? != crc24(&block) => None,
        _ => Some(block),
    }
}

/// Computes the checksum (RFC 9580, 6.1.1).
fn crc24(bytes: &[u8]) -> [u8; 3] {
    let mut crc = 0x00b7_04ce_u32;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= 0x0186_4cfb;
            }
        }
    }
    let [_, sum @ ..] = crc.to_be_bytes();
    sum
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn armored(bytes: &[u8], sum: &str, end: &str) -> String {
        let text = Base64::encode_string(bytes);
        let lines: Vec<_> = text.as_bytes().chunks(64).map(String::from_utf8_lossy).collect();
        let [begin, last] = [BEGIN, END].map(String::from_utf8_lossy);
        [&begin, "Comment: of the desk", "", &lines.join(end), sum, &last, ""].join(end)
    }

    #[test]
    fn the_checksum() {
        assert_eq!(crc24(b"123456789"), [0x21, 0xcf, 0x02]);
        assert_eq!(crc24(b""), [0xb7, 0x04, 0xce]);
    }

    #[test]
    fn texts() {
        let bytes = [0x98, 1, 2, 3, 4];
        let sum = format!("={}", Base64::encode_string(&crc24(&bytes)));
        let good = armored(&bytes, &sum, "\n");
        assert_eq!(keys(good.as_bytes()), bytes);
        assert_eq!(
            keys(format!("remark\n{good}\n{}", armored(&bytes, &sum, " \r\n")).as_bytes()),
            [bytes, bytes].concat()
        );
        assert_eq!(keys(armored(&bytes, "", "\n").as_bytes()), bytes);
        assert_eq!(keys(armored(&bytes, "=AAAA", "\n").as_bytes()), b"");
        assert_eq!(keys(format!("{good}{}", armored(&bytes, "=AAAA", "\n")).as_bytes()), bytes);
        for text in
            ["", "junk", &good.replace("-----END", "END"), &good.replace("\n\n", "\n"), &good.replace("mA", "m!")]
        {
            assert_eq!(keys(text.as_bytes()), b"", "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_armored_comes_back(bytes: Vec<u8>) {
            let sum = format!("={}", Base64::encode_string(&crc24(&bytes)));
            prop_assert_eq!(keys(armored(&bytes, &sum, "\n").as_bytes()), bytes);
        }

        #[test]
        fn any_text_is_keys_or_none(text: Vec<u8>) {
            let _ = keys(&[BEGIN, b"\n\n", &text].concat());
        }
    }
}
