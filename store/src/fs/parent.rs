//! The directory that holds a path.

use std::path::{Path, PathBuf};

/// Returns the directory that holds the last name of a path, to be opened: for a name alone, `.`.
#[must_use]
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns a directory as messages name it: the current one, of which `.` tells nothing, by its path.
#[must_use]
pub fn shown_directory(directory: &Path) -> PathBuf {
    let is_current = directory == Path::new(".") || directory.as_os_str().is_empty();
    let known = if is_current { std::env::current_dir().ok() } else { None };
    known.unwrap_or_else(|| directory.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_current_directory_has_a_name_in_messages() {
        for (path, parent) in [("a/b", "a"), ("/a", "/"), ("a", "."), ("./a", "."), ("", ".")] {
            assert_eq!(parent_of(Path::new(path)), Path::new(parent), "{path}");
        }
        let here = std::env::current_dir().expect("it is known");
        assert_eq!(shown_directory(parent_of(Path::new("a"))), here);
        assert_eq!(shown_directory(Path::new("a")), Path::new("a"));
    }
}
