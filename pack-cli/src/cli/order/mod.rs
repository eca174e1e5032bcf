//! `sealift order`: profiles of what a workload reads first.

mod diff;
mod export;
mod import;
mod merge;
mod record;
mod report;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use sealift::Output;
use sealift::order::{OrderProfile, Ranking, ranked};
use sealift::{Error, FileFault};
use sealift_format::num::wide;

use super::closed;
use super::escape;
use super::failure::Failure;
use super::human::count;
use super::one_of::one_of;
use super::output;
use super::show::{BOLD, Show};
pub(crate) use export::order_of;
use report::{Made, Remarks};

/// Record and edit access-order profiles, for pack --order
#[derive(Args, Debug)]
#[command(after_long_help = "\
A profile is a text file: one path per line, in the order of first use, as
`sealift ls` prints it. A path may be followed by a tab and the ranges of a
large file that are read first, in bytes: 0-65535,1048576-1114111. Lines that
begin with # are comments.")]
pub(crate) struct Order {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Record(record::Record),
    Import(import::Import),
    Merge(merge::Merge),
    Diff(diff::Diff),
    Export(export::Export),
}

impl Order {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self.action {
            Action::Record(record) => record.run(),
            Action::Import(import) => import.run(),
            Action::Merge(merge) => merge.run(),
            Action::Diff(diff) => diff.run(),
            Action::Export(export) => export.run(),
        }
    }
}

/// Reads profiles from files, or one from standard input.
fn read_profiles(paths: &[&Path]) -> Result<Vec<OrderProfile>, Failure> {
    if paths.iter().filter(|path| **path == Path::new("-")).count() > 1 {
        return Err(Failure::usage("standard input can be only one of the profiles"));
    }
    Ok(paths.iter().map(|path| read_profile(path)).collect::<Result<_, _>>()?)
}

/// Reads a profile from a file, or from standard input.
fn read_profile(path: &Path) -> Result<OrderProfile, Error> {
    if path != Path::new("-") {
        return OrderProfile::read(path);
    }
    let (path, mut text) = (Path::new("standard input"), Vec::new());
    std::io::stdin().read_to_end(&mut text).map_err(|error| Error::io("read", path, error))?;
    OrderProfile::parse(&text).map_err(|fault| Error::file(path, FileFault::Order(fault)))
}

/// Where a profile is written.
#[derive(Args, Debug)]
struct OutputArgs {
    /// Write the profile to a file [default: standard output]
    #[arg(long, short, value_name = "PROFILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long, requires = "output")]
    force: bool,
    /// profile; sort, a list for mksquashfs -sort or genisoimage -sort; or weights, one for xorrisofs --sort-weight-list [default: profile]
    #[arg(
        long,
        value_name = "FORMAT",
        value_parser = one_of(FORMATS),
        default_value = "profile",
        hide_default_value = true,
        hide_possible_values = true
    )]
    format: Format,
}

/// How a profile is written: for pack, or for another program.
type Format = Option<Ranking>;

const FORMATS: [(&str, Format); 3] =
    [("profile", None), ("sort", Some(Ranking::Priorities)), ("weights", Some(Ranking::Weights))];

impl OutputArgs {
    /// Returns where the profile goes: being text, it may go to a terminal too.
    fn place(&self) -> Result<Output, Failure> {
        match &self.output {
            Some(path) if path != Path::new("-") => output::of(path, self.force),
            _ => closed::check_stdout().map(|()| Output::Stdout),
        }
    }

    /// Writes the profile and the summary: on standard error, if the profile or the output of a command is on standard output.
    fn write(
        &self,
        place: &Output,
        profile: &OrderProfile,
        remarks: Remarks,
        show: Show,
        stdout_taken: bool,
    ) -> Result<(), Failure> {
        let text = self.text(profile, show);
        let Some(path) = self.output.as_deref().filter(|_| *place != Output::Stdout) else {
            let mut out = std::io::stdout().lock();
            out.write_all(&text).and_then(|()| out.flush())?;
            return Ok(print(show, None, profile, remarks, true)?);
        };
        place.write(&text)?;
        Ok(print(show, Some(path), profile, remarks, stdout_taken)?)
    }

    fn text(&self, profile: &OrderProfile, show: Show) -> Vec<u8> {
        let Some(ranking) = self.format else { return profile.to_text().into_bytes() };
        let list = ranked(profile, ranking);
        if list.left_out > 0 {
            let paths = count(list.left_out, "path");
            show.warn(&format!("left out {paths} with a newline, which such a list cannot hold"));
        }
        list.text
    }
}

/// Reports a profile that another verb recorded: on standard error, or with --json as a line on standard output.
pub(crate) fn print_profile(show: Show, path: &Path, profile: &OrderProfile) -> std::io::Result<()> {
    print(show, Some(path), profile, Remarks::default(), !show.json)
}

fn print(
    show: Show,
    path: Option<&Path>,
    profile: &OrderProfile,
    remarks: Remarks,
    stdout_taken: bool,
) -> std::io::Result<()> {
    let files = wide(profile.entries().len());
    let ranges = profile.entries().iter().map(|entry| wide(entry.ranges.len())).sum();
    let mut out = show.summary(stdout_taken);
    if show.is_told(&mut out, &Made { files, ranges, remarks })? {
        return Ok(());
    }
    let Remarks { outside, malformed, elsewhere, cached } = remarks;
    if let Some(path) = path {
        let ranges = if ranges > 0 { format!(", {}", count(ranges, "range")) } else { String::new() };
        let path = escape::text(&path.display().to_string());
        writeln!(out, "{BOLD}{path}{BOLD:#}: {}{ranges}", count(files, "file"))?;
    }
    if outside > 0 {
        writeln!(out, "  left out {} outside the root", count(outside, "path"))?;
    }
    if malformed > 0 {
        writeln!(out, "  skipped {} without a path", count(malformed, "line"))?;
    }
    if elsewhere > 0 {
        writeln!(out, "  ignored {} outside file contents", count(elsewhere, "read"))?;
    }
    if cached > 0 {
        writeln!(out, "  {} cached before, recorded whole: see --drop-cache", count(cached, "large file"))?;
    }
    out.flush()
}
