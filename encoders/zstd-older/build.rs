//! Compiles libzstd's encoder once for each version, with other names for its functions.

use std::path::PathBuf;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=zstd");
    let mut files = Vec::new();
    for folder in ["zstd/common", "zstd/compress"] {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "c") {
                files.push(path);
            }
        }
    }
    let renamed = env::current_dir()?.join("zstd/rename.h");
    compile("zstd-1-5-5", "sealift_zstd_1_5_5_", None, &files, &renamed);
    compile("zstd-1-5-4", "sealift_zstd_1_5_4_", Some("SEALIFT_ZSTD_1_5_4"), &files, &renamed);
    Ok(())
}

fn compile(output: &str, prefix: &str, version: Option<&str>, files: &[PathBuf], renamed: &PathBuf) {
    let mut build = cc::Build::new();
    if let Some(version) = version {
        build.define(version, None);
    }
    build
        .files(files)
        .define("SEALIFT_PREFIX", prefix)
        .flag("-include")
        .flag(renamed)
        .define("ZSTD_MULTITHREAD", None)
        .define("ZSTD_TRACE", "0")
        .warnings(false)
        .compile(output);
}
