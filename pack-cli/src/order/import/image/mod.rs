//! Maps reads of a disk image to the files of its file system, by where their content lies in it.

mod reads;

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use sealift_container::{Anatomy, ContainerFault, Kind, Limits, Member, Part, Window};
use sealift_format::num::{at, wide};
use sealift_store::OrderFault;
use sealift_store::kept_order::UsedRanges;

use super::Fault;
use crate::Error;
use crate::order::profile::OrderEntry;
pub(super) use reads::Reads;

/// The files that were read, and how many reads were not of any file's content.
pub(super) struct ImageReads {
    pub(super) entries: Vec<OrderEntry>,
    pub(super) elsewhere: u64,
}

/// Returns the files that were read of the file system that begins at an offset of an image.
pub(super) fn files(path: &Path, start: u64, reads: &Reads) -> Result<ImageReads, Error> {
    let found = || -> Result<ImageReads, Fault> {
        let file = File::open(path)?;
        let image = Window::new(&file, start, u64::MAX)?;
        let anatomy = Anatomy::of(&image, &Limits::default()).map_err(|fault| fault_at(fault, start))?;
        let anatomy = anatomy.filter(|anatomy| matches!(anatomy.kind, Kind::Ext4 | Kind::Erofs | Kind::Squashfs));
        let what = "no ext4, EROFS or squashfs file system begins here";
        Ok(touched(&anatomy.ok_or(OrderFault::Offset { offset: start, what })?, start, reads))
    };
    found().map_err(|fault| fault.of(path))
}

/// Converts the fault of a file system that begins at an offset of its image.
fn fault_at(fault: ContainerFault, start: u64) -> Fault {
    match fault {
        ContainerFault::Io(error) => error.into(),
        ContainerFault::Damaged { offset, what, .. } | ContainerFault::Unsupported { offset, what, .. } => {
            OrderFault::Offset { offset: start.saturating_add(offset), what }.into()
        }
        ContainerFault::Limit { what, .. } => OrderFault::Whole(what).into(),
        _ => OrderFault::Whole("the file system is not supported").into(),
    }
}

/// Returns the files that were read, each by its first name, in the order of their first reads.
fn touched(anatomy: &Anatomy, start: u64, reads: &Reads) -> ImageReads {
    let mut is_used = vec![false; reads.count()];
    let mut found = Vec::new();
    for member in &anatomy.members {
        let mut touched = Touched::default();
        let mut from = 0;
        for part in &member.parts {
            let within = from..from + part.len();
            from = within.end;
            let place = match *part {
                Part::Stored { offset, len } => offset..offset + len,
                // What is compressed together is read together.
                Part::Inflated { block, .. } => match anatomy.blocks.get(at(block)) {
                    Some(block) => block.offset..block.end(),
                    None => continue,
                },
                Part::Hole { .. } => continue,
            };
            let place = start.saturating_add(place.start)..start.saturating_add(place.end);
            touched.add(&place, &within, matches!(part, Part::Stored { .. }), reads, &mut is_used);
        }
        found.extend(touched.entry(member));
    }
    // Stable, so that files of one read stay in tree order.
    found.sort_by_key(|(first, _)| *first);
    let elsewhere = wide(is_used.iter().filter(|is_used| !**is_used).count());
    ImageReads { entries: found.into_iter().map(|(_, entry)| entry).collect(), elsewhere }
}

/// What was read of a file.
#[derive(Default)]
struct Touched {
    first: Option<usize>,
    ranges: UsedRanges,
}

impl Touched {
    /// Adds what was read of a place, which holds a range of the file, byte for byte or compressed.
    fn add(&mut self, place: &Range<u64>, within: &Range<u64>, is_plain: bool, reads: &Reads, is_used: &mut [bool]) {
        for (part, number) in reads.within(place) {
            if let Some(is_used) = is_used.get_mut(number) {
                *is_used = true;
            }
            self.first = Some(self.first.map_or(number, |first| first.min(number)));
            let of_file = |at: u64| within.start + (at - place.start);
            let range = if is_plain { of_file(part.start)..of_file(part.end) } else { within.clone() };
            self.ranges.add(range, number);
        }
    }

    fn entry(self, member: &Member) -> Option<(usize, OrderEntry)> {
        Some((self.first?, OrderEntry::of_reads(member.path.clone(), self.ranges.in_order(), Some(member.len))))
    }
}
