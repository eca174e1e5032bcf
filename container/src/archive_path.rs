//! Paths of members as archives write them.

/// Returns a path without `./` and slashes around it; `None` if it has other names that no file has. The archive's root is an empty path.
pub(super) fn archive_path(written: &[u8]) -> Option<Vec<u8>> {
    let names = written.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let names: Vec<&[u8]> = names.collect();
    names.iter().all(|name| super::anatomy::is_name(name)).then(|| names.join(&b'/'))
}

#[cfg(test)]
mod tests {
    use super::archive_path;

    #[test]
    fn paths_lose_what_is_no_name() {
        for (written, path) in [("./a/b", Some("a/b")), ("/a//b/./", Some("a/b")), (".", Some("")), ("a/../b", None)] {
            assert_eq!(archive_path(written.as_bytes()), path.map(|path| path.as_bytes().to_vec()), "{written}");
        }
        assert_eq!(archive_path(b"a\0b"), None);
    }
}
