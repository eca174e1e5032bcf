//! Reads a container within its limits.

use std::cell::Cell;

use sealift_format::num::{up_to, wide};

use super::fault::ContainerFault;
use super::kind::Kind;
use super::limits::Limits;
use super::read_at::{ReadAt, Stream};

/// What a read costs besides its bytes, and any other small piece of work.
pub(super) const STEP: u64 = 64;

/// The bytes of a container, and what may still be spent on them.
pub(super) struct Reader<'a> {
    bytes: &'a dyn ReadAt,
    len: u64,
    kind: Kind,
    work: Cell<u64>,
    memory: Cell<u64>,
    decoded: Cell<u64>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a dyn ReadAt, len: u64, kind: Kind, limits: &Limits) -> Self {
        let Limits { work, memory, decoded } = *limits;
        Self { bytes, len, kind, work: Cell::new(work), memory: Cell::new(memory), decoded: Cell::new(decoded) }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the bytes at an offset.
    pub(super) fn bytes(&self, at: u64, len: usize) -> Result<Vec<u8>, ContainerFault> {
        let end = at.checked_add(wide(len)).filter(|end| *end <= self.len);
        if end.is_none() {
            return Err(self.damaged(at, "it extends beyond the end"));
        }
        self.pay(STEP + wide(len))?;
        let mut bytes = vec![0; len];
        self.bytes.read_exact_at(&mut bytes, at)?;
        Ok(bytes)
    }

    /// Returns the bytes at an offset, or fewer if the end comes before.
    pub(super) fn up_to(&self, at: u64, len: usize) -> Result<Vec<u8>, ContainerFault> {
        self.bytes(at.min(self.len), up_to(self.len.saturating_sub(at), len))
    }

    /// Returns a stream of a range, which costs nothing yet.
    pub(super) fn stream(&self, at: u64, len: u64) -> Stream<'a> {
        let at = at.min(self.len);
        Stream::new(self.bytes, at, len.min(self.len - at))
    }

    /// Counts a piece of work.
    pub(super) fn pay(&self, cost: u64) -> Result<(), ContainerFault> {
        spend(&self.work, cost).ok_or_else(|| self.limit("it has too many files, or its tables are too large"))
    }

    /// Counts memory that is held until the end.
    pub(super) fn hold(&self, bytes: u64) -> Result<(), ContainerFault> {
        spend(&self.memory, bytes).ok_or_else(|| self.limit("it has too many files or parts"))
    }

    /// Gives back memory that was held for a time.
    pub(super) fn release(&self, bytes: u64) {
        self.memory.set(self.memory.get().saturating_add(bytes));
    }

    /// Counts bytes that were decoded.
    pub(super) fn pay_decoded(&self, bytes: u64) -> Result<(), ContainerFault> {
        spend(&self.decoded, bytes).ok_or_else(|| self.limit("it decodes to too many bytes"))
    }

    pub(super) fn damaged(&self, offset: u64, what: &'static str) -> ContainerFault {
        ContainerFault::Damaged { kind: self.kind, offset, what }
    }

    pub(super) fn unsupported(&self, offset: u64, what: &'static str) -> ContainerFault {
        ContainerFault::Unsupported { kind: self.kind, offset, what }
    }

    pub(super) fn limit(&self, what: &'static str) -> ContainerFault {
        ContainerFault::Limit { kind: self.kind, what }
    }
}

fn spend(left: &Cell<u64>, cost: u64) -> Option<()> {
    left.set(left.get().checked_sub(cost)?);
    Some(())
}

/// Converts a length that a container states to one in memory. What does not fit there exceeds the limits.
pub(super) fn size(len: u64) -> usize {
    up_to(len, usize::MAX)
}

/// Returns a little-endian number of a record; 0 beyond the record's end.
pub(super) fn le16(record: &[u8], at: usize) -> u16 {
    record.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u16::from_le_bytes(*bytes))
}

pub(super) fn le32(record: &[u8], at: usize) -> u32 {
    record.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

pub(super) fn le64(record: &[u8], at: usize) -> u64 {
    record.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
