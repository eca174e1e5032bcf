//! The SSH wire types of which keys, signatures and revocation lists consist
//! (RFC 4251, section 5).

/// The bytes do not follow the format; the text says where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed(pub(crate) &'static str);

/// Reads fields from the front of a slice.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    pub(crate) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or(Malformed("it ends inside a field"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn string(&mut self) -> Result<&'a [u8], Malformed> {
        let len =
            usize::try_from(self.u32()?).map_err(|_| Malformed("a field is longer than this machine can address"))?;
        self.take(len)
    }

    /// Returns the bytes of a positive mpint without its sign byte.
    pub(crate) fn positive_mpint(&mut self) -> Result<&'a [u8], Malformed> {
        match self.string()? {
            [] => Err(Malformed("a number is zero")),
            [0, rest @ ..] if rest.first().is_some_and(|byte| byte & 0x80 != 0) => Ok(rest),
            // If a number had two encodings, one key could have two ids.
            [0, ..] => Err(Malformed("a number has needless leading zeros")),
            [first, ..] if first & 0x80 != 0 => Err(Malformed("a number is negative")),
            bytes => Ok(bytes),
        }
    }

    pub(crate) fn finish(self) -> Result<(), Malformed> {
        if self.is_empty() { Ok(()) } else { Err(Malformed("bytes follow its end")) }
    }
}

/// Returns whether a blob begins with the name of this type.
pub(super) fn names_type(blob: &[u8], key_type: &str) -> bool {
    Reader::new(blob).string() == Ok(key_type.as_bytes())
}

/// Returns a name from a bundle for messages. Names in SSH are at most 64 printable ASCII characters without spaces (RFC
/// 4251, section 6); what is not is replaced or cut, so that none passes for another part of the message.
pub(super) fn shown(name: &[u8]) -> String {
    let printable = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { char::REPLACEMENT_CHARACTER };
    let mut shown: String = name.iter().take(64).map(printable).collect();
    if name.len() > 64 {
        shown.push_str("...");
    }
    shown
}

/// Appends `bytes`, preceded by their length.
///
/// # Panics
/// Panics if `bytes` is 4 GiB or longer; callers write only short fields of their own.
pub(crate) fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    let len = u32::try_from(bytes.len()).expect("fields that we write are short");
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a positive number, most significant byte first.
#[cfg(any(test, feature = "sign"))]
pub(crate) fn put_mpint(out: &mut Vec<u8>, number: &[u8]) {
    let start = number.iter().take_while(|byte| **byte == 0).count();
    let mut bytes = number.get(start..).unwrap_or_default().to_vec();
    if bytes.first().is_some_and(|byte| byte & 0x80 != 0) {
        bytes.insert(0, 0);
    }
    put_string(out, &bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_spelling() {
        let good: [(&[u8], &[u8]); 2] = [(&[0, 0, 0, 1, 5], &[5]), (&[0, 0, 0, 2, 0, 0x80], &[0x80])];
        for (bytes, number) in good {
            assert_eq!(Reader::new(bytes).positive_mpint(), Ok(number));
        }
        let bad: [(&[u8], &str); 5] = [
            (&[0, 0, 0, 0], "a number is zero"),
            (&[0, 0, 0, 1, 0], "a number has needless leading zeros"),
            (&[0, 0, 0, 2, 0, 5], "a number has needless leading zeros"),
            (&[0, 0, 0, 1, 0x80], "a number is negative"),
            (&[0, 0, 0, 2, 5], "it ends inside a field"),
        ];
        for (bytes, what) in bad {
            assert_eq!(Reader::new(bytes).positive_mpint(), Err(Malformed(what)));
        }
    }

    #[test]
    fn what_is_put_is_read() {
        for number in [&[0, 0, 1][..], &[0xff], &[0x7f, 0], &[0, 0x80]] {
            let mut out = Vec::new();
            put_mpint(&mut out, number);
            let read = Reader::new(&out).positive_mpint().map(<[u8]>::to_vec);
            let trimmed: Vec<u8> = number.iter().copied().skip_while(|byte| *byte == 0).collect();
            assert_eq!(read, Ok(trimmed));
        }
    }

    #[test]
    fn a_name_is_shown_as_ssh_has_them() {
        assert_eq!(shown(b"ssh-\xff a\n"), "ssh-\u{fffd}\u{fffd}a\u{fffd}");
        assert_eq!(shown(&[b'x'; 64]), "x".repeat(64));
        assert_eq!(shown(&[b'x'; 65]), format!("{}...", "x".repeat(64)));
    }

    #[test]
    fn a_length_past_the_end_is_refused() {
        assert!(Reader::new(&[0xff, 0xff, 0xff, 0xff, 0]).string().is_err());
        assert!(Reader::new(&[0, 0, 0]).string().is_err());
        assert!(Reader::new(&[0]).finish().is_err());
    }
}
