//! The bundle argument of a verb.

use std::cell::OnceCell;
use std::io::{self, IsTerminal as _, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use sealift::{CopyStats, Head, Input, Opened, Origin, VolumeSet};

use super::copies;
use super::escape;
use super::failure::{About as _, Failure, shown};
use super::limits::limits;
use super::next_volume::NextVolumeArgs;
use super::show::Show;

/// A bundle in a file, in volumes or on standard input.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BundleArg {
    /// The bundle; if it was split, the directory of its volumes, or one of them; - reads it from standard input
    #[arg(value_name = "BUNDLE")]
    pub(crate) bundle: PathBuf,
    /// Other copies of it
    #[arg(skip)]
    pub(crate) copies: Vec<PathBuf>,
    /// The files of its volumes, if they were named one by one
    #[arg(skip)]
    pub(crate) volumes: Vec<PathBuf>,
    /// What was opened already
    #[arg(skip)]
    pub(crate) opened: Option<Arc<Input>>,
    /// How the next volume comes to this path, if they come one by one.
    #[arg(skip)]
    pub(crate) next_volume: Option<(NextVolumeArgs, Show)>,
    /// What was opened, if there are copies
    #[arg(skip)]
    pub(crate) joined: OnceCell<Arc<Origin>>,
}

impl BundleArg {
    /// A bundle given in another way than as this argument.
    pub(crate) fn of(bundle: PathBuf) -> Self {
        Self { bundle, ..Self::default() }
    }

    /// A bundle of which there are copies, which are read where it is damaged.
    pub(crate) fn with_copies(bundle: PathBuf, copies: Vec<PathBuf>) -> Self {
        Self { bundle, copies, ..Self::default() }
    }

    /// A bundle in files that belong together.
    pub(crate) fn of_group(group: Vec<PathBuf>) -> Self {
        let bundle = group.first().cloned().unwrap_or_default();
        Self { bundle, volumes: if group.len() > 1 { group } else { Vec::new() }, ..Self::default() }
    }

    /// Opens the bundle.
    pub(crate) fn open(&self) -> Result<Input, Failure> {
        if let Some((next, show)) = &self.next_volume
            && let Some(input) = next.open(&self.bundle, *show)
        {
            return Ok(input);
        }
        if let Some(input) = self.opened.as_ref().and_then(|input| input.again()) {
            return Ok(input);
        }
        if !self.volumes.is_empty() {
            return Ok(Input::volumes(&self.bundle, VolumeSet::of_files(&self.volumes)?));
        }
        if !self.copies.is_empty() {
            let paths = [std::slice::from_ref(&self.bundle), &self.copies[..]].concat();
            let input = Input::open_copies(&paths, &limits())?;
            input.origin().map(|origin| self.joined.get_or_init(|| Arc::clone(origin)));
            return Ok(input);
        }
        if self.bundle != Path::new("-") {
            return Ok(Input::open(&self.bundle)?);
        }
        if io::stdin().is_terminal() {
            return Err(Failure::usage("standard input is a terminal: give a file, or pipe a bundle in"));
        }
        Ok(Input::pipe("standard input", Box::new(io::stdin())))
    }

    /// Prints where its copies are damaged, as far as they were read.
    pub(crate) fn tell_of_copies(&self, show: Show) {
        if let Some(origin) = self.joined.get() {
            copies::tell(show, &origin.copies());
        }
    }

    /// Returns the copies that are damaged, if another one is not.
    pub(crate) fn damaged_beside_sound(&self) -> Vec<PathBuf> {
        let (sound, damaged) = self.sound_and_damaged();
        if sound.is_empty() { Vec::new() } else { damaged }
    }

    /// Returns the copies without and with damage.
    fn sound_and_damaged(&self) -> (Vec<PathBuf>, Vec<PathBuf>) {
        let copies = self.joined.get().map(|origin| origin.copies()).unwrap_or_default();
        let (sound, damaged): (Vec<_>, Vec<_>) = copies.into_iter().partition(|copy| copy.damaged.is_empty());
        let paths = |copies: Vec<CopyStats>| copies.into_iter().map(|copy| copy.path).collect();
        (paths(sound), paths(damaged))
    }

    /// Returns the path of a copy that is sound, or else that of the bundle.
    pub(crate) fn sound_path(&self) -> PathBuf {
        self.sound_and_damaged().0.into_iter().next().unwrap_or_else(|| self.bundle.clone())
    }

    /// Prints a line for each other copy that was needed.
    pub(crate) fn print_copies(&self, out: &mut dyn Write) -> io::Result<()> {
        let is_needed = |_: &&PathBuf| self.sound_and_damaged().0.is_empty();
        for copy in self.copies.iter().filter(is_needed) {
            writeln!(out, "  read as one with its copy {}", escape::text(&shown(copy)))?;
        }
        Ok(())
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
