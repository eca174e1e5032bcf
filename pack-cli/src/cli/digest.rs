//! `sealift digest`: computes the fs-verity digest of files on any file system.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use sealift::seal::{FileDigest, digest};
use sealift_format::hex;
use serde::Serialize;

use super::escape;
use super::failure::Failure;
use super::progress_args::ProgressArgs;
use super::show::{Form, json_line};
use super::verity_args::VerityArgs;

/// Compute the fs-verity digest that files have, or would have if sealed
///
/// Reads each FILE, and prints the same as `fsverity digest`. Does not ask the kernel; `sealift measure` does.
#[derive(Args, Debug)]
#[command(after_long_help = "\
With --json, each line is one object with path, algorithm and digest.

Examples:
  sealift digest usr/bin/hello
  sealift digest --hash-alg sha512 --salt 0011 --compact usr/bin/hello
  find usr -type f -print0 | xargs -0 sealift digest")]
pub(crate) struct Digest {
    /// The files
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    parameters: VerityArgs,
    /// Print only the hexadecimal digits
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    compact: bool,
    /// Print the formatted digest, which a built-in signature covers, instead of the digest
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    for_builtin_sig: bool,
    #[command(flatten)]
    form: Form,
    #[command(flatten)]
    progress: ProgressArgs,
}

impl Digest {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let (parameters, show) = (self.parameters.parameters()?, self.form.show());
        for file in &self.files {
            let digest = self.progress.watch(show, "Opening", |progress| digest(file, &parameters, progress))?;
            self.print(file, &digest, &mut *show.out())?;
        }
        Ok(())
    }

    fn print(&self, file: &Path, digest: &FileDigest, out: &mut dyn Write) -> std::io::Result<()> {
        let shown = escape::bytes(file.as_os_str().as_encoded_bytes());
        match (self.for_builtin_sig, self.compact) {
            (true, true) => writeln!(out, "{}", hex(&digest.formatted())),
            (true, false) => writeln!(out, "{} {shown}", hex(&digest.formatted())),
            (false, true) => writeln!(out, "{}", hex(digest.as_bytes())),
            (false, false) => print_digest(out, self.form.show().json, file, digest),
        }
    }
}

/// Prints a digest and its file as `fsverity` does, or as JSON.
pub(super) fn print_digest(out: &mut dyn Write, json: bool, file: &Path, digest: &FileDigest) -> std::io::Result<()> {
    if json {
        return json_line(
            out,
            &Line {
                path: escape::percent(file.as_os_str().as_encoded_bytes()),
                algorithm: digest.algorithm().name(),
                digest: hex(digest.as_bytes()),
            },
        );
    }
    writeln!(out, "{digest} {}", escape::bytes(file.as_os_str().as_encoded_bytes()))
}

#[derive(Serialize)]
struct Line {
    path: String,
    algorithm: &'static str,
    digest: String,
}
