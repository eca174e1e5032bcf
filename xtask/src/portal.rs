//! `cargo xtask portal`: builds the program that serves the page, in target/release.

use std::process::Command;

use anyhow::Result;

use crate::shell::{run, target_dir};
use crate::web;

pub fn main(mut args: lexopt::Parser) -> Result<()> {
    if let Some(other) = args.next()? {
        return Err(other.unexpected().into());
    }
    web::build()?;
    run(Command::new("cargo").args([
        "build",
        "--locked",
        "--release",
        "--package",
        "sealift",
        "--features",
        "portal",
    ]))?;
    println!("{} portal", target_dir()?.join("release/sealift").display());
    Ok(())
}
