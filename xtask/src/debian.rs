//! Creates whole Debian systems with debootstrap, changes them with their own package manager, and unpacks packages without installing them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{output, run};

pub(crate) const SUITE: &str = "bookworm";

/// Creates a minimal fresh system in `to`, as of the last point release. The system takes packages only from there.
pub(crate) fn bootstrap(to: &Path) -> Result<()> {
    bootstrap_with(SUITE, &[], to)
}

/// Creates a minimal fresh system of a suite in `to`, with more packages.
pub(crate) fn bootstrap_with(suite: &str, packages: &[&str], to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    let log = fs::File::create(to.with_extension("log"))?;
    let mut command = Command::new("debootstrap");
    command.arg("--variant=minbase");
    if !packages.is_empty() {
        command.arg(format!("--include={}", packages.join(",")));
    }
    run(command.arg(suite).arg(to).arg(mirror()?).stdout(log))?;
    fs::copy("/etc/resolv.conf", to.join("etc/resolv.conf"))?;
    // Keeps packages from starting services.
    fs::write(to.join("usr/sbin/policy-rc.d"), "#!/bin/sh\nexit 101\n")?;
    run(Command::new("chmod").arg("0755").arg(to.join("usr/sbin/policy-rc.d")))
}

/// Lets a system use this machine's package sources, including security updates, which debootstrap does not know.
pub(crate) fn connect(root: &Path) -> Result<()> {
    for sources in ["etc/apt/sources.list", "etc/apt/sources.list.d/debian.sources"] {
        let here = Path::new("/").join(sources);
        if here.exists() {
            fs::copy(here, root.join(sources))?;
        }
    }
    apt(root, &["update"])
}

/// Runs apt-get in a system, in a process namespace of its own; some packages read /proc when they are installed.
pub(crate) fn apt(root: &Path, words: &[&str]) -> Result<()> {
    let mut command = Command::new("unshare");
    command.args(["--fork", "--pid", "--kill-child"]).arg(format!("--mount-proc={}", root.join("proc").display()));
    command.arg("chroot").arg(root).args(["apt-get", "-qq", "--yes", "--no-install-recommends"]).args(words);
    command.env("DEBIAN_FRONTEND", "noninteractive").env("LC_ALL", "C.UTF-8");
    command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    output(&mut command).map(|_| ())
}

/// Whether packages that are installed on this machine satisfy the dependencies of unpacked ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Installed {
    Counts,
    /// All dependencies are unpacked too, down to the C library.
    Ignored,
}

const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Downloads packages of the last of these suites and their dependencies, with an apt of our own that works in `dir`, and unpacks them in `root`. The
/// packages that are installed on this machine do not change.
pub(crate) fn unpack(dir: &Path, root: &Path, suites: &[&str], packages: &[&str], installed: Installed) -> Result<()> {
    let apt = dir.join("apt");
    for folder in ["state/lists/partial", "cache/archives/partial", "etc"] {
        fs::create_dir_all(apt.join(folder)).with_context(|| format!("cannot make {}", apt.display()))?;
    }
    fs::create_dir_all(root).with_context(|| format!("cannot make {}", root.display()))?;
    let mirror = mirror()?;
    let sources: String =
        suites.iter().map(|suite| format!("deb [signed-by={KEYS}] {mirror} {suite} main\n")).collect();
    fs::write(apt.join("etc/sources.list"), sources)?;
    fs::write(apt.join("etc/status"), "")?;
    let at = apt.display().to_string();
    let status = match installed {
        Installed::Counts => "/var/lib/dpkg/status".to_owned(),
        Installed::Ignored => format!("{at}/etc/status"),
    };
    // A mirror may be behind, so that a list is past its date. What matters here is whose signature it has.
    let configuration = format!(
        "Dir::State \"{at}/state\";\nDir::Cache \"{at}/cache\";\nDir::State::status \"{status}\";\n\
         Dir::Etc::sourcelist \"{at}/etc/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n\
         Dir::Etc::preferences \"/dev/null\";\nDir::Etc::preferencesparts \"/dev/null\";\n\
         Acquire::Languages \"none\";\nAcquire::Check-Valid-Until \"false\";\nAPT::Sandbox::User \"\";\nAPT::Architecture \"amd64\";\n"
    );
    fs::write(apt.join("apt.conf"), configuration)?;
    let command = |program: &str| {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", apt.join("apt.conf"));
        command
    };
    run(command("apt-get").args(["-qq", "update"]))?;
    let mut download = command("apt-get");
    download.args(["-qq", "--yes", "--download-only", "--no-install-recommends", "--reinstall"]);
    // Unpack each package, even if it is installed.
    run(download.args(suites.last().map(|suite| format!("--target-release={suite}"))).arg("install").args(packages))?;
    for package in fs::read_dir(apt.join("cache/archives"))? {
        let package = package?.path();
        if package.extension().is_some_and(|end| end == "deb") {
            run(Command::new("dpkg").arg("--extract").arg(&package).arg(root))?;
        }
    }
    // The packages are unpacked now, and their archives would double the size.
    fs::remove_dir_all(&apt).with_context(|| format!("cannot remove {}", apt.display()))
}

/// Returns the suite of this machine's Debian, such as `bookworm`.
pub(crate) fn this_suite() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(suite.context("/etc/os-release names no suite of Debian")?.to_owned())
}

/// Returns Debian's archive as configured in this machine's apt.
pub(crate) fn mirror() -> Result<String> {
    let sites = output(Command::new("apt-get").args(["indextargets", "--format", "$(SITE)"]))?;
    // A site with only security updates is a sibling of the archive itself.
    let archive = sites.lines().find_map(|site| site.rfind("/debian").map(|at| &site[..at]));
    let archive = archive.context("apt knows no Debian archive: name one in /etc/apt/sources.list")?;
    Ok(format!("{archive}/debian"))
}
