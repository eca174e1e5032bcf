//! Reads file objects from a repository of any mode.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use flate2::bufread::DeflateDecoder;
use rustix::fs::{FileType, Mode as Permissions, OFlags, Stat, fgetxattr, fstat, readlinkat};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::ostree::file::FileObjectHasher;
use sealift_format::ostree::{Checksum, Malformed, file, ostreemeta};
use sealift_format::{Attributes, Xattr};

use super::config::Mode;
use super::object::{ObjectType, loose_path, object_name};
use super::repo::Repo;
use crate::Error;
use crate::error::RepoFault;
use crate::fs::confined::open_beneath;
use crate::xattrs::XattrFilter;

/// The content of a file object.
#[derive(Debug)]
pub(crate) enum FileContent {
    /// The target of a symbolic link. It matches the checksum.
    Symlink(String),
    /// The bytes of a regular file, which are verified as they are read.
    Regular(FileBytes),
}

/// The bytes of a regular file.
#[derive(Debug)]
pub(crate) struct FileBytes {
    from: Stored,
    size: u64,
    left: u64,
    hasher: FileObjectHasher,
    checksum: Checksum,
}

#[derive(Debug)]
enum Stored {
    Plain(File),
    Deflated(Box<DeflateDecoder<BufReader<File>>>),
}

/// Bytes per read of a compressed file.
const BUFFER_LEN: usize = 64 << 10;
/// The maximum length of a symbolic link's target, with the terminating zero byte (PATH_MAX).
const TARGET_LEN_MAX: u64 = 4096;
/// The maximum length of a value in Linux (linux/limits.h).
pub(crate) const XATTR_LEN_MAX: usize = 65_536;

impl Repo {
    /// Opens a file object. Its content is valid once it has been read to its end without an error; attributes and the target of a symbolic link are
    /// verified at once.
    ///
    /// # Errors
    /// Returns an error if it is missing, damaged, or cannot be read.
    pub(crate) fn open_file(&self, checksum: &Checksum) -> Result<(Attributes, FileContent), Error> {
        Opening::of(self, checksum).any()
    }

    /// As [`Self::open_file`], for a file object that is not in its place yet.
    pub(super) fn open_file_at(
        &self,
        from: BorrowedFd<'_>,
        path: &str,
        checksum: &Checksum,
    ) -> Result<(Attributes, FileContent), Error> {
        Opening { repo: self, checksum, from, path: path.to_owned() }.any()
    }

    /// Reopens the content of a regular file whose attributes and size [`Self::open_file`] returned.
    ///
    /// # Errors
    /// Returns an error if it is missing, damaged, or cannot be read.
    pub(crate) fn open_content(
        &self,
        checksum: &Checksum,
        attributes: &Attributes,
        size: u64,
    ) -> Result<FileBytes, Error> {
        let object = Opening::of(self, checksum);
        let content = match self.config().mode {
            Mode::Archive => object.open_archive()?.1,
            _ => object.regular(Stored::Plain(File::from(object.open()?)), size, attributes)?,
        };
        match content {
            FileContent::Regular(content) => Ok(content),
            FileContent::Symlink(_) => Err(object.damaged()),
        }
    }
}

/// A file object being opened.
struct Opening<'a> {
    repo: &'a Repo,
    checksum: &'a Checksum,
    /// Where its path begins.
    from: BorrowedFd<'a>,
    path: String,
}

impl<'a> Opening<'a> {
    fn of(repo: &'a Repo, checksum: &'a Checksum) -> Self {
        Self { repo, checksum, from: repo.objects(), path: loose_path(ObjectType::File, checksum, repo.config().mode) }
    }

    fn any(&self) -> Result<(Attributes, FileContent), Error> {
        match self.repo.config().mode {
            Mode::Bare | Mode::BareUserOnly => self.open_bare(),
            Mode::BareUser => self.open_bare_user(),
            Mode::Archive => self.open_archive(),
        }
    }

    fn io(&self, error: impl Into<io::Error>) -> Error {
        self.repo.unread(self.checksum, error.into())
    }

    fn name(&self) -> String {
        object_name(ObjectType::File, self.checksum)
    }

    fn damaged(&self) -> Error {
        self.repo.fault(RepoFault::Damaged { object: self.name() })
    }

    fn wrong(&self, fault: Malformed) -> Error {
        self.repo.wrong(ObjectType::File, self.checksum, fault)
    }

    fn open(&self) -> Result<OwnedFd, Error> {
        self.try_open()?.map_err(|error| self.io(error))
    }

    /// Opens it; a symbolic link gives ELOOP.
    fn try_open(&self) -> Result<Result<OwnedFd, Errno>, Error> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        match open_beneath(self.from, self.path.as_bytes(), flags, Permissions::empty()) {
            Err(Errno::NOENT) => Err(self.repo.fault(RepoFault::Missing { object: self.name() })),
            opened => Ok(opened),
        }
    }

    fn open_bare(&self) -> Result<(Attributes, FileContent), Error> {
        let file = match self.try_open()? {
            Err(Errno::LOOP) => return self.open_link(),
            opened => opened.map_err(|error| self.io(error))?,
        };
        let (stat, size) = self.stat_regular(&file)?;
        let xattrs = match self.repo.config().mode {
            Mode::Bare => all_xattrs().read(file.as_fd()).map_err(|error| self.io(error))?,
            _ => Vec::new(),
        };
        let attributes = self.bare_attributes(&stat, xattrs)?;
        let content = self.regular(Stored::Plain(File::from(file)), size, &attributes)?;
        Ok((attributes, content))
    }

    fn open_link(&self) -> Result<(Attributes, FileContent), Error> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW;
        let link = open_beneath(self.from, self.path.as_bytes(), flags, Permissions::empty());
        let link = link.map_err(|error| self.io(error))?;
        let stat = fstat(&link).map_err(|error| self.io(error))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
            return Err(self.damaged());
        }
        let target = readlinkat(&link, "", Vec::new()).map_err(|error| self.io(error))?;
        let target = target.into_string().map_err(|_| self.damaged())?;
        let xattrs = match (self.repo.config().mode, CString::new(&*self.path)) {
            (Mode::Bare, Ok(path)) => all_xattrs().read_link(self.from, &path).map_err(|error| self.io(error))?,
            _ => Vec::new(),
        };
        let attributes = self.bare_attributes(&stat, xattrs)?;
        self.symlink(attributes, target)
    }

    fn open_bare_user(&self) -> Result<(Attributes, FileContent), Error> {
        let file = self.open()?;
        let (_, size) = self.stat_regular(&file)?;
        let mut value = [0; 256];
        let read = fgetxattr(&file, ostreemeta::NAME, &mut value);
        let parsed = match read {
            Ok(len) => ostreemeta::parse(value.get(..len).unwrap_or_default()),
            Err(Errno::RANGE) => {
                let mut value = vec![0; XATTR_LEN_MAX];
                let len = fgetxattr(&file, ostreemeta::NAME, &mut value).map_err(|error| self.io(error))?;
                ostreemeta::parse(value.get(..len).unwrap_or_default())
            }
            Err(Errno::NODATA) => return Err(self.damaged()),
            Err(error) => return Err(self.io(error)),
        };
        let attributes = parsed.map_err(|fault| self.wrong(fault))?;
        let mut file = File::from(file);
        if attributes.file_type() != sealift_format::FileType::Symlink {
            let content = self.regular(Stored::Plain(file), size, &attributes)?;
            return Ok((attributes, content));
        }
        if size > TARGET_LEN_MAX {
            return Err(self.damaged());
        }
        let mut target = String::new();
        file.read_to_string(&mut target).map_err(|error| self.io(error))?;
        if target.ends_with('\0') {
            target.pop();
        }
        self.symlink(attributes, target)
    }

    fn open_archive(&self) -> Result<(Attributes, FileContent), Error> {
        let file = self.open()?;
        let mut file = BufReader::with_capacity(BUFFER_LEN, File::from(file));
        let mut header = vec![0; file::PREFIX_LEN];
        file.read_exact(&mut header).map_err(|error| self.io(error))?;
        let prefix = header.first_chunk().copied().unwrap_or_default();
        let len = file::variant_len(prefix).map_err(|fault| self.wrong(fault))?;
        let len = num::wide(len);
        // This grows only with the data that is there: the length is not trusted.
        (&mut file).take(len).read_to_end(&mut header).map_err(|error| self.io(error))?;
        let parsed = file::parse_archive_header(&header).map_err(|fault| self.wrong(fault))?;
        let (size, attributes, target) = (parsed.size, parsed.header.attributes, parsed.header.target.to_owned());
        if !target.is_empty() {
            return self.symlink(attributes, target);
        }
        let from = Stored::Deflated(Box::new(DeflateDecoder::new(file)));
        let content = self.regular(from, size, &attributes)?;
        Ok((attributes, content))
    }

    fn stat_regular(&self, file: &OwnedFd) -> Result<(Stat, u64), Error> {
        let stat = fstat(file).map_err(|error| self.io(error))?;
        match u64::try_from(stat.st_size) {
            Ok(size) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => Ok((stat, size)),
            _ => Err(self.damaged()),
        }
    }

    /// Returns the attributes of the file itself. If the repository's mode does not store owners and extended attributes, the object belongs to root
    /// and has none.
    fn bare_attributes(&self, stat: &Stat, xattrs: Vec<Xattr>) -> Result<Attributes, Error> {
        let mode = u16::try_from(stat.st_mode).map_err(|_| self.damaged())?;
        let (uid, gid) = match self.repo.config().mode {
            Mode::Bare => (stat.st_uid, stat.st_gid),
            _ => (0, 0),
        };
        Ok(Attributes { mode, uid, gid, xattrs: xattrs.try_into()? })
    }

    fn symlink(&self, attributes: Attributes, target: String) -> Result<(Attributes, FileContent), Error> {
        let is_right = FileObjectHasher::new(&attributes, &target).finish() == *self.checksum;
        if is_right { Ok((attributes, FileContent::Symlink(target))) } else { Err(self.damaged()) }
    }

    fn regular(&self, from: Stored, size: u64, attributes: &Attributes) -> Result<FileContent, Error> {
        let hasher = FileObjectHasher::new(attributes, "");
        let mut content = FileBytes { from, size, left: size, hasher, checksum: *self.checksum };
        if size == 0 {
            content.check().map_err(|_| self.damaged())?;
        }
        Ok(FileContent::Regular(content))
    }
}

impl FileBytes {
    /// Returns the size of the whole content.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Returns the file, if it holds the content uncompressed.
    pub(crate) fn plain(&self) -> Option<&File> {
        match &self.from {
            Stored::Plain(file) => Some(file),
            Stored::Deflated(_) => None,
        }
    }

    /// As [`Self::plain`], but consumes the content.
    pub(crate) fn into_plain(self) -> Option<File> {
        match self.from {
            Stored::Plain(file) => Some(file),
            Stored::Deflated(_) => None,
        }
    }

    fn read_some(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = match &mut self.from {
                Stored::Plain(file) => file.read(buffer),
                Stored::Deflated(decoder) => decoder.read(buffer),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return read,
            }
        }
    }

    /// Verifies at the end that all bytes were correct. Compressed data must not yield any more; an uncompressed file is read only up to its initial
    /// size.
    fn check(&mut self) -> io::Result<()> {
        let ends = matches!(self.from, Stored::Plain(_)) || self.read_some(&mut [0])? == 0;
        let is_right = self.hasher.clone().finish() == self.checksum;
        if ends && is_right { Ok(()) } else { Err(damaged()) }
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the object does not match its checksum")
}

impl Read for FileBytes {
    /// Returns the last bytes only if all of them were correct.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = num::up_to(self.left, buffer.len());
        if len == 0 {
            return Ok(0);
        }
        let len = self.read_some(&mut buffer[..len])?;
        if len == 0 {
            return Err(damaged());
        }
        self.hasher.update(&buffer[..len]);
        self.left -= num::wide(len);
        if self.left == 0 {
            self.check()?;
        }
        Ok(len)
    }
}

/// Accepts all extended attributes: in a bare repository they belong to the object.
fn all_xattrs() -> XattrFilter {
    let mut filter = XattrFilter::default();
    filter.add(b"*");
    filter
}
