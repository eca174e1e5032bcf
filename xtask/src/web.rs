//! `cargo xtask web`: the package for JavaScript, and the page on it. What is compiled is put into wasm/npm/pkg, and into target/web a
//! tarball of the package and a folder for any web server.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use wasm_bindgen_cli_support::Bindgen;

use crate::packages::{self, Chore};
use crate::shell::{output, remap_flags, renew, run, succeeds, target_dir};
use crate::tools;

/// Where the compiled part of the package lies; git does not keep it.
const OUT: &str = "wasm/npm/pkg";

/// Bytes of the reader as a server sends it, at most.
const MAX_GZIPPED: usize = 200_000;

/// A panic ends the instance without a word, as it did: but nothing is compiled that would make words of it. For that the standard library is
/// compiled too. The flags are not stable yet, and the pinned compiler is told by `RUSTC_BOOTSTRAP` that it may take them: no nightly is needed.
const SMALL: [&str; 3] = ["-Zunstable-options", "-Cpanic=immediate-abort", "-Zlocation-detail=none"];

pub(crate) fn main(mut args: lexopt::Parser) -> Result<()> {
    match args.next()? {
        None => build(),
        Some(other) => Err(other.unexpected().into()),
    }
}

/// Builds the page where there is none yet.
pub(crate) fn ensure() -> Result<()> {
    if target_dir()?.join("web/www/index.html").exists() { Ok(()) } else { build() }
}

pub(crate) fn build() -> Result<()> {
    packages::ensure(Chore::Web)?;
    tools::ensure_npm()?;
    tools::ensure_std_source()?;
    compile()?;
    shrink(&Path::new(OUT).join("sealift_wasm_bg.wasm"))?;
    pack()
}

fn compile() -> Result<()> {
    let target = "wasm32-unknown-unknown";
    let flags: Vec<String> = remap_flags()?.into_iter().chain(SMALL.map(Into::into)).collect();
    let flags = format!("target.{target}.rustflags={flags:?}");
    // These would displace the flags that .cargo/config.toml has for the target; those of --config are added.
    run(Command::new("cargo")
        .args(["build", "--locked", "--profile", "wasm", "--target", target, "--package", "sealift-wasm"])
        .args(["-Zbuild-std=std,panic_abort", "-Zbuild-std-features=optimize_for_size"])
        .args(["--config", &flags])
        .env("RUSTC_BOOTSTRAP", "1")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS"))?;
    let input = target_dir()?.join(target).join("wasm/sealift_wasm.wasm");
    // What an earlier version named otherwise is not to stay.
    renew(Path::new(OUT))?;
    Bindgen::new()
        .input_path(input)
        .typescript(true)
        // Which file it is says our own code, which knows Node too.
        .omit_default_module_path(true)
        .web(true)
        .and_then(|bindgen| bindgen.remove_name_section(true).remove_producers_section(true).generate(OUT))
        .map_err(|error| anyhow!("wasm-bindgen: {error:#}"))
}

/// Lets binaryen shorten the module, and holds it against what it may weigh.
fn shrink(module: &Path) -> Result<()> {
    let before = fs::metadata(module).with_context(|| format!("{} is missing", module.display()))?.len();
    // Flattened first, blocks are put together anew: a smaller module that is as fast.
    let passes = ["--flatten", "--rereloop", "-Oz", "-Oz", "--converge"];
    run(Command::new("wasm/node_modules/.bin/wasm-opt").args(passes).arg(module).arg("-o").arg(module))?;
    let after = fs::metadata(module)?.len();
    let gzip = Command::new("gzip").args(["-9", "--stdout"]).arg(module).stderr(Stdio::inherit()).output()?;
    ensure!(gzip.status.success(), "gzip ended with {}", gzip.status);
    let gzipped = gzip.stdout.len();
    println!("{}: {after} bytes, {before} before wasm-opt, {gzipped} gzipped", module.display());
    ensure!(gzipped <= MAX_GZIPPED, "it is to be at most {MAX_GZIPPED} bytes gzipped");
    Ok(())
}

/// Makes the tarball, of what git keeps and what was compiled, and the page with the same package.
fn pack() -> Result<()> {
    let out = target_dir()?.join("web");
    let stage = out.join("package");
    renew(&stage)?;
    let files = ["package.json", "README.md", "types.d.ts", "element.d.ts", "src", "pkg"]
        .map(|name| Path::new("wasm/npm").join(name));
    let licences = ["LICENSE-APACHE", "LICENSE-MIT"].map(Into::into);
    run(Command::new("cp").arg("-r").args(files.iter().chain(&licences)).arg(&stage))?;
    let name = output(Command::new("npm").args(["pack", "--silent", "--pack-destination"]).arg(&out).arg(&stage))?;
    println!("{}", out.join(name).display());
    let (page, new) = (out.join("www"), out.join("new"));
    renew(&new)?;
    let files = ["index.html", "page.css", "page.js", "icon.svg"].map(|name| Path::new("wasm/www").join(name));
    run(Command::new("cp").args(files).arg(&new))?;
    run(Command::new("cp").arg("-r").arg(&stage).arg(new.join("sealift")))?;
    // The program that holds the page is built again where a file of it is newer.
    if !succeeds(Command::new("diff").args(["--recursive", "--brief"]).args([&new, &page])) {
        if page.exists() {
            fs::remove_dir_all(&page)?;
        }
        fs::rename(&new, &page).with_context(|| format!("cannot rename {}", new.display()))?;
    }
    println!("{}", page.display());
    Ok(())
}
