//! Looks into the images, archives and compressed files of a bundle: `IMAGE//PATH` names a file in one.
//!
//! What is in the file at `IMAGE` is read as packing with recipes reads it, whether it is stored as a recipe or not: squashfs, EROFS, ext4, FAT and
//! ISO 9660 file systems, disks with partitions, which are named by their numbers, archives of tar, cpio, ar and zip, sections of EFI programs, and
//! compressed files. `//` may follow again, as in `disk.img//2//etc/fstab`. A compressed file stands for what is in it, as in `etc.tar.gz//etc/fstab`.
//! Regular files and symbolic links are found, which nothing follows. A name in a bundle has no slash, so that no path has two meanings.
//!
//! ```no_run
//! use sealift::cat::Contents;
//! use sealift::inside::{cat, is_inside, list};
//! # fn show(contents: &Contents) -> Result<(), Box<dyn std::error::Error>> {
//! let path = b"os.squashfs//etc/os-release";
//! assert!(is_inside(contents.bundle(), path));
//! cat(contents, path, &mut std::io::stdout(), &sealift::Progress::default())?;
//! # Ok(())
//! # }
//! ```

use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use sealift_container::{Anatomy, Blocks, ContainerFault, Content, Limits, Member, ReadAt};
use sealift_format::num::{up_to, wide};
use sealift_format::walk::pairs;
use sealift_format::{Bundle, InodeKind, Object, Row};
use sealift_store::address::reading;
use sealift_store::base::{Bases, GivenBases};
use sealift_verify::escape;

use crate::cat::Contents;
use crate::files::Files;
use crate::inspect::{Listed, find};
use crate::{Error, Input, Progress, Unopened};

/// Containers in each other, of which a compressed file is one.
const DEPTH_MAX: usize = 16;
/// Bytes of content that are read at once.
const PORTION_LEN: usize = 1 << 20;

/// The files in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Listing {
    /// The ref that has the container.
    pub reference: String,
    /// The path before those of its files: that of the container, and `//`.
    pub container: Vec<u8>,
    /// Its files, by their paths.
    pub files: Vec<InnerFile>,
}

/// A regular file or a symbolic link in a container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InnerFile {
    /// Its path in the container; empty for the content of a compressed file.
    pub path: Vec<u8>,
    /// Its length in bytes.
    pub size: u64,
    /// What a symbolic link names; `None` for a regular file.
    pub target: Option<Vec<u8>>,
}

/// A file that differs between a container and another version of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct InnerChange {
    /// Its path in the container.
    pub path: Vec<u8>,
    /// Its length in bytes on the old side; `None` if only the new side has it.
    pub old: Option<u64>,
    /// Its length in bytes on the new side; `None` if only the old side has it.
    pub new: Option<u64>,
}

/// The files that differ between two versions of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comparison {
    /// The path before those of the files: that of the container, and `//`.
    pub container: Vec<u8>,
    /// The paths of either side.
    pub compared: u64,
    /// The files with another content, by their paths.
    pub changes: Vec<InnerChange>,
}

/// Returns whether a path names what is in a file of the bundle.
#[must_use]
pub fn is_inside(bundle: &Bundle, path: &[u8]) -> bool {
    Inner::parse(bundle, path).is_some()
}

/// Writes the content of the file at `[REF:]IMAGE//PATH` to `out`. Only verified bytes are read.
///
/// # Errors
/// Returns an error if the bundle is damaged or comes through a pipe, if there is no such file, if what should be a container is none or is damaged,
/// or if `out` cannot be written.
pub fn cat(contents: &Contents, path: &[u8], out: &mut dyn Write, progress: &Progress) -> Result<(), Error> {
    let inner = Inner::parse(contents.bundle(), path).ok_or_else(|| Error::NoFile { path: path.to_owned() })?;
    let files = contents.files()?;
    inner.descend(&files, &mut |level| {
        let Some(member) = level.find()? else { return Ok(None) };
        let content = Content::new(level.blocks, member);
        let mut buffer = vec![0; up_to(member.len, PORTION_LEN)];
        let mut offset = 0;
        while offset < member.len {
            progress.check()?;
            let portion = buffer.get_mut(..up_to(member.len - offset, PORTION_LEN)).unwrap_or_default();
            content.read_exact_at(portion, offset).map_err(|error| level.error(error.into()))?;
            out.write_all(portion).map_err(|error| Error::io("write", "the output", error))?;
            offset += wide(portion.len());
        }
        Ok(Some(()))
    })
}

/// Returns the files below `[REF:]IMAGE//PATH`, whoever signed the bundle.
///
/// # Errors
/// Returns an error if the bundle is damaged, comes through a pipe or lacks its bases, if there is no such path, or if what should be a container is
/// none or is damaged.
pub fn list(bundle: Unopened, bases: &GivenBases, path: &[u8], progress: &Progress) -> Result<Listing, Error> {
    let opened = Opened::open((bundle, bases), progress)?;
    let inner = opened.inner(path)?;
    inner.descend(&opened.files()?, &mut |level| {
        // An archive in a compressed file is what is meant.
        let prefix = if level.only_container().is_some() { None } else { level.prefix()? };
        let Some(prefix) = prefix else { return Ok(None) };
        let files = level.sorted(&prefix).into_iter();
        let files = files.map(|(path, member)| InnerFile { path: path.to_vec(), size: member.len, target: None });
        let links = level.anatomy.symlinks.iter().filter(|link| is_below(&link.path, &prefix)).map(|link| InnerFile {
            path: link.path.clone(),
            size: wide(link.target.len()),
            target: Some(link.target.clone()),
        });
        let mut files: Vec<InnerFile> = files.chain(links).collect();
        files.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let container = [&level.path[..], b"//"].concat();
        Ok(Some(Listing { reference: inner.image.reference.name.clone(), container, files }))
    })
}

/// Compares the content of the files below `[REF:]IMAGE//PATH` of two bundles, whoever signed them.
///
/// # Errors
/// As [`list`], for each bundle; a path that only one of them has is no error.
pub fn compare(
    [old, new]: [(Unopened, &GivenBases); 2],
    path: &[u8],
    progress: &Progress,
) -> Result<Comparison, Error> {
    let (old, new) = (Opened::open(old, progress)?, Opened::open(new, progress)?);
    let (old_inner, new_inner) = (old.inner(path)?, new.inner(path)?);
    let (old_files, new_files) = (old.files()?, new.files()?);
    let is_same = old.bundle.index.object(old_inner.object).id == new.bundle.index.object(new_inner.object).id;
    old_inner.descend(&old_files, &mut |old| {
        let compared = new_inner.descend(&new_files, &mut |new| {
            if old.only_container().is_some() || new.only_container().is_some() {
                return Ok(None);
            }
            let Some(prefix) = new.prefix()?.map_or_else(|| old.prefix(), |prefix| Ok(Some(prefix)))? else {
                return Ok(None);
            };
            let container = [&new.path[..], b"//"].concat();
            let mut found = Comparison { container, compared: 0, changes: Vec::new() };
            for (path, old_file, new_file) in pairs(old.sorted(&prefix).into_iter(), new.sorted(&prefix).into_iter()) {
                progress.check()?;
                found.compared += 1;
                if let (Some(old_file), Some(new_file)) = (old_file, new_file)
                    && old_file.len == new_file.len
                    && (is_same || equal((old, old_file), (new, new_file), progress)?)
                {
                    continue;
                }
                let len = |file: Option<&Member>| file.map(|file| file.len);
                found.changes.push(InnerChange { path: path.to_vec(), old: len(old_file), new: len(new_file) });
            }
            Ok(Some(found))
        });
        match compared {
            Err(Error::NoFile { .. }) => Ok(None),
            compared => compared.map(Some),
        }
    })
}

/// Returns whether two files of one length have the same content.
fn equal(
    (old, old_file): (&Level<'_, '_>, &Member),
    (new, new_file): (&Level<'_, '_>, &Member),
    progress: &Progress,
) -> Result<bool, Error> {
    let (one, other) = (Content::new(old.blocks, old_file), Content::new(new.blocks, new_file));
    let mut offset = 0;
    while offset < old_file.len {
        progress.check()?;
        let mut portions = [(); 2].map(|()| vec![0; up_to(old_file.len - offset, PORTION_LEN)]);
        let [of_one, of_other] = &mut portions;
        one.read_exact_at(of_one, offset).map_err(|error| old.error(error.into()))?;
        other.read_exact_at(of_other, offset).map_err(|error| new.error(error.into()))?;
        if of_one != of_other {
            return Ok(false);
        }
        offset += wide(of_one.len());
    }
    Ok(true)
}

/// A bundle whose files are read.
struct Opened {
    input: Input,
    bundle: Bundle,
    bases: Bases,
}

impl Opened {
    fn open((bundle, bases): (Unopened, &GivenBases), progress: &Progress) -> Result<Self, Error> {
        let (input, bundle, bases) = bases.open(bundle, progress)?;
        Ok(Self { input, bundle, bases })
    }

    fn files(&self) -> Result<Files<'_>, Error> {
        Files::new(&self.input, &self.bundle, &self.bases)
    }

    fn inner<'a>(&'a self, path: &'a [u8]) -> Result<Inner<'a>, Error> {
        Inner::parse(&self.bundle, path).ok_or_else(|| Error::NoFile { path: path.to_owned() })
    }
}

/// A path that leads into a file of the bundle.
struct Inner<'a> {
    image: Listed<'a>,
    object: Row<Object>,
    /// The paths in the containers, from the outermost to the innermost.
    steps: Vec<&'a [u8]>,
}

/// A container on the way.
struct Level<'a, 'c> {
    /// Its path from the bundle's root.
    path: Vec<u8>,
    /// The path in it.
    step: &'a [u8],
    anatomy: &'a Anatomy,
    blocks: &'a Blocks<'c>,
}

impl<'a> Inner<'a> {
    fn parse(bundle: &'a Bundle, path: &'a [u8]) -> Option<Self> {
        // Two slashes behind a directory mean one.
        let places = path.windows(2).enumerate().filter(|(at, two)| *at > 0 && *two == b"//").map(|(at, _)| at);
        let (at, image, object) = places.into_iter().find_map(|at| {
            let image = find(bundle, path.get(..at)?).ok()?;
            match image.inode.kind {
                InodeKind::Regular(object) => Some((at, image, object)),
                _ => None,
            }
        })?;
        let mut rest = path.get(at + 2..)?;
        let mut steps = Vec::new();
        while let Some(at) = rest.windows(2).position(|two| two == b"//") {
            steps.push(rest.get(..at)?);
            rest = rest.get(at + 2..)?;
        }
        steps.push(rest);
        let steps = steps.into_iter().map(trimmed).collect();
        Some(Self { image, object, steps })
    }

    /// Calls `then` with the container that the last step is in. Goes on with what is in a compressed file if there is nothing.
    fn descend<R>(&self, files: &Files<'_>, then: &mut Then<'_, R>) -> Result<R, Error> {
        let bytes = files.bytes(self.object);
        let found = descend(&bytes, self.image.path(), &self.steps, DEPTH_MAX, then)?;
        found.ok_or_else(|| {
            let steps = self.steps.join(&b"//"[..]);
            Error::NoFile { path: [&self.image.path()[..], b"//", &steps].concat() }
        })
    }
}

type Then<'t, R> = dyn FnMut(&Level<'_, '_>) -> Result<Option<R>, Error> + 't;

fn descend<R>(
    bytes: &dyn ReadAt,
    path: Vec<u8>,
    steps: &[&[u8]],
    depth: usize,
    then: &mut Then<'_, R>,
) -> Result<Option<R>, Error> {
    let Some((step, rest)) = steps.split_first() else { return Ok(None) };
    let anatomy = Anatomy::of(bytes, &Limits::default()).map_err(|fault| error(&path, fault))?;
    let Some(anatomy) = anatomy.filter(|_| depth > 0) else {
        return Err(Error::unexpected(
            path_of(&path),
            "is no image, archive or compressed file that this version reads",
        ));
    };
    let blocks = Blocks::new(bytes, &anatomy);
    let level = Level { path, step, anatomy: &anatomy, blocks: &blocks };
    if rest.is_empty() {
        if let Some(found) = then(&level)? {
            return Ok(Some(found));
        }
    } else if let Some(member) = level.find()? {
        let content = Content::new(&blocks, member);
        return descend(&content, [&level.path[..], b"//", &member.path].concat(), rest, depth - 1, then);
    }
    match level.only_container() {
        Some(content) => descend(&content, level.path.clone(), steps, depth - 1, then),
        None => Ok(None),
    }
}

impl<'a, 'c> Level<'a, 'c> {
    /// Returns the content of a compressed file, if it is a container itself.
    fn only_container(&self) -> Option<Content<'a, 'c>> {
        let [member] = &self.anatomy.members[..] else { return None };
        let content = Content::new(self.blocks, member);
        let is_container = || Anatomy::of(&content, &Limits::default()).is_ok_and(|found| found.is_some());
        (member.path.is_empty() && is_container()).then_some(content)
    }

    /// Returns the file that the step names.
    ///
    /// # Errors
    /// Returns an error if that is a symbolic link.
    fn find(&self) -> Result<Option<&'a Member>, Error> {
        let symlinks = &self.anatomy.symlinks;
        let meant = self.reading(|path| symlinks.iter().any(|link| link.path == path))?;
        if let Some(link) = symlinks.iter().find(|link| meant.as_ref() == Some(&link.path)) {
            let path = [&self.path[..], b"//", &link.path].concat();
            let target = escape::bytes(&link.target);
            return Err(Error::unexpected(
                path_of(&path),
                format!("is a symbolic link to {target}, and no link is followed"),
            ));
        }
        let meant = self.reading(|path| self.anatomy.find(path).is_some())?;
        Ok(meant.and_then(|path| self.anatomy.find(&path)))
    }

    /// Returns the step as it is meant: as it is, or as lists print it.
    fn reading(&self, is_there: impl Fn(&[u8]) -> bool) -> Result<Option<Vec<u8>>, Error> {
        reading(self.step, is_there)
    }

    /// Returns the same, if there is a file at it or below it.
    fn prefix(&self) -> Result<Option<Vec<u8>>, Error> {
        let symlinks = &self.anatomy.symlinks;
        self.reading(|wanted| {
            self.below(wanted).next().is_some() || symlinks.iter().any(|link| is_below(&link.path, wanted))
        })
    }

    /// Returns the files at a path and below it, by their paths.
    fn sorted<'l>(&'l self, wanted: &'l [u8]) -> Vec<(&'a [u8], &'a Member)> {
        let mut files: Vec<_> = self.below(wanted).collect();
        files.sort_unstable_by_key(|(path, _)| *path);
        files
    }

    /// Returns the files at a path and below it, also by their other names.
    fn below<'l>(&'l self, wanted: &'l [u8]) -> impl Iterator<Item = (&'a [u8], &'a Member)> + 'l {
        let Anatomy { members, links, .. } = self.anatomy;
        let own = members.iter().map(|member| (&member.path[..], member));
        let others = links.iter().filter_map(|link| {
            let member = members.get(usize::try_from(link.member).ok()?)?;
            Some((&link.path[..], member))
        });
        own.chain(others).filter(move |(path, _)| is_below(path, wanted))
    }

    fn error(&self, fault: ContainerFault) -> Error {
        error(&self.path, fault)
    }
}

/// Returns whether a path is another one, or below it.
fn is_below(path: &[u8], wanted: &[u8]) -> bool {
    let rest = path.strip_prefix(wanted);
    rest.is_some_and(|rest| wanted.is_empty() || rest.is_empty() || rest.starts_with(b"/"))
}

fn trimmed(path: &[u8]) -> &[u8] {
    let path = path.strip_prefix(b"/").unwrap_or(path);
    path.strip_suffix(b"/").unwrap_or(path)
}

/// Returns the error of reading a container, which is the bundle's if that is damaged.
fn error(path: &[u8], fault: ContainerFault) -> Error {
    match fault {
        ContainerFault::Io(error) => match error.downcast::<Error>() {
            Ok(error) => error,
            Err(error) => Error::io("read", path_of(path), error),
        },
        fault => Error::unexpected(path_of(path), fault.to_string()),
    }
}

fn path_of(path: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(path))
}
