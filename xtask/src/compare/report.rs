//! bench/RESULTS.md: tables of what was measured, and whether it is what was wanted.

use std::time::Duration;

use super::measures::{Measure, Wanted};
use super::places::Places;
use super::race::Samples;

const MIB: f64 = 1024.0 * 1024.0;

/// The pages, written as the measures end.
#[derive(Default)]
pub(crate) struct Report {
    verdicts: Vec<Verdict>,
    sections: String,
}

/// One wanted figure, and what it came to.
pub(crate) struct Verdict {
    pub(crate) what: String,
    pub(crate) figure: String,
    pub(crate) wanted: String,
    pub(crate) is_reached: bool,
}

impl Report {
    /// Adds a measure's table and judges it.
    pub(crate) fn add(&mut self, measure: &Measure, samples: &[Samples], places: &Places) {
        self.verdicts.extend(measure.wanted.iter().filter_map(|wanted| judge(measure, wanted, samples)));
        self.section(measure.title, &table(samples, places));
    }

    pub(crate) fn verdict(&mut self, verdict: Verdict) {
        self.verdicts.push(verdict);
    }

    pub(crate) fn section(&mut self, title: &str, text: &str) {
        self.sections.push_str(&format!("\n## {title}\n\n{}\n", text.trim_end()));
    }

    /// Returns the whole page below an opening text.
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

/// Returns nothing where a peer gave no figure to hold ours against.
fn judge(measure: &Measure, wanted: &Wanted, samples: &[Samples]) -> Option<Verdict> {
    let (ours, peers) = samples.split_first()?;
    let seconds = ours.median().wall.as_secs_f64();
    let (what, figure, wanted, is_reached) = match wanted {
        Wanted::Seconds(limit, names) => {
            let peer = peers.iter().filter(|peer| names.contains(&peer.contender.name));
            let best = peer.min_by_key(|peer| peer.median().wall)?;
            let ratio = seconds / best.median().wall.as_secs_f64();
            (
                format!("seconds, to {}", best.contender.name),
                format!("{ratio:.2}"),
                format!("{limit:.2}"),
                ratio <= *limit,
            )
        }
        Wanted::Bytes(limit, name) => {
            let peer = peers.iter().find(|peer| peer.contender.name == *name)?;
            let ratio = float(ours.bytes?) / float(peer.bytes?);
            (format!("bytes, to {name}"), format!("{ratio:.3}"), format!("{limit:.2}"), ratio <= *limit)
        }
        Wanted::PeakMib(limit) => {
            let peak = float(ours.peak_bytes()) / MIB;
            ("peak memory".to_owned(), format!("{peak:.0} MiB"), format!("{limit:.0} MiB"), peak <= *limit)
        }
        Wanted::Milliseconds(limit) => {
            let time = seconds * 1000.0;
            ("time".to_owned(), format!("{time:.1} ms"), format!("{limit:.0} ms"), time <= *limit)
        }
    };
    Some(Verdict { what: format!("{}: {what}", measure.name), figure, wanted: format!("at most {wanted}"), is_reached })
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
        let runs: Vec<_> = one.usages.iter().map(|usage| seconds(usage.wall)).collect();
        let row = format!(
            "| {} | {} | {:.2} | {} | {} | {} | {} | {} | {:.0} |\n",
            one.contender.name,
            seconds(median.wall),
            ours.as_secs_f64() / median.wall.as_secs_f64(),
            runs.join(" "),
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

/// Returns a number with commas between thousands.
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
