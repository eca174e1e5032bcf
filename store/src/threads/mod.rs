//! Threads: parallel work, results in order, and what the panic of one does to the others.

pub mod in_turn;
pub mod panic_guard;
pub mod parallel;
pub mod team;
