//! Installs, uses and purges the package in separate Debian systems, and runs the static program in a root that holds nothing else.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::dist::Release;
use xtask::dist::machine::MACHINES;
use xtask::shell::{once, output, program, renew};

use crate::debian::bootstrap;

const SUITES: [&str; 2] = ["bookworm", "trixie"];
/// Programs of a desktop or server that read the package's files, and what the package recommends.
const PACKAGES: [&str; 9] =
    ["bash-completion", "file", "fish", "gpgv", "libglib2.0-bin", "man-db", "nbdkit", "shared-mime-info", "zsh"];
/// Files that Debian itself writes on every installation. The package's own records are checked separately.
const ITS_OWN: [&str; 4] = ["./var/cache", "./var/lib/apt", "./var/lib/dpkg", "./var/log"];

/// A Debian in a folder.
struct Debian {
    root: PathBuf,
}

pub(super) fn install_and_purge(release: &Release) -> Result<()> {
    SUITES.iter().try_for_each(|suite| install_and_purge_on(suite, release))
}

fn install_and_purge_on(suite: &str, release: &Release) -> Result<()> {
    let debian = Debian::ensure(suite, release.target.join("dist-debian").join(suite))?;
    // Removes what an interrupted run left.
    debian.run(&["dpkg", "--purge", "sealift"])?;
    renew(&debian.root.join("try"))?;
    let before = debian.files()?;

    let package = release.deb(&MACHINES[0]);
    fs::copy(release.out.join(&package), debian.root.join("try").join(&package))?;
    debian.run(&["apt-get", "-qq", "install", "--yes", &format!("/try/{package}")])?;
    debian.use_it(release.version)?;
    debian.use_without_package(release)?;

    debian.run(&["apt-get", "-qq", "purge", "--yes", "sealift"])?;
    renew(&debian.root.join("try"))?;
    let after = debian.files()?;
    let left: Vec<_> = before.symmetric_difference(&after).collect();
    ensure!(left.is_empty(), "purging left: {left:#?}");
    let records =
        debian.say("ls /var/lib/dpkg/info | grep ^sealift || grep -A3 sealift /var/lib/dpkg/status || true")?;
    ensure!(records.is_empty(), "dpkg still knows of the package:\n{records}");
    println!(
        "dist: Debian {suite}: the package was installed, used and purged, nothing left; the static program and the archive run"
    );
    Ok(())
}

impl Debian {
    /// Creates the system if it does not exist.
    fn ensure(suite: &str, root: PathBuf) -> Result<Self> {
        once(&root.with_extension("stamp"), &format!("{suite} {}", PACKAGES.join(" ")), || {
            println!("dist: making a Debian {suite}, once");
            renew(&root)?;
            bootstrap(suite, &PACKAGES, &root)
        })?;
        Ok(Self { root })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new("chroot");
        command.arg(&self.root).args(["/usr/bin/env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/try"]);
        command.args(["LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive"]).args(words);
        command
    }

    fn run(&self, words: &[&str]) -> Result<()> {
        output(&mut self.command(words)).map(|_| ())
    }

    /// Returns the output of a command line.
    fn say(&self, line: &str) -> Result<String> {
        output(&mut self.command(&["bash", "-euc", line])).with_context(|| line.to_owned())
    }

    /// Returns every file with its type, permissions, size and link target.
    fn files(&self) -> Result<BTreeSet<String>> {
        let mut find = Command::new("find");
        find.current_dir(&self.root).arg(".").arg("(").args(["-path", ITS_OWN[0]]);
        ITS_OWN[1..].iter().for_each(|path| {
            find.args(["-o", "-path", path]);
        });
        // A directory's size depends on the file system.
        find.args([")", "-prune", "-o", "-type", "d", "-printf", "%p %m\n", "-o", "-printf", "%p %y %m %s %l\n"]);
        Ok(output(&mut find)?.lines().map(str::to_owned).collect())
    }

    /// Does what a user does after installing it.
    fn use_it(&self, version: &str) -> Result<()> {
        let bundle = "sealift key generate -q -o /try/key && sealift pack /etc/apt -o /try/etc.sealift -q --bundle-version 7 && \
            cp /try/etc.sealift /try/unnamed";
        self.say(bundle)?;
        let cases = [
            ("sealift --version", format!("sealift {version}")),
            ("sealift verify /try/etc.sealift --allow-unsigned 2>&1", "sound".into()),
            ("man sealift-pack", "SOURCE_DATE_EPOCH".into()),
            ("man -l /usr/share/man/man1/sealift.1.gz", "allowed_signers".into()),
            ("nbdkit sealift --dump-plugin", format!("version={version}")),
            ("man nbdkit-sealift-plugin", "allow-unsigned=".into()),
            ("man -k 'signed file'", "sealift (1)".into()),
            (
                "source /usr/share/bash-completion/bash_completion; set +eu; _completion_loader sealift; complete -p sealift",
                "_sealift_words".into(),
            ),
            ("zsh -fc 'autoload -Uz compinit && compinit -Du && echo $_comps[sealift]'", "_sealift".into()),
            ("fish -c 'complete -C \"sealift ver\"'", "verify".into()),
            ("gio info -a standard::content-type /try/etc.sealift", "application/vnd.sealift".into()),
            ("gio info -a standard::content-type /try/unnamed", "application/vnd.sealift".into()),
            ("file -m /usr/share/file/sealift /try/unnamed", "Sealift bundle, format 0, etc version 7".into()),
            (
                "file -m /usr/share/file/sealift:/usr/share/misc/magic --mime-type /try/unnamed /bin/ls",
                "application/vnd.sealift".into(),
            ),
            (
                "cd /usr/share/doc/sealift && ls bench/RESULTS.md spec/core.md docs/json.md docs/progress.schema.json",
                "docs/json.md".into(),
            ),
            (
                "cd /usr/share/doc/sealift/docs/examples/device && ls && test -x sealift-stick && sh -n sealift-stick",
                "sealift-stick@.service".into(),
            ),
            ("cd / && md5sum -c /var/lib/dpkg/info/sealift.md5sums", "usr/bin/sealift: OK".into()),
        ];
        for (line, expected) in cases {
            let said = self.say(line)?;
            ensure!(said.contains(&expected), "{line}\nhas no {expected}:\n{said}");
        }
        Ok(())
    }

    /// Runs the static program, and the one in the archive, which needs the package's files as little.
    fn use_without_package(&self, release: &Release) -> Result<()> {
        let name = release.name(&MACHINES[0]);
        let archive = format!("{name}.tar.gz");
        for file in [&name, &archive] {
            fs::copy(release.out.join(file), self.root.join("try").join(file))?;
        }
        self.say(&format!("mkdir /try/unpacked && tar -xf /try/{archive} -C /try/unpacked --strip-components=1"))?;
        for program in [format!("/try/{name}"), "/try/unpacked/bin/sealift".to_owned()] {
            let said = self.say(&format!("{program} verify /try/etc.sealift --allow-unsigned 2>&1"))?;
            ensure!(said.contains("sound"), "{program}: {said}");
        }
        Ok(())
    }
}

/// Runs the static program in a root that contains nothing else: no library, no shell, no /proc, no /dev. A system of any other kind has more.
pub(super) fn run_alone(release: &Release, run: &Path) -> Result<()> {
    let root = release.work("alone")?;
    fs::copy(release.out.join(release.name(&MACHINES[0])), root.join("sealift"))?;
    for file in ["os.sealift", "allowed_signers"] {
        fs::copy(run.join(file), root.join(file))?;
    }
    // By its path: the program's PATH is none.
    let chroot = program("chroot").context("chroot is a part of Debian's coreutils")?;
    let trust = ["--trust", "/allowed_signers", "--state", "/state"];
    for words in [&["verify", "--deep", "/os.sealift"][..], &["unpack", "/os.sealift", "/back"], &["audit", "/back"]] {
        let mut command = Command::new(&chroot);
        command.arg(&root).arg("/sealift").args(words).args(trust).env_clear().env("PATH", "/");
        output(&mut command).with_context(|| format!("alone in its root: sealift {}", words.join(" ")))?;
    }
    println!("dist: alone in a root, without /proc and /dev: verifies, unpacks and audits");
    Ok(())
}
