//! The command line: what it prints, and how it ends.
#![allow(clippy::unwrap_used, reason = "tests")]

mod cases;
mod completions;
mod field;
mod manual;
mod progress;
