//! `cargo xtask web`: the verifier for JavaScript, built into wasm/npm/pkg.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, anyhow};
use wasm_bindgen_cli_support::Bindgen;

use crate::shell::{run, target_dir};

/// Where the package's code lies; git does not keep it.
const OUT: &str = "wasm/npm/pkg";

pub(crate) fn main(mut args: lexopt::Parser) -> Result<()> {
    match args.next()? {
        None => build(),
        Some(other) => Err(other.unexpected().into()),
    }
}

fn build() -> Result<()> {
    let target = "wasm32-unknown-unknown";
    // These would displace the flags that .cargo/config.toml has for the target.
    run(Command::new("cargo")
        .args(["build", "--locked", "--profile", "wasm", "--target", target, "--package", "sealift-wasm"])
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS"))?;
    let input = target_dir()?.join(target).join("wasm/sealift_wasm.wasm");
    // What an earlier version named otherwise is not to stay.
    if Path::new(OUT).exists() {
        fs::remove_dir_all(OUT).with_context(|| format!("cannot clear {OUT}"))?;
    }
    Bindgen::new()
        .input_path(input)
        .typescript(true)
        .web(true)
        .and_then(|bindgen| bindgen.remove_name_section(true).remove_producers_section(true).generate(OUT))
        .map_err(|error| anyhow!("wasm-bindgen: {error:#}"))?;
    let module = Path::new(OUT).join("sealift_wasm_bg.wasm");
    let len = fs::metadata(&module).with_context(|| format!("{} is missing", module.display()))?.len();
    println!("{}: {len} bytes", module.display());
    Ok(())
}
