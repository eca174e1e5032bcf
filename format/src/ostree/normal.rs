//! Checks that a GVariant of any type is in normal form, which libostree requires of every metadata object.

use super::Malformed;
use super::framing::{Elements, for_each_member, text};
use super::types::{DEPTH_MAX, TOO_DEEP, Type};

/// Checks a value of the type that `type_string` names.
///
/// # Errors
/// Returns an error if it is not in normal form, or nests deeper than 64.
pub(super) fn check(type_string: &[u8], bytes: &[u8]) -> Result<(), Malformed> {
    check_nested(type_string, bytes, DEPTH_MAX)
}

/// Returns the type string and the value of a variant, without checking them.
pub(super) fn split_variant(bytes: &[u8]) -> Result<(&[u8], &[u8]), Malformed> {
    let nul = bytes.iter().rposition(|byte| *byte == 0).ok_or(Malformed::new("a variant has no type"))?;
    let (value, type_string) = bytes.split_at(nul);
    Ok((type_string.get(1..).unwrap_or_default(), value))
}

fn check_nested(type_string: &[u8], bytes: &[u8], depth: u32) -> Result<(), Malformed> {
    let of = Type::parse(type_string, depth)?;
    check_value(&of, 0, bytes, depth)
}

/// Checks a value of the type at `at`. `depth` is the number of nested containers that are allowed. The type itself has at most so many; a variant
/// counts as one more container.
fn check_value(of: &Type, at: usize, bytes: &[u8], depth: u32) -> Result<(), Malformed> {
    let node = of.node(at)?;
    if node.shape.size.is_some_and(|size| size != bytes.len()) {
        return Err(Malformed::new("a value does not have the size of its type"));
    }
    let below = || depth.checked_sub(1).ok_or(TOO_DEEP);
    match node.code {
        b'b' if bytes.first().is_some_and(|byte| *byte > 1) => Err(Malformed::new("a boolean is neither 0 nor 1")),
        b's' => text(bytes).map(drop),
        b'o' if !is_object_path(text(bytes)?) => Err(Malformed::new("an object path is none")),
        b'g' if !Type::is_sequence(text(bytes)?.as_bytes()) => Err(Malformed::new("a signature is none")),
        b'v' => {
            let (type_string, value) = split_variant(bytes)?;
            check_nested(type_string, value, below()?)
        }
        b'a' => check_array(of, at + 1, bytes, below()?),
        b'm' => check_maybe(of, at + 1, bytes, below()?),
        b'(' | b'{' => {
            let mut parts = of.parts(at);
            let depth = below()?;
            for_each_member(bytes, parts.clone().map(|(_, part)| part.shape), |member| match parts.next() {
                Some((part, _)) => check_value(of, part, member, depth),
                None => Ok(()),
            })
        }
        _ => Ok(()),
    }
}

fn check_array(of: &Type, element: usize, bytes: &[u8], depth: u32) -> Result<(), Malformed> {
    let node = of.node(element)?;
    match node.shape.size {
        None => {
            for value in Elements::of(bytes, node.shape.align)? {
                check_value(of, element, value?, depth)?;
            }
            Ok(())
        }
        Some(size) if !bytes.len().is_multiple_of(size) => {
            Err(Malformed::new("an array's length is not a multiple of its elements'"))
        }
        // All bytes are valid numbers.
        Some(_) if b"ynqiuxthd".contains(&node.code) => Ok(()),
        Some(size) => bytes.chunks_exact(size).try_for_each(|value| check_value(of, element, value, depth)),
    }
}

fn check_maybe(of: &Type, element: usize, bytes: &[u8], depth: u32) -> Result<(), Malformed> {
    if bytes.is_empty() {
        return Ok(());
    }
    if of.node(element)?.shape.size.is_some() {
        return check_value(of, element, bytes, depth);
    }
    match bytes.split_last() {
        Some((0, value)) => check_value(of, element, value, depth),
        _ => Err(Malformed::new("a maybe does not end with a zero byte")),
    }
}

fn is_object_path(path: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    path == "/" || path.strip_prefix('/').is_some_and(|names| names.split('/').all(is_name))
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn normal_forms() {
        let cases: [(&str, &[u8]); 19] = [
            ("y", b"\xff"),
            ("b", b"\x01"),
            ("ab", b"\0\x01"),
            ("as", b"a\0b\0\x02\x04"),
            ("v", b"\x05\0y"),
            ("v", b"\x05\0y\0v"),
            ("mu", b""),
            ("mu", b"abcd"),
            ("ms", b"a\0\0"),
            ("mmy", b"\0"),
            ("o", b"/a/b\0"),
            ("g", b"a{sv}\0"),
            ("()", b"\0"),
            ("a()", b"\0\0"),
            ("(yu)", b"\x01\0\0\0\x01\0\0\0"),
            ("a(yu)", b"\x01\0\0\0\x01\0\0\0\x01\0\0\0\x01\0\0\0"),
            ("a{sv}", b""),
            ("a{sv}", b"k\0\0\0\0\0\0\0\x01\0b\x02\x0c"),
            ("a{yy}", b"abcd"),
        ];
        for (of, bytes) in cases {
            assert_eq!(check(of.as_bytes(), bytes), Ok(()), "{of} {bytes:?}");
        }
    }

    #[test]
    fn other_forms() {
        let cases: [(&str, &[u8]); 16] = [
            ("y", b""),
            ("u", b"abcde"),
            ("b", b"\x02"),
            ("ab", b"\0\x02"),
            ("as", b"a\0b\x02\x03"),
            ("au", b"abc"),
            ("v", b""),
            ("v", b"\x05\0"),
            ("v", b"\x05y"),
            ("v", b"\x05\x05\0y"),
            ("mu", b"abc"),
            ("ms", b"a\0"),
            ("o", b"a\0"),
            ("g", b"a\0"),
            ("()", b"\x01"),
            ("a(yu)", b"\x01\0\x01\0\x01\0\0\0"),
        ];
        for (of, bytes) in cases {
            assert!(check(of.as_bytes(), bytes).is_err(), "{of} {bytes:?}");
        }
    }

    #[test]
    fn variants_nest_to_a_limit() {
        let nested = |levels: usize| {
            let mut bytes: Vec<u8> = b"\x05\0y".to_vec();
            for _ in 1..levels {
                bytes.extend(b"\0v");
            }
            bytes
        };
        assert_eq!(check(b"v", &nested(64)), Ok(()));
        assert_eq!(check(b"v", &nested(65)), Err(TOO_DEEP));
        assert_eq!(check(b"v", &nested(1_000_000)), Err(TOO_DEEP));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(of in "[ybuts(){}avm]{0,12}", bytes in prop::collection::vec(prop_oneof![Just(0), 0..12_u8, any::<u8>()], 0..64)) {
            let _ = check(of.as_bytes(), &bytes);
            let _ = check(b"a{sv}", &bytes);
        }
    }
}
