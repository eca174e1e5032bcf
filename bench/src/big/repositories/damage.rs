//! Packs damaged repositories: the packed content must be right, or the error must name the damaged object.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use xtask::shell::remove;

use super::sources::{Source, Sources, listing};
use crate::big::findings::Findings;
use crate::big::ground::Ground;
use crate::random::Random;

const MODES: [&str; 4] = ["archive", "bare-user", "bare", "bare-user-only"];
/// The number of runs for each mode.
const DAMAGES: u32 = 240;
/// A time limit that none of these runs reaches.
const PATIENCE: &str = "timeout --signal=KILL 30";

#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip,
    Truncate,
    Empty,
    Zeros,
    Extend,
    Swap,
    Remove,
    Permissions,
    Attribute,
    Directory,
    Link,
    Fifo,
}

use Damage::{
    Attribute, Directory, Empty, Extend, Fifo, Flip, Link, Permissions as Bits, Remove, Swap, Truncate, Zeros,
};

const ALL: [Damage; 12] = [Flip, Truncate, Empty, Zeros, Extend, Swap, Remove, Bits, Attribute, Directory, Link, Fifo];

pub(crate) fn run() -> Result<()> {
    let ground = Ground::new("repo-damage")?;
    let mut random = Random::new()?;
    let mut findings = Findings::default();
    let sources = Sources::make(&ground, 1)?;
    for mode in MODES {
        let source = if mode == "bare-user-only" { &sources.plain } else { &sources.full };
        prepare(&ground, mode, source)?;
        let files = files(&ground.path("repo"))?;
        let mut refused = 0;
        for number in 0..DAMAGES {
            let damage = ALL[usize::try_from(number)? % ALL.len()];
            let file = choose(&files, &mut random)?;
            refused += u32::from(pack_damaged(&ground, source, (damage, file, &files), &mut random, &mut findings)?);
        }
        println!("   {mode}: {DAMAGES} damages, {refused} refused");
    }
    findings.finish()?;
    ground.remove()
}

/// Creates `repo`, which contains both commits and a summary, and `kept`, an unchanged copy.
fn prepare(ground: &Ground, mode: &str, source: &Source) -> Result<()> {
    remove(&ground.path("repo"))?;
    ground.run(&format!("ostree init --repo=repo --mode={mode} --collection-id={}", super::COLLECTION))?;
    for commit in [&source.old, &source.new] {
        ground.run(&format!("sealift unpack {} ostree:repo --allow-unsigned --quiet --state state", commit.bundle))?;
    }
    ground.run("ostree summary --repo=repo --update")?;
    ground.copy("repo", "kept")
}

/// Returns all meaningful files of a repository.
fn files(repo: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut pending) = (Vec::new(), vec![repo.to_owned()]);
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => pending.push(entry.path()),
                _ if entry.file_name() == ".lock" => {}
                _ => found.push(entry.path().strip_prefix(repo)?.to_owned()),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Chooses a file, with each kind of file equally likely: most files are file objects.
fn choose<'a>(files: &'a [PathBuf], random: &mut Random) -> Result<&'a Path> {
    const KINDS: [&str; 8] = ["commit", "commit", "dirtree", "dirmeta", "file", "file", "", ""];
    let kind = KINDS[usize::try_from(random.below(8))?];
    let of_kind = |path: &&PathBuf| path.extension().is_none_or(|found| found.to_string_lossy().starts_with(kind));
    let some: Vec<_> =
        files.iter().filter(|path| path.extension().is_some() != kind.is_empty()).filter(of_kind).collect();
    let number = usize::try_from(random.below(u64::try_from(some.len())?))?;
    some.get(number).map(|path| path.as_path()).context("the repository has files of each kind")
}

/// Packs a damaged repository. Returns whether that is refused.
fn pack_damaged(
    ground: &Ground,
    source: &Source,
    (damage, file, files): (Damage, &Path, &[PathBuf]),
    random: &mut Random,
    findings: &mut Findings,
) -> Result<bool> {
    let (repo, kept) = (ground.path("repo"), ground.path("kept"));
    let other = choose(files, random)?;
    make(damage, &repo.join(file), &kept.join(other), random).with_context(|| format!("{damage:?} of {file:?}"))?;
    let line = format!(
        "{PATIENCE} sealift pack --force ostree:repo --ref {} --depth 1 -o work/b.sealift --name os --bundle-version 1 --key key --quiet",
        source.reference
    );
    remove(&ground.path("work"))?;
    fs::create_dir(ground.path("work"))?;
    let done = ground.command(&line).output()?;
    let said = String::from_utf8_lossy(&done.stderr).trim().replace('\n', "; ");
    let problem = match done.status.code() {
        Some(0) => is_other(ground, source)?,
        Some(1 | 2) if !names(&said, file) => Some(format!("it does not name it: {said}")),
        Some(1 | 2) => fs::read_dir(ground.path("work"))?.next().map(|left| format!("it leaves {left:?}")),
        code => Some(format!("it ends with {code:?}: {said}")),
    };
    if let Some(problem) = problem {
        findings.add(&format!("{damage:?} of {} (with {}): {problem}", file.display(), other.display()))?;
    }
    remove(&repo.join(file))?;
    let restored = ground.command("cp -a").args([kept.join(file), repo.join(file)]).status()?;
    ensure!(restored.success(), "{} cannot be made whole again", file.display());
    Ok(done.status.code() != Some(0))
}

fn make(damage: Damage, path: &Path, other: &Path, random: &mut Random) -> Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let len = metadata.len();
    let is_plain = metadata.is_file() && len > 0;
    let open = || File::options().read(true).write(true).open(path);
    match damage {
        Flip if is_plain => {
            let at = random.below(len);
            let mut byte = [0];
            open()?.read_exact_at(&mut byte, at)?;
            byte[0] ^= 1 << random.below(8);
            open()?.write_all_at(&byte, at)?;
        }
        Truncate if is_plain => open()?.set_len(random.below(len))?,
        Empty if is_plain => open()?.set_len(0)?,
        Zeros if is_plain => {
            let at = random.below(len);
            let zeros = vec![0; usize::try_from((len - at).min(4096))?];
            open()?.write_all_at(&zeros, at)?;
        }
        Extend if is_plain => open()?.write_all_at(b"more", len)?,
        Swap if is_plain && !other.is_symlink() => {
            let bytes = fs::read(other)?;
            let file = open()?;
            file.set_len(0)?;
            file.write_all_at(&bytes, 0)?;
        }
        Bits if is_plain => {
            let bits = [0o600, 0o4755, 0o755, 0][usize::try_from(random.below(4))?];
            fs::set_permissions(path, Permissions::from_mode(bits))?;
        }
        Attribute if is_plain => {
            let name = ["user.ostreemeta", "user.more"][usize::try_from(random.below(2))?];
            let value = random.bytes(20);
            setxattr(path, name, &value, XattrFlags::empty())?;
        }
        _ => fs::remove_file(path)?,
    }
    match damage {
        Directory => fs::create_dir(path)?,
        Link => symlink(other, path)?,
        Fifo => mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0)?,
        _ => {}
    }
    Ok(())
}

/// Returns whether a message names an object or another file of the repository, or its content.
fn names(said: &str, file: &Path) -> bool {
    let path = file.to_string_lossy();
    let name = match path.strip_prefix("objects/") {
        // libostree writes object names without the slash, and without the final z.
        Some(object) => object.replace('/', "").trim_end_matches('z').to_owned(),
        None => path.trim_start_matches("refs/heads/").to_owned(),
    };
    // A changed ref or config refers to objects that do not exist.
    let leads_elsewhere = !path.starts_with("objects/") && said.contains("it has no object");
    said.contains(&name) || said.contains(&*path) || leads_elsewhere
}

/// Returns what the bundle contains and the source does not.
fn is_other(ground: &Ground, source: &Source) -> Result<Option<String>> {
    ground.run("ostree init --repo=work/repo --mode=archive")?;
    ground.run("ostree config set --repo=work/repo core.fsync false")?;
    if let Err(error) =
        ground.run("sealift unpack work/b.sealift ostree:work/repo --allow-unsigned --quiet --state state")
    {
        // A ref may name a commit of another ref, which no repository accepts for it.
        let is_told = format!("{error:#}").contains("is bound to");
        return Ok((!is_told).then(|| format!("its bundle cannot be unpacked: {error:#}")));
    }
    ground.run("ostree fsck --quiet --repo=work/repo")?;
    let parent = ground.path("repo/objects").join(source.old.object());
    // A missing parent may have been pruned.
    let wanted = [&source.new].into_iter().chain(parent.symlink_metadata().is_ok().then_some(&source.old));
    for commit in wanted {
        match listing(ground, "work/repo", &commit.checksum) {
            Ok(found) if found == commit.listing => {}
            Ok(_) => return Ok(Some("its bundle has something else".to_owned())),
            Err(error) => return Ok(Some(format!("its bundle lacks a commit: {error:#}"))),
        }
    }
    Ok(None)
}
