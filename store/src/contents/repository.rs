//! The files of OSTree repositories that travel with their commits (ostree 2.1).

use sealift_format::RepositoryFile;

use crate::source::Source;

/// The files that a bundle carries of the repositories that its commits come from.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct CommonFiles {
    /// The files, in ascending order.
    pub files: Vec<(RepositoryFile, Vec<u8>)>,
    /// Whether there is no summary among them because the repositories have different ones, or not all have one.
    pub do_summaries_differ: bool,
}

impl CommonFiles {
    /// Returns the files that the repositories of all of these sources have alike. Without a common summary there are none: each of the others is
    /// about a summary.
    pub fn of<'a>(sources: impl Iterator<Item = &'a Source>) -> Self {
        let mut repositories = sources.filter_map(|source| match source {
            Source::Ostree(source) => Some(&source.repository_files[..]),
            Source::Directory(_)
            | Source::Image(_)
            | Source::Archive(_)
            | Source::Oci(_)
            | Source::Bundle(_)
            | Source::Leaves(_) => None,
        });
        let mut files = repositories.next().unwrap_or_default().to_vec();
        let mut do_summaries_differ = false;
        for other in repositories {
            do_summaries_differ |= summary(&files) != summary(other);
            files.retain(|file| other.contains(file));
        }
        if do_summaries_differ {
            files.clear();
        }
        Self { files, do_summaries_differ }
    }
}

fn summary(files: &[(RepositoryFile, Vec<u8>)]) -> Option<&[u8]> {
    let (_, bytes) = files.iter().find(|(kind, _)| *kind == RepositoryFile::Summary)?;
    Some(bytes)
}
