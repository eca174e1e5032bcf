//! What the library says of its work, on standard error: `--verbose`, or `SEALIFT_LOG`.

use std::io;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;
use tracing_subscriber::util::SubscriberInitExt as _;

use super::failure::Failure;

/// The variable that says what is shown where no flag does: a level, or levels of modules, such as `info,sealift_store::target=debug`.
const VARIABLE: &str = "SEALIFT_LOG";

/// Starts to show. Lines have no times and no colours: who wants those pipes them through a logger.
pub(crate) fn start(verbose: u8, json: bool) -> Result<(), Failure> {
    let Some(filter) = filter(verbose)? else { return Ok(()) };
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr).without_time();
    // Nobody else of this process has a subscriber.
    let _ = if json {
        registry().with(filter).with(lines.json()).try_init()
    } else {
        registry().with(filter).with(lines.with_ansi(false).with_target(false)).try_init()
    };
    Ok(())
}

/// Whether anything is shown. Then summaries say more, and no bar stands where lines come.
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
