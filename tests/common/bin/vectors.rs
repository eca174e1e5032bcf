//! Writes spec/vectors and the seeds of fuzz/corpus: `cargo run -p sealift-tests --bin vectors`. The output is deterministic.

use std::collections::BTreeSet;

use sealift_tests::vector::{folder, names, names_with_content};
use sealift_tests::{corpus, large, vectors};

fn main() -> std::io::Result<()> {
    let folder = folder();
    let vectors = vectors::all();
    let made: BTreeSet<&str> = vectors.iter().map(|vector| vector.name.as_str()).collect();
    assert_eq!(made.len(), vectors.len(), "two vectors have one name");
    for stale in names().iter().filter(|name| !made.contains(name.as_str())) {
        std::fs::remove_file(folder.join(format!("{stale}.vec")))?;
        println!("removed {stale}");
    }
    let with_content: BTreeSet<&str> =
        vectors.iter().filter(|vector| vector.content.is_some()).map(|vector| vector.name.as_str()).collect();
    for stale in names_with_content().iter().filter(|name| !with_content.contains(name.as_str())) {
        std::fs::remove_file(folder.join(format!("{stale}.json")))?;
    }
    for vector in &vectors {
        std::fs::write(folder.join(format!("{}.vec", vector.name)), vector.encode())?;
        if let Some(content) = &vector.content {
            std::fs::write(folder.join(format!("{}.json", vector.name)), content)?;
        }
    }
    let seeds = corpus::seeds(&vectors);
    for (target, name, bytes) in &seeds {
        let folder = corpus::folder().join(target);
        std::fs::create_dir_all(&folder)?;
        std::fs::write(folder.join(name), bytes)?;
    }
    for (name, bytes) in large::for_node() {
        std::fs::create_dir_all(large::node_folder())?;
        std::fs::write(large::node_folder().join(name), bytes)?;
    }
    println!("{} vectors, {} seeds", vectors.len(), seeds.len());
    Ok(())
}
