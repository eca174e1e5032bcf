//! The base object in a slot: the image that was written there.

use std::io::{self, ErrorKind};
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;
use sealift_format::{Index, Object, Row};

use super::parts::{KnownParts, PART_LEN};
use super::{Base, Holder, ObjectReader};
use crate::contents::index_by_reading;
use crate::install_record::InstallRecord;
use crate::slot::{Fingerprint, Slot, SlotAddress, SlotFolder, SlotImage};
use crate::source::{Source, XattrFilter, open_file};
use crate::trust::DeviceState;
use crate::{Error, Progress};

/// A slot that holds an object of an index.
#[derive(Debug)]
struct SlotBase {
    slot: Slot,
    object: Row<Object>,
    /// What was written, if that is recorded.
    image: Option<SlotImage>,
    known: KnownParts,
    /// Held while all of it is read.
    reading: Mutex<()>,
    jobs: usize,
}

#[derive(Debug)]
struct SlotReader<'a> {
    base: &'a SlotBase,
    index: &'a Index,
}

impl Base {
    /// Opens a slot as a base: what the state recorded of it or, if that is nothing and it is a file, the file as it is now, under the ref
    /// `reference`.
    ///
    /// # Errors
    /// Returns an error if it cannot be read, if a run is writing to it or was killed, or if the state knows nothing of it.
    pub(super) fn of_slot(
        address: &SlotAddress,
        state: Option<&DeviceState>,
        reference: &str,
        jobs: usize,
        progress: &Progress,
    ) -> Result<Self, Error> {
        let target = state.map_or_else(|| Ok(address.target.clone()), |state| state.slot_now(&address.target))?;
        let slot = Slot::open(&SlotAddress { target, ..address.clone() })?;
        let folder = state.map_or(Ok(None), |state| SlotFolder::open(state.dir(), &slot))?;
        if let Some(run) = folder.as_ref().map_or(Ok(None), SlotFolder::run)? {
            return Err(match run {
                crate::LeftRun::Running => Error::Busy { path: slot.shown().to_owned() },
                _ => {
                    Error::missing_base(slot.shown(), "a run that was writing to it did not end: repeat that run first")
                }
            });
        }
        if let Some(record) = folder.map_or(Ok(None), |folder| folder.held())? {
            let InstallRecord { head, index, order } = record.installed;
            let found = index.objects().iter().zip(sealift_format::Rows::new(0..u32::MAX));
            let object = found.into_iter().find(|(object, _)| object.id == record.image.id()).map(|(_, row)| row);
            let object = object.ok_or_else(|| Error::missing_base(slot.shown(), "its record is of another bundle"))?;
            let identity = head.root().identity.clone();
            let holder = Arc::new(SlotBase {
                slot,
                object,
                image: Some(record.image),
                known: KnownParts::default(),
                reading: Mutex::default(),
                jobs,
            });
            return Ok(Self {
                index,
                holder,
                identity: Some((identity.name, identity.version)),
                compatible: Some(identity.compatible),
                order,
            });
        }
        if slot.is_device() {
            let problem = "this device has no record of what was written to it: give the bundle that it holds as --base, or record it \
                           with unpack --update --adopt";
            return Err(Error::missing_base(slot.shown(), problem));
        }
        let source = Source::Directory(open_file(slot.path(), &XattrFilter::default())?);
        let index = index_by_reading(reference, &source, jobs, progress)?;
        let holder = Arc::new(SlotBase {
            slot,
            object: Row::FIRST,
            image: None,
            known: KnownParts::default(),
            reading: Mutex::default(),
            jobs,
        });
        Ok(Self { index, holder, identity: None, compatible: None, order: None })
    }
}

impl Holder for SlotBase {
    fn reader<'a>(&'a self, index: &'a Index) -> Box<dyn ObjectReader + 'a> {
        Box::new(SlotReader { base: self, index })
    }

    fn has_place(&self, object: Row<Object>) -> bool {
        object == self.object
    }
}

impl SlotReader<'_> {
    fn failed(&self, error: io::Error) -> Error {
        Error::io("read", self.base.slot.shown(), error)
    }

    /// Returns the error for other content, with the first place where it differs, if that can be told.
    fn changed(&self, object: Row<Object>, progress: &Progress) -> Error {
        let SlotBase { slot, image, jobs, .. } = self.base;
        let len = self.index.object(object).size;
        // Only an image in pieces has a place where it differs.
        let found = image.as_ref().filter(|image| !image.fingerprint.pieces.is_empty()).and_then(|image| {
            let wanted = &image.fingerprint;
            let found = Fingerprint::read(slot, len, wanted.piece_len, *jobs, progress);
            wanted.first_difference(&found.ok()?, len)
        });
        let problem = match found {
            Some(Range { start, end }) => {
                format!("it was changed: bytes {start} to {end} differ from what was written")
            }
            None => "it was changed: its content is not that of the base".to_owned(),
        };
        Error::missing_base(slot.shown(), problem)
    }

    /// Returns whether the slot has the object, all of which is read once.
    fn has(&self, object: Row<Object>, progress: &Progress) -> Result<bool, Error> {
        let SlotBase { slot, object: own, known, .. } = self.base;
        if object != *own || known.has(object) {
            return Ok(object == *own);
        }
        // Whoever comes second waits for the result.
        let _one = self.base.reading.lock();
        if known.has(object) {
            return Ok(true);
        }
        let (row, jobs) = (self.index.object(object), self.base.jobs);
        let read = Fingerprint::read(slot, row.size, PART_LEN, jobs, progress);
        match read {
            Ok(found) if found.id == row.id => known.know(object, found.pieces),
            // Whoever asks would only say that it is not there.
            Ok(_) => return Err(self.changed(object, progress)),
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::UnexpectedEof => {
                return Err(self.changed(object, progress));
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }
}

impl ObjectReader for SlotReader<'_> {
    fn holds(&mut self, object: Row<Object>, progress: &Progress) -> Result<bool, Error> {
        self.has(object, progress)
    }

    fn read(&mut self, object: Row<Object>, range: Range<u64>, out: &mut Vec<u8>) -> Result<(), Error> {
        if !self.has(object, &Progress::default())? {
            return Err(Error::missing_base(self.base.slot.shown(), "it holds another file of the base"));
        }
        let (slot, row) = (&self.base.slot, self.index.object(object));
        let read = |part: &mut [u8], at| slot.read_exact_at(part, at);
        match self.base.known.read(object, row, read, &range, out).map_err(|error| self.failed(error))? {
            true => Ok(()),
            false => Err(self.changed(object, &Progress::default())),
        }
    }
}

#[cfg(test)]
mod tests {
    use sealift_format::num::wide;

    use super::*;
    use crate::base::{BaseReader, Bases};

    #[test]
    fn a_cancelled_run_does_not_read_on_and_what_is_read_is_counted() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("slot");
        let content: Vec<u8> = (0..251).cycle().take(3_000_000).collect();
        std::fs::write(&path, &content).expect("it is ours");
        let target = std::path::Path::new("image:").as_os_str().to_owned();
        let target =
            std::path::PathBuf::from([target, path.into_os_string()].into_iter().collect::<std::ffi::OsString>());
        let address = SlotAddress { image: None, target };
        let base = Base::of_slot(&address, None, "main", 2, &Progress::default()).expect("it is a file");
        let bases = Bases::new(vec![base]);
        let (mut reader, progress) = (BaseReader::new(&bases), Progress::default());
        progress.cancel();
        assert!(matches!(reader.holds(Row::FIRST, &progress), Err(Error::Cancelled)));
        assert_eq!(progress.snapshot().bytes, 0);
        let progress = Progress::default();
        assert!(reader.holds(Row::FIRST, &progress).expect("it is read"));
        assert_eq!(progress.snapshot().bytes, wide(content.len()));
    }
}
