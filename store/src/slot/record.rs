//! What the state keeps of a slot, since a device has no room for it.
//!
//! ```text
//! DIR/slots/BLAKE3/held/   head, index: those of the bundle; slot: the lines below; pieces: the chaining values of the image's pieces
//! DIR/slots/BLAKE3/next/   the same of the bundle that a run is writing; with the file `mixed` once the slot itself is being written
//! ```
//!
//! ```text
//! sealift slot 1
//! ref NAME
//! image PATH               unprintable characters are escaped
//! object HEX               the image's id: BLAKE3 of its content
//! size BYTES
//! device ID|file           the partition's UUID and the device's size
//! piece BYTES
//! pieces BLAKE3            of the file `pieces`
//! check BLAKE3
//! ```

use rustix::fs::{FlockOperation, RenameFlags, flock, renameat, renameat_with};
use rustix::io::Errno;
use sealift_format::{Bundle, Head, Limits, hex, unhex};
use sealift_verify::escape;

use super::device::is_locked_by_others;
use super::{Fingerprint, Slot};
use crate::fs::rename::lacks_flag;
use crate::install_record::{InstallRecord, NewRecord, is_of, read_file};
use crate::kept_order::KeptOrder;
use crate::{Error, LeftRun, OwnDir, Record, StateDir};

/// What a slot holds: the last installed bundle, and which of its files.
#[derive(Clone, Debug)]
#[allow(clippy::exhaustive_structs, reason = "it has nothing else")]
pub struct SlotRecord {
    /// The bundle.
    pub installed: InstallRecord,
    /// The file.
    pub image: SlotImage,
}

/// The image in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SlotImage {
    /// The ref of the bundle.
    pub reference: String,
    /// The image's path in its tree.
    pub path: Vec<u8>,
    /// Its size in bytes.
    pub size: u64,
    /// The identity of the device; `None` for a file.
    pub(crate) device: Option<String>,
    pub(crate) fingerprint: Fingerprint,
}

/// The state's folder for a slot.
#[derive(Debug)]
pub struct SlotFolder {
    own: OwnDir,
}

const SLOTS: &str = "slots";
const HELD: &str = "held";
const NEXT: &str = "next";
const SLOT: &str = "slot";
const PIECES: &str = "pieces";
const TITLE: &str = "sealift slot 1";
const FILE: &str = "file";
/// The longest possible text: a path takes up to four characters for each byte.
const TEXT_MAX: u64 = 1 << 20;
/// The longest list of pieces: eight million.
const PIECES_MAX: u64 = 1 << 28;

impl SlotImage {
    /// Returns the image's id.
    #[must_use]
    pub fn id(&self) -> [u8; 32] {
        self.fingerprint.id
    }

    /// Returns the files of a record.
    pub(crate) fn files(&self) -> Vec<(&'static str, Vec<u8>)> {
        let pieces = self.fingerprint.pieces.concat();
        vec![(SLOT, self.encode(&pieces)), (PIECES, pieces)]
    }

    fn encode(&self, pieces: &[u8]) -> Vec<u8> {
        let Self { reference, path, size, device, fingerprint } = self;
        let (path, object, piece) = (escape::bytes(path), hex(&fingerprint.id), fingerprint.piece_len);
        let (device, pieces) = (device.as_deref().unwrap_or(FILE), blake3::hash(pieces).to_hex());
        let text = format!(
            "{TITLE}\nref {reference}\nimage {path}\nobject {object}\nsize {size}\ndevice {device}\npiece {piece}\npieces {pieces}\n"
        );
        let check = blake3::hash(text.as_bytes()).to_hex();
        format!("{text}check {check}\n").into_bytes()
    }

    /// Parses what [`SlotImage::files`] wrote, and nothing else.
    fn parse(bytes: &[u8], pieces: &[u8]) -> Result<Self, String> {
        let text = str::from_utf8(bytes).map_err(|_| "it is not text".to_owned())?;
        let mut lines = text.lines();
        if lines.next() != Some(TITLE) {
            return Err(format!("its first line is not {TITLE:?}"));
        }
        let mut field = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.strip_prefix(' ')).ok_or_else(|| format!("it has no line {name:?}"))
        };
        let reference = field("ref")?.to_owned();
        let path = field("image")?.as_bytes();
        let path = escape::unescaped(path).unwrap_or_else(|| path.to_vec());
        let id = unhex(field("object")?).and_then(|id| id.try_into().ok()).ok_or("its object is not an id")?;
        let size = field("size")?.parse().map_err(|_| "its size is not a number")?;
        let device = Some(field("device")?.to_owned()).filter(|device| device != FILE);
        let piece_len = field("piece")?.parse().map_err(|_| "the length of its pieces is not a number")?;
        let (values, _) = pieces.as_chunks();
        let fingerprint = Fingerprint { id, piece_len, pieces: values.to_vec() };
        let image = Self { reference, path, size, device, fingerprint };
        // Only the exact encoding is accepted, so that a flipped bit does not yield another record.
        if piece_len == 0 || image.encode(pieces) != bytes {
            return Err("its check does not match its lines".to_owned());
        }
        Ok(image)
    }
}

impl SlotFolder {
    /// Opens the folder of a slot in the state; `None` if there is none.
    ///
    /// # Errors
    /// Returns an error if another user owns it or may write to it, or if it cannot be opened.
    pub fn open(state: &std::path::Path, slot: &Slot) -> Result<Option<Self>, Error> {
        let Some(state) = StateDir::open(state)? else { return Ok(None) };
        let Some(slots) = state.folder(SLOTS)? else { return Ok(None) };
        Ok(slots.folder(&name_of(slot))?.map(|folder| Self { own: folder.into_own() }))
    }

    /// Opens the folder of a slot, or creates it.
    ///
    /// # Errors
    /// As [`SlotFolder::open`]; also returns an error if it cannot be created.
    pub(crate) fn create(state: &std::path::Path, slot: &Slot) -> Result<Self, Error> {
        let slots = StateDir::open_or_create(state)?.folder_or_create(SLOTS)?;
        Ok(Self { own: slots.folder_or_create(&name_of(slot))?.into_own() })
    }

    /// Keeps other runs from the slot until it is dropped.
    ///
    /// # Errors
    /// Returns [`Error::Busy`] if another run works on it.
    pub fn lock(&self, slot: &Slot) -> Result<(), Error> {
        match is_locked_by_others(self.own.fd()) {
            true => Err(Error::Busy { path: slot.shown().to_owned() }),
            false => Ok(()),
        }
    }

    /// Returns where the head in the record is, for messages.
    #[must_use]
    pub fn head_path(&self) -> std::path::PathBuf {
        self.own.path().join(HELD).join(crate::install_record::HEAD)
    }

    /// Reads what the slot holds; `None` if nothing was installed to it.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read or is damaged.
    pub fn held(&self) -> Result<Option<SlotRecord>, Error> {
        self.own.directory(HELD)?.map(|dir| read(&dir)).transpose()
    }

    /// Reads what an interrupted run was writing, or had written; `None` if there is no such run, or if it cannot be read.
    pub(crate) fn begun(&self) -> Result<Option<SlotRecord>, Error> {
        Ok(self.unfinished()?.and_then(|dir| read(&dir).ok()))
    }

    /// Returns the head of the bundle that an interrupted run was writing.
    pub(crate) fn next(&self) -> Result<Option<Head>, Error> {
        let Some(dir) = self.unfinished()? else { return Ok(None) };
        Ok(InstallRecord::read_head(&dir, Limits::NONE).ok())
    }

    /// Returns the record that a run has not finished.
    fn unfinished(&self) -> Result<Option<OwnDir>, Error> {
        // A run that had finished but for that mark: what it replaced may still be there as the next one.
        let held = self.own.directory(HELD)?.filter(|dir| dir.has(Record::MIXED).unwrap_or(false));
        held.map_or_else(|| self.own.directory(NEXT), |held| Ok(Some(held)))
    }

    /// Returns what a run does to the slot, or left there.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be read.
    pub fn run(&self) -> Result<Option<LeftRun>, Error> {
        let is_locked = flock(self.own.fd(), FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK);
        let _ = flock(self.own.fd(), FlockOperation::Unlock);
        Ok(match self.unfinished()? {
            _ if is_locked => Some(LeftRun::Running),
            None => None,
            Some(dir) => Some(if dir.has(Record::MIXED)? { LeftRun::Mixed } else { LeftRun::Unfinished }),
        })
    }

    /// Returns whether a run was killed while it wrote the bundle of this head.
    pub(crate) fn is_writing(&self, head: &Head) -> Result<bool, Error> {
        Ok(self.unfinished()?.is_some_and(|dir| is_of(&dir, head)))
    }

    /// Writes the record of what is about to be written, durably.
    ///
    /// # Errors
    /// Returns an error if the state cannot be written.
    pub(crate) fn prepare(&self, bundle: &Bundle, image: &SlotImage, order: Option<&KeptOrder>) -> Result<(), Error> {
        // A run that had finished but for that mark.
        if let Some(held) = self.own.directory(HELD)?.filter(|dir| dir.has(Record::MIXED).unwrap_or(false)) {
            held.remove(Record::MIXED)?;
            held.sync()?;
        }
        // What an interrupted run began to overwrite is no longer there.
        if self.own.directory(NEXT)?.map_or(Ok(false), |dir| dir.has(Record::MIXED))? {
            self.own.remove(HELD)?;
            self.own.sync()?;
        }
        let dir = self.own.new_directory(NEXT)?;
        let new = NewRecord { bundle, files: image.files(), order, is_sealed: false, signature: None, durable: true };
        new.write(&dir)?;
        dir.sync()?;
        self.own.sync()
    }

    /// Replaces what the prepared record says of the image.
    pub(crate) fn complete(&self, image: &SlotImage) -> Result<(), Error> {
        let dir = self.own.directory(NEXT)?.ok_or_else(|| Error::io("open", self.own.path(), Errno::NOENT))?;
        image.files().into_iter().try_for_each(|(name, bytes)| dir.replace(name, &bytes, true))
    }

    /// Notes, durably, that the slot is about to change.
    pub(crate) fn begin(&self) -> Result<(), Error> {
        let dir = self.own.directory(NEXT)?.ok_or_else(|| Error::io("open", self.own.path(), Errno::NOENT))?;
        dir.replace(Record::MIXED, b"", true)
    }

    /// Makes the prepared record that of the slot, unless an interrupted run has done so.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        if !self.unfinished()?.is_some_and(|dir| dir.path().ends_with(HELD)) {
            self.exchange()?;
        }
        self.own.remove(NEXT)?;
        if let Some(held) = self.own.directory(HELD)? {
            held.remove(Record::MIXED)?;
            held.sync()?;
        }
        self.own.sync()
    }

    fn exchange(&self) -> Result<(), Error> {
        let failed = |error: Errno| Error::io("write", self.own.path(), error);
        let fd = self.own.fd();
        match renameat_with(fd, NEXT, fd, HELD, RenameFlags::EXCHANGE) {
            Err(Errno::NOENT) => renameat(fd, NEXT, fd, HELD).map_err(failed)?,
            // A file system without this kind of rename: a run that is killed in between leaves no record.
            Err(error) if lacks_flag(error) => {
                self.own.remove(HELD)?;
                renameat(fd, NEXT, fd, HELD).map_err(failed)?;
            }
            exchanged => exchanged.map_err(failed)?,
        }
        self.own.sync()
    }

    /// Removes the record of what an interrupted run was going to write.
    ///
    /// # Errors
    /// Returns an error if the state cannot be written.
    pub fn give_up(&self) -> Result<(), Error> {
        self.own.remove(NEXT)?;
        self.own.sync()
    }

    /// Forgets what the slot holds as well.
    ///
    /// # Errors
    /// Returns an error if the state cannot be written.
    pub fn forget(&self) -> Result<(), Error> {
        self.own.remove(HELD)?;
        self.give_up()
    }
}

fn read(dir: &OwnDir) -> Result<SlotRecord, Error> {
    let installed = InstallRecord::read(dir, Limits::NONE).map_err(|error| match error {
        Error::Format(error) => Error::State { path: dir.path().to_owned(), problem: error.to_string() },
        error => error,
    })?;
    let pieces = read_file(dir, PIECES, PIECES_MAX)?;
    let text = read_file(dir, SLOT, TEXT_MAX)?;
    let image =
        SlotImage::parse(&text, &pieces).map_err(|problem| Error::State { path: dir.path().join(SLOT), problem })?;
    Ok(SlotRecord { installed, image })
}

fn name_of(slot: &Slot) -> String {
    blake3::hash(&slot.key()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_flipped_bit_is() {
        let fingerprint = Fingerprint { id: [7; 32], piece_len: 1 << 20, pieces: vec![[1; 32], [2; 32]] };
        let image = SlotImage {
            reference: "main".into(),
            path: b"boot/\n\xff root.img".to_vec(),
            size: (1 << 20) + 7,
            device: Some("partition-1234-4096".into()),
            fingerprint,
        };
        for image in [SlotImage { device: None, ..image.clone() }, image] {
            let [(_, text), (_, pieces)] = <[_; 2]>::try_from(image.files()).expect("two files");
            assert_eq!(SlotImage::parse(&text, &pieces), Ok(image));
            for at in 0..text.len() {
                assert!(SlotImage::parse(&text[..at], &pieces).is_err(), "cut at {at}");
                for bit in 0..8 {
                    let mut flipped = text.clone();
                    flipped[at] ^= 1 << bit;
                    assert!(SlotImage::parse(&flipped, &pieces).is_err(), "bit {bit} of byte {at}");
                }
            }
            for at in 0..pieces.len() {
                let mut flipped = pieces.clone();
                flipped[at] ^= 1;
                assert!(SlotImage::parse(&text, &flipped).is_err(), "byte {at} of the pieces");
                assert!(SlotImage::parse(&text, &pieces[..at]).is_err(), "cut at {at}");
            }
        }
    }
}
