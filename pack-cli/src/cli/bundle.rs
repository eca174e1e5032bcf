//! The bundle argument of a verb.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::Args;
use sealift::{Head, Input, Opened};

use super::failure::{About as _, Failure};
use super::limits::limits;

/// A bundle in a file or on standard input.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BundleArg {
    /// The bundle; - reads it from standard input
    #[arg(value_name = "BUNDLE")]
    pub(crate) bundle: PathBuf,
}

impl BundleArg {
    /// Opens the bundle.
    pub(crate) fn open(&self) -> Result<Input, Failure> {
        if self.bundle != Path::new("-") {
            return Ok(Input::open(&self.bundle)?);
        }
        if std::io::stdin().is_terminal() {
            return Err(Failure::usage("standard input is a terminal: give a file, or pipe a bundle in"));
        }
        Ok(Input::pipe("standard input", Box::new(std::io::stdin())))
    }

    /// Reads only the head.
    pub(crate) fn read_head(&self) -> Result<Head, Failure> {
        self.open()?.read_head(limits()).about(&self.bundle)
    }

    /// Reads everything before the content, whoever signed it: for display only, never for extraction.
    pub(crate) fn read_untrusted(&self) -> Result<Opened, Failure> {
        self.open()?.open_any(limits()).about(&self.bundle)
    }
}
