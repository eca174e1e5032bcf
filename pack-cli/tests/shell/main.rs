//! The program in a shell: pipes, existing files, terminals.
#![allow(clippy::unwrap_used, reason = "tests")]

mod adopting;
mod demo;
mod dm_verity;
mod examples;
mod into;
mod outputs;
mod passphrases;
mod pipes;
mod sealing;
mod sticks;
mod terminal;
mod verdicts;

/// A folder with a key, and a tree `os`.
fn new_desk() -> sealift_desk::Desk {
    let desk = sealift_desk::Desk::with_key();
    desk.write("os/hello", "hello");
    desk
}
