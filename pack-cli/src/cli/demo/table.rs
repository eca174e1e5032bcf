//! What was measured, side by side.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;

use super::super::human::{self, Bytes};
use super::super::show::{BOLD, DIM, json_line, paragraph};

/// One job done by one side.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    job: &'static str,
    by: String,
    #[serde(skip)]
    ours: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored_bytes: Option<u64>,
    seconds: f64,
    bytes_per_second: u64,
    #[serde(skip)]
    elapsed: Duration,
}

impl Row {
    /// Sealift's.
    pub(super) fn ours(job: &'static str, by: &str, stored: Option<u64>, elapsed: Duration, bytes: u64) -> Self {
        Self { ours: true, ..Self::theirs(job, by.into(), stored, elapsed, bytes) }
    }

    /// The other side's.
    pub(super) fn theirs(job: &'static str, by: String, stored: Option<u64>, elapsed: Duration, bytes: u64) -> Self {
        let bytes_per_second = human::per_second(bytes, elapsed);
        Self { job, by, ours: false, stored_bytes: stored, seconds: human::seconds(elapsed), bytes_per_second, elapsed }
    }
}

/// All rows.
#[derive(Debug, Default, Serialize)]
pub(super) struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub(super) fn add(&mut self, row: Row) {
        self.rows.push(row);
    }

    /// Prints it for people; the rate is that of the files' own bytes.
    pub(super) fn print(&self, out: &mut dyn Write, notes: &[&str]) -> io::Result<()> {
        writeln!(out, "{BOLD}{:<27}{:>10}{:>10}{:>12}{:>13}{BOLD:#}", "", "stored", "time", "files", "time ratio")?;
        for (number, job) in ["pack", "unpack", "check"].into_iter().enumerate() {
            if number > 0 {
                writeln!(out)?;
            }
            let peer = self.rows.iter().find(|row| row.job == job && !row.ours);
            for row in self.rows.iter().filter(|row| row.job == job) {
                row.print(out, peer.filter(|_| row.ours))?;
            }
        }
        writeln!(out)?;
        for note in notes {
            paragraph(out, 0, note)?;
        }
        paragraph(
            out,
            0,
            "Both sides read a warm cache and wait until the medium has what they wrote. zstd -t knows of no \
             signature, and of no single file.",
        )
    }

    pub(super) fn print_json(&self, out: &mut dyn Write) -> io::Result<()> {
        json_line(out, self)
    }
}

impl Row {
    fn print(&self, out: &mut dyn Write, peer: Option<&Self>) -> io::Result<()> {
        let stored = self.stored_bytes.map_or(String::new(), |bytes| Bytes(bytes).to_string());
        let ratio = peer.map_or(String::new(), |peer| format!("{:.2}", self.seconds / peer.seconds.max(0.001)));
        let style = if self.ours { BOLD } else { DIM };
        let (time, rate) = (human::duration(self.elapsed), format!("{}/s", Bytes(self.bytes_per_second)));
        writeln!(out, "{style}{:<27}{style:#}{stored:>10}{time:>10}{rate:>12}{ratio:>13}", self.by)
    }
}
