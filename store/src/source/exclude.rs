//! Excludes files by patterns in .gitignore syntax.

use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::Error;
use crate::error::path_of;

/// Patterns as in a .gitignore file at the packed root.
#[derive(Clone, Debug)]
pub struct Exclude {
    patterns: Arc<Gitignore>,
}

impl Exclude {
    /// Parses patterns; later ones take precedence.
    ///
    /// # Errors
    /// Returns an error if a pattern is malformed.
    pub fn new<'a>(patterns: impl Iterator<Item = &'a str>) -> Result<Self, Error> {
        let mut builder = GitignoreBuilder::new(Path::new(""));
        for pattern in patterns {
            let added = builder.add_line(None, pattern);
            added.map_err(|error| Error::Usage(format!("the pattern {pattern}: {error}")))?;
        }
        let patterns = builder.build().map_err(|error| Error::Usage(format!("the patterns: {error}")))?;
        Ok(Self { patterns: Arc::new(patterns) })
    }

    /// Returns whether the file at `path`, below the packed root, is excluded.
    #[must_use]
    pub fn takes(&self, path: &[u8], is_directory: bool) -> bool {
        self.patterns.matched(path_of(path), is_directory).is_ignore()
    }
}
