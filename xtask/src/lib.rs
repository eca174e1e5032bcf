//! Chores of the workspace, one file per subcommand, and what they share. They call programs, and contain nothing that the product needs.

pub mod ci;
pub mod debian;
pub mod dist;
mod failures;
pub mod packages;
pub mod portal;
pub mod programs;
pub mod quick;
pub mod shell;
mod skips;
pub mod steps;
pub mod tools;
pub mod web;
