//! `sealift order diff`: the differences between two profiles.

use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use sealift::order::diff::{DifferenceKind, OrderDifference, diff};

use super::read_profiles;
use super::report::{Counts, Differences};
use crate::escape;
use crate::failure::{Failure, verdict_printed};
use crate::human::Grouped;
use crate::show::{BOLD, Show, json_line};

/// Show the differences between two profiles
///
/// Prints one line for each path: A added, D removed, R moved before or after others, r ranges changed; then its position, and the path. As
/// few paths as possible count as moved: adding or removing a path does not move the others. The exit status is 0 unless --exit-code is
/// given.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift order diff os-7.order os-8.order
  sealift order diff os-7.order os-8.order --exit-code --quiet")]
pub(crate) struct Diff {
    /// The old profile; - for standard input
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    old: PathBuf,
    /// The new profile; - for standard input
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    new: PathBuf,
    /// Exit with status 1 if there are differences
    #[arg(long)]
    exit_code: bool,
    #[command(flatten)]
    show: Show,
}

impl Diff {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let profiles = read_profiles(&[&self.old, &self.new])?;
        let [old, new] = &profiles[..] else { return Ok(()) };
        let differences = diff(old, new);
        verdict_printed(self.print(&differences))?;
        if self.exit_code && !differences.is_empty() { Err(Failure::printed()) } else { Ok(()) }
    }

    fn print(&self, differences: &[OrderDifference<'_>]) -> std::io::Result<()> {
        let mut out = BufWriter::new(self.show.out());
        let [old, new] = [&self.old, &self.new].map(|path| path.display().to_string());
        let counts = Counts::of(differences);
        if self.show.json {
            json_line(&mut out, &Differences::new((&old, &new), &counts, differences))?;
        } else if !self.show.quiet {
            for difference in differences {
                let letter = match difference.kind {
                    DifferenceKind::Added => "A",
                    DifferenceKind::Removed => "D",
                    DifferenceKind::Moved => "R",
                    DifferenceKind::Ranges => "r",
                };
                let position = match (difference.old, difference.new) {
                    (Some(old), Some(new)) => format!("{old} -> {new}"),
                    (one, other) => one.or(other).unwrap_or_default().to_string(),
                };
                writeln!(out, "{letter}  {position}  {}", escape::bytes(difference.path))?;
            }
            let Counts { added, removed, moved, ranges } = counts;
            let counts = [(added, "added"), (removed, "removed"), (moved, "moved"), (ranges, "with changed ranges")];
            let counts = counts.iter().filter(|(number, _)| *number > 0);
            let counts: Vec<String> = counts.map(|(number, what)| format!("{} {what}", Grouped(*number))).collect();
            let counts = if counts.is_empty() { "no difference".to_owned() } else { counts.join(", ") };
            writeln!(out, "{BOLD}{} -> {}{BOLD:#}: {counts}", escape::text(&old), escape::text(&new))?;
        }
        out.flush()
    }
}
