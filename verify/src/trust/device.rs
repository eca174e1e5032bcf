//! What fits this device.

/// What the administrator says about the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// The tags that the device answers to; `None` where nobody stated any.
    pub compatible: Option<Vec<String>>,
}

impl Device {
    /// Returns a device that answers to these tags.
    #[must_use]
    pub fn with_tags<T: Into<String>>(tags: impl IntoIterator<Item = T>) -> Self {
        Self { compatible: Some(tags.into_iter().map(Into::into).collect()) }
    }

    /// Says whether a bundle with these tags fits. One without tags fits all.
    #[must_use]
    pub fn fits(&self, tags: &[String]) -> bool {
        let own = self.compatible.as_deref().unwrap_or_default();
        tags.is_empty() || tags.iter().any(|tag| own.contains(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
