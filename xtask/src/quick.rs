//! `cargo xtask quick`: the checks that find most mistakes, for use between two edits. In a built tree it takes a minute at most; `ci` decides
//! whether a change may be merged.

use anyhow::Result;

use crate::packages::{self, Chore};
use crate::programs;
use crate::steps::{self, Action, Step};
use crate::web;

use Action::{Call, Lines, Prepare};

/// The steps in order, with the same options as in `ci`, so that neither rebuilds what the other has built.
#[rustfmt::skip] // a table
const STEPS: &[Step] = &[
    Step { name: "format", action: Lines(&["cargo fmt --all --check"]) },
    Step { name: "programs", action: Call("that a package of the list brings each program that is called", programs::check) },
    Step { name: "needs", action: Prepare("OpenSSL's headers and the page, which the program is built with", || {
        packages::ensure(Chore::Quick)?;
        web::ensure()
    }) },
    Step { name: "clippy", action: Lines(&["cargo lint -- -D warnings"]) },
    // Killing a process at each of its calls takes longer than all other tests, and so do the tests with OSTree's own program.
    Step { name: "test", action: Lines(&["cargo tests --quiet --lib --bins --test vectors --test house -- --skip killed --skip ostree::tests"]) },
];

/// Runs the steps named in the arguments, or all of them.
pub fn main(args: lexopt::Parser) -> Result<()> {
    steps::choose(Chore::Quick, STEPS, args)?.map_or(Ok(()), |steps| steps::run(Chore::Quick, &steps))
}
