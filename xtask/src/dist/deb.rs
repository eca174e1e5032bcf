//! The Debian package. Its program needs no library, so one package serves every release of Debian and its derivatives. Its plugin needs nbdkit, which
//! brings the C library.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::machine::Built;
use super::stage::{self, Folders, Shared};
use super::{Machine, Release};
use crate::shell::{output, put, run};

pub(super) fn make(release: &Release, machine: &Machine, built: &Built, shared: &Shared) -> Result<()> {
    let root = release.work(&format!("{}-deb", machine.name))?;
    let plugins = format!("lib/{}/nbdkit/plugins", machine.multiarch);
    let places = Folders { zsh: "zsh/vendor-completions/_sealift", plugins: &plugins };
    shared.install(&root.join("usr"), built, &places)?;
    let docs = root.join("usr/share/doc/sealift");
    put(&docs.join("copyright"), copyright()?)?;
    put(&docs.join("changelog"), changelog(release)?)?;
    put(&docs.join("third-party.txt"), &shared.third_party)?;
    put(&root.join("usr/share/lintian/overrides/sealift"), include_str!("../../dist/lintian-overrides"))?;
    let pages = files(&root.join("usr/share/man"))?.into_iter();
    let long = pages.chain([docs.join("changelog"), docs.join("third-party.txt")]);
    run(Command::new("gzip").arg("-9n").args(long))?;

    let installed = files(&root)?;
    let bytes = installed.iter().map(|path| Ok(fs::metadata(path)?.len())).sum::<Result<u64>>()?;
    let names = installed.iter().map(|path| path.strip_prefix(&root)).collect::<Result<Vec<_>, _>>()?;
    let sums = output(Command::new("md5sum").args(names).current_dir(&root))?;
    put(&root.join("DEBIAN/md5sums"), sums + "\n")?;
    let control = include_str!("../../dist/control")
        .replace("{version}", release.version)
        .replace("{architecture}", machine.debian)
        .replace("{kibibytes}", &bytes.div_ceil(1024).to_string());
    put(&root.join("DEBIAN/control"), control)?;
    stage::settle(&root)?;
    run(Command::new("dpkg-deb")
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(&root)
        .arg(release.out.join(release.deb(machine)))
        // dpkg-deb limits all times to this.
        .env("SOURCE_DATE_EPOCH", &release.epoch))
}

/// Returns our licences in Debian's format: the lines of a text begin with a space, and empty ones are a dot.
fn copyright() -> Result<String> {
    let text = fs::read_to_string("LICENSE-MIT")?;
    let (_, terms) = text.split_once("\n\n").context("LICENSE-MIT has a title")?;
    let lines = terms.trim_end().lines().map(|line| if line.is_empty() { " .".to_owned() } else { format!(" {line}") });
    Ok(include_str!("../../dist/copyright").replace("{mit}", &lines.collect::<Vec<_>>().join("\n")))
}

fn changelog(release: &Release) -> Result<String> {
    let date =
        output(Command::new("date").args(["--utc", "--rfc-email", "--date"]).arg(format!("@{}", release.epoch)))?;
    let maintainer = include_str!("../../dist/control").lines().find_map(|line| line.strip_prefix("Maintainer: "));
    let maintainer = maintainer.context("control names a maintainer")?;
    let version = release.version;
    Ok(format!("sealift ({version}) unstable; urgency=medium\n\n  * Version {version}.\n\n -- {maintainer}  {date}\n"))
}

/// Returns the files below a folder, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let list = output(Command::new("find").arg(folder).args(["-type", "f"]))?;
    let mut paths: Vec<PathBuf> = list.lines().map(PathBuf::from).collect();
    paths.sort();
    Ok(paths)
}
