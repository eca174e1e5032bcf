//! A container image as a source: a directory in OCI's image layout (`oci:DIR:TAG`), or what `docker save` and `podman save` write
//! (`docker-archive:FILE`).
//!
//! The tree is a layout of this one image, in which layers are uncompressed: whatever compressed them need not be the same program everywhere, and what
//! changed between two images can be told only of their files. The config stays byte for byte, so the image keeps its id, which is the config's digest.
//! The manifest names the layers, so its digest becomes another one if a layer was compressed. Everything is checked with the digests before anything
//! is packed, and copied to a file without a name: the source may change afterwards.
//!
//! Owners, modes and times in the tree are always the same, so that an image gives equal bytes wherever it is.

mod choice;
mod config;
mod decoder;
mod docker;
mod draft;
mod files;
mod hashed;
mod layout;
mod plain;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use super::{ArchiveSource, LeafContent, LeafSource, MetadataOptions, SourceOptions, archive::ArchiveFormat, tar};
use super::{DirectoryOptions, DirectorySource, Source};
use crate::oci::ImageReference;
use crate::{Error, Tree};
use files::Files;

/// The form of archives that are read.
const DOCKER_ARCHIVE: ArchiveFormat = ArchiveFormat { scheme: "docker-archive", read: tar::read };

/// A container image that was read and checked.
#[derive(Debug)]
pub struct OciSource {
    pub(super) tree: Tree,
    blobs: LeafSource,
    manifest_change: Option<ManifestChange>,
}

/// The digests of a manifest before and after its layers were decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::exhaustive_structs, reason = "there is no third")]
pub struct ManifestChange {
    /// That of the manifest as it was, `sha256:HEX`; `None` for a docker archive, which has none.
    pub before: Option<String>,
    /// That of the manifest in the bundle.
    pub after: String,
    /// The image's id: the digest of its config, which is unchanged.
    pub image: String,
}

impl OciSource {
    /// Reads an image of a layout; `place` is `DIR` or `DIR:TAG`.
    ///
    /// # Errors
    /// Returns an error if there is no such layout or image, if something in it is missing or does not match its digest, or if it has a form
    /// that cannot be packed.
    pub fn of_layout(place: &OsStr, options: &SourceOptions, jobs: usize) -> Result<Self, Error> {
        let reference = ImageReference::parse(place.as_bytes(), Path::is_dir);
        refuse_changes(place, options)?;
        options.begin();
        let listing = DirectoryOptions { progress: options.progress.clone(), ..DirectoryOptions::default() };
        let source = Source::Directory(DirectorySource::list(reference.path, &listing, jobs)?);
        let files = Files::new(source, reference.path);
        layout::read(&files, reference.tag, options)
    }

    /// Reads an image of an archive; `place` is `FILE` or `FILE:REFERENCE`, and `-` is standard input.
    ///
    /// # Errors
    /// As [`Self::of_layout`].
    pub fn of_archive(place: &OsStr, options: &SourceOptions) -> Result<Self, Error> {
        let reference = ImageReference::parse(place.as_bytes(), Path::exists);
        refuse_changes(place, options)?;
        let reading = SourceOptions {
            spool_dir: options.spool_dir.clone(),
            progress: options.progress.clone(),
            ..SourceOptions::default()
        };
        let archive = match reference.path == Path::new("-") {
            true => ArchiveSource::of_stdin(&DOCKER_ARCHIVE, &reading)?,
            false => ArchiveSource::open(reference.path, &DOCKER_ARCHIVE, &reading)?,
        };
        let files = Files::new(Source::Archive(archive), reference.path);
        docker::read(&files, reference.tag, options)
    }

    /// Returns how the manifest's digest changed; `None` if it did not.
    #[must_use]
    pub fn manifest_change(&self) -> Option<&ManifestChange> {
        self.manifest_change.as_ref()
    }

    pub(super) fn content_len(&self, content: u32) -> u64 {
        self.blobs.len_of(content)
    }

    pub(super) fn content_count(&self) -> usize {
        self.blobs.count()
    }

    pub(super) fn open_content(&self, content: u32) -> LeafContent<'_> {
        self.blobs.open_content(content)
    }
}

/// Refuses options that would change what the image's digests cover, or what is the same for everybody.
fn refuse_changes(place: &OsStr, options: &SourceOptions) -> Result<(), Error> {
    if options.metadata == MetadataOptions::default() && options.directory.exclude.is_none() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "{}: an image is packed unchanged, without excluding files or changing metadata",
        place.display()
    )))
}
