//! The forms of names (core 4.1, 6.1 and 6.2).

use alloc::vec::Vec;

/// Longest bundle name, tag or annotation key, in bytes (core 4.1).
pub const NAME_LEN: usize = 128;

/// Returns whether `name` has the form of a bundle name, compatible tag or annotation key (core 4.1).
#[must_use]
pub fn is_bundle_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= NAME_LEN
        && bytes.next().is_some_and(|first| first.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"._+-".contains(&byte))
}

/// Returns whether `name` has the form of a ref name (core 6.1).
#[must_use]
pub fn is_ref_name(name: &str) -> bool {
    name.len() <= 255 && name.split('/').all(is_ref_fragment)
}

fn is_ref_fragment(fragment: &str) -> bool {
    let mut bytes = fragment.bytes();
    let word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    bytes.next().is_some_and(word) && bytes.all(|byte| word(byte) || byte == b'.' || byte == b'-')
}

/// Returns whether `id` has the form of an OSTree collection id (ostree 2).
#[must_use]
pub fn is_collection_id(id: &str) -> bool {
    let is_element = |element: &str| {
        let mut bytes = element.bytes();
        let letter = |byte: u8| byte.is_ascii_alphabetic() || byte == b'_';
        bytes.next().is_some_and(letter) && bytes.all(|byte| letter(byte) || byte.is_ascii_digit())
    };
    id.len() <= 255 && id.contains('.') && id.split('.').all(is_element)
}

/// Returns why `name` cannot be a path component, or `None` if it can (core 6.2).
#[must_use]
pub fn component_fault(name: &[u8]) -> Option<&'static str> {
    match name {
        b"" => Some("is empty"),
        b"." | b".." => Some("is . or .."),
        _ if name.len() > 255 => Some("has more than 255 bytes"),
        _ if name.contains(&b'/') => Some("contains a slash"),
        _ if name.contains(&0) => Some("contains a NUL byte"),
        _ => None,
    }
}

/// Returns the path of a name in a directory, whose own path is empty for the root.
#[must_use]
pub fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, name].join(&b'/') }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundle_names() {
        for good in ["a", "os", "Debian-12.1+deb12_u1", "9", "a..b"] {
            assert!(is_bundle_name(good), "{good}");
        }
        for bad in ["", ".a", "-a", "a/b", "a b", "ä", "a:b"] {
            assert!(!is_bundle_name(bad), "{bad}");
        }
        assert!(is_bundle_name(&"a".repeat(128)));
        assert!(!is_bundle_name(&"a".repeat(129)));
    }

    #[test]
    fn ref_names() {
        for good in ["main", "debian/12/x86_64", "_a", "a.b-c"] {
            assert!(is_ref_name(good), "{good}");
        }
        for bad in ["", "/", "a/", "/a", "a//b", ".a", "a/../b", "-a", "a:b"] {
            assert!(!is_ref_name(bad), "{bad}");
        }
    }
}
