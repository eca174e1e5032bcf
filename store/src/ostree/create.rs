//! Creates file objects in the form of each repository mode.
//!
//! Owner, extended attributes and set-id bits are set only when the checksum is verified: wrong content never gets them.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write as _};
use std::os::fd::AsFd as _;

use rustix::fs::{
    AtFlags, Gid, Mode as Permissions, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags, chownat, fchmod, fchown,
    fsetxattr, futimens, symlinkat,
};
use rustix::io::Errno;
use sealift_format::num;
use sealift_format::ostree::file::FileObjectHasher;
use sealift_format::ostree::{Checksum, file, ostreemeta};
use sealift_format::{Attributes, FileType, XattrRef};
use sealift_verify::content::ContentError;

use super::config::Mode;
use super::object::{ObjectType, object_name};
use super::transaction::Transaction;
use crate::error::RepoFault;
use crate::fs::Unset;
use crate::{Error, xattrs};

/// The content of a new file object.
pub(crate) enum NewFile<'a> {
    /// The target of a symbolic link.
    Symlink(&'a str),
    /// A regular file of this many bytes, which are read once.
    Regular {
        /// Bytes of the content.
        size: u64,
        /// A reader of at least as many bytes.
        content: &'a mut dyn Read,
    },
}

/// Contents up to this many bytes are checked before a file is created.
const SMALL: u64 = 4 << 20;
/// Bytes per read of a larger content.
const BUFFER_LEN: usize = 256 << 10;

impl Transaction<'_> {
    /// Writes a file object unless it exists. Returns whether it is new; the content is read only then.
    ///
    /// # Errors
    /// Returns an error if the repository's mode cannot store the file's attributes, if the content has another checksum, or if the file cannot be
    /// written.
    pub(crate) fn write_file(
        &self,
        checksum: &Checksum,
        attributes: &Attributes,
        new: NewFile<'_>,
    ) -> Result<bool, Error> {
        let new_file = Creation { transaction: self, checksum, attributes, mode: self.repo.config().mode };
        new_file.check_loss(new.is_link())?;
        if matches!(new, NewFile::Symlink(target) if target.is_empty() || target.contains('\0')) {
            return Err(new_file.cannot_hold("it is a symbolic link without a target"));
        }
        if self.has(ObjectType::File, checksum)? {
            return Ok(false);
        }
        self.stage_object(ObjectType::File, checksum, |name| match new {
            NewFile::Symlink(target) => new_file.symlink(name, target),
            NewFile::Regular { size, content } => new_file.regular(name, size, content),
        })
    }
}

impl Transaction<'_> {
    /// Checks that the repository's mode can store all attributes of a file.
    ///
    /// # Errors
    /// Returns an error if it cannot.
    pub(crate) fn check_file(
        &self,
        checksum: &Checksum,
        attributes: &Attributes,
        is_symlink: bool,
    ) -> Result<(), Error> {
        Creation { transaction: self, checksum, attributes, mode: self.repo.config().mode }.check_loss(is_symlink)
    }
}

impl NewFile<'_> {
    fn is_link(&self) -> bool {
        matches!(self, Self::Symlink(_))
    }
}

/// A file object being created.
struct Creation<'a> {
    transaction: &'a Transaction<'a>,
    checksum: &'a Checksum,
    attributes: &'a Attributes,
    mode: Mode,
}

impl Creation<'_> {
    fn name(&self) -> String {
        object_name(ObjectType::File, self.checksum)
    }

    fn unset(&self, unset: Unset) -> Error {
        let path = self.transaction.repo.object_path(ObjectType::File, self.checksum);
        unset.into_error(&path, self.transaction.stage.directory(), |error| match error {
            // Of the calls, only a change of the owner fails in these ways.
            Errno::PERM | Errno::INVAL if self.mode == Mode::Bare => {
                let &Attributes { uid, gid, .. } = self.attributes;
                self.transaction.repo.fault(RepoFault::Owner { uid, gid, source: error.into() })
            }
            error => self.io(error),
        })
    }

    fn io(&self, error: impl Into<io::Error>) -> Error {
        Error::io("write", self.transaction.repo.object_path(ObjectType::File, self.checksum), error)
    }

    fn cannot_hold(&self, why: &'static str) -> Error {
        let fault = RepoFault::CannotHold { mode: self.mode.name(), object: self.name(), why };
        self.transaction.repo.fault(fault)
    }

    fn check_loss(&self, is_symlink: bool) -> Result<(), Error> {
        self.loss(is_symlink).map_or(Ok(()), |why| Err(self.cannot_hold(why)))
    }

    /// Returns what the repository's mode cannot store, or what no object can have.
    fn loss(&self, is_symlink: bool) -> Option<&'static str> {
        let &Attributes { mode, uid, gid, ref xattrs } = self.attributes;
        match (is_symlink, FileType::of_mode(mode)) {
            (true, Some(FileType::Symlink)) | (false, Some(FileType::Regular)) => {}
            _ => return Some("it is neither a regular file nor a symbolic link"),
        }
        let made = self.transaction.stage.made();
        match self.mode {
            Mode::Bare if is_symlink && mode & 0o7777 != 0o777 => Some("a symbolic link has no permissions"),
            Mode::Bare if made.uid != 0 && (uid, gid) != (made.uid, made.gid) => {
                Some("it belongs to another user, and only root may give files away")
            }
            Mode::BareUserOnly if (uid, gid) != (0, 0) => Some("it does not belong to root"),
            Mode::BareUserOnly if !xattrs.is_empty() => Some("it has extended attributes"),
            Mode::BareUserOnly if is_symlink && mode & 0o7777 != 0o777 => Some("a symbolic link has no permissions"),
            Mode::BareUserOnly if !is_symlink && mode & 0o7777 & !0o775 != 0 => {
                Some("it has permission bits beyond 0775")
            }
            _ => None,
        }
    }

    fn check(&self, hasher: FileObjectHasher) -> Result<(), Error> {
        if hasher.finish() == *self.checksum {
            return Ok(());
        }
        Err(ContentError::OsTreeFile { checksum: *self.checksum }.into())
    }

    fn symlink(&self, name: &str, target: &str) -> Result<(), Error> {
        self.check(FileObjectHasher::new(self.attributes, target))?;
        match self.mode {
            Mode::Bare | Mode::BareUserOnly => self.link(name, target).map_err(|unset| self.unset(unset)),
            Mode::BareUser => {
                let file = self.store(name, 0o644, &[target.as_bytes(), &[0]].concat())?;
                self.set(&file, 0o644, 0o644).map_err(|unset| self.unset(unset))
            }
            Mode::Archive => {
                let header = file::encode_archive_header(0, self.attributes, target);
                let file = self.store(name, 0o644, &header)?;
                drop(file);
                Ok(())
            }
        }
    }

    /// Creates a plain symbolic link.
    fn link(&self, name: &str, target: &str) -> Result<(), Unset> {
        let stage = &self.transaction.stage;
        symlinkat(target, stage.directory(), name)?;
        if self.mode == Mode::BareUserOnly {
            return Ok(());
        }
        let made = stage.made();
        let &Attributes { uid, gid, ref xattrs, .. } = self.attributes;
        if (uid, gid) != (made.uid, made.gid) {
            let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
            chownat(stage.directory(), name, Some(uid), Some(gid), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        for xattr in xattrs {
            xattrs::set_link(stage.directory(), name.as_bytes(), xattr).map_err(Unset::xattr(xattr, xattrs))?;
        }
        Ok(())
    }

    fn regular(&self, name: &str, size: u64, content: &mut dyn Read) -> Result<(), Error> {
        let hasher = FileObjectHasher::new(self.attributes, "");
        let bits = self.bits();
        let (file, made) = if size <= SMALL {
            self.small(hasher, name, size, content)?
        } else {
            self.large(hasher, name, size, content)?
        };
        self.set(&file, made, bits).map_err(|unset| self.unset(unset))
    }

    /// Returns the file's permission bits, which differ from the object's if the mode stores those elsewhere.
    fn bits(&self) -> u16 {
        regular_bits(self.mode, self.attributes)
    }

    fn small(
        &self,
        mut hasher: FileObjectHasher,
        name: &str,
        size: u64,
        content: &mut dyn Read,
    ) -> Result<(File, u16), Error> {
        let mut bytes = Vec::with_capacity(num::size(size));
        content.take(size).read_to_end(&mut bytes).map_err(|error| self.io(error))?;
        hasher.update(&bytes);
        self.check(hasher)?;
        if self.mode == Mode::Archive {
            let header = file::encode_archive_header(size, self.attributes, "");
            bytes = self.transaction.deflate.whole(header, &bytes).map_err(|error| self.io(error))?;
        }
        self.store_as(name, &bytes)
    }

    fn large(
        &self,
        hasher: FileObjectHasher,
        name: &str,
        size: u64,
        content: &mut dyn Read,
    ) -> Result<(File, u16), Error> {
        // Compressed bytes are counted once they are known.
        if self.mode != Mode::Archive {
            self.transaction.take_room(size)?;
        }
        let (file, made) = self.transaction.create(ObjectType::File, self.checksum, name, self.bits())?;
        match self.mode {
            Mode::Archive => self.copy_deflated(hasher, &file, size, content)?,
            _ => self.copy(hasher, size, content, &mut &file)?,
        }
        Ok((file, made))
    }

    fn copy(
        &self,
        mut hasher: FileObjectHasher,
        size: u64,
        content: &mut dyn Read,
        to: &mut dyn io::Write,
    ) -> Result<(), Error> {
        let mut buffer = vec![0; BUFFER_LEN];
        let mut left = size;
        while left > 0 {
            let len = num::up_to(left, BUFFER_LEN);
            let len = match content.read(&mut buffer[..len]) {
                Ok(0) => return Err(self.io(io::Error::from(io::ErrorKind::UnexpectedEof))),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read.map_err(|error| self.io(error))?,
            };
            hasher.update(&buffer[..len]);
            to.write_all(&buffer[..len]).map_err(|error| self.io(error))?;
            left -= num::wide(len);
        }
        self.check(hasher)
    }

    fn copy_deflated(
        &self,
        hasher: FileObjectHasher,
        file: &File,
        size: u64,
        content: &mut dyn Read,
    ) -> Result<(), Error> {
        let mut to = Metered { transaction: self.transaction, file: BufWriter::with_capacity(BUFFER_LEN, file) };
        let header = file::encode_archive_header(size, self.attributes, "");
        to.write_all(&header).map_err(|error| self.io(error))?;
        let mut deflated = self.transaction.deflate.stream(to);
        self.copy(hasher, size, content, &mut deflated)?;
        let mut to = deflated.finish().map_err(|error| self.io(error))?;
        to.flush().map_err(|error| self.io(error))
    }

    fn store_as(&self, name: &str, bytes: &[u8]) -> Result<(File, u16), Error> {
        self.transaction.take_room(num::wide(bytes.len()))?;
        let (mut file, made) = self.transaction.create(ObjectType::File, self.checksum, name, self.bits())?;
        file.write_all(bytes).map_err(|error| self.io(error))?;
        Ok((file, made))
    }

    /// Creates a file with these bytes and permissions.
    fn store(&self, name: &str, bits: u16, bytes: &[u8]) -> Result<File, Error> {
        self.transaction.take_room(num::wide(bytes.len()))?;
        let (mut file, made) = self.transaction.create(ObjectType::File, self.checksum, name, bits)?;
        file.write_all(bytes).map_err(|error| self.io(error))?;
        if made != bits {
            fchmod(&file, Permissions::from_raw_mode(bits.into())).map_err(|error| self.io(error))?;
        }
        Ok(file)
    }

    /// Sets a regular file's attributes. `made` are its current permissions, `bits` the final ones.
    fn set(&self, file: &File, made: u16, bits: u16) -> Result<(), Unset> {
        let mut is_changed = made != bits;
        match self.mode {
            Mode::Bare => {
                let own = self.transaction.stage.made();
                let &Attributes { uid, gid, ref xattrs, .. } = self.attributes;
                if (uid, gid) != (own.uid, own.gid) {
                    fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
                }
                for xattr in xattrs {
                    let set = fsetxattr(file, xattr.name, xattr.value, XattrFlags::empty());
                    set.map_err(Unset::xattr(xattr, xattrs))?;
                }
                // An access ACL changes the group bits.
                is_changed |= !xattrs.is_empty();
            }
            Mode::BareUser => {
                let value = &*ostreemeta::encode(self.attributes);
                let xattr = XattrRef { name: ostreemeta::NAME.as_bytes(), value };
                let set = fsetxattr(file, ostreemeta::NAME, value, XattrFlags::empty());
                set.map_err(Unset::xattr(xattr, [xattr]))?;
            }
            Mode::BareUserOnly | Mode::Archive => {}
        }
        if is_changed {
            fchmod(file, Permissions::from_raw_mode(bits.into()))?;
        }
        Ok(set_time(self.mode, file)?)
    }
}

fn regular_bits(mode: Mode, attributes: &Attributes) -> u16 {
    match mode {
        Mode::Bare | Mode::BareUserOnly => attributes.mode & 0o7777,
        Mode::BareUser => attributes.mode & 0o775 | 0o400,
        Mode::Archive => 0o644,
    }
}

/// Sets the time of modification that all files of a repository have, if its mode keeps files as they are.
fn set_time(mode: Mode, file: &File) -> Result<(), Errno> {
    if mode == Mode::Archive {
        return Ok(());
    }
    let omit = Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT };
    let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
    futimens(file.as_fd(), &Timestamps { last_access: omit, last_modification: zero })
}

/// Completes a regular file that a killed run may have left before its last steps: no checksum covers all permission bits, or the time.
pub(super) fn complete(mode: Mode, file: &File, attributes: &Attributes) -> Result<(), Errno> {
    fchmod(file, Permissions::from_raw_mode(regular_bits(mode, attributes).into()))?;
    set_time(mode, file)
}

/// A file whose bytes are all counted against the free space.
struct Metered<'a> {
    transaction: &'a Transaction<'a>,
    file: BufWriter<&'a File>,
}

impl io::Write for Metered<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = num::wide(bytes.len());
        self.transaction.take_room(len).map_err(|_| io::Error::from(io::ErrorKind::StorageFull))?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
