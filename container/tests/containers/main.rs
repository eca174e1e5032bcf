//! Containers that real programs make, taken apart: each member has the content of the file that was put in.
#![allow(clippy::unwrap_used, reason = "tests")]

mod archives;
mod checked;
mod disks;
mod file_systems;
mod given;
mod mutants;
mod streams;
