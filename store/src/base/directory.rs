//! The base objects in the files of a directory.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::io::Errno;
use sealift_format::num::size;
use sealift_format::{Directory, Entry, Index, Object, Row};

use super::parts::KnownParts;
use super::{Base, Holder, ObjectReader};
use crate::Site;
use crate::contents::index_by_reading;
use crate::directory::{Target, TargetWalk, TreeRecord};
use crate::fs::confined::open_name;
use crate::install_record::InstallRecord;
use crate::source::{DirectoryOptions, DirectorySource, Source};
use crate::{Error, Limits, Progress};

/// A directory that holds a tree of an index.
#[derive(Debug)]
pub(super) struct DirectoryBase {
    site: Arc<Site>,
    /// For each object, a directory of the index and an entry in it.
    places: Vec<Option<(Row<Directory>, Row<Entry>)>>,
    /// Those of the objects whose files have been compared.
    known: KnownParts,
}

#[derive(Debug)]
pub(super) struct DirectoryReader<'a> {
    base: &'a DirectoryBase,
    index: &'a Index,
    target: Option<Target<'a>>,
    walk: TargetWalk,
}

impl Base {
    /// Opens a directory as a base: the tree in its record, or if it has none, the tree as it is now, under the ref `reference`.
    ///
    /// # Errors
    /// Returns an error if it cannot be read or changes meanwhile.
    pub fn of_installed(path: &Path, reference: &str, jobs: usize, progress: &Progress) -> Result<Self, Error> {
        let site = Arc::new(Site::resolve(path)?);
        site.check_at_rest()?;
        if let Some(state) = TreeRecord::of(&site, Limits::NONE)? {
            let identity = state.installed.head.root().identity.clone();
            let InstallRecord { index, order, .. } = state.installed;
            let base = Self::of_directory(site, index, &state.part.reference).read_by(order);
            let (named, compatible) = (Some((identity.name, identity.version)), Some(identity.compatible));
            return Ok(Self { identity: named, compatible, ..base });
        }
        Self::by_reading(site, reference, jobs, progress)
    }

    /// Reads all of the directory at `site`, as the tree of the ref `reference`, whatever its record says.
    ///
    /// # Errors
    /// Returns an error if it cannot be read or changes meanwhile.
    pub fn by_reading(site: Arc<Site>, reference: &str, jobs: usize, progress: &Progress) -> Result<Self, Error> {
        let listed = DirectorySource::list_open(site.reopen()?, site.path(), &DirectoryOptions::default(), jobs)?;
        let source = Source::Directory(listed);
        let index = index_by_reading(reference, &source, jobs, progress)?;
        Ok(Self::of_directory(site, index, reference))
    }

    /// Uses a directory, which holds the tree of the ref `reference` of `index`, as a base.
    pub(crate) fn of_directory(site: Arc<Site>, index: Index, reference: &str) -> Self {
        let mut places = vec![None; index.objects().len()];
        if let Some(tree) = index.find_ref(reference) {
            for (directory, entry, object) in index.regulars(tree) {
                places[object.at()].get_or_insert((directory, entry));
            }
        }
        let holder = Arc::new(DirectoryBase { site, places, known: KnownParts::default() });
        Self { index, holder, identity: None, compatible: None, order: None }
    }
}

impl Holder for DirectoryBase {
    fn reader<'a>(&'a self, index: &'a Index) -> Box<dyn ObjectReader + 'a> {
        Box::new(DirectoryReader::new(self, index))
    }

    fn has_place(&self, object: Row<Object>) -> bool {
        self.places[object.at()].is_some()
    }
}

impl<'a> DirectoryReader<'a> {
    pub(super) fn new(base: &'a DirectoryBase, index: &'a Index) -> Self {
        Self { base, index, target: None, walk: TargetWalk::default() }
    }

    /// Opens the file of an object; `None` if it is missing or has another size.
    fn open(&mut self, object: Row<Object>) -> Result<Option<File>, Error> {
        let Some((directory, entry)) = self.base.places[object.at()] else { return Ok(None) };
        if self.target.is_none() {
            self.target = Some(Target::open(&self.base.site, self.index)?);
        }
        let Some(target) = &self.target else { return Ok(None) };
        let name = self.index.name(self.index.entry(entry));
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let opened = self.walk.go(target, directory).and_then(|at| open_name(at, name, flags, Mode::empty()));
        let file = match opened {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV | Errno::NXIO) => return Ok(None),
            opened => opened.map_err(target.failed("read", directory, name))?,
        };
        let stat = fstat(&file).map_err(target.failed("look at", directory, name))?;
        let is_it = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && u64::try_from(stat.st_size) == Ok(self.index.object(object).size);
        Ok(is_it.then(|| file.into()))
    }

    fn path_of(&self, object: Row<Object>) -> PathBuf {
        let place = self.base.places[object.at()];
        let below = place.map(|(directory, entry)| self.index.path(directory, entry));
        self.base.site.path().join(crate::error::path_of(&below.unwrap_or_default()))
    }

    fn failed(&self, object: Row<Object>, error: io::Error) -> Error {
        Error::io("read", self.path_of(object), error)
    }

    /// Returns whether the file has the object.
    fn has(&mut self, object: Row<Object>) -> Result<bool, Error> {
        if self.base.known.has(object) {
            return Ok(true);
        }
        let Some(file) = self.open(object)? else { return Ok(false) };
        let mut comparison = self.base.known.compare(object, self.index.object(object));
        comparison.take_all(file).map_err(|error| self.failed(object, error))?;
        Ok(comparison.finish())
    }

    fn missing(&self, object: Row<Object>) -> Error {
        Error::missing_base(self.path_of(object), "it was changed: its content is not that of the base")
    }
}

impl ObjectReader for DirectoryReader<'_> {
    fn holds(&mut self, object: Row<Object>, progress: &Progress) -> Result<bool, Error> {
        progress.add(self.index.object(object).size, 0);
        self.has(object)
    }

    fn read(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let row = self.index.object(object);
        let is_whole = range.start == 0 && range.end == row.size;
        if !is_whole && !self.has(object)? {
            return Err(self.missing(object));
        }
        let Some(file) = self.open(object)? else { return Err(self.missing(object)) };
        let is_right = match is_whole {
            true => read_whole(&file, row, out),
            false => self.base.known.read(object, row, |part, at| file.read_exact_at(part, at), &range, out),
        };
        match is_right.map_err(|error| self.failed(object, error))? {
            true => Ok(()),
            false => Err(self.missing(object)),
        }
    }
}

/// Appends a file to `out`. Returns whether it is an object.
fn read_whole(file: &File, object: &Object, out: &mut Vec<u8>) -> io::Result<bool> {
    let start = out.len();
    out.resize(start + size(object.size), 0);
    match file.read_exact_at(&mut out[start..], 0) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| blake3::hash(&out[start..]).as_bytes() == &object.id),
    }
}
