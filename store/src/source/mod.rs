//! Sources of files: directories, single files, images, archives, container images and OSTree repositories.
//!
//! A source is opened and listed; its contents are read while packing. A file that changes in between is an error.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # std::fs::write(folder.path().join("hello"), "hello")?;
//! # std::fs::write(folder.path().join("note.bak"), "old")?;
//! # use sealift_store as sealift;
//! use sealift::source::{DirectoryOptions, Exclude, MetadataOptions, Source, SourceOptions};
//!
//! let options = SourceOptions {
//!     directory: DirectoryOptions { exclude: Some(Exclude::new(["*.bak"].into_iter())?), ..Default::default() },
//!     metadata: MetadataOptions { owner: Some((0, 0)), ..Default::default() },
//!     ..SourceOptions::default()
//! };
//! let source = Source::open_spec(folder.path().as_os_str(), &options, 2)?; // also tar:FILE, cpio:FILE
//! assert_eq!(source.content_count(), 1);
//! # Ok(())
//! # }
//! ```

mod archive;
mod bundle;
mod cpio;
mod directory;
mod directory_options;
#[cfg_attr(not(feature = "exclude"), path = "no_exclude.rs")]
mod exclude;
mod file;
mod formats;
mod image;
mod leaves;
mod lister;
mod modes;
mod oci;
mod omit;
mod ostree;
mod owner;
pub(crate) mod tar;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sealift_format::Xattr;
use sealift_format::num;
use sealift_format::verity::FileDigest;

use crate::address::{TargetKind, scheme};
use crate::error::path_of;
use crate::fs::found::is_directory;
use crate::ostree::{CommitSpec, Repo, parse_checksum};
use crate::{Error, Phase, Progress, RepoFault, Tree};

pub use crate::xattrs::XattrFilter;
pub use archive::{ArchiveContent, ArchiveFault, ArchiveFormat, ArchiveSource};
pub use bundle::{BundleContent, BundleSource, ReadObject};
pub use directory::{DirectorySource, FileContent, OpenCache};
pub use directory_options::DirectoryOptions;
pub use exclude::Exclude;
pub use file::open_file;
pub use image::{ImageContent, ImageSource};
pub use leaves::{LeafContent, LeafSource};
pub use modes::ModeRules;
pub use oci::{ManifestChange, OciSource};
pub use omit::OmitOutput;
pub(crate) use ostree::FileKind;
pub use ostree::{OstreeContent, OstreeOptions, OstreeSource};
pub use owner::{MetadataOptions, OwnerRule};

/// A tree with access to its contents.
#[derive(Debug)]
#[non_exhaustive]
pub enum Source {
    /// A local directory.
    Directory(DirectorySource),
    /// A block device or an image.
    Image(ImageSource),
    /// An archive.
    Archive(ArchiveSource),
    /// A commit of an OSTree repository.
    Ostree(Box<OstreeSource>),
    /// A container image.
    Oci(Box<OciSource>),
    /// A tree of a bundle.
    Bundle(BundleSource),
    /// Parts of the containers in other sources.
    Leaves(LeafSource),
}

/// Options of reading a source of any kind.
#[derive(Clone, Debug, Default)]
#[allow(clippy::exhaustive_structs, reason = "callers fill it in")]
pub struct SourceOptions {
    /// What is read of a directory; also of an archive, except `one_file_system`.
    pub directory: DirectoryOptions,
    /// Changes to every file's metadata.
    pub metadata: MetadataOptions,
    /// Where an archive that comes through a pipe is copied to. It needs space for the whole archive while it is packed. If empty, the system's
    /// temporary directory is used.
    pub spool_dir: PathBuf,
    /// Receives the bytes of a pipe, and files as they are listed; may request a stop.
    pub progress: Option<Arc<Progress>>,
}

impl SourceOptions {
    fn begin(&self) {
        if let Some(progress) = &self.progress {
            progress.enter(Phase::Listing, 0, 0);
        }
    }

    fn advance(&self, bytes: u64, files: u64) -> Result<(), Error> {
        let Some(progress) = &self.progress else { return Ok(()) };
        progress.add(bytes, files);
        progress.check()
    }
}

/// A content open for reading.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenContent<'a> {
    /// A local file.
    File(FileContent<'a>),
    /// All of a block device or an image.
    Image(ImageContent<'a>),
    /// A member of an archive.
    Archive(ArchiveContent<'a>),
    /// A file object of an OSTree repository.
    Ostree(OstreeContent),
    /// A file of a bundle.
    Bundle(BundleContent<'a>),
    /// A part of a container, or a file of an image.
    Leaf(LeafContent<'a>),
}

impl Source {
    /// Opens a SOURCE from a command line: `tar:FILE`, `tar:-`, `cpio:FILE`, `ostree:REPO:REF`, `oci:DIR:TAG`, `docker-archive:FILE`, a directory, a file, a block device, or
    /// `image:FILE`, where `image:NAME=FILE` gives the file in the tree a name. Directories are listed on `jobs` threads.
    ///
    /// # Errors
    /// Returns an error if `spec` is not a source, or if the source cannot be read.
    pub fn open_spec(spec: &OsStr, options: &SourceOptions, jobs: usize) -> Result<Self, Error> {
        let directory = &options.directory;
        let mut source = match Spec::parse(spec)? {
            Spec::Stdin(format) => Self::Archive(ArchiveSource::of_stdin(format, options)?),
            Spec::Archive(format, path) => Self::Archive(ArchiveSource::open(path, format, options)?),
            Spec::Image { name, path } => Self::Image(ImageSource::open(path, name)?),
            Spec::Oci(place) => Self::Oci(Box::new(OciSource::of_layout(place, options, jobs)?)),
            Spec::DockerArchive(place) => Self::Oci(Box::new(OciSource::of_archive(place, options)?)),
            Spec::Path(path) if is_block_device(path)? => Self::Image(ImageSource::open(path, None)?),
            Spec::Path(path) if is_directory(path)? => {
                options.begin();
                let directory = DirectoryOptions { progress: options.progress.clone(), ..directory.clone() };
                Self::Directory(DirectorySource::list(path, &directory, jobs)?)
            }
            Spec::Path(path) => Self::Directory(open_file(path, &directory.xattrs)?),
            Spec::Ostree(named) => {
                let repo = Repo::open(named.repo)?;
                if named.reference.is_none() && repo.refs()?.len() > 1 {
                    let refs = repo.refs()?.iter().map(|(name, _)| name.to_string()).collect();
                    return Err(repo.fault(RepoFault::SeveralRefs { refs }));
                }
                let mut sources = Self::open_ostree(spec, &OstreeOptions::default(), options, jobs)?;
                return sources.pop().map(|(_, source)| source).ok_or_else(|| repo.fault(RepoFault::NoRefs));
            }
        };
        options.metadata.apply(source.tree_mut());
        Ok(source)
    }

    /// Opens a SOURCE as one or more refs, each with its name: `name`, or else `main`; for `ostree:REPO` the names of its refs, or `name` if there is
    /// only one.
    ///
    /// # Errors
    /// As [`Self::open_spec`] and [`Self::open_ostree`]; also if a commit is named by its checksum and there is no `name`.
    pub fn open_refs(
        spec: &OsStr,
        name: Option<&str>,
        ostree: &OstreeOptions,
        options: &SourceOptions,
        jobs: usize,
    ) -> Result<Vec<(String, Self)>, Error> {
        if TargetKind::of(spec).0 != TargetKind::Ostree {
            return Ok(vec![(name.unwrap_or("main").to_owned(), Self::open_spec(spec, options, jobs)?)]);
        }
        if name.is_none() {
            check_named(&CommitSpec::parse(spec)?, &ostree.refs)?;
        }
        let mut sources = Self::open_ostree(spec, ostree, options, jobs)?;
        if let Some(name) = name {
            let [(own, _)] = &mut sources[..] else {
                return Err(Error::Usage(format!("{}: several refs cannot all be named {name}", spec.display())));
            };
            name.clone_into(own);
        }
        Ok(sources)
    }

    /// Opens refs of an OSTree repository, each as a separate source under its name: the requested ones, or all.
    ///
    /// # Errors
    /// Returns an error if `spec` is not `ostree:REPO` or `ostree:REPO:REF`, if it names another ref than the options, if the repository lacks a
    /// ref or an object or has one that does not match its checksum, or if the options would change what the commits' checksums cover.
    pub fn open_ostree(
        spec: &OsStr,
        ostree: &OstreeOptions,
        options: &SourceOptions,
        jobs: usize,
    ) -> Result<Vec<(String, Self)>, Error> {
        let named = CommitSpec::parse(spec)?;
        let path = named.repo;
        for option in &ostree.refs {
            named.one_ref(Some(option))?;
        }
        if options.metadata != MetadataOptions::default() || options.directory.exclude.is_some() {
            return Err(Error::Usage(format!(
                "{}: a commit is packed unchanged, without excluding files or changing metadata",
                spec.display()
            )));
        }
        options.begin();
        let repo = Arc::new(Repo::open(path)?);
        let refs = match ostree.refs.is_empty() {
            _ if named.reference.is_some() => named.reference.map(str::to_owned).into_iter().collect(),
            true => repo.refs()?.into_iter().map(|(name, _)| name.to_string()).collect(),
            false => ostree.refs.clone(),
        };
        if refs.is_empty() {
            return Err(repo.fault(RepoFault::NoRefs));
        }
        let files: Arc<[_]> = repo.top_files()?.into();
        let open = |name: String| {
            let mut source = OstreeSource::open(&repo, &name, ostree, options, jobs)?;
            source.repository_files = Arc::clone(&files);
            let name = name.rsplit_once(':').map_or(name.clone(), |(_, name)| name.to_owned());
            Ok((name, Self::Ostree(Box::new(source))))
        };
        refs.into_iter().map(open).collect()
    }

    /// Returns the files and their metadata.
    #[must_use]
    pub fn tree(&self) -> &Tree {
        match self {
            Self::Directory(source) => &source.tree,
            Self::Image(source) => &source.tree,
            Self::Archive(source) => &source.tree,
            Self::Ostree(source) => &source.tree,
            Self::Oci(source) => &source.tree,
            Self::Bundle(source) => &source.tree,
            Self::Leaves(source) => &source.tree,
        }
    }

    /// As [`Self::tree`], to change metadata.
    pub fn tree_mut(&mut self) -> &mut Tree {
        match self {
            Self::Directory(source) => &mut source.tree,
            Self::Image(source) => &mut source.tree,
            Self::Archive(source) => &mut source.tree,
            Self::Ostree(source) => &mut source.tree,
            Self::Oci(source) => &mut source.tree,
            Self::Bundle(source) => &mut source.tree,
            Self::Leaves(source) => &mut source.tree,
        }
    }

    /// Returns the size of a content in bytes.
    #[must_use]
    pub fn content_len(&self, content: u32) -> u64 {
        match self {
            Self::Directory(source) => source.content_len(content),
            Self::Image(source) => source.content_len(),
            Self::Archive(source) => source.content_len(content),
            Self::Ostree(source) => source.content_len(content),
            Self::Oci(source) => source.content_len(content),
            Self::Bundle(source) => source.len_of(content),
            Self::Leaves(source) => source.len_of(content),
        }
    }

    /// Returns the number of contents, which are numbered from 0.
    #[must_use]
    pub fn content_count(&self) -> usize {
        match self {
            Self::Directory(source) => source.content_count(),
            Self::Image(_) => 1,
            Self::Archive(source) => source.content_count(),
            Self::Ostree(source) => source.content_count(),
            Self::Oci(source) => source.content_count(),
            Self::Bundle(source) => source.count(),
            Self::Leaves(source) => source.count(),
        }
    }

    /// Returns the numbers of the contents.
    pub fn contents(&self) -> impl Iterator<Item = u32> {
        (0..=u32::MAX).take(self.content_count())
    }

    /// Opens a content.
    ///
    /// # Errors
    /// Returns an error if it cannot be opened, or has changed.
    pub fn open<'a>(&'a self, content: u32, cache: &mut OpenCache) -> Result<OpenContent<'a>, Error> {
        match self {
            Self::Directory(source) => source.open(content, cache).map(OpenContent::File),
            Self::Image(source) => Ok(OpenContent::Image(source.open_content())),
            Self::Archive(source) => Ok(OpenContent::Archive(source.open_content(content))),
            Self::Ostree(source) => source.open_content(content).map(OpenContent::Ostree),
            Self::Oci(source) => Ok(OpenContent::Leaf(source.open_content(content))),
            Self::Bundle(source) => Ok(OpenContent::Bundle(source.open_content(content))),
            Self::Leaves(source) => Ok(OpenContent::Leaf(source.open_content(content))),
        }
    }
}

impl OpenContent<'_> {
    /// Fills `buffer` with the bytes that begin at `offset`.
    ///
    /// # Errors
    /// Returns an error if the content became shorter, or cannot be read.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), Error> {
        match self {
            Self::File(file) => file.read_at(buffer, offset),
            Self::Image(image) => image.read_at(buffer, offset),
            Self::Archive(member) => member.read_at(buffer, offset),
            Self::Ostree(object) => object.read_at(buffer, offset),
            Self::Bundle(file) => file.read_at(buffer, offset),
            Self::Leaf(leaf) => leaf.read_at(buffer, offset),
        }
    }

    /// Returns the extended attributes that come with the content and are not in the tree yet.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    pub fn xattrs(&self) -> Result<Vec<Xattr>, Error> {
        match self {
            Self::File(file) => file.xattrs(),
            Self::Image(_) | Self::Archive(_) | Self::Ostree(_) | Self::Bundle(_) | Self::Leaf(_) => Ok(Vec::new()),
        }
    }

    /// Returns the fs-verity digest from the kernel; `None` if it is not sealed.
    ///
    /// # Errors
    /// Returns an error if the kernel cannot be asked.
    pub fn measure(&self) -> Result<Option<FileDigest>, Error> {
        match self {
            Self::File(file) => file.measure(),
            Self::Image(_) | Self::Archive(_) | Self::Ostree(_) | Self::Bundle(_) | Self::Leaf(_) => Ok(None),
        }
    }

    /// Checks, after all has been read, that the content was consistent.
    ///
    /// # Errors
    /// Returns an error if the file changed since its directory was read.
    pub fn finish(self) -> Result<(), Error> {
        match self {
            Self::File(file) => file.finish(),
            Self::Image(image) => image.finish(),
            Self::Archive(member) => member.finish(),
            // It was compared with its checksum when it was opened.
            Self::Ostree(_) => Ok(()),
            // Nobody else can write to their files.
            Self::Bundle(_) | Self::Leaf(_) => Ok(()),
        }
    }
}

/// Checks that no commit is named by its checksum alone: it has no name in a bundle then.
fn check_named(spec: &CommitSpec<'_>, refs: &[String]) -> Result<(), Error> {
    let mut asked = spec.reference.into_iter().chain(refs.iter().map(String::as_str));
    match asked.find(|text| parse_checksum(text).is_some()) {
        None => Ok(()),
        Some(text) => {
            let fault = Box::new(RepoFault::Unnamed { commit: text.to_owned() });
            Err(Error::Repository { path: spec.repo.to_owned(), fault })
        }
    }
}

/// The kind of a SOURCE.
#[derive(Debug, PartialEq, Eq)]
enum Spec<'a> {
    Stdin(&'static ArchiveFormat),
    Archive(&'static ArchiveFormat, &'a Path),
    Ostree(CommitSpec<'a>),
    Image { name: Option<&'a OsStr>, path: &'a Path },
    Oci(&'a OsStr),
    DockerArchive(&'a OsStr),
    Path(&'a Path),
}

impl<'a> Spec<'a> {
    fn parse(spec: &'a OsStr) -> Result<Self, Error> {
        let bytes = spec.as_bytes();
        let usage = |fault: &str| Err(Error::Usage(format!("{}: {fault}", spec.display())));
        if TargetKind::of(spec).0 == TargetKind::Ostree {
            return CommitSpec::parse(spec).map(Self::Ostree);
        }
        match scheme(bytes) {
            Some((IMAGE, rest)) => match split_name(rest) {
                (_, b"") => usage("not image:FILE or image:NAME=FILE"),
                (_, b"-") => usage("an image is a file or a block device, not standard input"),
                (name, path) => Ok(Self::Image { name, path: path_of(path) }),
            },
            Some((OCI, b"")) => usage("not oci:DIR or oci:DIR:TAG"),
            Some((OCI, place)) => Ok(Self::Oci(OsStr::from_bytes(place))),
            Some((DOCKER_ARCHIVE, b"")) => usage("not docker-archive:FILE, or docker-archive:- for standard input"),
            Some((DOCKER_ARCHIVE, place)) => Ok(Self::DockerArchive(OsStr::from_bytes(place))),
            Some((scheme, rest)) => {
                let Some(format) = ArchiveFormat::of(spec) else {
                    let (scheme, known) = (String::from_utf8_lossy(scheme), ArchiveFormat::schemes());
                    return usage(&format!(
                        "unknown source {scheme}: (known: {known}, image:, oci:, docker-archive: and ostree:; a path that begins with it is written ./{scheme}:)"
                    ));
                };
                match rest {
                    b"" => usage(&format!("not {0}:FILE, or {0}:- for standard input", format.scheme())),
                    b"-" => Ok(Self::Stdin(format)),
                    file => Ok(Self::Archive(format, path_of(file))),
                }
            }
            None if bytes == b"-" => usage("standard input needs a format, as in tar:-"),
            None if bytes.is_empty() => usage("the name of a source is empty"),
            None => Ok(Self::Path(Path::new(spec))),
        }
    }
}

/// The scheme of an image.
const IMAGE: &[u8] = b"image";
/// The schemes of a container image.
const OCI: &[u8] = b"oci";
const DOCKER_ARCHIVE: &[u8] = b"docker-archive";

/// Splits `NAME=FILE`. Text before `=` that has a slash belongs to the path, as in `./a=b`.
fn split_name(rest: &[u8]) -> (Option<&OsStr>, &[u8]) {
    match rest.iter().position(|byte| *byte == b'=') {
        Some(at) if !rest[..at].contains(&b'/') => (Some(OsStr::from_bytes(&rest[..at])), &rest[at + 1..]),
        _ => (None, rest),
    }
}

/// Returns whether an argument is `image:FILE` or `image:NAME=FILE`.
#[must_use]
pub fn is_image(spec: &OsStr) -> bool {
    scheme(spec.as_bytes()).is_some_and(|(scheme, _)| scheme == IMAGE)
}

/// Returns whether an argument is `oci:DIR` or `docker-archive:FILE`.
#[must_use]
pub fn is_container_image(spec: &OsStr) -> bool {
    scheme(spec.as_bytes()).is_some_and(|(scheme, _)| [OCI, DOCKER_ARCHIVE].contains(&scheme))
}

/// Returns whether it is a block device; fails if there is nothing.
fn is_block_device(path: &Path) -> Result<bool, Error> {
    let metadata = std::fs::metadata(path).map_err(|error| Error::io("read", path, error))?;
    Ok(metadata.file_type().is_block_device())
}

/// A source with the name of its ref.
#[derive(Clone, Copy, Debug)]
pub struct PackRef<'a> {
    /// A ref's name (core 6.1).
    pub name: &'a str,
    /// The content of the ref.
    pub source: &'a Source,
}

/// Returns the number of the next content after `contents` others.
fn content_number(contents: usize) -> Result<u32, Error> {
    Ok(num::fit(contents, "the number of regular files")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs() {
        let format = |spec: &str| ArchiveFormat::of(OsStr::new(spec)).expect("a form of archive");
        let image = |name: Option<&'static str>, path: &'static str| Spec::Image {
            name: name.map(OsStr::new),
            path: Path::new(path),
        };
        let good = [
            ("tar:-", Spec::Stdin(format("tar:"))),
            ("tar:a:b.tar", Spec::Archive(format("tar:"), Path::new("a:b.tar"))),
            ("cpio:initrd.img", Spec::Archive(format("cpio:"), Path::new("initrd.img"))),
            ("ostree:/srv/repo", Spec::Ostree(CommitSpec { repo: Path::new("/srv/repo"), reference: None })),
            ("image:/dev/sda3", image(None, "/dev/sda3")),
            ("image:root.img=/dev/sda3", image(Some("root.img"), "/dev/sda3")),
            ("image:root.img=a=b", image(Some("root.img"), "a=b")),
            ("image:./a=b", image(None, "./a=b")),
            ("oci:a:v1", Spec::Oci(OsStr::new("a:v1"))),
            ("docker-archive:a.tar", Spec::DockerArchive(OsStr::new("a.tar"))),
            ("./oci:a", Spec::Path(Path::new("./oci:a"))),
            ("a", Spec::Path(Path::new("a"))),
            ("./ostree:x", Spec::Path(Path::new("./ostree:x"))),
            ("dir/a:b", Spec::Path(Path::new("dir/a:b"))),
            ("/tar:x", Spec::Path(Path::new("/tar:x"))),
            ("1:2", Spec::Path(Path::new("1:2"))),
        ];
        for (spec, parsed) in good {
            assert_eq!(Spec::parse(OsStr::new(spec)).ok(), Some(parsed), "{spec}");
        }
        for bad in [
            "",
            "-",
            "tar:",
            "cpio:",
            "ostree:",
            "word:",
            "TAR:x",
            "image:",
            "image:-",
            "image:a=",
            "oci:",
            "docker-archive:",
        ] {
            assert!(matches!(Spec::parse(OsStr::new(bad)), Err(Error::Usage(_))), "{bad}");
        }
        let error = Spec::parse(OsStr::new("oops:x")).expect_err("no such scheme").to_string();
        assert!(error.contains("./oops:"), "{error}");
    }
}
