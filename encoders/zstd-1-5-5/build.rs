//! Compiles libzstd's encoder, with another name for each of its functions.

use std::{env, fs, io};

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=zstd");
    let mut build = cc::Build::new();
    for folder in ["zstd/common", "zstd/compress"] {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "c") {
                build.file(path);
            }
        }
    }
    let renamed = env::current_dir()?.join("zstd/rename.h");
    build
        .flag("-include")
        .flag(renamed)
        .define("ZSTD_MULTITHREAD", None)
        .define("ZSTD_TRACE", "0")
        .warnings(false)
        .compile("zstd-1-5-5");
    Ok(())
}
