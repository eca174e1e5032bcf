//! Output options, and printing.

use std::io::{self, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use clap::{Args, ValueEnum};
use serde::Serialize;

use super::escape;

/// The options of a verb that acts and reports.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct Show {
    /// Print JSON, errors on standard error included
    #[arg(long)]
    pub(crate) json: bool,
    /// Print errors and warnings only
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// The options of a verb that prints what it is asked for.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct Form {
    /// Print JSON, errors on standard error included
    #[arg(long)]
    json: bool,
}

impl Form {
    pub(crate) fn show(self) -> Show {
        Show { json: self.json, quiet: false }
    }
}

/// The options of a verb whose output is raw content.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct ErrorForm {
    /// Print errors as JSON
    #[arg(long)]
    json: bool,
}

impl ErrorForm {
    pub(crate) fn show(self) -> Show {
        Show { json: self.json, quiet: false }
    }
}

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// A bar on a terminal, else nothing.
    Auto,
    /// A bar on a terminal, else lines.
    Bar,
    /// JSON lines.
    Json,
    /// Nothing.
    None,
}

/// Emphasis.
pub(crate) const BOLD: Style = Style::new().bold();
/// Success.
pub(crate) const GOOD: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
/// A warning.
pub(crate) const WARN: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));
/// A failure.
pub(crate) const BAD: Style = Style::new().bold().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
/// Secondary text.
pub(crate) const DIM: Style = Style::new().dimmed();

impl Show {
    /// Returns standard output for people: coloured only on a terminal.
    pub(crate) fn out(self) -> Box<dyn Write> {
        Box::new(anstream::stdout().lock())
    }

    /// Returns where the summary goes: standard output, unless the bundle itself is written there.
    pub(crate) fn summary(self, stdout_taken: bool) -> Box<dyn Write> {
        if stdout_taken { Box::new(anstream::stderr().lock()) } else { self.out() }
    }

    /// Prints the summary as JSON for `--json`. Returns whether nothing else is to be printed, as with `--quiet`.
    pub(crate) fn is_told(self, out: &mut dyn Write, summary: &impl Serialize) -> io::Result<bool> {
        if self.json {
            json_line(out, summary)?;
        }
        Ok(self.json || self.quiet)
    }

    /// Prints on standard error what a person may want to know, unless --quiet or --json hides it.
    pub(crate) fn note(self, message: &str) {
        if self.json || self.quiet {
            return;
        }
        let line = format!("{BOLD}sealift:{BOLD:#} note: {}", escape::text(message));
        let mut out = anstream::stderr().lock();
        let _ = if io::stderr().is_terminal() { paragraph(&mut out, 0, &line) } else { writeln!(out, "{line}") };
    }

    /// Prints a warning on standard error. `--quiet` does not hide it.
    pub(crate) fn warn(self, message: &str) {
        let message = escape::text(message);
        let line = if self.json {
            #[derive(Serialize)]
            struct Warning<'a> {
                warning: &'a str,
            }
            serde_json::to_string(&Warning { warning: &message }).unwrap_or_default()
        } else {
            format!("{BOLD}sealift:{BOLD:#} {WARN}warning:{WARN:#} {message}")
        };
        // If standard error is closed, there is nobody to warn. A terminal would wrap the line within words.
        let mut out = anstream::stderr().lock();
        let _ = if io::stderr().is_terminal() && !self.json {
            paragraph(&mut out, 0, &line)
        } else {
            writeln!(out, "{line}")
        };
    }
}

/// Writes one JSON object and a newline.
pub(crate) fn json_line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    writeln!(out)
}

/// Writes a row of a table: a name and its value.
pub(crate) fn fact(out: &mut dyn Write, name: &str, value: impl std::fmt::Display) -> io::Result<()> {
    writeln!(out, "  {DIM}{name:<13}{DIM:#} {value}")
}

/// Writes each clause of a message as a paragraph. A line for the allowed signers stays on a line of its own, to be copied.
pub(crate) fn clauses(out: &mut dyn Write, indent: usize, message: &str) -> io::Result<()> {
    for clause in message.split("; ") {
        match clause.split_once(": ").filter(|(_, line)| line.contains(" namespaces=")) {
            Some((advice, line)) => {
                paragraph(out, indent, &format!("{advice}:"))?;
                writeln!(out, "{line}")?;
            }
            None => paragraph(out, indent, clause)?,
        }
    }
    Ok(())
}

/// Returns the columns of a word, without its colours.
fn visible(word: &str) -> usize {
    anstream::adapter::strip_str(word).map(|part| part.chars().count()).sum()
}

/// Writes text in indented lines of at most 78 columns. A longer word, such as a key, stays whole on its own line.
pub(crate) fn paragraph(out: &mut dyn Write, indent: usize, text: &str) -> io::Result<()> {
    let mut column = 0;
    for word in text.split(' ') {
        let len = visible(word);
        if column > 0 && column + 1 + len > 78 {
            writeln!(out)?;
            column = 0;
        }
        if column == 0 {
            write!(out, "{:indent$}{word}", "")?;
            column = indent + len;
        } else {
            write!(out, " {word}")?;
            column += 1 + len;
        }
    }
    writeln!(out)
}
