//! Similarity of names: versions in them, and how alike two of them are.

/// Returns a name or path with every apparent version replaced: `libfoo.so.1.2` equals `libfoo.so.1.10`, and `a-1.0-r2` equals `a-2`.
pub(super) fn skeleton(name: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((&byte, behind)) = rest.split_first() {
        if byte.is_ascii_digit() {
            out.push(b'#');
            rest = skip_version(rest);
        } else {
            out.push(byte);
            rest = behind;
        }
    }
    out
}

/// Returns what follows the version at the start of `text`: numbers, joined by one separator, or by a word such as `-r` or `_rc`.
fn skip_version(text: &[u8]) -> &[u8] {
    let mut rest = skip(text, u8::is_ascii_digit, usize::MAX);
    loop {
        let separator = skip(rest, |byte| b"._-+~:".contains(byte), 1);
        let word = skip(separator, u8::is_ascii_lowercase, 5);
        match word.first() {
            Some(byte) if byte.is_ascii_digit() => rest = skip(word, u8::is_ascii_digit, usize::MAX),
            _ => return rest,
        }
    }
}

/// Strips at most `most` leading bytes of a kind.
fn skip(text: &[u8], is_of_kind: impl Fn(&u8) -> bool, most: usize) -> &[u8] {
    let len = text.iter().take(most).take_while(|byte| is_of_kind(byte)).count();
    &text[len..]
}

/// Returns how many bytes two names share at their start and at their end.
pub(super) fn likeness(a: &[u8], b: &[u8]) -> usize {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    start + a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count()
}

/// Splits a path into its directory and its last name.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_taken_for_the_same() {
        let same = |a: &str, b: &str| skeleton(a.as_bytes()) == skeleton(b.as_bytes());
        assert!(same("libfoo.so.1.2", "libfoo.so.1.10.3"));
        assert!(same("foo-1.0-r2.ebuild", "foo-2_rc1.ebuild"));
        assert!(same("lib/modules/6.1.0-30-amd64/a.ko", "lib/modules/6.1.0-31-amd64/a.ko"));
        assert!(!same("libfoo.so.1", "libbar.so.1"));
        assert!(!same("foo-1.0.ebuild", "foo-1.0.patch"));
        assert!(!same("a1b", "ab"));
    }

    #[test]
    fn likeness_counts_both_ends_once() {
        assert_eq!(likeness(b"abcd", b"abxd"), 3);
        assert_eq!(likeness(b"aaa", b"aa"), 2);
        assert_eq!(likeness(b"", b"x"), 0);
        assert_eq!(split(b"a/b/c"), (&b"a/b"[..], &b"c"[..]));
        assert_eq!(split(b"c"), (&b""[..], &b"c"[..]));
    }
}
