//! The trees to pack, and reading them before the clock starts.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use xtask::debian::{self, Installed};
use xtask::packages;
use xtask::shell::{output, run};

const DEBIAN_SOURCE: &str = "linux-source-6.1";
/// Number of files of noise that make 2 GiB.
pub(crate) const NOISE_FILES: u32 = 16;
const NOISE_FILE_BYTES: u64 = 128 << 20;
const FILES_PER_FOLDER: u32 = 1000;

/// Unpacks Debian's kernel source into a folder.
pub(crate) fn unpack_kernel(dir: &Path) -> Result<PathBuf> {
    let archive = Path::new("/usr/src").join(format!("{DEBIAN_SOURCE}.tar.xz"));
    if !archive.exists() {
        packages::install(&[DEBIAN_SOURCE])?;
    }
    println!("unpacking {}", archive.display());
    run(Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(dir))?;
    Ok(dir.join(DEBIAN_SOURCE))
}

/// Unpacks a version of it from the package sources into a new folder: two releases before the newest, or the oldest.
pub(crate) fn unpack_previous_kernel(dir: &Path) -> Result<PathBuf> {
    let versions = output(Command::new("apt-cache").args(["madison", DEBIAN_SOURCE]))?;
    let mut versions: Vec<&str> = versions.lines().filter_map(|line| line.split('|').nth(1)).map(str::trim).collect();
    versions.dedup_by_key(|version| version.split('-').next());
    let version = versions.get(2).or(versions.last()).context("apt-cache madison names no version")?;
    fs::create_dir_all(dir)?;
    println!("   {DEBIAN_SOURCE} {version}");
    // As the current user: apt's sandbox may not write here.
    let download = ["-q", "-o", "APT::Sandbox::User=root", "download", &format!("{DEBIAN_SOURCE}={version}")];
    run(Command::new("apt-get").args(download).current_dir(dir).stdout(Stdio::null()))?;
    let package = fs::read_dir(dir)?.next().context("apt-get download left no package")??.path();
    run(Command::new("dpkg-deb").arg("-x").arg(&package).arg(dir.join("package")))?;
    let archive = dir.join("package/usr/src").join(format!("{DEBIAN_SOURCE}.tar.xz"));
    run(Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(dir))?;
    fs::remove_dir_all(dir.join("package"))?;
    Ok(dir.join(DEBIAN_SOURCE))
}

/// Unpacks that of the next Debian into a folder.
pub(crate) fn unpack_later_kernel(dir: &Path) -> Result<PathBuf> {
    let name = "linux-source-6.12";
    debian::unpack(dir, &dir.join("package"), &["trixie"], &[name], Installed::Counts)?;
    let archive = dir.join("package/usr/src").join(format!("{name}.tar.xz"));
    run(Command::new("tar").arg("-xJf").arg(archive).arg("-C").arg(dir))?;
    fs::remove_dir_all(dir.join("package"))?;
    Ok(dir.join(name))
}

/// The extent of a tree.
#[derive(Default)]
pub(crate) struct Extent {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// A small file near the middle, to extract one object by.
    pub(crate) sample: Option<PathBuf>,
}

/// Counts the regular files and their bytes.
pub(crate) fn extent(tree: &Path) -> Result<Extent> {
    let mut extent = Extent::default();
    let mut small = Vec::new();
    walk(tree, &mut |path, metadata| {
        extent.files += 1;
        extent.bytes += metadata.len();
        if (1024..16 * 1024).contains(&metadata.len()) {
            small.push(path.to_owned());
        }
        Ok(())
    })?;
    small.sort_unstable();
    extent.sample = small.get(small.len() / 2).cloned();
    Ok(extent)
}

/// Reads a file, or every file of a tree, into the page cache, which some machines reclaim early.
pub(crate) fn read_all(path: &Path) -> Result<()> {
    let mut buffer = vec![0; 256 << 10];
    let mut read = |path: &Path| -> Result<()> {
        let mut file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
        while file.read(&mut buffer)? > 0 {}
        Ok(())
    };
    if path.is_file() { read(path) } else { walk(path, &mut |path, _| read(path)) }
}

/// Drops a file from the page cache.
pub(crate) fn forget(path: &Path) -> Result<()> {
    let file = File::open(path).with_context(|| format!("cannot open {}", path.display()))?;
    file.sync_all()?;
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    Ok(())
}

/// Writes incompressible files of 128 MiB each.
pub(crate) fn write_noise(dir: &Path, files: u32) -> Result<()> {
    fs::create_dir(dir)?;
    let source = File::open("/dev/urandom")?;
    for number in 0..files {
        let mut file = File::create(dir.join(format!("{number:02}")))?;
        io::copy(&mut (&source).take(NOISE_FILE_BYTES), &mut file)?;
    }
    Ok(())
}

/// Writes one incompressible file into a folder of its own.
pub(crate) fn write_file(dir: &Path, name: &str, len: u64) -> Result<()> {
    fs::create_dir(dir)?;
    io::copy(&mut File::open("/dev/urandom")?.take(len), &mut File::create(dir.join(name))?)?;
    Ok(())
}

/// Writes small files, each different, 1000 per folder.
pub(crate) fn write_small_files(dir: &Path, count: u32) -> Result<()> {
    for folder in 0..count.div_ceil(FILES_PER_FOLDER) {
        let path = dir.join(format!("{folder:04}"));
        fs::create_dir_all(&path)?;
        for number in folder * FILES_PER_FOLDER..count.min((folder + 1) * FILES_PER_FOLDER) {
            let mut file = File::create(path.join(format!("{number:07}")))?;
            // From 8 to 800 bytes.
            file.write_all(format!("{number:07}\n").repeat(usize::try_from(1 + number % 100)?).as_bytes())?;
        }
    }
    Ok(())
}

/// Returns all regular files below a directory, sorted by path.
pub(crate) fn files(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(dir, &mut |path, _| {
        files.push(path.to_owned());
        Ok(())
    })?;
    files.sort_unstable();
    Ok(files)
}

/// Visits every regular file below a directory.
pub(crate) fn walk(dir: &Path, visit: &mut dyn FnMut(&Path, &fs::Metadata) -> Result<()>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            walk(&entry.path(), visit)?;
        } else if metadata.is_file() {
            visit(&entry.path(), &metadata)?;
        }
    }
    Ok(())
}
