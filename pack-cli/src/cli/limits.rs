//! `--limit`: the sizes that a bundle may declare, the same for all bundles of a run.

use std::sync::OnceLock;

use sealift::Limits;
use sealift_format::num::wide;

use super::human::parse_size;
use super::jobs_arg::JobsArg;

static CHOSEN: OnceLock<Limits> = OnceLock::new();

/// One limit and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    Entries(u64),
    Depth(u32),
    Paths(u64),
    Size(u64),
    Memory(u64),
}

const FORM: &str = "write entries=N, depth=N, paths=SIZE, size=SIZE or memory=SIZE, as in entries=1000000,memory=512M";

/// Parses `entries=1000000` and the like.
pub(crate) fn parse_limit(text: &str) -> Result<Limit, String> {
    let (what, number) = text.split_once('=').ok_or(FORM)?;
    let wrong = |_| format!("{number:?} is not a whole number, or is too large: {FORM}");
    match what {
        "entries" => number.parse().map(Limit::Entries).map_err(wrong),
        "depth" => number.parse().map(Limit::Depth).map_err(wrong),
        "paths" => parse_size(number).map(Limit::Paths),
        "size" => parse_size(number).map(Limit::Size),
        "memory" => parse_size(number).map(Limit::Memory),
        _ => Err(FORM.into()),
    }
}

/// What a run takes memory for besides the bundle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uses {
    pub(crate) jobs: usize,
    pub(crate) cache: u64,
}

impl Uses {
    pub(crate) fn of(jobs: JobsArg) -> Self {
        Self { jobs: jobs.count(), cache: 0 }
    }
}

/// Sets the limits given, of which the last of a kind wins, for a run that uses this.
pub(crate) fn choose(asked: &[Limit], uses: Uses) {
    let mut limits = Limits { jobs: wide(uses.jobs), cache: uses.cache, ..Limits::default() };
    for limit in asked {
        match *limit {
            Limit::Entries(most) => limits.entries = most,
            Limit::Depth(most) => limits.depth = most,
            Limit::Paths(most) => limits.paths = most,
            Limit::Size(most) => limits.logical = most,
            Limit::Memory(most) => limits.memory = most,
        }
    }
    // Set once, when the program starts.
    let _ = CHOSEN.set(limits);
}

/// Returns the limits of this run.
pub(crate) fn limits() -> Limits {
    CHOSEN.get().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_parsed() {
        let taken = ["entries=5", "depth=7", "size=1T", "memory=512M"].map(parse_limit);
        assert_eq!(taken[0], Ok(Limit::Entries(5)));
        assert_eq!(taken[1], Ok(Limit::Depth(7)));
        assert_eq!(taken[2], Ok(Limit::Size(1 << 40)));
        assert_eq!(taken[3], Ok(Limit::Memory(512 << 20)));
        for wrong in ["", "entries", "entries=", "entries=-1", "files=3", "memory=1MB", "depth=4294967296"] {
            assert!(parse_limit(wrong).is_err(), "{wrong}");
        }
    }
}
