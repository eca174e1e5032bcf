//! The program as a shell has it: pipes, files that are there, terminals.
#![allow(clippy::unwrap_used, reason = "the scratch files of tests")]

mod adopting;
mod demo;
mod desk;
mod outputs;
mod passphrases;
mod pipes;
mod sticks;
mod terminal;
