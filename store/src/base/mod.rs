//! Bases of delta bundles (delta 3): indexes, and the holders of their objects.
//!
//! The objects of a base are in a bundle, a directory, an OSTree repository, a composefs store or a slot, or are described by a request. Whatever is read
//! from one has been compared with its object's id.

mod bundle;
mod chained;
mod check;
mod commits;
mod directory;
mod given;
mod kept;
mod ostree;
mod parts;
mod requested;
mod shared;
mod slot;
#[cfg_attr(not(feature = "composefs"), path = "no_store.rs")]
mod store;
mod together;

use std::fmt::Debug;
use std::io::{self, Cursor, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::Advice;
use sealift_format::num;
use sealift_format::{
    BaseObject, BaseRange, Bundle, DEPTH_MAX, Index, Object, PartOf, Recipes, RootBase, Row, View, verity,
};

use crate::kept_order::KeptOrder;
use crate::made_spool::MadeSpool;
use crate::recipe::{Maker, require_encoders};
use crate::{Error, Input, OpenBundle, Progress};
use bundle::BundleReader;
pub use check::{check, is_the_only, needed, number_of, short};
pub(crate) use commits::{Reading, Tip};
pub use given::GivenBases;
pub use kept::kept_orders;
pub use shared::SharedBases;

/// An index with a holder of its objects.
#[derive(Clone, Debug)]
pub struct Base {
    /// The index.
    pub index: Index,
    pub(crate) holder: Arc<dyn Holder>,
    /// Name and version of the bundle it came from, if known.
    pub(crate) identity: Option<(String, u64)>,
    /// The tags of that bundle, if known.
    pub(crate) compatible: Option<Vec<String>>,
    /// The order in which its contents are read, if it is known.
    pub(crate) order: Option<KeptOrder>,
}

/// A holder of the objects of an index: a bundle, a directory, a repository, a store.
pub(crate) trait Holder: Debug + Send + Sync {
    /// Returns a reader of the objects of `index` for one thread.
    fn reader<'a>(&'a self, index: &'a Index) -> Box<dyn ObjectReader + 'a>;

    /// Closes what is open between reads, since none has come for a while.
    fn rest(&self) {}

    /// Returns whether an object is expected to be readable, without checking: a missing one is noticed when it is read.
    fn has_place(&self, _object: Row<Object>) -> bool {
        true
    }

    /// Returns the base as a delta bundle names it, if that differs from the index at hand.
    fn named(&self) -> Option<RootBase> {
        None
    }

    /// Returns the bundle, if the holder is one.
    fn bundle(&self) -> Option<&Arc<OpenBundle>> {
        None
    }
}

/// Reads the objects of one holder in one thread.
pub trait ObjectReader: Debug + Send {
    /// Appends bytes of an object to `out`. They have been compared with its id.
    ///
    /// # Errors
    /// Returns an error if the holder does not have the object or cannot be read.
    fn read(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error>;

    /// Returns whether the holder has an object with its correct content, and counts its bytes in the progress.
    ///
    /// # Errors
    /// Returns an error if it cannot be read for any reason other than absence, or if the run is cancelled.
    fn holds(&mut self, object: Row<Object>, progress: &Progress) -> Result<bool, Error>;

    /// Opens the content of an object as a stream, if the holder offers one; the caller compares it with a checksum.
    ///
    /// # Errors
    /// Returns an error if the holder cannot be read.
    fn open(&mut self, _object: Row<Object>) -> Result<Option<Box<dyn Read>>, Error> {
        Ok(None)
    }
}

/// Bases with consecutively numbered objects.
#[derive(Debug, Default)]
pub struct Bases {
    list: Vec<Base>,
    /// What has the views, which are numbered after the objects of the bases (recipes 3.5).
    views: Option<Arc<Recipes>>,
    /// The bundle that is over these bases, if it has recipes. Its objects are numbered after the views: those with a recipe are read as if a base had
    /// them.
    own: Option<Arc<OpenBundle>>,
    /// Threads that make an object.
    jobs: usize,
}

/// The state of a thread that reads base objects.
#[derive(Debug)]
pub struct BaseReader<'a> {
    bases: &'a Bases,
    readers: Vec<Box<dyn ObjectReader + 'a>>,
    /// What makes views, for each depth of views.
    views: Vec<Maker>,
    /// How many views are being made, each for the one before.
    depth: usize,
    /// Reads objects that have a recipe.
    own: Option<Box<BundleReader<'a>>>,
}

/// Who has what a number names.
enum Owner<'a> {
    /// The base of this number, with the object's number there.
    Base(usize, Row<Object>),
    /// Nobody: it is made of objects of the bases.
    View(&'a Recipes, &'a View),
    /// The bundle itself, which makes the object.
    Own(&'a Bundle, Row<Object>),
}

/// Bytes per part of an object that is read from its start to its end.
const PART_LEN: u64 = 1 << 20;
/// An object of at most this length is read at once.
const WHOLE_LEN: u64 = 4 << 20;

/// A large object that is read from its start to its end.
struct Parts<'r, 'a> {
    reader: &'r mut BaseReader<'a>,
    object: Row<BaseObject>,
    size: u64,
    /// The bytes read so far, including the current part.
    read: u64,
    part: Cursor<Vec<u8>>,
}

impl Read for Parts<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.part.position() == num::wide(self.part.get_ref().len()) && self.read < self.size {
            let end = self.size.min(self.read + PART_LEN);
            let mut part = std::mem::take(self.part.get_mut());
            part.clear();
            self.reader.read(self.object, self.read..end, &mut part).map_err(io::Error::other)?;
            (self.part, self.read) = (Cursor::new(part), end);
        }
        self.part.read(buffer)
    }
}

impl Base {
    /// Returns the name and version of the bundle it came from, if known.
    #[must_use]
    pub fn identity(&self) -> Option<(&str, u64)> {
        self.identity.as_ref().map(|(name, version)| (&name[..], *version))
    }

    /// Returns the compatible tags of the bundle it came from, if known; none if that fits every device.
    #[must_use]
    pub fn compatible(&self) -> Option<&[String]> {
        self.compatible.as_deref()
    }

    /// Sets the order in which its contents are read.
    pub(crate) fn read_by(self, order: Option<KeptOrder>) -> Self {
        Self { order, ..self }
    }

    /// Returns a reader of its objects for one thread.
    #[must_use]
    pub fn reader(&self) -> Box<dyn ObjectReader + '_> {
        self.holder.reader(&self.index)
    }

    /// Returns the order in which its contents are read: that of the bundle, or of the bundle that was installed there.
    #[must_use]
    pub fn order(&self) -> Option<&KeptOrder> {
        self.order.as_ref()
    }

    /// Returns the base as a delta bundle names it (delta 3).
    pub fn named(&self) -> RootBase {
        if let Some(named) = self.holder.named() {
            return named;
        }
        let index_len = num::wide(self.index.bytes().len());
        RootBase { identity: self.identity.clone(), index_digest: verity::digest(self.index.bytes()), index_len }
    }
}

/// Returns the first path at which an index has an object, for messages.
pub fn path_of_object(index: &Index, object: Row<Object>) -> String {
    match index.refs().iter().flat_map(|tree| index.regulars(tree)).find(|(_, _, found)| *found == object) {
        Some((directory, entry, _)) => String::from_utf8_lossy(&index.path(directory, entry)).into_owned(),
        None => format!("object {object}"),
    }
}

impl Bases {
    /// Combines these bases, in this order.
    #[must_use]
    pub fn new(list: Vec<Base>) -> Self {
        Self { list, ..Self::default() }
    }

    /// Closes what is open between reads, since none has come for a while.
    pub fn rest(&self) {
        self.list.iter().for_each(|base| base.holder.rest());
    }

    /// Returns whether there are no bases.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the index of each base.
    #[must_use]
    pub fn indexes(&self) -> Vec<&Index> {
        self.list.iter().map(|base| &base.index).collect()
    }

    /// Returns the order of access of what a bundle installs: its own, or for a delta that of the first base that has one, updated by the delta. A
    /// delta without bases is one whose result the target already has: the order stays the one that was `kept`.
    #[must_use]
    pub fn order_of(&self, bundle: &Bundle, kept: Option<&KeptOrder>) -> Option<KeptOrder> {
        if bundle.head.root().bases.is_some() && self.is_empty() {
            return kept.cloned();
        }
        let own = KeptOrder::of_bundle(bundle);
        match self.list.iter().find_map(|base| Some((&base.index, base.order()?))) {
            Some((index, order)) => Some(order.carried_over(index, bundle, own.as_ref())),
            None => own,
        }
    }

    /// Returns the bases as a delta bundle names them.
    #[must_use]
    pub fn named(&self) -> Vec<RootBase> {
        self.list.iter().map(Base::named).collect()
    }

    /// Returns whether an object can be read: a request may give only its id, and a directory may hold only one of several refs.
    pub fn is_at_hand(&self, object: Row<BaseObject>) -> bool {
        match self.owner(object) {
            Some(Owner::Base(at, own)) => self.list[at].holder.has_place(own),
            Some(Owner::View(..) | Owner::Own(..)) => true,
            None => false,
        }
    }

    /// Keeps what the recipes of bundles make in files without a name in `folder`, for many reads; makes it on `jobs` threads.
    ///
    /// # Errors
    /// Returns an error if no file can be made there.
    pub fn keep_made(&self, folder: &Path, jobs: usize) -> Result<(), Error> {
        for bundle in self.bundles().flatten().filter(|bundle| !bundle.bundle.layout.recipes.made.is_empty()) {
            let spool = MadeSpool::new(folder, jobs)?;
            // One that is there already is as good.
            let _ = bundle.made.set(spool);
        }
        Ok(())
    }

    /// Returns the bundle of each base; `None` if the base is something else.
    pub fn bundles(&self) -> impl Iterator<Item = Option<&Arc<OpenBundle>>> {
        self.list.iter().map(|base| base.holder.bundle())
    }

    /// Returns the number of the base that has an object, and the object's number there.
    pub fn locate(&self, object: Row<BaseObject>) -> Option<(usize, Row<Object>)> {
        BaseObject::locate(object, self.list.iter().map(|base| base.index.objects().len()))
    }

    /// Returns an object's id and size.
    pub fn object(&self, object: Row<BaseObject>) -> Option<&Object> {
        match self.owner(object)? {
            Owner::Base(at, own) => Some(self.list[at].index.object(own)),
            Owner::Own(bundle, own) => Some(bundle.index.object(own)),
            Owner::View(..) => None,
        }
    }

    /// Returns the first path of an object in its base, for messages.
    pub fn path(&self, object: Row<BaseObject>) -> String {
        match self.owner(object) {
            Some(Owner::Base(at, own)) => path_of_object(&self.list[at].index, own),
            Some(Owner::Own(bundle, own)) => path_of_object(&bundle.index, own),
            Some(Owner::View(..)) | None => format!("object {object}"),
        }
    }

    fn owner(&self, object: Row<BaseObject>) -> Option<Owner<'_>> {
        if let Some((at, own)) = self.locate(object) {
            return Some(Owner::Base(at, own));
        }
        if let Some((recipes, view)) = self.views.as_ref().and_then(|recipes| Some((recipes, recipes.view_of(object)?)))
        {
            return Some(Owner::View(recipes, view));
        }
        let bundle = &self.own.as_ref()?.bundle;
        let own = Row::new(object.number().checked_sub(self.first_own()?)?)?;
        (own.at() < bundle.index.objects().len()).then_some(Owner::Own(bundle, own))
    }

    /// Returns the number of the bundle's own first object.
    fn first_own(&self) -> Option<u32> {
        let views = num::fit(self.own.as_ref()?.bundle.layout.recipes.views.len(), "the number of views").ok()?;
        let objects = self.list.iter().map(|base| base.index.objects().len()).sum();
        num::fit::<u32>(objects, "the number of the bases' objects").ok()?.checked_add(views)
    }

    /// Adds the objects that the recipes of a bundle over these bases make, on `jobs` threads. Without recipes, nothing changes.
    ///
    /// # Errors
    /// Returns an error if this program lacks an encoder, if the bundle cannot be read, or if it comes through a pipe and its chunks, which are then copied as [`Input::keep_chunks`] does,
    /// cannot be kept.
    pub fn making(self, bundle: &Bundle, input: &mut Input, jobs: usize) -> Result<Self, Error> {
        if bundle.layout.recipes.is_empty() {
            return Ok(self);
        }
        require_encoders(bundle.head.root().recipes.as_ref())?;
        input.keep_chunks(&bundle.head)?;
        let own = Arc::new(OpenBundle::new(input, bundle.clone(), Advice::Normal)?);
        Ok(Self { own: Some(own), jobs, ..self.with_views(bundle.layout.recipes.clone()) })
    }

    /// Adds views, whose numbers follow those of the bases' objects.
    #[must_use]
    pub fn with_views(self, recipes: Recipes) -> Self {
        Self { views: Some(Arc::new(recipes)), ..self }
    }

    /// Returns the length in bytes of an object or view.
    #[must_use]
    pub fn len_of(&self, object: Row<BaseObject>) -> Option<u64> {
        match self.owner(object)? {
            Owner::View(_, view) => Some(view.len),
            Owner::Base(..) | Owner::Own(..) => self.object(object).map(|row| row.size),
        }
    }

    /// Returns the objects that a recipe makes, each with its number among those of the bases.
    fn made(&self) -> impl Iterator<Item = (&Object, Row<BaseObject>)> {
        let own = self.own.as_ref().zip(self.first_own());
        own.into_iter().flat_map(|(own, first)| {
            let Bundle { index, layout, .. } = &own.bundle;
            layout.recipes.made.iter().filter_map(move |made| {
                Some((made.object.get(index.objects())?, Row::new(first.checked_add(made.object.number())?)?))
            })
        })
    }
}

impl<'a> BaseReader<'a> {
    /// Returns a reader of these bases.
    #[must_use]
    pub fn new(bases: &'a Bases) -> Self {
        let over = |own: &'a Arc<OpenBundle>| BundleReader::over(own, Some(Box::new(Self::only(bases))), bases.jobs);
        Self { own: bases.own.as_ref().map(over).map(Box::new), ..Self::only(bases) }
    }

    /// Returns a reader that makes no objects.
    fn only(bases: &'a Bases) -> Self {
        let readers = bases.list.iter().map(|base| base.holder.reader(&base.index));
        Self {
            bases,
            readers: readers.collect(),
            views: (0..DEPTH_MAX).map(|_| Maker::new(bases.jobs)).collect(),
            depth: 0,
            own: None,
        }
    }

    /// Appends bytes of a base object to `out`. They have been compared with its id.
    ///
    /// # Errors
    /// Returns an error if the holder no longer has the object, or cannot be read.
    pub fn read(&mut self, object: Row<BaseObject>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        match (self.bases.owner(object), &mut self.own) {
            (Some(Owner::Base(at, own)), _) => self.readers[at].read(own, range, out),
            (Some(Owner::Own(_, own)), Some(reader)) => reader.read(own, range, out),
            (Some(Owner::View(recipes, view)), _) => self.read_view(recipes, view, range, out),
            (Some(Owner::Own(..)) | None, _) => Err(Error::Usage(format!("the bases have no object {object}"))),
        }
    }

    fn read_view(&mut self, recipes: &Recipes, view: &View, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        let depth = self.depth;
        let Some(maker) = self.views.get_mut(depth) else {
            return Err(Error::Usage("views are made of each other".into()));
        };
        let mut maker = std::mem::take(maker);
        self.depth += 1;
        let done = maker.read(recipes, &view.segments, range, out, &mut |of, range, out| match of {
            PartOf::Base(object) => self.read(object, range, out),
            PartOf::View(view) => match view.get(&recipes.views) {
                Some(view) => self.read_view(recipes, view, range, out),
                None => Err(Error::Usage(format!("there is no view {view}"))),
            },
            PartOf::Object(object) => Err(Error::Usage(format!("a view uses object {object}, which no base has"))),
        });
        self.depth = depth;
        self.views[depth] = maker;
        done
    }

    /// Fills `out` with a prefix (delta 6).
    pub fn prefix(&mut self, ranges: &[BaseRange], out: &mut Vec<u8>) -> Result<(), Error> {
        out.clear();
        ranges
            .iter()
            .try_for_each(|range| self.read(range.object, range.offset..range.offset.saturating_add(range.len), out))
    }

    /// Passes the whole content of a base object to `take`, in parts, each with its offset, and compares all of it with the object's id: what was
    /// passed is valid only if this succeeds.
    ///
    /// # Errors
    /// As [`Self::read`], and any error that `take` returns.
    pub fn read_in_parts(
        &mut self,
        object: Row<BaseObject>,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Some(row) = self.bases.object(object).copied() else {
            return Err(Error::Usage(format!("the bases have no object {object}")));
        };
        let (mut hasher, mut at) = (blake3::Hasher::new(), 0);
        let mut take = |part: &[u8]| {
            hasher.update(part);
            take(at, part)?;
            at += num::wide(part.len());
            Ok::<u64, Error>(at)
        };
        let (mut part, mut end) = (Vec::new(), 0);
        if let Some(mut content) = self.stream(object)? {
            let failed = |error| Error::io("read", self.bases.path(object), error);
            while end < row.size {
                part.clear();
                content.by_ref().take(PART_LEN).read_to_end(&mut part).map_err(failed)?;
                if part.is_empty() {
                    break;
                }
                end = take(&part)?;
            }
        } else {
            // A small object shares its chunk with others, and is looked up there only once.
            let len = if row.size <= WHOLE_LEN { row.size } else { PART_LEN };
            while end < row.size {
                part.clear();
                self.read(object, end..row.size.min(end + len), &mut part)?;
                end = take(&part)?;
            }
        }
        if hasher.finalize().as_bytes() == &row.id {
            return Ok(());
        }
        Err(Error::missing_base(self.bases.path(object), "it was changed: its content is not that of the base"))
    }

    /// Opens the content of a base object for a caller that reads it once and verifies its own checksum.
    pub fn open<'r>(&'r mut self, object: Row<BaseObject>) -> Result<Box<dyn Read + 'r>, Error> {
        if let Some(content) = self.stream(object)? {
            return Ok(content);
        }
        let size = self.bases.object(object).map_or(0, |object| object.size);
        if size <= WHOLE_LEN {
            let mut content = Vec::new();
            self.read(object, 0..size, &mut content)?;
            return Ok(Box::new(Cursor::new(content)));
        }
        Ok(Box::new(Parts { reader: self, object, size, read: 0, part: Cursor::default() }))
    }

    /// Opens the content of a base object as a stream, if its holder offers one.
    fn stream(&mut self, object: Row<BaseObject>) -> Result<Option<Box<dyn Read>>, Error> {
        match self.bases.locate(object) {
            Some((at, own)) => self.readers[at].open(own),
            None => Ok(None),
        }
    }

    /// Returns whether the holder has an object, and counts its bytes in the progress.
    ///
    /// # Errors
    /// Returns an error if it cannot be read for any reason other than absence, or if the run is cancelled.
    pub fn holds(&mut self, object: Row<BaseObject>, progress: &Progress) -> Result<bool, Error> {
        match self.bases.owner(object) {
            Some(Owner::Base(at, own)) => self.readers[at].holds(own, progress),
            // What they are made of is asked for by itself.
            Some(Owner::View(..) | Owner::Own(..)) => Ok(true),
            None => Ok(false),
        }
    }
}
