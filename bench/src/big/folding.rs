//! A case-insensitive file system: no file may be lost because of it, and conflicts must be reported.

use std::fs;

use anyhow::Result;

use super::findings::Findings;
use super::ground::{Ground, names};

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("folding")?;
    for (tree, files) in [("one", &["Makefile"][..]), ("both", &["Makefile", "makefile"])] {
        fs::create_dir_all(ground.path(tree).join("d"))?;
        for file in files {
            fs::write(ground.path(tree).join("d").join(file), format!("{file}\n"))?;
        }
        ground.run(&format!(
            "sealift pack --force {tree} -o {tree}.sealift --name tree --bundle-version 1 --key key --quiet"
        ))?;
    }
    fs::create_dir(ground.path("work"))?;
    ground.run("truncate -s 16M image")?;
    ground.run("mkntfs -q -F image")?;
    ground.run("lowntfs-3g -o ignore_case,permissions image work")?;

    let mut findings = Findings::default();
    let mut refused = |line: &str, why: &str| -> Result<()> {
        let ended = ground.command(line).output()?;
        let said = String::from_utf8_lossy(&ended.stderr);
        if ended.status.code() != Some(2) || !said.contains(why) {
            findings.add(&format!("{line}: it ends with {}, and says {said}", ended.status))?;
        }
        Ok(())
    };
    refused("sealift unpack both.sealift work/new TRUST", "does not distinguish two names of the bundle")?;
    ground.run("sealift unpack one.sealift work/target TRUST --quiet")?;
    refused("sealift unpack both.sealift work/target --update --delete TRUST", "on a file system that ignores case")?;
    let left = names(&ground.path("work"))?;
    let kept = fs::read_to_string(ground.path("work/target/d/Makefile"))?;
    if left != [".target.sealift-state", "state", "target"] || kept != "Makefile\n" {
        findings.add(&format!("what is left: {left:?}, and the target has {kept:?}"))?;
    }
    findings.finish()?;
    ground.remove()
}
