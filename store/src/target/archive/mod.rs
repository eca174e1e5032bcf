//! Writes a tree as an archive file, for programs that do not read bundles.
//!
//! This does not count as an installation: the device's policy decides whether the bundle may be used, but the device does not remember its version.

mod cpio;
mod encoder;
mod formats;
mod layout;
mod stats;
mod tar;

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use sealift_format::num;
use sealift_format::{Bundle, Ref};
use sealift_verify::read_plan::ReadPlan;

use crate::address::choose_ref;
use crate::base::{Bases, needed};
use crate::delivery::{Delivery, from_bases, write_all_at};
use crate::fs::partial::PartialFile;
use crate::input::Input;
use crate::progress::Phase;
use crate::target::options::InstallOptions;
use crate::trust::Trusted;
use crate::{Error, Progress};
pub use encoder::ArchiveEncoder;
use layout::{Layout, lay_out};
pub use stats::ArchiveStats;

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
    let (mut input, bundle, bases) = options.bases.open(bundle.into_unopened(), progress)?;
    let only = match &options.refs[..] {
        [] => None,
        [only] => Some(only.as_str()),
        _ => return Err(Error::Usage("an archive can hold only one ref".to_owned())),
    };
    let tree = choose_ref(&bundle.index, only)?;
    let plan = ReadPlan::new((&bundle).into(), wanted(&bundle, tree), &|_, _| false);
    let mut stats = ArchiveStats::default();
    stats.install.stored_bytes = plan.stored_bytes();
    if options.dry_run {
        lay_out(&bundle, tree, encoder, &mut stats, &mut |_, _| Ok(()))?;
        return Ok(stats);
    }
    let partial = PartialFile::create_new(target)?;
    let failed = |error| Error::io("write", target, error);
    let file = partial.file();
    let layout = lay_out(&bundle, tree, encoder, &mut stats, &mut |offset, header| {
        progress.check()?;
        file.write_all_at(header, offset).map_err(failed)
    })?;
    let work = Work { bundle: &bundle, bases: &bases, plan: &plan, layout: &layout, file, target };
    work.run(&mut input, options.jobs.max(1), progress)?;
    progress.enter(Phase::Syncing, 0, 0);
    partial.finish()?;
    Ok(stats)
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
        let of_base: Vec<_> = plan.objects().filter(|object| !bundle.layout.is_carried(*object)).collect();
        crate::base::check(
            bases,
            &needed(bundle, bases, plan.chunks(), of_base.iter().copied()),
            self.target,
            jobs,
            progress,
        )?;
        progress.enter(Phase::Unpacking, plan.stored_bytes(), num::wide(plan.objects().count()));
        Delivery::new((bundle, bases), plan, jobs, progress).telling(of_base.is_empty()).run(
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
        let copied = from_bases((bundle, bases), &of_base, jobs, |reader, object, number| {
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
