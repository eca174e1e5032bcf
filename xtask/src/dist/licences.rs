//! The licences of third-party code in the program. They require that every recipient of the program gets them too.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::MACHINES;
use super::machine::{FEATURES, PLUGIN};
use crate::shell::output;

/// Crates with sources that a build script compiles: cargo does not list them as linked.
const COMPILED: [&str; 1] = ["openssl-src"];

/// Returns every crate with its licence, and then each text once, under the names of the crates that it came with.
pub(super) fn collect() -> Result<String> {
    let mut list = String::from(
        "The program sealift and the plugin of nbdkit hold the Rust standard library, musl, and these crates.\n\n",
    );
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, folder, licence) in crates()? {
        list.push_str(&format!("{name}: {licence}\n"));
        for file in files(&folder)? {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            let text = text.trim();
            // zstd is also offered under the GPL, which we do not use.
            if !text.starts_with("GNU GENERAL PUBLIC LICENSE") {
                texts.entry(text.to_owned()).or_default().push(name.clone());
            }
        }
    }
    // The C library, which is linked statically.
    let musl = fs::read_to_string("/usr/share/doc/musl/copyright").context("the package musl says whose work it is")?;
    texts.entry(musl.trim().to_owned()).or_default().push("musl".to_owned());
    for (text, names) in texts {
        list.push_str(&format!("\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", ")));
    }
    Ok(list)
}

/// Returns every third-party crate in the program: its name with its version, its folder and its licence.
fn crates() -> Result<Vec<(String, PathBuf, String)>> {
    let metadata =
        output(Command::new("cargo").args(["metadata", "--locked", "--all-features", "--format-version", "1"]))?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata is JSON")?;
    let mut linked = Vec::new();
    for machine in MACHINES {
        let [of_program, of_plugin] = machine.targets();
        linked.extend(tree(&["--package", "sealift", "--features", FEATURES, "--target", of_program])?);
        linked.extend(tree(&["--package", PLUGIN, "--target", of_plugin])?);
    }
    // The embedded page.
    linked.extend(tree(&["--package", "sealift-wasm", "--target", "wasm32-unknown-unknown"])?);
    let mut crates = Vec::new();
    for package in metadata["packages"].as_array().context("cargo metadata lists packages")? {
        let text = |field: &str| package[field].as_str().unwrap_or_default();
        let name = format!("{} {}", text("name"), text("version"));
        // Our own crates have no source.
        let is_in_it = linked.contains(&name) || COMPILED.contains(&text("name"));
        if !package["source"].is_null() && is_in_it {
            let folder = Path::new(text("manifest_path")).parent().context("a manifest lies in a folder")?;
            crates.push((name, folder.to_owned(), text("license").to_owned()));
        }
    }
    ensure!(!crates.is_empty(), "cargo tree and cargo metadata name no crate in common");
    crates.sort();
    Ok(crates)
}

/// Returns the names and versions of the crates linked into a package.
fn tree(package: &[&str]) -> Result<Vec<String>> {
    let form = ["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"];
    let tree = output(Command::new("cargo").args(form).args(package))?;
    let name = |line: &str| {
        let mut words = line.split(' ');
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    };
    Ok(tree.lines().filter_map(name).collect())
}

/// Returns the licence texts of a crate, also those of C code in a folder of its own.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let names = ["LICENSE*", "LICENCE*", "COPYING*", "NOTICE*", "COPYRIGHT*"];
    let mut find = Command::new("find");
    find.arg(folder).args(["-maxdepth", "2", "-type", "f", "-size", "-100k", "("]);
    for (number, name) in names.into_iter().enumerate() {
        find.args(&["-o", "-iname", name][usize::from(number == 0)..]);
    }
    let mut files: Vec<PathBuf> = output(find.arg(")"))?.lines().map(PathBuf::from).collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_build_scripts_compile_is_among_the_crates_and_each_has_a_licence() {
        let crates = crates().expect("cargo names them");
        for compiled in COMPILED {
            let found = crates.iter().find(|(name, ..)| name.starts_with(&format!("{compiled} ")));
            let (_, folder, _) = found.unwrap_or_else(|| panic!("{compiled} is missing"));
            assert!(!files(folder).expect("its folder is read").is_empty(), "{compiled} has no text");
        }
        for (name, _, licence) in crates {
            assert!(!licence.is_empty(), "{name} names no licence");
        }
    }
}
