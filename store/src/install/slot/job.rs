//! The work of writing images, from what was planned to the last byte of each.

use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;

use parking_lot::Mutex;
use sealift_format::num::wide;
use sealift_format::{Bundle, Object, Ref, Row};
use sealift_verify::content::Content;
use sealift_verify::escape;
use sealift_verify::read_plan::ReadPlan;

use super::Target;
use super::compare::{There, fingerprint_of};
use super::stats::{SlotStats, SlotsStats};
use crate::base::{self, Bases};
use crate::delivery::feed::requests;
use crate::delivery::{Delivery, HOLE_LEN, from_bases};
use crate::install::options::InstallOptions;
use crate::slot::{Fingerprint, Fingerprints, SlotFolder, SlotImage, SlotWriter, Written};
use crate::trust::{Admission, TargetId};
use crate::{Error, Input, Phase, Progress, SlotFault};

/// A slot, and the image that it gets.
pub(super) struct Planned {
    target: Target,
    path: Vec<u8>,
    object: Row<Object>,
    there: There,
}

/// What writing needs.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub(super) admission: &'a Admission,
    pub(super) bundle: &'a Bundle,
    pub(super) bases: &'a Bases,
    pub(super) tree: &'a Ref,
    pub(super) options: &'a InstallOptions,
    pub(super) progress: &'a Progress,
}

impl Planned {
    pub(super) fn new(target: Target, path: Vec<u8>, object: Row<Object>) -> Self {
        Self { target, path, object, there: There::default() }
    }
}

impl Job<'_> {
    /// Compares, writes, and makes the slots bootable.
    pub(super) fn run(self, input: &mut Input, mut planned: Vec<Planned>) -> Result<SlotsStats, Error> {
        let Self { options, progress, .. } = self;
        self.compare(&mut planned)?;
        for planned in planned.iter().filter(|planned| !planned.there.is_all) {
            if let Some(fault) = &planned.target.in_use {
                return Err(Error::slot(planned.target.slot.shown(), fault.clone()));
            }
        }
        let plan = self.plan(&planned);
        self.check_bases(&plan, &planned)?;
        let mut stats = SlotsStats::default();
        stats.install.stored_bytes = plan.stored_bytes();
        stats.slots = planned.iter().map(|planned| self.expected(planned)).collect();
        if options.dry_run {
            let (head, chunks) = (&self.bundle.head, &self.bundle.layout.chunks);
            stats.install.requests = requests(input, head, chunks, plan.chunks());
            return Ok(stats);
        }
        progress.check()?;
        planned.iter_mut().try_for_each(|planned| planned.target.slot.create())?;
        let folders = planned.iter().map(|planned| self.prepare(planned)).collect::<Result<Vec<_>, Error>>()?;
        let lacking = planned.iter().filter(|planned| !planned.there.is_all).count();
        let writers: Vec<_> = planned.iter().map(|planned| self.writer(planned, lacking)).collect();
        for ((planned, folder), writer) in planned.iter().zip(&folders).zip(&writers) {
            let Some(writer) = writer else { continue };
            writer.keep_head(&planned.there.head);
            self.admission.announce(&TargetId::of_slot(&planned.target.slot))?;
            folder.begin()?;
            writer.begin()?;
        }
        let digests = Mutex::new(Vec::new());
        let written = run_all(&writers, || self.deliver(input, &plan, &planned, &writers, &digests))?;
        for (object, fingerprint) in digests.into_inner() {
            for (planned, folder) in planned.iter().zip(&folders).filter(|(planned, _)| planned.object == object) {
                folder.complete(&self.image(planned, fingerprint.clone()))?;
            }
        }
        progress.enter(Phase::Syncing, 0, 0);
        if options.slot.read_back {
            self.read_back(&planned, &writers)?;
        }
        // All new content is complete, checked and durable. From here on the device remembers this version.
        for planned in &planned {
            self.admission.commit(Some(&TargetId::of_slot(&planned.target.slot)))?;
        }
        for ((stats, writer), written) in stats.slots.iter_mut().zip(&writers).zip(written) {
            if let Some(writer) = writer {
                let head = writer.end_with_head()?;
                stats.written_bytes = written.bytes + 2 * head;
                (stats.discarded_bytes, stats.discards_lie) = (written.discarded, written.lied);
            }
        }
        folders.iter().try_for_each(SlotFolder::finish)?;
        self.admission.settle()?;
        stats.install.logical_bytes = stats.slots.iter().map(|slot| slot.bytes - slot.kept_bytes).sum();
        Ok(stats)
    }

    /// Finds out what the slots have already.
    fn compare(self, planned: &mut [Planned]) -> Result<(), Error> {
        let Self { bundle, options, progress, .. } = self;
        let wanted = bundle.head.root().contents.index_digest;
        let is_compared = |planned: &&mut Planned| {
            planned.target.resumes || options.tree.update || planned.target.holds == Some(wanted)
        };
        let bytes = |planned: &Planned| bundle.index.object(planned.object).size;
        let total = planned.iter_mut().filter(is_compared).map(|planned| bytes(planned)).sum();
        progress.enter(Phase::Hashing, total, 0);
        for planned in planned.iter_mut().filter(is_compared) {
            let Target { slot, resumes, holds, .. } = &planned.target;
            planned.there = match options.no_check && *holds == Some(wanted) && !resumes {
                true => There::assumed(bundle, planned.object),
                false => There::of(slot, bundle, planned.object, options.jobs, progress)?,
            };
        }
        Ok(())
    }

    fn plan(self, planned: &[Planned]) -> ReadPlan {
        let mut wanted = vec![false; self.bundle.index.objects().len()];
        for planned in planned.iter().filter(|planned| !planned.there.is_all) {
            wanted[planned.object.at()] = true;
        }
        let is_done = |object, piece| {
            planned.iter().filter(|planned| planned.object == object).all(|planned| planned.there.has(piece))
        };
        ReadPlan::new(self.bundle.into(), wanted, &is_done)
    }

    /// Returns the wanted objects that only a base has.
    fn of_base(self, plan: &ReadPlan) -> Vec<Row<Object>> {
        plan.objects().filter(|object| !self.bundle.layout.is_stored(*object)).collect()
    }

    /// Checks that the bases have what is needed of them, before anything is written.
    fn check_bases(self, plan: &ReadPlan, planned: &[Planned]) -> Result<(), Error> {
        let Self { bundle, bases, options, progress, .. } = self;
        let (of_base, Some(first)) = (self.of_base(plan), planned.first()) else { return Ok(()) };
        let place = options.bases.place_or(first.target.slot.shown());
        let has_prefix = plan.chunks().iter().any(|chunk| !bundle.layout.chunks[chunk.at()].prefix.is_empty());
        let needed = base::needed(bundle, bases, plan.chunks(), of_base.iter().copied());
        let is_lacking =
            |object: &Row<Object>| bundle.index.object(*object).size > 0 && bundle.layout.recipes.of(*object).is_none();
        if bases.is_empty() && (has_prefix || !needed.is_empty() || of_base.iter().any(is_lacking)) {
            return Err(Error::missing_base(place, "its content was changed, and the delta alone cannot restore it"));
        }
        base::check(bases, &needed, place, options.jobs.max(1), progress)
    }

    fn expected(self, planned: &Planned) -> SlotStats {
        let bytes = self.bundle.index.object(planned.object).size;
        SlotStats {
            slot: escape::percent(planned.target.slot.shown().as_os_str().as_bytes()),
            image: escape::percent(&planned.path),
            bytes,
            kept_bytes: planned.there.bytes,
            resumed: planned.target.resumes,
            read_back: self.options.slot.read_back && !self.options.dry_run,
            ..SlotStats::default()
        }
    }

    fn image(self, planned: &Planned, fingerprint: Fingerprint) -> SlotImage {
        SlotImage {
            reference: self.tree.name.clone(),
            path: planned.path.clone(),
            size: self.bundle.index.object(planned.object).size,
            device: planned.target.slot.identity(),
            fingerprint,
        }
    }

    /// Writes what the state will keep of a slot, and keeps other runs from it.
    fn prepare(self, planned: &Planned) -> Result<SlotFolder, Error> {
        let Self { bundle, bases, admission, .. } = self;
        let folder = SlotFolder::create(admission.state().dir(), &planned.target.slot)?;
        folder.lock(&planned.target.slot)?;
        let known = planned.there.fingerprint.clone().or_else(|| fingerprint_of(bundle, planned.object));
        let Object { id, size } = *bundle.index.object(planned.object);
        // The pieces of an image that only a base has are known once it is copied.
        let fingerprint = known.unwrap_or(Fingerprint { id, piece_len: size.max(1), pieces: Vec::new() });
        let order = bases.order_of(bundle, None);
        folder.prepare(bundle, &self.image(planned, fingerprint), order.as_ref())?;
        Ok(folder)
    }

    /// Returns the writer for a slot that lacks something.
    fn writer<'p>(self, planned: &'p Planned, writers: usize) -> Option<SlotWriter<'p>> {
        let len = self.bundle.index.object(planned.object).size;
        let compares = self.options.tree.update || planned.target.resumes;
        (!planned.there.is_all).then(|| SlotWriter::new(&planned.target.slot, len, compares, writers))
    }

    /// Reads the contents, and puts each to the slots that lack it.
    fn deliver(
        self,
        input: &mut Input,
        plan: &ReadPlan,
        planned: &[Planned],
        writers: &[Option<SlotWriter<'_>>],
        digests: &Mutex<Vec<(Row<Object>, Fingerprint)>>,
    ) -> Result<(), Error> {
        let Self { bundle, bases, options, progress, .. } = self;
        let jobs = options.jobs.max(1);
        let of_base = self.of_base(plan);
        let lacking = |object: Row<Object>| {
            let both = planned.iter().zip(writers).filter(move |(planned, _)| planned.object == object);
            both.filter_map(|(planned, writer)| Some((planned, writer.as_ref()?)))
        };
        progress.enter(Phase::Unpacking, plan.stored_bytes(), wide(plan.objects().count()));
        Delivery::new(bundle, bases, plan, jobs, progress).run(
            input,
            || (),
            |(), content| {
                let piece = content.portion.piece;
                let lacking = lacking(content.portion.object);
                for (_, writer) in lacking.filter(|(planned, _)| piece.is_none_or(|piece| !planned.there.has(piece))) {
                    put(writer, content)?;
                }
                progress.add(0, u64::from(piece.is_none()));
                Ok(())
            },
            |(), _| {
                progress.add(0, 1);
                Ok(())
            },
        )?;
        if of_base.is_empty() {
            return Ok(());
        }
        let bytes = of_base.iter().map(|object| bundle.index.object(*object).size).sum();
        progress.enter(Phase::Copying, bytes, wide(of_base.len()));
        let piece_len = bundle.head.root().maxima.piece_len();
        let copied = from_bases(bundle, bases, &of_base, jobs, |reader, object, number| {
            let mut sums = Fingerprints::new(piece_len);
            reader.read_in_parts(number, |at, part| {
                progress.check()?;
                progress.add(wide(part.len()), 0);
                sums.take(part);
                lacking(object).try_for_each(|(_, writer)| put_sparse(writer, part, at))
            })?;
            digests.lock().push((object, sums.finish()));
            Ok(())
        });
        copied.map(drop)
    }

    /// Reads everything back but the heads, which are not written yet, and compares it with the image's digests.
    fn read_back(self, planned: &[Planned], writers: &[Option<SlotWriter<'_>>]) -> Result<(), Error> {
        for (planned, writer) in planned.iter().zip(writers) {
            let Some(writer) = writer else { continue };
            let Object { id, size } = *self.bundle.index.object(planned.object);
            let slot = &planned.target.slot;
            self.progress.enter(Phase::Verifying, size, 0);
            let piece_len = self.bundle.head.root().maxima.piece_len();
            let wanted = fingerprint_of(self.bundle, planned.object);
            let wanted = wanted.unwrap_or(Fingerprint { id, piece_len: size.max(1), pieces: Vec::new() });
            let found = writer.fingerprint(piece_len, self.progress)?;
            if let Some(Range { start, end }) = wanted.first_difference(&found, size) {
                return Err(Error::slot(slot.shown(), SlotFault::ReadsOther { start, end }));
            }
        }
        Ok(())
    }
}

/// Runs `work` while all these writers write what it puts. Returns what each wrote.
fn run_all(
    writers: &[Option<SlotWriter<'_>>],
    work: impl FnOnce() -> Result<(), Error>,
) -> Result<Vec<Written>, Error> {
    // Each writer runs around the next one.
    fn nest(
        writers: &[Option<SlotWriter<'_>>],
        work: Box<dyn FnOnce() -> Result<(), Error> + '_>,
        written: &Mutex<Vec<(usize, Written)>>,
    ) -> Result<(), Error> {
        let Some((writer, rest)) = writers.split_last() else { return work() };
        let Some(writer) = writer else { return nest(rest, work, written) };
        let done = writer.run(|| nest(rest, work, written))?;
        written.lock().push((rest.len(), done));
        Ok(())
    }
    let written = Mutex::new(Vec::new());
    nest(writers, Box::new(work), &written)?;
    let mut all = vec![Written::default(); writers.len()];
    written.into_inner().into_iter().for_each(|(at, done)| all[at] = done);
    Ok(all)
}

/// Puts a content: its data, and its holes.
fn put(writer: &SlotWriter<'_>, content: &Content<'_>) -> Result<(), Error> {
    let mut at = content.range.start;
    for (start, data) in content.extents() {
        writer.put_hole(at..start);
        writer.put(data, start)?;
        at = start + wide(data.len());
    }
    writer.put_hole(at..content.range.end);
    Ok(())
}

/// Puts data of a base, and parts of it that are zeros as holes.
fn put_sparse(writer: &SlotWriter<'_>, data: &[u8], offset: u64) -> Result<(), Error> {
    for (part, at) in data.chunks(HOLE_LEN).zip((offset..).step_by(HOLE_LEN)) {
        match part.len() == HOLE_LEN && part.iter().all(|byte| *byte == 0) {
            true => writer.put_hole(at..at + wide(part.len())),
            false => writer.put(part, at)?,
        }
    }
    Ok(())
}
