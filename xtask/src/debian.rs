//! Unpacks Debian packages without installing them.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell::{output, run};

/// Whether packages that are installed on this machine satisfy the dependencies of unpacked ones.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    Counts,
    /// All dependencies are unpacked too, down to the C library.
    Ignored,
}

const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";

/// Downloads packages of the last of these suites and their dependencies, with an apt of our own that works in `dir`, and unpacks them in `root`. The
/// packages that are installed on this machine do not change.
pub fn unpack(dir: &Path, root: &Path, suites: &[&str], packages: &[&str], installed: Installed) -> Result<()> {
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

/// Returns Debian's archive as configured in this machine's apt.
pub fn mirror() -> Result<String> {
    let sites = output(Command::new("apt-get").args(["indextargets", "--format", "$(SITE)"]))?;
    // A site with only security updates is a sibling of the archive itself.
    let archive = sites.lines().find_map(|site| site.rfind("/debian").map(|at| &site[..at]));
    let archive = archive.context("apt knows no Debian archive: name one in /etc/apt/sources.list")?;
    Ok(format!("{archive}/debian"))
}
