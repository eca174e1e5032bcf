//! The library's log on standard error: `--verbose` or `SEALIFT_LOG`.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::failure::Failure;

/// The variable that sets the level without a flag: a level, or levels of modules, such as `info,sealift_store::install=debug`.
const VARIABLE: &str = "SEALIFT_LOG";

/// Starts logging. Lines have no times and no colours; a logger in a pipe can add times.
pub(crate) fn start(verbose: u8, json: bool) -> Result<(), Failure> {
    let Some(filter) = filter(verbose)? else { return Ok(()) };
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).without_time();
    // This process has no other subscriber.
    let _ = if json {
        registry().with(filter).with(lines.json()).try_init()
    } else {
        registry().with(filter).with(lines.with_ansi(false).with_target(false)).try_init()
    };
    Ok(())
}

/// Returns whether logging is on. Then summaries are longer, and there is no progress bar between the lines.
pub(crate) fn is_on() -> bool {
    LevelFilter::current() != LevelFilter::OFF
}

fn filter(verbose: u8) -> Result<Option<Targets>, Failure> {
    let level = match verbose {
        0 => {
            let Some(value) = std::env::var_os(VARIABLE).filter(|value| !value.is_empty()) else { return Ok(None) };
            let parsed = value.to_str().and_then(|text| text.parse().ok());
            let wrong = || Failure::usage(format!("{VARIABLE} is {value:?}, not a level such as info, debug or trace"));
            return parsed.map(Some).ok_or_else(wrong);
        }
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    Ok(Some(Targets::new().with_default(level)))
}
