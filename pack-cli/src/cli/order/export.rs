//! `sealift order export`: writes the order of a bundle or of an installed target as a profile.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::fs::is_directory;
use sealift::order::OrderProfile;
use sealift::trust::TargetKind;
use sealift::{Error, Opened, Progress};
use sealift_format::Delta;

use super::{OutputArgs, Remarks};
use crate::base_args::BaseArgs;
use crate::bundle::BundleArg;
use crate::failure::Failure;
use crate::jobs_arg::JobsArg;
use crate::show::Show;

/// Write the access order of a bundle or of an installed target as a profile
///
/// A bundle keeps its order: it stores the contents that its profile named first, in the profile's order. If only some ranges of a large file
/// are stored first, export writes these, rounded to whole chunks. It lists files with equal contents one after the other. A delta has the
/// order of its base, with the files that it brings in their places. If a repository or store keeps the orders of several bundles, export
/// merges them.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift order export os-7.sealift -o os.order
  sealift order export ostree:/srv/repo
  sealift order export os-7.sealift --format sort -o os.sort
  mksquashfs /srv/os os.squashfs -sort os.sort
  sealift order export os-7.sealift --format weights -o os.weights
  xorrisofs -o os.iso --sort-weight-list os.weights /srv/os
  sealift order export os-7-to-8.sealift --base os-7.sealift
  sealift pack /srv/os -o os-8.sealift --order-from os-7.sealift")]
pub(crate) struct Export {
    /// The bundle, - for standard input; a directory, ostree:REPO or composefs:STORE
    #[arg(value_name = "BUNDLE|TARGET", value_hint = ValueHint::AnyPath)]
    from: PathBuf,
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    show: Show,
}

impl Export {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let place = self.output.place()?;
        let profile = match self.base.is_given() {
            true => self.order_of_delta()?,
            false => order_of(&self.from, |delta| Error::is_delta(&self.from, delta).into())?,
        };
        self.output.write(&place, &profile, Remarks::default(), self.show, false)
    }

    fn order_of_delta(&self) -> Result<OrderProfile, Failure> {
        let path = &self.from;
        if is_target(path)? {
            return Err(Failure::usage("--base is for a delta bundle"));
        }
        let opened = BundleArg::of(path.clone()).read_untrusted()?;
        match self.base.given(JobsArg::default(), None).complete(opened, path, &Progress::default())? {
            (Opened::Whole(bundle), bases) => OrderProfile::of_delta(&bundle, &bases)
                .ok_or_else(|| Failure::usage(format!("{} has no order, and neither has its base", path.display()))),
            (Opened::Delta(delta), _) => Err(Error::is_delta(path, &delta).into()),
        }
    }
}

fn is_target(path: &Path) -> Result<bool, Error> {
    Ok(TargetKind::of(path).0 != TargetKind::Directory || is_directory(path)?)
}

/// Returns the order of a full bundle, or of what was installed in a target. It only arranges files, so it needs no signature. A delta, which stores
/// only part of its order, gives the failure that `refused` returns.
pub(crate) fn order_of(path: &Path, refused: impl Fn(&Delta) -> Failure) -> Result<OrderProfile, Failure> {
    if is_target(path)? {
        let why = "what was installed there had none, or was not installed by sealift";
        return OrderProfile::of_target(path)?
            .ok_or_else(|| Failure::usage(format!("{} has no order: {why}", path.display())));
    }
    match BundleArg::of(path.to_owned()).read_untrusted()? {
        Opened::Whole(bundle) => OrderProfile::of_bundle(&bundle)
            .ok_or_else(|| Failure::usage(format!("{} has no order: it was packed without a profile", path.display()))),
        Opened::Delta(delta) => Err(refused(&delta)),
    }
}
