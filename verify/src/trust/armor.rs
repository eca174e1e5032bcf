//! The text form of a signature: two marker lines with base64 between them.

use base64ct::{Base64, Encoding};

use super::wire::Malformed;

const BEGIN: &[u8] = b"-----BEGIN SSH SIGNATURE-----";
const END: &[u8] = b"-----END SSH SIGNATURE-----";

/// Returns the bytes inside the armor. Lines may end with CR LF and be of any
/// length; only line ends may follow the footer.
pub(super) fn decode(text: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut lines = text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    if lines.next() != Some(BEGIN) {
        return Err(Malformed("its text does not begin with BEGIN SSH SIGNATURE"));
    }
    let mut base64 = Vec::new();
    loop {
        match lines.next() {
            Some(END) => break,
            Some(line) => base64.extend_from_slice(line),
            None => return Err(Malformed("its text has no END SSH SIGNATURE line")),
        }
    }
    if lines.any(|line| !line.is_empty()) {
        return Err(Malformed("text follows its END SSH SIGNATURE line"));
    }
    decode_base64(&base64)
}

/// Decodes base64 with padding, in its canonical form.
pub(super) fn decode_base64(base64: &[u8]) -> Result<Vec<u8>, Malformed> {
    core::str::from_utf8(base64)
        .ok()
        .and_then(|text| Base64::decode_vec(text).ok())
        .ok_or(Malformed("its base64 is malformed"))
}

/// Returns `blob` as `ssh-keygen -Y sign` would write it.
#[cfg(any(test, feature = "sign"))]
pub(super) fn encode(blob: &[u8]) -> String {
    let mut out = String::from("-----BEGIN SSH SIGNATURE-----\n");
    for (index, character) in Base64::encode_string(blob).chars().enumerate() {
        if index > 0 && index % 70 == 0 {
            out.push('\n');
        }
        out.push(character);
    }
    out.push_str("\n-----END SSH SIGNATURE-----\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_is_decoded() {
        for len in [0, 1, 52, 53, 54, 300] {
            let blob: Vec<u8> = (0..=255).cycle().take(len).collect();
            let text = encode(&blob);
            assert_eq!(decode(text.as_bytes()), Ok(blob.clone()));
            assert_eq!(decode(text.replace('\n', "\r\n").as_bytes()), Ok(blob));
        }
    }

    #[test]
    fn a_line_has_at_most_70_characters() {
        let lens = |len: usize| encode(&vec![7; len]).lines().map(str::len).collect::<Vec<_>>();
        assert_eq!(lens(105), [BEGIN.len(), 70, 70, END.len()]);
        assert_eq!(lens(106), [BEGIN.len(), 70, 70, 4, END.len()]);
    }

    #[test]
    fn other_text_is_refused() {
        let good = encode(b"signature");
        assert!(decode(good.as_bytes()).is_ok());
        for bad in [
            String::new(),
            format!("\n{good}"),
            format!("{good}x"),
            good.replace("END", "FIN"),
            good.replace("BEGIN SSH", "BEGIN PGP"),
            good.replace("U2ln", "U 2ln"),
            good.replace("U2ln", "U2l"),
            good.replace("U2ln", "\u{fc}"),
            good.replace('\n', ""),
        ] {
            if bad != good {
                assert!(decode(bad.as_bytes()).is_err(), "{bad}");
            }
        }
    }
}
