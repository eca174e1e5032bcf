//! The command line: its output, and its exit status.
#![allow(clippy::unwrap_used, reason = "tests")]

mod cases;
mod completions;
mod durable;
mod field;
mod manual;
mod progress;
