//! `cargo xtask web`: builds the JavaScript package, and the page that uses it. Compiled files are written to wasm/npm/pkg, and a tarball of the
//! package and a folder for any web server to target/web.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow, ensure};
use wasm_bindgen_cli_support::Bindgen;

use crate::packages::{self, Chore};
use crate::shell::{output, remap_flags, renew, run, succeeds, target_dir};
use crate::tools;

/// The folder of the package's compiled part, which git ignores.
const OUT: &str = "wasm/npm/pkg";

/// The part of a crate that cargo builds, and the resulting file.
struct Module {
    part: &'static [&'static str],
    file: &'static str,
}

const READER: Module = Module { part: &["--package", "sealift-wasm", "--lib"], file: "sealift_wasm.wasm" };
/// What looks into images, which a page loads only when somebody opens one.
const INSIDE: Module = Module { part: &["--package", "sealift-inside", "--lib"], file: "sealift_inside.wasm" };
const BARE: Module = Module { part: &["--package", "sealift-wasm", "--example", "bare"], file: "examples/bare.wasm" };

/// Maximum sizes of the compressed modules, as a server sends them.
const MAX_GZIPPED: usize = 200_000;
const MAX_INSIDE_GZIPPED: usize = 200_000;

/// A panic ends the instance without a message, as before, but the code that formats messages is not compiled. This requires compiling the standard
/// library too. The flags are not stable yet; `RUSTC_BOOTSTRAP` lets the pinned compiler accept them without nightly.
const SMALL: [&str; 3] = ["-Zunstable-options", "-Cpanic=immediate-abort", "-Zlocation-detail=none"];

pub fn main(mut args: lexopt::Parser) -> Result<()> {
    match args.next()? {
        None => build(),
        Some(lexopt::Arg::Long("bare")) => build_bare().map(|out| println!("{}", out.display())),
        Some(other) => Err(other.unexpected().into()),
    }
}

/// Builds the page if it is missing.
pub fn ensure() -> Result<()> {
    if target_dir()?.join("web/www/index.html").exists() { Ok(()) } else { build() }
}

pub fn build() -> Result<()> {
    prepare()?;
    let inside = target_dir()?.join("web/inside");
    // cargo builds one after the other; each module is optimized on one thread.
    let (of_reader, of_inside) = thread::scope(|scope| {
        let of_inside = scope.spawn(|| compile(&INSIDE, &inside));
        (compile(&READER, Path::new(OUT)), of_inside.join())
    });
    let (gzipped, of_inside) = (of_reader?, of_inside.map_err(|_| anyhow!("a panic; see above"))??);
    ensure!(gzipped <= MAX_GZIPPED, "it is to be at most {MAX_GZIPPED} bytes gzipped");
    ensure!(of_inside <= MAX_INSIDE_GZIPPED, "it is to be at most {MAX_INSIDE_GZIPPED} bytes gzipped");
    for entry in fs::read_dir(&inside)? {
        let path = entry?.path();
        fs::copy(&path, Path::new(OUT).join(path.file_name().unwrap_or_default()))?;
    }
    for name in ["sealift_wasm", "sealift_inside"] {
        allow_instances(&Path::new(OUT).join(name))?;
    }
    pack()
}

/// Rewrites what wasm-bindgen wrote, which keeps one instance of the module for all, into a function that makes one: each has its own memory.
fn allow_instances(stem: &Path) -> Result<()> {
    let (script, types) = (stem.with_extension("js"), stem.with_extension("d.ts"));
    let text = fs::read_to_string(&script)?;
    let (text, _) = text.split_once("export { initSync,").context("wasm-bindgen exports other functions")?;
    let exported = |line: &str| {
        let item = line.strip_prefix("export class ").or_else(|| line.strip_prefix("export function "))?;
        item.split([' ', '(']).next().map(str::to_owned)
    };
    let names: Vec<String> = text.lines().filter_map(exported).collect();
    let text = text.replace("\nexport ", "\n");
    let made = names.join(", ");
    fs::write(
        &script,
        format!("export function instantiate(module) {{\n{text}\ninitSync({{ module }});\nreturn {{ {made} }};\n}}\n"),
    )?;
    let text = fs::read_to_string(&types)?;
    let (text, _) = text.split_once("export type InitInput").context("wasm-bindgen declares other functions")?;
    let made: String = names.iter().map(|name| format!(" {name}: typeof {name};")).collect();
    let doc = "/** Returns the functions of a new instance, with a memory of its own. */";
    fs::write(&types, format!("{text}{doc}\nexport function instantiate(module: WebAssembly.Module): {{{made} }};\n"))?;
    Ok(())
}

/// Builds the steps of a deep check one by one as the page's module is built, for its benchmark, and returns their folder.
pub fn build_bare() -> Result<PathBuf> {
    prepare()?;
    let out = target_dir()?.join("web/bare");
    compile(&BARE, &out)?;
    Ok(out)
}

fn prepare() -> Result<()> {
    packages::ensure(Chore::Web)?;
    tools::ensure_npm("wasm")?;
    tools::ensure_std_source()
}

/// Builds a module into a folder, and returns its compressed size.
fn compile(module: &Module, out: &Path) -> Result<usize> {
    let target = "wasm32-unknown-unknown";
    let flags: Vec<String> = remap_flags()?.into_iter().chain(SMALL.map(Into::into)).collect();
    let flags = format!("target.{target}.rustflags={flags:?}");
    // RUSTFLAGS would replace the target's flags in .cargo/config.toml; flags in --config are added to them.
    run(Command::new("cargo")
        .args(["build", "--locked", "--profile", "wasm", "--target", target])
        .args(module.part)
        .args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"])
        .args(["--config", &flags])
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS"))?;
    let input = target_dir()?.join(target).join("wasm").join(module.file);
    // Removes files that an earlier version named differently.
    renew(out)?;
    Bindgen::new()
        .input_path(&input)
        .typescript(true)
        // Our own code locates the module, for Node too.
        .omit_default_module_path(true)
        .web(true)
        .and_then(|bindgen| bindgen.remove_name_section(true).remove_producers_section(true).generate(out))
        .map_err(|error| anyhow!("wasm-bindgen: {error:#}"))?;
    let name = input.file_stem().and_then(|name| name.to_str()).context("the module has a name")?;
    shrink(&out.join(format!("{name}_bg.wasm")))
}

/// Optimizes the module with binaryen, and returns its compressed size.
fn shrink(module: &Path) -> Result<usize> {
    let before = fs::metadata(module).with_context(|| format!("{} is missing", module.display()))?.len();
    // Flattening the code first, so that blocks are built anew, makes a smaller module that is as fast. What rustc left as a function is not inlined.
    let inlining = [
        "--one-caller-inline-max-function-size=0",
        "--always-inline-max-function-size=4",
        "--flexible-inline-max-function-size=0",
    ];
    // Rust puts nothing at addresses below 1024, so that sums of addresses and constants become offsets.
    let passes =
        ["--flatten", "--rereloop", "-Oz", "-Oz", "--converge", "--low-memory-unused"].into_iter().chain(inlining);
    run(tools::with_node("wasm/node_modules/.bin/wasm-opt")?.args(passes).arg(module).arg("-o").arg(module))?;
    let after = fs::metadata(module)?.len();
    let gzip = Command::new("gzip").args(["-9", "--stdout"]).arg(module).stderr(Stdio::inherit()).output()?;
    ensure!(gzip.status.success(), "gzip ended with {}", gzip.status);
    let gzipped = gzip.stdout.len();
    println!("{}: {after} bytes, {before} before wasm-opt, {gzipped} gzipped", module.display());
    Ok(gzipped)
}

/// Creates the tarball, from the files in git and the compiled ones, and the page with the same package.
fn pack() -> Result<()> {
    let out = target_dir()?.join("web");
    let stage = out.join("package");
    renew(&stage)?;
    let files = ["package.json", "README.md", "types.d.ts", "element.d.ts", "react.d.ts", "src", "pkg"]
        .map(|name| Path::new("wasm/npm").join(name));
    let licences = ["LICENSE-APACHE", "LICENSE-MIT"].map(Into::into);
    run(Command::new("cp").arg("-r").args(files.iter().chain(&licences)).arg(&stage))?;
    let name = output(tools::with_node("npm")?.args(["pack", "--silent", "--pack-destination"]).arg(&out).arg(&stage))?;
    println!("{}", out.join(name).display());
    let (page, new) = (out.join("www"), out.join("new"));
    renew(&new)?;
    let files = ["index.html", "page.css", "page.js", "icon.svg"].map(|name| Path::new("wasm/www").join(name));
    run(Command::new("cp").args(files).arg(&new))?;
    run(Command::new("cp").arg("-r").arg(&stage).arg(new.join("sealift")))?;
    // The program that embeds the page is rebuilt if one of the page's files is newer.
    if !succeeds(Command::new("diff").args(["--recursive", "--brief"]).args([&new, &page])) {
        if page.exists() {
            fs::remove_dir_all(&page)?;
        }
        fs::rename(&new, &page).with_context(|| format!("cannot rename {}", new.display()))?;
    }
    println!("{}", page.display());
    Ok(())
}
