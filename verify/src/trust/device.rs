//! Which bundles are for this device.

use sealift_format::name::is_bundle_name;

use super::{LineError, TrustFileError, key_line};

/// What the administrator says about the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// The device's tags; `None` if none were stated.
    pub compatible: Option<Vec<String>>,
}

impl Device {
    /// Returns a device with these tags.
    #[must_use]
    pub fn with_tags<T: Into<String>>(tags: impl IntoIterator<Item = T>) -> Self {
        Self { compatible: Some(tags.into_iter().map(Into::into).collect()) }
    }

    /// Parses a file of tags, one per line, with `#` comments. A file without tags
    /// says that the device has none.
    ///
    /// # Errors
    /// Returns an error if a line is not a tag.
    pub fn parse(file: &[u8]) -> Result<Self, TrustFileError> {
        let tags: Result<Vec<String>, _> = key_line::content_lines(file)
            .map(|(line, text)| text.and_then(tag).map_err(|problem| TrustFileError::Tags { line, problem }))
            .collect();
        Ok(Self::with_tags(tags?))
    }

    /// Returns whether a bundle with these tags is for this device. One without tags is for all.
    #[must_use]
    pub fn fits(&self, tags: &[String]) -> bool {
        let own = self.compatible.as_deref().unwrap_or_default();
        tags.is_empty() || tags.iter().any(|tag| own.contains(tag))
    }
}

fn tag(text: &str) -> Result<String, LineError> {
    if is_bundle_name(text) { Ok(text.into()) } else { Err(LineError::Tag(text.into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_lists_tags() {
        let tags = |file: &[u8]| Device::parse(file).map(|device| device.compatible);
        assert_eq!(tags(b""), Ok(Some(vec![])));
        let expected = Some(vec!["board-a".to_owned(), "any".to_owned()]);
        assert_eq!(tags(b"# what it is\nboard-a\n\n any \r\n"), Ok(expected));
        let problem = LineError::Tag("a b".into());
        assert_eq!(tags(b"x\na b\n"), Err(TrustFileError::Tags { line: 2, problem }));
        assert!(tags(b"\xff").is_err());
    }

    #[test]
    fn one_common_tag_suffices() {
        let tags = |tags: &[&str]| tags.iter().map(ToString::to_string).collect::<Vec<_>>();
        let device = Device::with_tags(["board-a", "any"]);
        assert!(device.fits(&tags(&[])));
        assert!(device.fits(&tags(&["board-b", "any"])));
        assert!(!device.fits(&tags(&["board-b"])));
        assert!(!device.fits(&tags(&["Board-A"])));
        assert!(Device::default().fits(&tags(&[])));
        assert!(!Device::default().fits(&tags(&["board-a"])));
        assert!(!Device::with_tags(Vec::<String>::new()).fits(&tags(&["board-a"])));
    }
}
