//! `sealift cat`: the content of one file.

use std::ffi::OsString;
use std::io::{BufWriter, Write as _};
use std::os::unix::ffi::OsStrExt as _;

use clap::Args;
use sealift::Progress;
use sealift::cat::Contents;
use sealift::inside::{self, is_inside};

use super::base_args::BaseArgs;
use super::bundle::BundleArg;
use super::closed;
use super::failure::{About as _, Failure};
use super::jobs_arg::JobsArg;
use super::show::ErrorForm;
use super::trust_args::AdmitArgs;

/// Write the content of one file to standard output
///
/// Writes only verified bytes, and only from a trusted bundle. Give PATH literally, or as `sealift ls` or `sealift ls --json` prints it.
/// IMAGE//PATH is the file at PATH in the image, archive or compressed file IMAGE; NAME.gz// is what NAME.gz decodes to.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift cat os.sealift etc/os-release --trust /etc/sealift/allowed_signers
  sealift cat apps.sealift editor:usr/bin/editor > editor
  sealift cat image.sealift os.squashfs//usr/lib/os-release")]
pub(crate) struct Cat {
    #[command(flatten)]
    bundle: BundleArg,
    /// The file, prefixed with REF: if the bundle has several refs
    #[arg(value_name = "[REF:][IMAGE//]PATH")]
    path: OsString,
    #[command(flatten)]
    base: BaseArgs,
    #[command(flatten)]
    trust: AdmitArgs,
    #[command(flatten)]
    form: ErrorForm,
}

impl Cat {
    pub(crate) fn run(self) -> Result<(), Failure> {
        closed::check_stdout()?;
        let judge = self.trust.load()?;
        let input = self.bundle.open()?;
        let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
        let bundle = judge.admit(input).about(&self.bundle.bundle)?;
        let progress = Progress::default();
        let written = Contents::open_over(bundle, &self.base.given(JobsArg::default(), self.trust.state()), &progress)
            .and_then(|mut contents| match self.path.as_bytes() {
                path if is_inside(contents.bundle(), path) => inside::cat(&contents, path, &mut out, &progress),
                path => contents.cat(path, &mut out, &progress),
            });
        written.about(&self.bundle.bundle)?;
        out.flush().map_err(Failure::content)?;
        judge.warn(self.form.show());
        Ok(())
    }
}
