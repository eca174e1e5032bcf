//! The layout as it is made: files that are written one after the other.

use std::collections::BTreeMap;
use std::io::{BufReader, Read};

use serde_json::{Value, json};

use super::decoder::{BUFFER_LEN, decoder};
use super::files::Files;
use super::hashed::{Hashed, digest_of};
use super::{ManifestChange, OciSource};
use crate::error::{ImageFault, shown};
use crate::oci::{Descriptor, Digest, INDEX_FILE, LAYOUT, LAYOUT_FILE, bytes_of, media_type};
use crate::source::{LeafSource, OpenCache, SourceOptions};
use crate::{Error, Metadata, NewNode, Tree};
use sealift_format::num::wide;

/// The most bytes to which the layers of one image are decompressed.
const DECODED_MAX: u64 = 64 << 30;

/// A layout that grows.
pub(super) struct Draft<'a> {
    files: &'a Files,
    options: &'a SourceOptions,
    blobs: LeafSource,
    /// The files below `blobs/sha256`, by their names, and the numbers of their contents.
    by_digest: BTreeMap<Digest, u32>,
    decoded_max: u64,
    /// The bytes of the layers so far.
    decoded: u64,
}

impl<'a> Draft<'a> {
    pub(super) fn new(files: &'a Files, options: &'a SourceOptions) -> Result<Self, Error> {
        let usual = std::env::temp_dir();
        let folder = if options.spool_dir.as_os_str().is_empty() { &usual } else { &options.spool_dir };
        let (blobs, by_digest) = (LeafSource::new(folder)?, BTreeMap::new());
        Ok(Self { files, options, blobs, by_digest, decoded_max: DECODED_MAX, decoded: 0 })
    }

    /// Adds a file that is in memory.
    pub(super) fn add(&mut self, bytes: &[u8]) -> Result<Digest, Error> {
        let digest = digest_of(bytes);
        self.blobs.write(bytes)?;
        self.finish_blob(digest)?;
        Ok(digest)
    }

    /// Adds a layer uncompressed, and returns its length. `stored` is what its descriptor says, if it has one; `number` counts from 1, and `diff_id` is
    /// the digest of its content according to the config.
    pub(super) fn add_layer(
        &mut self,
        path: &str,
        stored: Option<&Descriptor>,
        number: usize,
        diff_id: Digest,
    ) -> Result<u64, Error> {
        let files = self.files;
        let fault = |fault| files.error(fault);
        let shown_path = || shown(path.as_bytes());
        let found = files.len_of(path)?;
        if let Some(expected) = stored.map(|stored| stored.size).filter(|size| *size != found) {
            return Err(fault(ImageFault::Size { path: shown_path(), expected, found }));
        }
        let mut cache = OpenCache::default();
        let mut hashed = Hashed::new(files.open(path, &mut cache)?);
        let (content, len) = {
            let buffered = BufReader::with_capacity(BUFFER_LEN, &mut hashed);
            let decoder = decoder(buffered).map_err(|error| files.read_error(path, error))?;
            let decoder = decoder.map_err(|program| fault(ImageFault::Compression { path: shown_path(), program }))?;
            self.copy(decoder, path)?
        };
        let digest = hashed.finish().map_err(|error| files.read_error(path, error))?;
        if let Some(expected) = stored.map(|stored| stored.digest).filter(|expected| *expected != digest) {
            let (expected, found) = (expected.to_string(), digest.to_string());
            return Err(fault(ImageFault::Digest { path: shown_path(), expected, found }));
        }
        if content != diff_id {
            let (expected, found) = (diff_id.to_string(), content.to_string());
            return Err(fault(ImageFault::DiffId { path: shown_path(), number, expected, found }));
        }
        self.finish_blob(content)?;
        Ok(len)
    }

    /// Copies what a decoder returns. Returns its digest and length.
    fn copy(&mut self, decoder: Box<dyn Read + '_>, path: &str) -> Result<(Digest, u64), Error> {
        let mut content = Hashed::new(decoder);
        let mut buffer = vec![0; BUFFER_LEN];
        let before = self.decoded;
        loop {
            let len = match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => len,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(self.decoding_error(path, error)),
            };
            self.decoded += wide(len);
            if self.decoded > self.decoded_max {
                let fault = ImageFault::TooLarge { path: shown(path.as_bytes()), max: self.decoded_max };
                return Err(self.files.error(fault));
            }
            self.blobs.write(buffer.get(..len).unwrap_or_default())?;
            self.options.advance(wide(len), 0)?;
        }
        let digest = content.finish().map_err(|error| self.decoding_error(path, error))?;
        Ok((digest, self.decoded - before))
    }

    fn decoding_error(&self, path: &str, error: std::io::Error) -> Error {
        match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => {
                let (path, problem) = (shown(path.as_bytes()), error.to_string());
                self.files.error(ImageFault::Damaged { path, problem })
            }
        }
    }

    /// Gives what was written the name of its digest, unless there is such a file.
    fn finish_blob(&mut self, digest: Digest) -> Result<(), Error> {
        let count = self.blobs.count();
        let content = self.blobs.finish_leaf(digest.path().into_bytes())?;
        match self.by_digest.contains_key(&digest) {
            true => self.blobs.truncate(count),
            false => {
                self.by_digest.insert(digest, content);
                self.options.advance(0, 1)
            }
        }
    }

    /// Completes the layout with the descriptor of its manifest. `created` is the time of all files, in seconds since 1970.
    pub(super) fn finish(
        mut self,
        manifest: &Value,
        created: i64,
        manifest_change: Option<ManifestChange>,
    ) -> Result<OciSource, Error> {
        let index = json!({ "schemaVersion": 2, "mediaType": media_type::INDEX, "manifests": [manifest] });
        self.blobs.write(&bytes_of(&index))?;
        let index = self.blobs.finish_leaf(INDEX_FILE.into())?;
        self.blobs.write(LAYOUT.as_bytes())?;
        let layout = self.blobs.finish_leaf(LAYOUT_FILE.into())?;
        let metadata = |permissions| Metadata { permissions, mtime: created, ..Metadata::default() };
        let mut tree = Tree::new(metadata(0o755));
        let named = |fault| Error::unexpected("the layout", format!("has a name that {fault}"));
        let mut below = 0;
        for name in [&b"blobs"[..], b"sha256"] {
            let node = tree.add(below, name, metadata(0o755), NewNode::Directory).map_err(named)?;
            below = tree.directory_of(node).unwrap_or_default();
        }
        for (digest, content) in &self.by_digest {
            let file = NewNode::Regular { content: *content };
            tree.add(below, digest.digits().as_bytes(), metadata(0o644), file).map_err(named)?;
        }
        for (name, content) in [(INDEX_FILE, index), (LAYOUT_FILE, layout)] {
            tree.add(0, name.as_bytes(), metadata(0o644), NewNode::Regular { content }).map_err(named)?;
        }
        tree.sort();
        Ok(OciSource { tree, blobs: self.blobs, manifest_change })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn layers_beyond_the_limit_are_refused() {
        let scratch = tempfile::tempdir().expect("a scratch directory");
        std::fs::write(scratch.path().join("layer"), [0; 100_000]).expect("written");
        let options = SourceOptions { spool_dir: scratch.path().to_owned(), ..SourceOptions::default() };
        let source = Source::open_spec(scratch.path().as_os_str(), &options, 1).expect("listed");
        let files = Files::new(source, scratch.path());
        let diff_id = digest_of(&[0; 100_000]);
        for (max, fits) in [(100_000, true), (99_999, false), (0, false)] {
            let mut draft = Draft::new(&files, &options).expect("a draft");
            draft.decoded_max = max;
            let added = draft.add_layer("layer", None, 1, diff_id);
            assert_eq!(added.is_ok(), fits, "{max}");
            if let Err(error) = added {
                assert!(error.to_string().contains("more than"), "{error}");
            }
        }
        // The limit is for all layers together, even if they are the same.
        let mut draft = Draft::new(&files, &options).expect("a draft");
        draft.decoded_max = 199_999;
        draft.add_layer("layer", None, 1, diff_id).expect("the first one fits");
        draft.add_layer("layer", None, 2, diff_id).expect_err("the second one does not");
    }
}
