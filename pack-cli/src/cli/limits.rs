//! `--limit`: the sizes that a bundle may declare, the same for all bundles of a run.

use std::sync::OnceLock;

use sealift::Limits;

use super::human::parse_size;

static CHOSEN: OnceLock<Limits> = OnceLock::new();

/// One limit and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Limit {
    what: What,
    number: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Entries,
    Depth,
    Size,
    Memory,
}

const FORM: &str = "write entries=N, depth=N, size=SIZE or memory=SIZE, as in entries=1000000,memory=512M";

/// Parses `entries=1000000` and the like.
pub(crate) fn parse_limit(text: &str) -> Result<Limit, String> {
    let (what, number) = text.split_once('=').ok_or(FORM)?;
    let count = || number.parse().map_err(|_| format!("{number:?} is not a whole number: {FORM}"));
    let (what, number) = match what {
        "entries" => (What::Entries, count()?),
        "depth" => (What::Depth, count()?),
        "size" => (What::Size, parse_size(number)?),
        "memory" => (What::Memory, parse_size(number)?),
        _ => return Err(FORM.into()),
    };
    Ok(Limit { what, number })
}

/// Sets the limits given; the last of a kind wins.
pub(crate) fn choose(asked: &[Limit]) {
    let mut limits = Limits::default();
    for limit in asked {
        match limit.what {
            What::Entries => limits.entries = limit.number,
            What::Depth => limits.depth = u32::try_from(limit.number).unwrap_or(u32::MAX),
            What::Size => limits.logical = limit.number,
            What::Memory => limits.memory = limit.number,
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
        assert_eq!(taken[0], Ok(Limit { what: What::Entries, number: 5 }));
        assert_eq!(taken[1], Ok(Limit { what: What::Depth, number: 7 }));
        assert_eq!(taken[2], Ok(Limit { what: What::Size, number: 1 << 40 }));
        assert_eq!(taken[3], Ok(Limit { what: What::Memory, number: 512 << 20 }));
        for wrong in ["", "entries", "entries=", "entries=-1", "files=3", "memory=1MB"] {
            assert!(parse_limit(wrong).is_err(), "{wrong}");
        }
    }
}
