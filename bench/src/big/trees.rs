//! Trees to pack, and the changes of an update.

use std::fs::{self, File, FileTimes, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use anyhow::{Context, Result};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use xtask::shell::run;

use crate::random::Random;

/// Copies a real tree of some thousand files: Python's library.
pub(crate) fn real(dir: &Path, random: &mut Random) -> Result<()> {
    fs::create_dir(dir)?;
    let libraries = fs::read_dir("/usr/lib")?.flatten().map(|entry| entry.path());
    let mut found: Vec<_> = libraries.filter(|path| path.to_string_lossy().contains("/python3.")).collect();
    found.sort();
    let library = found.first().context("python3 has its files below /usr/lib")?;
    run(Command::new("cp").arg("-a").arg(library).arg(dir.join("lib")))?;
    add_specials(dir, 30 << 20, random)
}

/// Creates some dozen small files, and the special ones.
pub(crate) fn small(dir: &Path, random: &mut Random) -> Result<()> {
    for number in 0..40 {
        let folder = dir.join(format!("d{}/e{}", number % 4, number % 3));
        fs::create_dir_all(&folder)?;
        let len = usize::try_from(random.below(3000))?;
        fs::write(folder.join(format!("f{number:02}")), random.bytes(len))?;
    }
    add_specials(dir, 1 << 20, random)
}

/// Adds a large file with holes, links of both kinds, a fifo, an attribute, a set-id file, another owner and a read-only directory.
fn add_specials(dir: &Path, large_len: u64, random: &mut Random) -> Result<()> {
    write_islands(&dir.join("large"), large_len, random)?;
    fs::create_dir(dir.join("names"))?;
    for number in 0..10 {
        fs::hard_link(dir.join("large"), dir.join(format!("names/{number}")))?;
        symlink(format!("../names/{number}"), dir.join(format!("names/link{number}")))?;
    }
    symlink("/nowhere", dir.join("dangling"))?;
    mknodat(CWD, dir.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o640), 0)?;
    fs::write(dir.join("empty"), "")?;
    fs::write(dir.join("attributes"), "a file with attributes\n")?;
    run(Command::new("setfattr").args(["-n", "user.origin", "-v", "the north"]).arg(dir.join("attributes")))?;
    run(Command::new("setfacl").args(["-m", "u:4711:r"]).arg(dir.join("attributes")))?;
    fs::write(dir.join("set-id"), "#!/bin/true\n")?;
    chown(dir.join("set-id"), Some(12), Some(34))?;
    fs::set_permissions(dir.join("set-id"), Permissions::from_mode(0o6755))?;
    let closed = dir.join("read-only");
    fs::create_dir_all(closed.join("below"))?;
    for number in 0..5 {
        fs::write(closed.join(format!("{number}")), random.bytes(500))?;
        fs::write(closed.join(format!("below/{number}")), random.bytes(500))?;
    }
    fs::set_permissions(closed.join("below"), Permissions::from_mode(0o555))?;
    fs::set_permissions(&closed, Permissions::from_mode(0o555))?;
    Ok(())
}

/// Writes a file that consists mostly of a hole.
pub(crate) fn write_islands(path: &Path, len: u64, random: &mut Random) -> Result<()> {
    let file = File::create(path)?;
    file.set_len(len)?;
    for _ in 0..5 {
        let island_len = usize::try_from(random.below(len / 20))?;
        let island = random.bytes(island_len);
        file.write_all_at(&island, random.below(len - len / 20))?;
    }
    Ok(())
}

/// Changes some of the files, in every way that an update must handle.
pub(crate) fn change(dir: &Path, random: &mut Random) -> Result<()> {
    // Removes whole directories, or replaces one with a file.
    for name in ["lib/email", "d3"].iter().filter(|name| dir.join(name).exists()) {
        fs::remove_dir_all(dir.join(name))?;
    }
    for name in ["lib/encodings", "d2"].iter().filter(|name| dir.join(name).exists()) {
        fs::remove_dir_all(dir.join(name))?;
        fs::write(dir.join(name), "a file now\n")?;
    }
    let mut files = Vec::new();
    list(dir, &mut files)?;
    files.sort();
    for path in files.iter().filter(|path| !path.ends_with("large")) {
        match random.below(40) {
            0..4 => File::options().append(true).open(path)?.write_all(&random.bytes(200))?,
            4 | 5 => fs::remove_file(path)?,
            6 | 7 => fs::rename(path, path.with_extension("moved"))?,
            8 => fs::set_permissions(path, Permissions::from_mode(0o600))?,
            9 => {
                let times = FileTimes::new().set_modified(UNIX_EPOCH + Duration::from_secs(1_600_000_000));
                File::options().append(true).open(path)?.set_times(times)?;
            }
            10 => fs::write(path, random.bytes(5000))?,
            11 => {
                // Replaces a file with a directory.
                fs::remove_file(path)?;
                fs::create_dir(path)?;
                fs::write(path.join("inside"), random.bytes(300))?;
            }
            12 => {
                fs::remove_file(path)?;
                symlink("elsewhere", path)?;
            }
            _ => {}
        }
    }
    // Replaces a file below a read-only directory, replaces another with a link, and adds one.
    fs::remove_dir_all(dir.join("read-only/below"))?;
    fs::write(dir.join("read-only/below"), "a file now\n")?;
    fs::remove_dir_all(dir.join("names"))?;
    symlink("read-only", dir.join("names"))?;
    fs::create_dir_all(dir.join("more/and/more"))?;
    fs::write(dir.join("more/and/more/file"), random.bytes(70_000))?;
    let large = File::options().write(true).open(dir.join("large"))?;
    let len = large.metadata()?.len();
    large.write_all_at(&random.bytes(9000), random.below(len - 9000))?;
    Ok(())
}

/// Lists the regular files with a single name below a directory.
fn list(dir: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(&entry.path(), files)?;
        } else if kind.is_file() && entry.path().parent().is_some_and(|parent| !parent.ends_with("names")) {
            files.push(entry.path());
        }
    }
    Ok(())
}
