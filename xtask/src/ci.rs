//! `cargo xtask ci`: everything that must hold before a change is merged.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::packages::{self, Chore};
use crate::programs;
use crate::shell::{bench, output, run, succeeds};
use crate::steps::{self, Action, Step};
use crate::tools;
use crate::web;

use Action::{Beside, Call, Lines, Prepare};

/// What the steps write into a target folder that is empty, and into the folder of temporary files.
const BUILD_BYTES: u64 = 6 << 30;

/// The steps in order. A step is added as soon as the code that it checks exists.
#[rustfmt::skip] // a table
const STEPS: &[Step] = &[
    Step { name: "space", action: Prepare("that the disk holds what the steps write", space) },
    Step { name: "packages", action: Prepare("the Debian packages that tests call", || packages::ensure(Chore::Ci)) },
    Step { name: "toolchain", action: Prepare("what rust-toolchain.toml names", toolchain) },
    // The program embeds the page, so the page is built before what has all features. Most of the time that takes one core.
    Step { name: "page", action: Prepare("cargo xtask web", web::build) },
    Step { name: "format", action: Beside(&Lines(&["cargo fmt --all --check"])) },
    Step { name: "clippy-wasm", action: Beside(&Lines(&[
        "cargo clippy --locked --target wasm32-unknown-unknown -p sealift-format -p sealift-verify -p sealift-container -p sealift-wasm -p sealift-inside -- -D warnings",
    ])) },
    Step { name: "features", action: Beside(&Lines(&[
        "cargo clippy --locked -p sealift -- -D warnings",
        "for features in '' pack sign mount composefs; do cargo clippy --locked -p sealift --no-default-features --lib --features \"$features\" -- -D warnings || exit 1; done",
        "cargo clippy --locked -p sealift --no-default-features --example updater -- -D warnings",
    ])) },
    Step { name: "fuzz", action: Beside(&Lines(&["cargo check --locked --manifest-path fuzz/Cargo.toml --target-dir ${CARGO_TARGET_DIR:-target}"])) },
    Step { name: "deny", action: Beside(&Call("cargo deny check bans licenses sources", deny)) },
    Step { name: "programs", action: Beside(&Call("that a package of the list brings each program that is called", programs::check)) },
    Step { name: "readers", action: Beside(&Call("what the readers in Python and JavaScript import, a server like that of a bucket, and tools of later Debian systems", || {
        tools::ensure_python()?;
        tools::ensure_moto()?;
        tools::ensure_npm("tests/reference")?;
        tools::ensure_udevadm()?;
        tools::ensure_mkcomposefs().map(|_| ())
    })) },
    Step { name: "clippy", action: Lines(&["cargo lint -- -D warnings"]) },
    Step { name: "docs", action: Lines(&["RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps --features sealift/composefs,sealift/portal"]) },
    // Some tests wait for what is slow on purpose: one more runs than there are cores.
    Step { name: "test", action: Lines(&["RUST_TEST_THREADS=$(($(nproc) + 1)) cargo tests --no-fail-fast", "cargo test --locked -p xtask", "cargo test --locked -p sealift-bench"]) },
    Step { name: "vectors", action: Lines(&[
        "cargo tests --quiet --no-run --test vectors", "${CARGO_TARGET_DIR:-target}/debug/vectors",
        "git diff --exit-code -- spec/vectors",
        "test -z \"$(git ls-files --others --exclude-standard -- spec/vectors)\"",
    ]) },
    Step { name: "web", action: Lines(&[
        "cargo tests --quiet --no-run --test cli",
        "wasm/node_modules/.bin/tsc --project wasm",
        "node --test --test-concurrency=3 wasm/tests/*.test.mjs",
    ]) },
    Step { name: "vm", action: Beside(&Call("what only a kernel with fs-verity shows, in Debian's under QEMU", || run(bench().arg("vm")))) },
    Step { name: "firefox", action: Lines(&[
        "SEALIFT_BROWSER=firefox node --test --test-concurrency=2 wasm/tests/page*.test.mjs wasm/tests/embedding.test.mjs wasm/tests/gate.test.mjs wasm/tests/accessibility.test.mjs wasm/tests/upload.test.mjs wasm/tests/report.test.mjs wasm/tests/delta.test.mjs wasm/tests/drops.test.mjs wasm/tests/line.test.mjs wasm/tests/contents.test.mjs wasm/tests/stop.test.mjs wasm/tests/several.test.mjs wasm/tests/leaving.test.mjs wasm/tests/form.test.mjs",
    ]) },
];

/// Runs the steps named in the arguments, or all of them; then the working tree must be as before.
pub fn main(args: lexopt::Parser) -> Result<()> {
    let Some(steps) = steps::choose(Chore::Ci, STEPS, args)? else { return Ok(()) };
    if steps.len() < STEPS.len() {
        return steps::run(Chore::Ci, &steps);
    }
    let start = Instant::now();
    let before = tree_state()?;
    steps::run(Chore::Ci, &steps)?;
    let after = tree_state()?;
    ensure!(before == after, "ci changed the working tree; before:\n{before}\nafter:\n{after}");
    println!("ci: all {} steps hold, working tree as before, {:.1} s", STEPS.len(), start.elapsed().as_secs_f64());
    Ok(())
}

/// Checks the free space. Besides the space for the build, OSTree refuses to write if less than 3 % of a disk would stay free
/// (`core.min-free-space-percent` in ostree.repo-config(5)).
fn space() -> Result<()> {
    let disk = rustix::fs::statvfs(".")?;
    let (free, needed) = (disk.f_bavail * disk.f_frsize, BUILD_BYTES + disk.f_blocks * disk.f_frsize / 100 * 3);
    let mib = |bytes: u64| bytes / 1024 / 1024;
    ensure!(
        free >= needed,
        "{} MiB are free on this disk, and {} are needed: remove old target folders",
        mib(free),
        mib(needed)
    );
    Ok(())
}

/// Installs the components of rust-toolchain.toml, which rustup may be configured not to install.
fn toolchain() -> Result<()> {
    for component in ["fmt", "clippy"] {
        if !succeeds(Command::new("cargo").args([component, "--version"])) {
            run(Command::new("rustup").args(["component", "add", "rustfmt", "clippy"]))?;
        }
    }
    tools::ensure_target("wasm32-unknown-unknown")
}

fn deny() -> Result<()> {
    let program = tools::CARGO_DENY.ensure()?;
    run(Command::new(program).args(["--locked", "--log-level", "error", "check", "bans", "licenses", "sources"]))
}

fn tree_state() -> Result<String> {
    output(Command::new("git").args(["status", "--porcelain"]))
}
