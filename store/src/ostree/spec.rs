//! `ostree:REPO` and `ostree:REPO:REF`, as used for a source, a base, a side of a comparison or a repository.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::Error;
use crate::address::TargetKind;
use crate::error::path_of;
use crate::fs::found::is_directory;

/// A repository, and optionally a ref or the checksum of a commit in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "it is what was written")]
pub struct CommitSpec<'a> {
    /// The repository's path.
    pub repo: &'a Path,
    /// `REF`, `REMOTE:REF`, `COLLECTION:REF` or a checksum; `None` if not given.
    pub reference: Option<&'a str>,
}

impl<'a> CommitSpec<'a> {
    /// Parses `ostree:REPO` or `ostree:REPO:REF`. Both a path and a ref may contain colons: the repository is the longest part
    /// before one of them that is a directory, or else everything before the last. A new repository with a colon in its name must be given with the
    /// ref, as in `ostree:a:b:os`.
    ///
    /// # Errors
    /// Returns an error for any other text, or if it cannot be determined what is a directory.
    pub fn parse(spec: &'a OsStr) -> Result<Self, Error> {
        let (TargetKind::Ostree, place) = TargetKind::of(spec) else { return Err(malformed(spec)) };
        let rest = place.as_os_str().as_bytes();
        if rest.is_empty() {
            return Err(malformed(spec));
        }
        if is_directory(place)? {
            return Ok(Self { repo: place, reference: None });
        }
        let mut splits = (0..rest.len()).rev().filter(|at| *at > 0 && rest[*at] == b':').filter_map(|at| {
            let reference = std::str::from_utf8(&rest[at + 1..]).ok().filter(|text| !text.is_empty())?;
            Some(Self { repo: path_of(&rest[..at]), reference: Some(reference) })
        });
        let last = splits.next();
        for split in last.into_iter().chain(splits) {
            if is_directory(split.repo)? {
                return Ok(split);
            }
        }
        Ok(last.unwrap_or(Self { repo: place, reference: None }))
    }

    /// Returns the ref that is given here or by `option`; both must agree.
    ///
    /// # Errors
    /// Returns an error if they differ.
    pub fn one_ref(&self, option: Option<&'a str>) -> Result<Option<&'a str>, Error> {
        match (self.reference, option) {
            (Some(own), Some(other)) if own != other => Err(Error::Usage(format!(
                "the ref {} is not the one in ostree:{}:{}",
                other.escape_debug(),
                self.repo.display(),
                own.escape_debug()
            ))),
            (own, option) => Ok(own.or(option)),
        }
    }
}

fn malformed(spec: &OsStr) -> Error {
    Error::Usage(format!("{} is not ostree:REPO or ostree:REPO:REF", spec.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_path_that_is_there_is_the_repository() {
        let scratch = tempfile::tempdir().expect("a folder");
        for name in ["repo", "with:colon", "a", "a:b"] {
            std::fs::create_dir(scratch.path().join(name)).expect("a folder");
        }
        let root = scratch.path().display();
        for (rest, repo, reference) in [
            ("repo", "repo", None),
            ("repo:os/main", "repo", Some("os/main")),
            ("repo:origin:os/main", "repo", Some("origin:os/main")),
            ("with:colon", "with:colon", None),
            ("with:colon:os", "with:colon", Some("os")),
            ("a:b", "a:b", None),
            ("a:b:os", "a:b", Some("os")),
            ("a:c", "a", Some("c")),
            // None of these exists.
            ("none", "none", None),
            ("none:os", "none", Some("os")),
            ("no:ne:os", "no:ne", Some("os")),
            ("none:", "none:", None),
        ] {
            let spec = format!("ostree:{root}/{rest}");
            let found = CommitSpec::parse(OsStr::new(&spec)).expect(rest);
            assert_eq!(found.repo, scratch.path().join(repo), "{rest}");
            assert_eq!(found.reference, reference, "{rest}");
        }
        for bad in ["ostree:", "repo:os", "", "./ostree:x"] {
            assert!(CommitSpec::parse(OsStr::new(bad)).is_err(), "{bad}");
        }
        let one = CommitSpec { repo: Path::new("r"), reference: Some("os") };
        assert_eq!(one.one_ref(None).expect("it is one"), Some("os"));
        assert_eq!(one.one_ref(Some("os")).expect("they agree"), Some("os"));
        assert!(one.one_ref(Some("app")).is_err());
    }
}
