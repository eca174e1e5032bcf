//! bench/RESULTS.md: tables of the measures, and whether the targets are met.

use std::time::Duration;

use super::job::Usage;
use super::measures::{Measure, Wanted};
use super::places::Places;
use super::race::Samples;

const MIB: f64 = 1024.0 * 1024.0;

/// The pages, written as the measures complete.
#[derive(Default)]
pub(crate) struct Report {
    verdicts: Vec<Verdict>,
    sections: String,
}

/// One target, and the measured figure.
struct Verdict {
    what: String,
    figure: String,
    wanted: String,
    is_reached: bool,
}

impl Report {
    /// Adds a measure's table and compares it with the targets.
    pub(crate) fn add(&mut self, measure: &Measure, samples: &[Samples], places: &Places) {
        for wanted in measure.wanted {
            self.judge(measure, wanted, samples);
        }
        self.section(measure.title, &table(samples, places));
    }

    /// Adds nothing if a peer has no figure to compare with.
    fn judge(&mut self, measure: &Measure, wanted: &Wanted, samples: &[Samples]) -> Option<()> {
        let (ours, peers) = samples.split_first()?;
        let seconds = ours.median().wall.as_secs_f64();
        let (what, figure, limit, digits, unit) = match wanted {
            Wanted::Seconds(limit, names) => {
                let peer = peers.iter().filter(|peer| names.contains(&peer.contender.name));
                let best = peer.min_by_key(|peer| peer.median().wall)?;
                let ratio = seconds / best.median().wall.as_secs_f64();
                (format!("seconds, to {}", best.contender.name), ratio, limit, 2, "")
            }
            Wanted::Bytes(limit, name) => {
                let peer = peers.iter().find(|peer| peer.contender.name == *name)?;
                (format!("bytes, to {name}"), float(ours.bytes?) / float(peer.bytes?), limit, 3, "")
            }
            Wanted::PeakMib(limit) => ("peak memory".to_owned(), float(ours.peak_bytes()) / MIB, limit, 0, " MiB"),
            Wanted::Milliseconds(limit) => ("time".to_owned(), seconds * 1000.0, limit, 1, " ms"),
        };
        self.at_most(format!("{}: {what}", measure.name), figure, *limit, digits, unit);
        Some(())
    }

    /// Adds a target with a maximum; the figure is shown with this many decimal places.
    pub(crate) fn at_most(&mut self, what: impl Into<String>, figure: f64, limit: f64, digits: usize, unit: &str) {
        let wanted = format!("at most {limit:.digits$}{unit}");
        self.verdict(what, format!("{figure:.digits$}{unit}"), wanted, figure <= limit);
    }

    /// Adds a target with a minimum.
    pub(crate) fn at_least(&mut self, what: impl Into<String>, figure: f64, limit: f64, digits: usize, unit: &str) {
        let wanted = format!("at least {limit:.digits$}{unit}");
        self.verdict(what, format!("{figure:.digits$}{unit}"), wanted, figure >= limit);
    }

    pub(crate) fn verdict(&mut self, what: impl Into<String>, figure: String, wanted: String, is_reached: bool) {
        self.verdicts.push(Verdict { what: what.into(), figure, wanted, is_reached });
    }

    pub(crate) fn section(&mut self, title: &str, text: &str) {
        self.sections.push_str(&format!("\n## {title}\n\n{}\n", text.trim_end()));
    }

    /// Returns the whole page after an introduction.
    pub(crate) fn finish(self, opening: &str) -> String {
        let mut page = format!("# Sealift and its peers\n\n{}\n", opening.trim_end());
        page.push_str("\n## What was wanted\n\n| measure | figure | wanted | reached |\n| --- | --- | --- | --- |\n");
        for Verdict { what, figure, wanted, is_reached } in &self.verdicts {
            let reached = if *is_reached { "yes" } else { "**no**" };
            page.push_str(&format!("| {what} | {figure} | {wanted} | {reached} |\n"));
        }
        page + &self.sections
    }
}

fn table(samples: &[Samples], places: &Places) -> String {
    let mut text = String::from(
        "| | seconds | ours to it | each run | CPU | user | system | bytes | peak MiB |\n| --- | --: | --: | --- | --: | --: | --: | --: | --: |\n",
    );
    let Some(ours) = samples.first().map(|ours| ours.median().wall) else {
        return text;
    };
    for one in samples {
        let median = one.median();
        let row = format!(
            "| {} | {} | {:.2} | {} | {} | {} | {} | {} | {:.0} |\n",
            one.contender.name,
            seconds(median.wall),
            ours.as_secs_f64() / median.wall.as_secs_f64(),
            each(&one.usages),
            seconds(median.cpu()),
            seconds(median.user),
            seconds(median.system),
            one.bytes.map_or_else(|| "-".to_owned(), grouped),
            float(one.peak_bytes()) / MIB,
        );
        text.push_str(&row);
    }
    text.push('\n');
    for one in samples {
        text.push_str(&format!("- `{}`\n", one.contender.line.replace("CORES", &places.cores.to_string())));
    }
    text
}

pub(crate) fn seconds(time: Duration) -> String {
    let time = time.as_secs_f64();
    if time < 0.1 { format!("{time:.4}") } else { format!("{time:.2}") }
}

/// Returns the seconds of each run.
pub(crate) fn each(usages: &[Usage]) -> String {
    usages.iter().map(|usage| seconds(usage.wall)).collect::<Vec<_>>().join(" ")
}

/// Returns a number with commas between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[expect(clippy::as_conversions, reason = "sizes of files and memory lie far below 2^53")]
pub(crate) fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(100), "100");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(208_800_123), "208,800,123");
    }
}
