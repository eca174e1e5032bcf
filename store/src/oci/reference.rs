//! `DIR[:TAG]` and `FILE[:REFERENCE]`, as users of skopeo and podman write them (containers-transports(5)).

use std::path::Path;

use crate::error::path_of;

/// A layout or an archive, and which of its images is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ImageReference<'a> {
    pub(crate) path: &'a Path,
    /// A tag, or `@N` for the image with this number; `None` for the only one.
    pub(crate) tag: Option<&'a str>,
}

impl<'a> ImageReference<'a> {
    /// Splits what follows the scheme. If the path contains a colon, the longest prefix for which `is_there` holds is the path; if there is none, the
    /// path ends at the first colon.
    pub(crate) fn parse(rest: &'a [u8], is_there: impl Fn(&Path) -> bool) -> Self {
        let whole = Self { path: path_of(rest), tag: None };
        if is_there(whole.path) {
            return whole;
        }
        let split = |colon: usize| {
            let tag = std::str::from_utf8(rest.get(colon + 1..)?).ok().filter(|tag| !tag.is_empty())?;
            Some(Self { path: path_of(&rest[..colon]), tag: Some(tag) })
        };
        let first = rest.iter().position(|byte| *byte == b':').and_then(split);
        let mut colons = (0..rest.len()).rev().filter(|at| rest[*at] == b':').filter_map(split);
        colons.find(|split| is_there(split.path)).or(first).unwrap_or(whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_that_is_there_is_meant() {
        let parse = |text: &'static str, there: &[&str]| {
            let parsed = ImageReference::parse(text.as_bytes(), |path| there.contains(&path.to_str().unwrap_or("")));
            (parsed.path.to_str().unwrap_or(""), parsed.tag)
        };
        assert_eq!(parse("a", &["a"]), ("a", None));
        assert_eq!(parse("a", &[]), ("a", None));
        assert_eq!(parse("a:v1", &["a"]), ("a", Some("v1")));
        assert_eq!(parse("a:v1", &[]), ("a", Some("v1")));
        assert_eq!(parse("a:v1", &["a", "a:v1"]), ("a:v1", None));
        assert_eq!(parse("a:b:v1", &["a:b", "a"]), ("a:b", Some("v1")));
        assert_eq!(parse("a:b:v1", &["a"]), ("a", Some("b:v1")));
        assert_eq!(parse("a:", &["a"]), ("a:", None));
    }
}
