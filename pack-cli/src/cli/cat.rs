//! `sealift cat`: the content of one file.

use std::io::{BufWriter, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use sealift::Progress;
use sealift::cat::Contents;
use sealift::inside::{self, is_inside};

use super::base_args::BaseArgs;
use super::closed;
use super::failure::{About as _, Failure};
use super::jobs_arg::JobsArg;
use super::reading::Reading;
use super::show::ErrorForm;
use super::trust_args::AdmitArgs;

/// Write the content of one file to standard output
///
/// Writes only verified bytes, and only from a trusted bundle. Give PATH literally, or as `sealift ls` or `sealift ls --json` prints it.
/// IMAGE//PATH is the file at PATH in the image, archive or compressed file IMAGE; NAME.gz// is what NAME.gz decodes to.
#[derive(Args, Debug)]
#[command(override_usage = "sealift cat [OPTIONS] <BUNDLE>... <[REF:][IMAGE//]PATH>")]
#[command(after_long_help = "\
Examples:
  sealift cat os.sealift etc/os-release --trust /etc/sealift/allowed_signers
  sealift cat apps.sealift editor:usr/bin/editor > editor
  sealift cat os-7.sealift os-7-to-8.sealift os-8-to-9.sealift etc/os-release
  sealift cat https://example.org/os/ etc/os-release
  sealift cat https://a.example/os/ https://b.example/os/ etc/os-release
  sealift cat image.sealift os.squashfs//usr/lib/os-release")]
pub(crate) struct Cat {
    /// The bundle, and then the file, prefixed with REF: if the bundle has several refs
    ///
    /// Instead of the bundle: a channel's directory or address, for its newest version; a full bundle and the deltas that lead from it to a version, in
    /// any order; volumes; several addresses of one bundle or one channel, which are mirrors; or - for standard input.
    #[arg(value_name = "BUNDLE|[REF:][IMAGE//]PATH", required = true, value_hint = ValueHint::FilePath)]
    arguments: Vec<PathBuf>,
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
        let mut bundles = self.arguments;
        let path = bundles.pop().unwrap_or_default();
        if bundles.is_empty() {
            return Err(Failure::usage("give the PATH of a file after the bundle"));
        }
        let Reading { bundle: given, base } =
            Reading::of(bundles, self.base, self.form.show(), || Ok(judge.guard().clone()))?;
        let input = given.open()?;
        let mut out = BufWriter::with_capacity(1 << 20, std::io::stdout().lock());
        let bundle = judge.admit(input).about(&given.bundle)?;
        let progress = Progress::default();
        let written = Contents::open_over(bundle, &base.given(JobsArg::default(), self.trust.state()), &progress)
            .and_then(|mut contents| match path.as_os_str().as_bytes() {
                path if is_inside(contents.bundle(), path) => inside::cat(&contents, path, &mut out, &progress),
                path => contents.cat(path, &mut out, &progress),
            });
        given.tell_of_copies(self.form.show());
        written.about(&given.bundle)?;
        out.flush().map_err(Failure::content)?;
        judge.warn(self.form.show());
        Ok(())
    }
}
