//! Without the feature `exclude`: there are no patterns.

/// Patterns as in a .gitignore file at the packed root, which need the feature `pack`.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_enums, reason = "no value of it exists")]
pub enum Exclude {}

impl Exclude {
    /// Returns whether the file at `path`, below the packed root, is excluded.
    #[must_use]
    pub fn takes(&self, _: &[u8], _: bool) -> bool {
        match *self {}
    }
}
