//! Writes a tree as an archive file, for programs that do not read bundles.
//!
//! This does not count as an installation: the device's policy decides whether the bundle may be used, but the device does not remember its version.

mod cpio;
mod docker;
mod encoder;
mod formats;
mod layout;
mod stats;
mod tar;
mod writer;
mod written;

use std::fs::File;
use std::io::{Read as _, Seek as _, Write};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use sealift_format::num;
use sealift_format::{Bundle, Ref};
use sealift_verify::read_plan::ReadPlan;

use crate::address::{check_image_tree, choose_ref};
use crate::base::{Bases, needed};
use crate::delivery::feed::requests;
use crate::delivery::{Delivery, from_bases, write_all_at};
use crate::fs::partial::PartialFile;
use crate::fs::unnamed::unnamed_file;
use crate::input::Input;
use crate::install::options::InstallOptions;
use crate::progress::Phase;
use crate::trust::Trusted;
use crate::{Error, Progress};
pub use encoder::ArchiveEncoder;
use layout::Layout;
pub use stats::ArchiveStats;
use writer::lay_out;
use written::Written;

/// Bytes per write to a stream.
const STREAM_LEN: usize = 1 << 20;

/// Writes the tree of a ref to a new file, which appears when it is complete and durable.
///
/// # Errors
/// Returns an error if the bundle is damaged, is a delta without its base, or has several refs and none is chosen; if the format cannot hold a
/// member; or if the file exists or cannot be written. The file does not exist then.
pub fn write(
    bundle: Trusted,
    encoder: &ArchiveEncoder,
    target: &Path,
    options: &InstallOptions,
    progress: &Progress,
) -> Result<ArchiveStats, Error> {
    let mut opened = Opened::new(bundle, options, progress)?;
    if options.dry_run {
        return opened.foresee(encoder);
    }
    let partial = PartialFile::create(target, false)?;
    let stats = opened.fill(encoder, partial.file(), target, options.jobs, progress)?;
    progress.enter(Phase::Syncing, 0, 0);
    partial.finish()?;
    Ok(stats)
}

/// Writes the tree of a ref to a stream, such as a pipe, after all of it was checked: until then, it is in a file without a name in the directory
/// for temporary files.
///
/// # Errors
/// As [`write()`]; also returns an error if that directory has too little space. Only if the stream fails was part of the archive written.
pub fn stream(
    bundle: Trusted,
    encoder: &ArchiveEncoder,
    out: &mut dyn Write,
    name: &Path,
    options: &InstallOptions,
    progress: &Progress,
) -> Result<ArchiveStats, Error> {
    let mut opened = Opened::new(bundle, options, progress)?;
    if options.dry_run {
        return opened.foresee(encoder);
    }
    let folder = std::env::temp_dir();
    let mut file = unnamed_file(&folder).map_err(|error| Error::io("create a file in", &folder, error))?;
    let stats = opened.fill(encoder, &file, &folder, options.jobs, progress)?;
    let failed = |error| Error::io("read", &folder, error);
    file.rewind().map_err(failed)?;
    let mut buffer = vec![0; STREAM_LEN];
    loop {
        progress.check()?;
        let len = file.read(&mut buffer).map_err(failed)?;
        let written = if len == 0 { out.flush() } else { out.write_all(&buffer[..len]) };
        written.map_err(|error| Error::io("write", name, error))?;
        if len == 0 {
            return Ok(stats);
        }
    }
}

/// A bundle of which one tree is written.
struct Opened {
    input: Input,
    bundle: Bundle,
    bases: Bases,
    reference: Option<String>,
}

impl Opened {
    fn new(bundle: Trusted, options: &InstallOptions, progress: &Progress) -> Result<Self, Error> {
        let (input, bundle, bases) = options.bases.open(bundle.into_unopened(), progress)?;
        let reference = match &options.refs[..] {
            [] => None,
            [only] => Some(only.clone()),
            _ => return Err(Error::Usage("an archive can hold only one ref".to_owned())),
        };
        Ok(Self { input, bundle, bases, reference })
    }

    fn tree(&self) -> Result<&Ref, Error> {
        choose_ref(&self.bundle.index, self.reference.as_deref())
    }

    /// Checks that a tree has what the archive is made of.
    fn check(&self, tree: &Ref, encoder: &ArchiveEncoder) -> Result<(), Error> {
        encoder.ending.as_ref().map_or(Ok(()), |_| check_image_tree(&self.bundle.index, tree))
    }

    fn plan(&self, tree: &Ref) -> (ReadPlan, ArchiveStats) {
        let plan = ReadPlan::new((&self.bundle).into(), wanted(&self.bundle, tree), &|_, _| false);
        let mut stats = ArchiveStats::default();
        stats.install.stored_bytes = plan.stored_bytes();
        (plan, stats)
    }

    /// Returns what writing the archive would do.
    fn foresee(&self, encoder: &ArchiveEncoder) -> Result<ArchiveStats, Error> {
        let tree = self.tree()?;
        self.check(tree, encoder)?;
        let (plan, mut stats) = self.plan(tree);
        let (head, chunks) = (&self.bundle.head, &self.bundle.layout.chunks);
        stats.install.requests = requests(&self.input, head, chunks, plan.chunks());
        lay_out(&self.bundle, tree, encoder, &mut stats, &mut |_, _| Ok(()))?;
        Ok(stats)
    }

    /// Writes the archive to an empty file; `target` is its name in messages.
    fn fill(
        &mut self,
        encoder: &ArchiveEncoder,
        file: &File,
        target: &Path,
        jobs: usize,
        progress: &Progress,
    ) -> Result<ArchiveStats, Error> {
        let tree = self.tree()?;
        self.check(tree, encoder)?;
        let (plan, mut stats) = self.plan(tree);
        let layout = lay_out(&self.bundle, tree, encoder, &mut stats, &mut |offset, header| {
            progress.check()?;
            file.write_all_at(header, offset).map_err(|error| Error::io("write", target, error))
        })?;
        let Self { input, bundle, bases, .. } = self;
        Work { bundle, bases, plan: &plan, layout: &layout, file, target }.run(input, jobs.max(1), progress)?;
        if let Some(ending) = &encoder.ending {
            let tree = choose_ref(&bundle.index, self.reference.as_deref())?;
            let written = Written { bundle, tree, layout: &layout, file, target };
            stats.archive_bytes = written.end(&(ending.make)(&written)?)?;
            stats.members += 1;
        }
        Ok(stats)
    }
}

/// Returns which objects are contents of a tree.
fn wanted(bundle: &Bundle, tree: &Ref) -> Vec<bool> {
    let index = &bundle.index;
    let mut wanted = vec![false; index.objects().len()];
    for (_, _, object) in index.regulars(tree) {
        wanted[object.at()] = true;
    }
    wanted
}

/// The work of writing contents to their places.
struct Work<'a> {
    bundle: &'a Bundle,
    /// The bases of a delta bundle.
    bases: &'a Bases,
    plan: &'a ReadPlan,
    layout: &'a Layout,
    file: &'a File,
    target: &'a Path,
}

impl Work<'_> {
    fn run(&self, input: &mut Input, jobs: usize, progress: &Progress) -> Result<(), Error> {
        let Self { bundle, bases, plan, layout, .. } = *self;
        let of_base: Vec<_> = plan.objects().filter(|object| !bundle.layout.is_stored(*object)).collect();
        crate::base::check(
            bases,
            &needed(bundle, bases, plan.chunks(), of_base.iter().copied()),
            self.target,
            jobs,
            progress,
        )?;
        progress.enter(Phase::Unpacking, plan.stored_bytes(), num::wide(plan.objects().count()));
        Delivery::new(bundle, bases, plan, jobs, progress).telling(of_base.is_empty()).run(
            input,
            || (),
            |(), content| {
                for offset in layout.offsets(content.portion.object) {
                    for (at, data) in content.extents() {
                        self.write(data, offset + at)?;
                    }
                }
                progress.add(0, u64::from(content.portion.piece.is_none()));
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
        progress.enter(Phase::Copying, bytes, num::wide(of_base.len()));
        let copied = from_bases(bundle, bases, &of_base, jobs, |reader, object, number| {
            progress.add(bundle.index.object(object).size, 1);
            reader.read_in_parts(number, |at, part| {
                progress.check()?;
                layout.offsets(object).try_for_each(|offset| self.write(part, offset + at))
            })
        });
        copied.map(drop)
    }

    fn write(&self, data: &[u8], offset: u64) -> Result<(), Error> {
        write_all_at(self.file, data, offset).map_err(|error| Error::io("write", self.target, error))
    }
}
