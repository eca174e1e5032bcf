//! Replays the corpora of the fuzz targets, and inputs that once crashed them.

use sealift_tests::corpus::{folder, seeds};
use sealift_tests::targets::ALL;
use sealift_tests::vector::load;

#[test]
fn the_corpora_are_replayed() {
    for (target, body) in ALL {
        let inputs = std::fs::read_dir(folder().join(target)).unwrap_or_else(|_| panic!("{target} has a corpus"));
        for input in inputs {
            let path = input.expect("it can be listed").path();
            let data = std::fs::read(&path).expect("it can be read");
            // Prints the name of the input before a possible panic.
            println!("{}", path.display());
            body(&data);
            // Also tries variations of each seed.
            for at in (0..data.len()).step_by(1 + data.len() / 64) {
                let mut changed = data.clone();
                changed[at] ^= 1 << (at % 8);
                body(&changed);
                body(&data[..at]);
            }
        }
    }
}

#[test]
fn the_seeds_are_those_of_the_vectors() {
    for (target, name, bytes) in seeds(&load()) {
        let seed = std::fs::read(folder().join(target).join(&name)).unwrap_or_default();
        assert!(seed == bytes, "{target}/{name} is another; run: cargo run -p sealift-tests --bin vectors");
    }
}

#[test]
fn each_target_has_its_fuzz_target() {
    let fuzz = folder().join("..");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).expect("fuzz has its manifest");
    for (target, _) in ALL {
        let source = std::fs::read_to_string(fuzz.join(format!("fuzz_targets/{target}.rs")));
        let source = source.unwrap_or_else(|_| panic!("fuzz_targets/{target}.rs is there"));
        assert!(source.contains(&format!("targets::{target}(data)")), "{target} calls its body");
        assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is in the manifest");
    }
}
