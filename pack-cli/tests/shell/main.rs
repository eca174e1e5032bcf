//! The program in a shell: pipes, existing files, terminals.
#![allow(clippy::unwrap_used, reason = "tests")]

mod adopting;
mod demo;
mod desk;
mod examples;
mod outputs;
mod passphrases;
mod pipes;
mod sealing;
mod sticks;
mod terminal;
mod verdicts;
