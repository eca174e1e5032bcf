//! Runs other programs, and writes files.

use std::env;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Runs a command with its output passed through.
pub fn run(command: &mut Command) -> Result<()> {
    let status = as_typed(command).status().with_context(|| format!("cannot start {}", name(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", name(command));
    }
    Ok(())
}

/// Returns the standard output of a command, without the final newline.
pub fn output(command: &mut Command) -> Result<String> {
    let output = as_typed(command).output().with_context(|| format!("cannot start {}", name(command)))?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!("{} ended with {}: {}", name(command), output.status, stderr.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Returns whether a command can be started and succeeds; its output is discarded.
pub fn succeeds(command: &mut Command) -> bool {
    as_typed(command).output().is_ok_and(|output| output.status.success())
}

/// Removes the variables that `cargo run` set for this program. Otherwise, build scripts that watch them would run again, and their dependents would
/// be recompiled, whenever a person types the same command.
pub fn as_typed(command: &mut Command) -> &mut Command {
    let is_ours = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_ours)).for_each(|(name, _)| {
        command.env_remove(name);
    });
    command
}

/// Returns whether a program is installed.
pub fn has_program(name: &str) -> bool {
    program(name).is_some()
}

/// Returns the path of an installed program. System folders are searched too: a user's PATH often lacks them.
pub fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|dir| dir.join(name)).find(|path| path.is_file())
}

/// Returns cargo's build folder.
pub fn target_dir() -> Result<PathBuf> {
    let dir = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    std::path::absolute(Path::new(&dir)).context("cannot name the target folder")
}

/// Returns the folder for what is downloaded or built once for all runs, independent of the target folder.
pub fn cache_dir() -> Result<PathBuf> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|dir| dir.is_absolute());
    let cache = cache.or_else(|| Some(env::home_dir()?.join(".cache"))).context("nothing says where caches lie")?;
    Ok(cache.join("sealift"))
}

/// Removes a file or a whole folder, if it exists, including trees deeper than the longest path.
pub fn remove(path: &Path) -> Result<()> {
    run(Command::new("rm").args(["-rf", "--one-file-system"]).arg(path))
}

/// Creates an empty folder, or empties an existing one.
pub fn renew(folder: &Path) -> Result<()> {
    remove(folder)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Writes a file, and creates the folders above it.
pub fn put(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    let folder = path.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder)
        .and_then(|()| fs::write(path, content))
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a program, which everybody may run.
pub fn put_program(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    put(path, content)?;
    fs::set_permissions(path, Permissions::from_mode(0o755)).with_context(|| path.display().to_string())
}

/// Calls a function, unless a stamp says that it was called for the same text already.
pub fn once(stamp: &Path, text: &str, function: impl FnOnce() -> Result<()>) -> Result<()> {
    if fs::read_to_string(stamp).is_ok_and(|done| done == text) {
        return Ok(());
    }
    function()?;
    put(stamp, text)
}

/// Returns flags for rustc that keep this machine's paths out of the messages in a program. Paths of the standard library become those that they have
/// where its sources are not installed.
pub fn remap_flags() -> Result<[String; 3]> {
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(env::home_dir()?.join(".cargo"))).context("nothing says where cargo lives")?;
    let sysroot = output(Command::new("rustc").args(["--print", "sysroot"]))?;
    let version = output(Command::new("rustc").arg("-vV"))?;
    let commit =
        version.lines().find_map(|line| line.strip_prefix("commit-hash: ")).context("rustc names no commit")?;
    let library = Path::new(&sysroot).join("lib/rustlib/src/rust");
    let remap = [
        (home, "cargo".to_owned()),
        (env::current_dir()?, "sealift".to_owned()),
        (library, format!("/rustc/{commit}")),
    ];
    Ok(remap.map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())))
}

/// Returns the command for the crate in `bench/`, which is built for its own chores alone.
pub fn bench() -> Command {
    let mut command = Command::new("cargo");
    as_typed(&mut command).args(["run", "--locked", "--quiet", "--package", "sealift-bench", "--"]);
    command
}

/// Makes the repository's root the working directory, so that every command is as a person would type it there.
pub fn enter_root() -> Result<()> {
    let manifest = env::var_os("CARGO_MANIFEST_DIR").context("run this as `cargo xtask`")?;
    let root = Path::new(&manifest).parent().context("this crate's folder lies in the repository's root")?;
    env::set_current_dir(root).with_context(|| format!("cannot enter {}", root.display()))
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}
