//! `cargo xtask big fresh`: the README's two commands, word for word, on a Debian that was made for them: the packages that the README names, rustup, a
//! clone of HEAD, and nothing else. It has file system, processes and host name of its own; the network is this machine's.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use lexopt::{Arg, ValueExt as _};
use xtask::programs::ASKED_FOR;
use xtask::shell::{has_program, output, remove, run, target_dir};

use crate::debian::{apt, bootstrap};
use xtask::debian::mirror;

const SUITES: [&str; 2] = ["bookworm", "trixie"];

/// The two commands by name, and how their lines in the README begin.
const COMMANDS: [(&str, &str); 2] = [("demo", "pack-cli/examples/demo.sh"), ("ci", "cargo xtask ci")];

/// Variables that say how this machine reaches package registries; nothing else of its environment is passed on.
const PASSED: [&str; 12] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "RUSTUP_DIST_SERVER",
    "SSL_CERT_FILE",
];

/// Certificates that this machine's administrator added. Debian's update-ca-certificates(8) reads them.
const CERTIFICATES: &str = "usr/local/share/ca-certificates";

/// The clone of HEAD in the new system.
const CLONE: &str = "root/sealift";

/// Enters the root `$1` and runs the command line `$2` there. The root is a mount point and that of its namespace, as in a system that was started:
/// below a chroot, the kernel makes no user namespace. No signal is ignored, as one may be that nohup(1) started: tests send them.
const ENTER: &str = r#"
set -eu
hostname fresh
mount --bind "$1" "$1"
cd "$1"
mount --rbind /dev dev
mount -t proc proc proc
mount --rbind /sys sys
mount -t tmpfs -o mode=0755 run run
line=$2
shift 2
pivot_root . mnt
umount -l mnt
exec /usr/bin/env -i --default-signal HOME=/root USER=root TERM=dumb LANG=C.UTF-8 \
    PATH=/root/.cargo/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@" \
    sh -euc "cd /root/sealift && $line"
"#;

/// Parses `--only NAME`, which may be repeated: a suite, or one of the commands.
pub(super) fn main(mut args: lexopt::Parser) -> Result<()> {
    let mut only = Vec::new();
    while let Some(arg) = args.next()? {
        match arg {
            Arg::Long("only") => only.push(args.value()?.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    let known = || SUITES.into_iter().chain(COMMANDS.map(|(name, _)| name));
    if let Some(name) = only.iter().find(|name| known().all(|known| known != *name)) {
        bail!("--only {name}: it is one of {}", known().collect::<Vec<_>>().join(", "));
    }
    let of = |names: &[&'static str]| {
        let some: Vec<_> = names.iter().copied().filter(|name| only.iter().any(|wish| wish == name)).collect();
        if some.is_empty() { names.to_vec() } else { some }
    };
    run_in(&of(&SUITES), &of(&COMMANDS.map(|(name, _)| name)))
}

/// Runs both commands on every suite.
pub(super) fn all() -> Result<()> {
    run_in(&SUITES, &COMMANDS.map(|(name, _)| name))
}

fn run_in(suites: &[&str], commands: &[&str]) -> Result<()> {
    let mut failed = Vec::new();
    for suite in suites {
        let fresh = Fresh::make(suite)?;
        for command in commands {
            if !fresh.runs(command)? {
                failed.push(format!("{command} on {suite}"));
            }
        }
        fresh.print_installed()?;
        if failed.is_empty() {
            remove(&fresh.root)?;
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// A Debian system in a folder.
struct Fresh {
    suite: String,
    root: PathBuf,
    /// The packages that were installed before the commands.
    before: Vec<String>,
}

impl Fresh {
    fn make(suite: &str) -> Result<Self> {
        let start = Instant::now();
        let root = target_dir()?.join("fresh").join(suite);
        remove(&root)?;
        fs::create_dir_all(&root).with_context(|| format!("cannot make {}", root.display()))?;
        bootstrap(suite, &ASKED_FOR, &root)?;
        add_sources(suite, &root)?;
        add_certificates(&root)?;
        run(Command::new("git").args(["clone", "--quiet", "--no-local", "."]).arg(root.join(CLONE)))?;
        add_rustup(&root)?;
        let fresh = Self { suite: suite.to_owned(), before: packages(&root)?, root };
        fresh.say(&format!("made with {} and rustup, {:.0} s", ASKED_FOR.join(", "), start.elapsed().as_secs_f64()));
        Ok(fresh)
    }

    /// Runs a command as the README has it, into a log; prints what the log says of steps and of skipped checks.
    fn runs(&self, command: &str) -> Result<bool> {
        let line = line_of(command)?;
        let path = self.root.with_extension(format!("{command}.log"));
        let log = fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        self.say(&format!("{line} (log: {})", path.display()));
        let start = Instant::now();
        let status = enter(&self.root, &line).stdout(log.try_clone()?).stderr(log).stdin(Stdio::null()).status()?;
        let said = String::from_utf8_lossy(&fs::read(&path)?).into_owned();
        said.lines().filter(|line| tells(line)).for_each(|line| self.say(line));
        let word = if status.success() { "holds".to_owned() } else { format!("FAILED with {status}") };
        self.say(&format!("{line}: {word}, {:.0} s", start.elapsed().as_secs_f64()));
        if !status.success() {
            said.lines().rev().take(40).collect::<Vec<_>>().into_iter().rev().for_each(|line| self.say(line));
        }
        Ok(status.success())
    }

    /// Prints what the commands installed.
    fn print_installed(&self) -> Result<()> {
        let after = packages(&self.root)?;
        let new = after.iter().filter(|name| !self.before.contains(name)).count();
        let chosen = output(Command::new("chroot").arg(&self.root).args(["apt-mark", "showmanual"]))?;
        let chosen: Vec<_> = chosen.lines().filter(|name| !self.before.iter().any(|before| before == name)).collect();
        self.say(&format!(
            "installed {} packages and {} that they need: {}",
            chosen.len(),
            new.saturating_sub(chosen.len()),
            chosen.join(" ")
        ));
        for folder in ["root/.rustup/toolchains", "root/.cache/sealift"] {
            let Ok(entries) = fs::read_dir(self.root.join(folder)) else { continue };
            let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name().display().to_string()).collect();
            names.sort();
            self.say(&format!("~/{}: {}", folder.trim_start_matches("root/"), names.join(" ")));
        }
        Ok(())
    }

    fn say(&self, what: &str) {
        println!("fresh: {}: {what}", self.suite);
    }
}

/// Returns the line of the README that begins with a command, without its comment.
fn line_of(command: &str) -> Result<String> {
    let (_, start) = COMMANDS.into_iter().find(|(name, _)| *name == command).context("it is one of the commands")?;
    let readme = fs::read_to_string("README.md").context("cannot read README.md")?;
    let line = readme.lines().find(|line| line.starts_with(start));
    let line = line.with_context(|| format!("README.md has no line that begins with {start}"))?;
    Ok(line.split(" # ").next().unwrap_or(line).trim_end().to_owned())
}

/// Whether a line of a log belongs in the summary: steps with their times, skipped checks, downloads, and the demo's results.
fn tells(line: &str) -> bool {
    let of_ci = line.strip_prefix("ci: ").is_some_and(|rest| {
        rest.contains(" holds, ") || rest.contains(" FAILED ") || rest.starts_with("skipped") || rest.starts_with("  ")
    });
    let downloads = ["installing ", "building ", "fetching ", "identical: ", "ci: all "];
    of_ci || downloads.iter().any(|start| line.starts_with(start))
}

fn enter(root: &Path, line: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--propagation", "private"]);
    command.args(["sh", "-c", ENTER, "sh"]).arg(root).arg(line);
    command.args(PASSED.iter().filter_map(|name| Some(format!("{name}={}", env::var(name).ok()?))));
    command
}

/// Adds security updates and the updates of the suite, as Debian's installer does.
fn add_sources(suite: &str, root: &Path) -> Result<()> {
    let archive = mirror()?;
    let text = format!(
        "deb {archive} {suite} main\ndeb {archive} {suite}-updates main\ndeb {archive}-security {suite}-security main\n"
    );
    fs::write(root.join("etc/apt/sources.list"), text)?;
    apt(root, &["update"])?;
    apt(root, &["dist-upgrade"])
}

fn add_certificates(root: &Path) -> Result<()> {
    let here = Path::new("/").join(CERTIFICATES);
    if here.is_dir() {
        run(Command::new("cp").arg("-r").arg(here.join(".")).arg(root.join(CERTIFICATES)))?;
        output(Command::new("chroot").arg(root).arg("update-ca-certificates"))?;
    }
    Ok(())
}

/// Installs this machine's rustup in the new system, without a toolchain.
fn add_rustup(root: &Path) -> Result<()> {
    ensure!(has_program("rustup"), "rustup is not installed here");
    let program = output(Command::new("sh").args(["-c", "realpath \"$(command -v rustup)\""]))?;
    let installer = root.join("root/rustup-init");
    fs::copy(&program, &installer).with_context(|| format!("cannot copy {program}"))?;
    output(&mut enter(root, "/root/rustup-init -y --quiet --no-modify-path --default-toolchain none"))?;
    fs::remove_file(&installer).with_context(|| format!("cannot remove {}", installer.display()))
}

fn packages(root: &Path) -> Result<Vec<String>> {
    let names = output(Command::new("chroot").arg(root).args(["dpkg-query", "-W", "-f", "${Package}\n"]))?;
    Ok(names.lines().map(str::to_owned).collect())
}
