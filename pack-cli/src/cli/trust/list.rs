//! `sealift trust list`.

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use sealift::trust::{Guard, NowSource, SignerLine, TrustReport};
use serde::Serialize;

use crate::escape;
use crate::failure::Failure;
use crate::show::{BOLD, DIM, Form, WARN, fact, json_line};
use crate::time::Moment;
use crate::trust_args::TrustArgs;

/// Show trusted and revoked keys, and the lowest versions accepted
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  sealift trust list
  sealift trust list --trust new_signers    # check a file before installing it")]
pub(super) struct List {
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    form: Form,
}

impl List {
    pub(super) fn run(self) -> Result<(), Failure> {
        let report = Guard::load(&self.trust.options())?.describe()?;
        let show = self.form.show();
        let mut out = show.out();
        if show.json {
            return Ok(json_line(&mut out, &JsonTrust::of(&report))?);
        }
        Ok(print(&mut out, &report)?)
    }
}

fn print(out: &mut dyn Write, report: &TrustReport) -> io::Result<()> {
    heading(out, "Allowed signers", report.signers_path.as_deref(), report.signers.is_some())?;
    match report.signers.as_deref() {
        None => writeln!(out, "  {WARN}no file: no key is trusted{WARN:#}")?,
        Some([]) => writeln!(out, "  {WARN}no line allows a key to sign bundles: no key is trusted{WARN:#}")?,
        Some(lines) => {
            for line in lines {
                let (names, comment) = (escape::text(line.principals.as_str()), escape::text(&line.comment));
                writeln!(out, "  line {:<3} {BOLD}{names}{BOLD:#}  {comment}", line.line)?;
                writeln!(out, "           {}{}", line.key, window(line.valid_after, line.valid_before))?;
            }
        }
    }
    heading(out, "\nRevoked keys", report.revoked_path.as_deref(), report.revoked_count > 0)?;
    for key in &report.revoked {
        writeln!(out, "  {key}")?;
    }
    match report.revoked_count - report.revoked.len() {
        0 if report.revoked_count == 0 => writeln!(out, "  none")?,
        0 => {}
        more => writeln!(out, "  and {more} listed only by SHA-1")?,
    }
    heading(out, "\nRequired signatures", report.thresholds_path.as_deref(), true)?;
    for (pattern, number) in &report.thresholds {
        fact(out, &number.to_string(), escape::text(pattern.as_deref().unwrap_or("any other name")))?;
    }
    heading(out, "\nThis device's tags", report.compatible_path.as_deref(), true)?;
    writeln!(out, "  {}", report.compatible.as_deref().map_or("none".into(), |tags| tags.join(", ")))?;
    heading(out, "\nLowest versions accepted", Some(&report.state), true)?;
    if report.floors.is_empty() {
        writeln!(out, "  none")?;
    }
    for floor in &report.floors {
        let version = floor.version.map_or("any version".into(), |version| format!("version {version}"));
        writeln!(out, "  {BOLD}{}{BOLD:#}  {version}", escape::text(&floor.name))?;
    }
    writeln!(out, "\n{BOLD}Now{BOLD:#}  {} ({})", Moment(report.now.seconds()), now_source(report))?;
    for path in &report.passed_over {
        let path = escape::text(&path.display().to_string());
        writeln!(out, "{WARN}ignored{WARN:#} {path}: there is no allowed_signers beside it")?;
    }
    Ok(())
}

fn heading(out: &mut dyn Write, title: &str, path: Option<&Path>, there: bool) -> io::Result<()> {
    match path {
        None => writeln!(out, "{BOLD}{title}{BOLD:#}"),
        Some(path) => {
            let is_absent = !there && matches!(path.try_exists(), Ok(false));
            let absent = if is_absent { " (absent)" } else { "" };
            writeln!(out, "{BOLD}{title}{BOLD:#}  {DIM}{}{absent}{DIM:#}", escape::text(&path.display().to_string()))
        }
    }
}

fn window(after: Option<i64>, before: Option<i64>) -> String {
    let mut text = String::new();
    if let Some(after) = after {
        text.push_str(&format!(", from {}", Moment(after)));
    }
    if let Some(before) = before {
        text.push_str(&format!(", to {}", Moment(before)));
    }
    text
}

fn now_source(report: &TrustReport) -> &'static str {
    match report.now.source() {
        NowSource::Given => "given by --time",
        NowSource::Clock => "the clock",
        NowSource::NewestBundle => "creation time of the newest bundle installed; the clock is behind it",
        _ => "build time of this program; the clock is behind it",
    }
}

#[derive(Serialize)]
struct JsonTrust {
    signers: Option<Vec<JsonLine>>,
    revoked: Vec<String>,
    thresholds: Vec<(Option<String>, usize)>,
    compatible: Option<Vec<String>>,
    state: String,
    floors: Vec<JsonFloor>,
    now: i64,
}

#[derive(Serialize)]
struct JsonLine {
    line: usize,
    principals: String,
    key: String,
    comment: String,
    valid_after: Option<i64>,
    valid_before: Option<i64>,
}

#[derive(Serialize)]
struct JsonFloor {
    name: String,
    version: Option<u64>,
}

impl JsonTrust {
    fn of(report: &TrustReport) -> Self {
        let lines = report.signers.as_ref().map(|lines| {
            let line = |line: &SignerLine| JsonLine {
                line: line.line,
                principals: line.principals.as_str().to_owned(),
                key: line.key.to_string(),
                comment: line.comment.clone(),
                valid_after: line.valid_after,
                valid_before: line.valid_before,
            };
            lines.iter().map(line).collect()
        });
        let floor =
            |floor: &sealift::trust::FloorReport| JsonFloor { name: floor.name.clone(), version: floor.version };
        Self {
            signers: lines,
            revoked: report.revoked.iter().map(ToString::to_string).collect(),
            thresholds: report.thresholds.clone(),
            compatible: report.compatible.clone(),
            state: report.state.display().to_string(),
            floors: report.floors.iter().map(floor).collect(),
            now: report.now.seconds(),
        }
    }
}
