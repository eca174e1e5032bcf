//! The repository that is packed, and its bundles.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::COLLECTION;
use crate::big::ground::Ground;
use crate::big::trees;
use crate::random::Random;

/// A ref of `source` with an old and a new commit.
pub(super) struct Source {
    /// `os/full`, or `os/plain`, which has only what every mode of repository can hold.
    pub(super) reference: &'static str,
    pub(super) old: Commit,
    pub(super) new: Commit,
}

pub(super) struct Commit {
    pub(super) checksum: String,
    /// The listing of its whole tree, with checksums and extended attributes.
    pub(super) listing: String,
    /// A bundle of this commit alone.
    pub(super) bundle: String,
}

impl Commit {
    /// Returns the path of its file below `objects`.
    pub(super) fn object(&self) -> String {
        let (folder, name) = self.checksum.split_at(2);
        format!("{folder}/{name}.commit")
    }
}

const FULL: &str = "os/full";
const PLAIN: &str = "os/plain";

pub(super) struct Sources {
    pub(super) full: Source,
    pub(super) plain: Source,
}

impl Sources {
    /// Creates the repository `source`, and a bundle of each commit. Besides small files a tree contains `mebibytes` MiB of incompressible data.
    pub(super) fn make(ground: &Ground, mebibytes: usize) -> Result<Self> {
        let old = ground.path("old");
        trees::small(&old, &mut Random::fixed())?;
        // Commits cannot contain fifos.
        fs::remove_file(old.join("fifo"))?;
        write_noise(&old, mebibytes)?;
        ground.copy("old", "new")?;
        trees::change(&ground.path("new"), &mut Random::fixed())?;
        ground.run(&format!("ostree init --repo=source --mode=archive --collection-id={COLLECTION}"))?;
        ground.run("ostree config set --repo=source core.fsync false")?;
        let mut commits = Vec::new();
        for (version, tree) in [(1, "old"), (2, "new")] {
            for reference in [FULL, PLAIN] {
                commits.push(commit(ground, tree, reference, version)?);
            }
        }
        let mut commits = commits.into_iter();
        let mut next = || commits.next().context("there are four commits");
        let (full_old, plain_old, full_new, plain_new) = (next()?, next()?, next()?, next()?);
        Ok(Self {
            full: Source { reference: FULL, old: full_old, new: full_new },
            plain: Source { reference: PLAIN, old: plain_old, new: plain_new },
        })
    }
}

fn write_noise(tree: &Path, mebibytes: usize) -> Result<()> {
    let mut random = Random::fixed();
    for number in 0..mebibytes {
        fs::write(tree.join(format!("noise{number:02}")), random.bytes((1 << 20) + number))?;
    }
    Ok(())
}

fn commit(ground: &Ground, tree: &str, reference: &str, version: u32) -> Result<Commit> {
    let canonical = match reference {
        PLAIN => "--owner-uid=0 --owner-gid=0 --no-xattrs --canonical-permissions",
        _ => "",
    };
    let checksum = ground.printed_by(&format!(
        "ostree commit --repo=source --branch={reference} --timestamp=@1700000000 --tree=dir={tree} {canonical} \
         --add-detached-metadata-string=note=beside"
    ))?;
    let bundle = format!("{}-{version}.sealift", reference.replace('/', "-"));
    ground.run(&format!(
        "sealift pack --force ostree:source --ref {reference} -o {bundle} --name os --bundle-version {version} --key key \
         --chunk-size 64KiB --quiet"
    ))?;
    Ok(Commit { listing: listing(ground, "source", &checksum)?, checksum, bundle })
}

/// Returns the whole tree of a commit as `ostree` lists it.
pub(super) fn listing(ground: &Ground, repo: &str, commit: &str) -> Result<String> {
    ground.printed_by(&format!("ostree ls --repo={repo} -R -C -X {commit}"))
}
