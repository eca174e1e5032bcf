//! Threads: work on several at once, results in order, and what a panic of one does to the others.

pub mod in_turn;
pub mod panic_guard;
pub mod parallel;
