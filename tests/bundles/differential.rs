//! Compares the readers on mutated bundles: a short run of what `cargo xtask big differential` does a million times.

use sealift_tests::differential::run;

use crate::reference::python;

const COUNT: u64 = 3000;

#[test]
fn the_readers_agree_on_mutated_bundles() {
    let Some(python) = python() else {
        return sealift_desk::skipped("needs the second reader's Python modules: cargo xtask ci readers");
    };
    let outcome = run(&python, 1, 0..COUNT, 2).expect("the second reader runs");
    let splits = outcome.splits.iter().map(|split| format!("{}: {} and {}", split.number, split.ours, split.theirs));
    let splits: Vec<String> = splits.collect();
    assert!(splits.is_empty(), "SEED=1 cargo xtask big differential\n{}", splits.join("\n"));

    // Mutations that a hash or the first structure catches compare nothing else.
    let count = |verdict: &str| outcome.verdicts.get(verdict).copied().unwrap_or(0);
    assert!(count("ok") > COUNT / 10, "{:?}", outcome.verdicts);
    for kind in
        ["header", "layout", "index", "path", "chunk", "object", "truncated", "unsupported", "limit", "signature"]
    {
        assert!(count(kind) > 0, "no mutation is refused as {kind}: {:?}", outcome.verdicts);
    }
}
