//! Stages the installed files: program, plugin, man pages, completions, media type.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::licences;
use super::machine::{Built, PLUGIN};
use crate::shell::{output, put, put_program, run};

/// Files that all machines share.
pub(super) struct Shared {
    /// The man pages with their names.
    manual: Vec<(String, Vec<u8>)>,
    /// The shells with their scripts.
    completions: Vec<(&'static str, String)>,
    pub(super) third_party: String,
}

/// Folders whose place differs between systems.
pub(super) struct Folders<'a> {
    /// The folder below share that zsh searches.
    pub(super) zsh: &'a str,
    /// The folder that nbdkit searches.
    pub(super) plugins: &'a str,
}

impl Shared {
    /// Returns the files that the program generates.
    pub(super) fn by(program: &Path) -> Result<Self> {
        let folder = program.with_file_name("manual");
        super::renew(&folder)?;
        run(Command::new(program).arg("manual").arg(&folder))?;
        let mut manual = Vec::new();
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            manual.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
        }
        let script = |shell| Ok((shell, output(Command::new(program).args(["completions", shell]))? + "\n"));
        let completions = ["bash", "fish", "zsh"].into_iter().map(script).collect::<Result<_>>()?;
        Ok(Self { manual, completions, third_party: licences::collect()? })
    }

    /// Writes everything below a prefix such as usr.
    pub(super) fn install(&self, prefix: &Path, built: &Built, places: &Folders<'_>) -> Result<()> {
        put_program(&prefix.join("bin/sealift"), fs::read(&built.program)?)?;
        put(&prefix.join(places.plugins).join(format!("{PLUGIN}.so")), fs::read(&built.plugin)?)?;
        let share = prefix.join("share");
        for (name, page) in &self.manual {
            put(&share.join("man/man1").join(name), page)?;
        }
        for (shell, script) in &self.completions {
            let place = match *shell {
                "bash" => "bash-completion/completions/sealift",
                "fish" => "fish/vendor_completions.d/sealift.fish",
                _ => places.zsh,
            };
            put(&share.join(place), script)?;
        }
        put(&share.join("mime/packages/sealift.xml"), include_str!("../../dist/sealift.xml"))?;
        // `file` searches no drop-in folder; README.Debian of the package names this file.
        put(&share.join("file/sealift"), include_str!("../../dist/magic"))?;
        // The files that its links point to.
        let texts = fs::read_dir("spec")?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
        let texts = texts.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "md"));
        ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs", "bench/RESULTS.md"]
            .into_iter()
            .map(PathBuf::from)
            .chain(texts)
            .try_for_each(|path| copy(&path, &share.join("doc/sealift").join(&path)))
    }
}

/// Copies a file, or a folder and all below it, with their permissions.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file lies in a folder")?)?;
    run(Command::new("cp").args(["-r", "--preserve=mode"]).arg(from).arg(to))
}

/// Gives a tree fixed permissions, whatever this process's umask.
pub(super) fn settle(tree: &Path) -> Result<()> {
    run(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(tree))
}
