//! `sealift order merge`: one profile of several.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use sealift::order::{merge, one_after_another};

use super::{OutputArgs, Remarks, read_profiles};
use crate::failure::Failure;
use crate::show::Show;

/// Merge profiles into one
///
/// Each path keeps its earliest position in any profile: the first paths of all profiles come first, then the second ones, and so on;
/// ties go to the profile given first. That suits programs that start together; for programs that start in turn, use --one-after-another.
/// Ranges are combined. With one profile and --format, writes it in another form.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift order merge boot.order editor.order -o os.order
  sealift order merge --one-after-another boot.order login.order -o os.order
  sealift order merge os.order --format sort > os.sort
  find usr/share/icons -type f | sealift order merge boot.order - -o os.order
  sealift pack /srv/os -o os.sealift --order os.order")]
pub(crate) struct Merge {
    /// The profiles, or lists of paths; - for standard input
    #[arg(value_name = "PROFILE", value_hint = ValueHint::FilePath, required = true)]
    profiles: Vec<PathBuf>,
    /// Put each profile after the one before it
    #[arg(long)]
    one_after_another: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    show: Show,
}

impl Merge {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let place = self.output.place()?;
        let profiles = read_profiles(&self.profiles.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
        let merged = if self.one_after_another { one_after_another(&profiles) } else { merge(&profiles) };
        self.output.write(&place, &merged, Remarks::default(), self.show, false)
    }
}
