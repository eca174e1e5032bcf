//! `sealift order export`: the profile by which a bundle is laid out.

use std::path::Path;

use clap::Args;
use sealift::order::OrderProfile;
use sealift::{Error, Opened};

use super::{LeftOut, OutputArgs};
use crate::bundle::BundleArg;
use crate::failure::Failure;
use crate::show::Show;

/// Write the profile by which a bundle is laid out, or that a directory keeps of what was installed there
///
/// A bundle keeps its order: the contents that it stores first are those that the profile named, in its order. Of a large file of which only some
/// ranges are stored first, these are written, in whole chunks. Files with equal contents are written one after the other.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift order export os-7.sealift -o os.order
  sealift pack /srv/os -o os-8.sealift --order-from os-7.sealift")]
pub(crate) struct Export {
    #[command(flatten)]
    bundle: BundleArg,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    show: Show,
}

impl Export {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let place = self.output.place()?;
        let profile = order_of(&self.bundle)?;
        self.output.write(&place, (&profile, LeftOut::default()), (self.show, false))
    }
}

/// Returns the order of a full bundle, or of what was installed in a directory. Only places of files are taken from it, so it needs no signature.
pub(crate) fn order_of(from: &BundleArg) -> Result<OrderProfile, Failure> {
    let path: &Path = &from.bundle;
    if path.is_dir() {
        let why = "what was installed there had none, or was not installed by sealift";
        return OrderProfile::of_directory(path)?
            .ok_or_else(|| Failure::usage(format!("{} has no order: {why}", path.display())));
    }
    match from.read_untrusted()? {
        Opened::Whole(bundle) => OrderProfile::of_bundle(&bundle)
            .ok_or_else(|| Failure::usage(format!("{} has no order: it was packed without a profile", path.display()))),
        Opened::Delta(delta) => Err(Error::is_delta(path, &delta).into()),
    }
}
