//! `sealift measure`: prints the fs-verity digest that the kernel enforces.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use sealift::seal::measure;

use super::digest::print_digest;
use super::failure::{Failure, verdict_printed};
use super::show::Form;

/// Print the fs-verity digest that the kernel enforces for sealed files
///
/// Asks the kernel without reading content, and prints the same as `fsverity measure`. The exit status is 1 if a FILE is not sealed.
#[derive(Args, Debug)]
#[command(after_long_help = "\
With --json, each line is one object with path, algorithm and digest.

Examples:
  sealift measure usr/bin/hello")]
pub(crate) struct Measure {
    /// The files
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    form: Form,
}

impl Measure {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let show = self.form.show();
        for file in &self.files {
            // A file that is not sealed determines the status, even if the reader closed the pipe.
            verdict_printed(print_digest(&mut *show.out(), show.json, file, &measure(file)?))?;
        }
        Ok(())
    }
}
