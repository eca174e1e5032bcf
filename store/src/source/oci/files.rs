//! The files that an image is read from: those of a directory, or the members of an archive.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sealift_format::num::{up_to, wide};

use crate::error::{ImageFault, path_of, shown};
use crate::oci::Document;
use crate::source::{OpenCache, OpenContent, Source};
use crate::{Error, NewNode};

/// The longest document that is read, in bytes: registries take manifests of 4 MiB.
const DOCUMENT_MAX: u64 = 16 << 20;
/// The most symbolic links that lead to one file.
const LINKS_MAX: usize = 8;

/// The files of a layout or of an archive.
#[derive(Debug)]
pub(super) struct Files {
    source: Source,
    /// The directory or archive, for messages.
    path: PathBuf,
    by_path: HashMap<Vec<u8>, File>,
}

#[derive(Debug)]
enum File {
    Content(u32),
    Symlink(Box<[u8]>),
    Other,
}

impl Files {
    pub(super) fn new(source: Source, path: &Path) -> Self {
        let mut by_path = HashMap::new();
        source.tree().visit(|visited| {
            let file = match visited.file {
                NewNode::Regular { content } => File::Content(content),
                NewNode::Symlink(target) => File::Symlink(target),
                _ => File::Other,
            };
            by_path.insert(visited.path, file);
        });
        Self { source, path: path.to_owned(), by_path }
    }

    /// Returns the error for a fault of the image.
    pub(super) fn error(&self, fault: ImageFault) -> Error {
        Error::Image { path: self.path.clone(), fault: Box::new(fault) }
    }

    /// Returns whether there is a regular file.
    pub(super) fn has(&self, path: &str) -> bool {
        self.content(path).is_some()
    }

    /// Returns the length of a file in bytes.
    pub(super) fn len_of(&self, path: &str) -> Result<u64, Error> {
        let content = self.content(path).ok_or_else(|| self.missing(path))?;
        Ok(self.source.content_len(content))
    }

    /// Reads a JSON document.
    pub(super) fn document(&self, path: &str) -> Result<Document, Error> {
        Document::parse(path, &self.bytes(path)?).map_err(|fault| self.error(fault))
    }

    /// Reads a file that is to be a JSON document.
    pub(super) fn bytes(&self, path: &str) -> Result<Vec<u8>, Error> {
        let len = self.len_of(path)?;
        if len > DOCUMENT_MAX {
            let fault = ImageFault::TooLong { path: shown(path.as_bytes()), len, max: DOCUMENT_MAX };
            return Err(self.error(fault));
        }
        let mut cache = OpenCache::default();
        let mut bytes = Vec::new();
        self.open(path, &mut cache)?.read_to_end(&mut bytes).map_err(|error| self.read_error(path, error))?;
        Ok(bytes)
    }

    /// Opens a file.
    pub(super) fn open<'a>(&'a self, path: &str, cache: &mut OpenCache) -> Result<FileReader<'a>, Error> {
        let number = self.content(path).ok_or_else(|| self.missing(path))?;
        let content = self.source.open(number, cache)?;
        Ok(FileReader { content: Some(content), at: 0, len: self.source.content_len(number) })
    }

    /// Returns the error why a [`FileReader`] failed.
    pub(super) fn read_error(&self, path: &str, error: io::Error) -> Error {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::io("read", self.path.join(path), error),
        }
    }

    fn missing(&self, path: &str) -> Error {
        self.error(ImageFault::Missing { path: shown(path.as_bytes()) })
    }

    /// Returns the content of a regular file. Links are followed within the tree: in old docker archives they lead to layers of other images.
    fn content(&self, path: &str) -> Option<u32> {
        let mut path = path.as_bytes().to_vec();
        for _ in 0..=LINKS_MAX {
            match self.by_path.get(&path)? {
                File::Content(content) => return Some(*content),
                File::Symlink(target) => path = target_of(&path, target)?,
                File::Other => return None,
            }
        }
        None
    }
}

/// Returns the path to which a link leads, if it is below the root.
fn target_of(link: &[u8], target: &[u8]) -> Option<Vec<u8>> {
    if !path_of(target).is_relative() {
        return None;
    }
    let mut names: Vec<&[u8]> = link.split(|byte| *byte == b'/').collect();
    names.pop()?;
    for name in target.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join(&b'/'))
}

/// Reads a file from its start to its end. Its errors contain an [`Error`].
pub(super) struct FileReader<'a> {
    /// `None` once all was read and found unchanged.
    content: Option<OpenContent<'a>>,
    at: u64,
    len: u64,
}

impl Read for FileReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let part = up_to(self.len - self.at, buffer.len());
        if let (Some(content), Some(buffer)) = (&self.content, buffer.get_mut(..part))
            && part > 0
        {
            content.read_at(buffer, self.at).map_err(io::Error::other)?;
            self.at += wide(part);
        }
        if self.at == self.len
            && let Some(content) = self.content.take()
        {
            content.finish().map_err(io::Error::other)?;
        }
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_only_to_what_is_below_the_root() {
        let target = |link: &str, to: &str| {
            target_of(link.as_bytes(), to.as_bytes()).map(|path| String::from_utf8_lossy(&path).into_owned())
        };
        assert_eq!(target("a/layer.tar", "../b/layer.tar").as_deref(), Some("b/layer.tar"));
        assert_eq!(target("a/layer.tar", "./x").as_deref(), Some("a/x"));
        assert_eq!(target("a", "b").as_deref(), Some("b"));
        assert_eq!(target("a/layer.tar", "../../b"), None);
        assert_eq!(target("a/layer.tar", "/etc/passwd"), None);
    }
}
