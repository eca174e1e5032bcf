//! Which copies of a bundle were read, and where they are damaged.

use sealift::{CopyStats, DamagedRange};
use sealift_format::num;
use serde::Serialize;

use super::failure::shown;
use super::human::{Bytes, Grouped, count};
use super::log;
use super::show::Show;

#[derive(Serialize)]
struct Line<'a> {
    copy: &'a CopyStats,
}

/// How many ranges are named without `--verbose`.
const NAMED: usize = 3;

/// Prints on standard error where each copy is damaged; with --json, also what was read from it.
pub(crate) fn tell(show: Show, copies: &[CopyStats]) {
    for copy in copies {
        if show.json {
            // If standard error is closed, there is nobody to tell.
            anstream::eprintln!("{}", serde_json::to_string(&Line { copy }).unwrap_or_default());
        } else if let Some(why) = &copy.left {
            show.warn(&format!("{} was left: {why}", shown(&copy.path)));
        } else if !copy.damaged.is_empty() {
            show.warn(&format!("{} is damaged: {}; replace this copy", shown(&copy.path), ranges(&copy.damaged)));
        }
    }
}

fn ranges(damaged: &[DamagedRange]) -> String {
    let named = if log::is_on() { damaged.len() } else { NAMED };
    let range = |DamagedRange { start, end, unreadable }: &DamagedRange| {
        let why = if *unreadable { " cannot be read" } else { " differ" };
        format!("bytes {} to {}{why}", Grouped(*start), Grouped(end.saturating_sub(1)))
    };
    let mut text = damaged.iter().take(named).map(range).collect::<Vec<_>>().join(", ");
    let more = num::wide(damaged.len().saturating_sub(named));
    if more > 0 {
        text.push_str(&format!(", and {} more; -v names them", count(more, "range")));
    }
    let bytes = damaged.iter().map(|range| range.end.saturating_sub(range.start)).sum();
    format!("{text} ({} in all)", Bytes(bytes))
}
