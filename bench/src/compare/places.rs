//! Resolves the words of a command line on this machine, so that tables and report contain none of its paths.

use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use anyhow::{Context, Result, ensure};
use xtask::shell::{output, remove, target_dir};

/// `TREE`, `FILE` (one small file in it), `CORES`, `SCRATCH/...` (in memory if there is room), `DISK/...` and our programs.
pub(crate) struct Places {
    pub(crate) tree: PathBuf,
    pub(crate) file: String,
    pub(crate) cores: usize,
    scratch: Scratch,
    disk: Scratch,
    programs: Vec<(&'static str, PathBuf)>,
}

impl Places {
    /// Creates both scratch folders. The disk is that of the build folder.
    pub(crate) fn new(scratch: Option<PathBuf>, wanted_bytes: u64) -> Result<Self> {
        let disk = target_dir()?;
        let scratch = match scratch {
            Some(dir) => dir,
            None => memory_with(wanted_bytes).unwrap_or_else(|| disk.clone()),
        };
        require_room(&scratch, wanted_bytes)?;
        Ok(Self {
            tree: PathBuf::new(),
            file: String::new(),
            cores: std::thread::available_parallelism().context("cannot count cores")?.get(),
            scratch: Scratch::new(&scratch, "compare")?,
            disk: Scratch::new(&disk, "compare-disk")?,
            programs: Vec::new(),
        })
    }

    pub(crate) fn add_program(&mut self, word: &'static str, path: PathBuf) {
        self.programs.push((word, path));
    }

    /// Returns a word of a command line as passed to the programs.
    pub(crate) fn resolve(&self, word: &str) -> String {
        if let Some((_, path)) = self.programs.iter().find(|(name, _)| *name == word) {
            return path.display().to_string();
        }
        match word {
            "FILE" => self.file.clone(),
            _ => word
                .replace("CORES", &self.cores.to_string())
                .replace("TREE", &self.tree.display().to_string())
                .replace("SCRATCH", &self.scratch.0.display().to_string())
                .replace("DISK", &self.disk.0.display().to_string()),
        }
    }

    /// Returns the path of a word that names a file.
    pub(crate) fn path(&self, word: &str) -> PathBuf {
        self.resolve(word).into()
    }

    /// Removes the files or folders of words, if they exist.
    pub(crate) fn remove(&self, words: &[&str]) -> Result<()> {
        words.iter().try_for_each(|word| remove(&self.path(word)))
    }

    /// # Errors
    ///
    /// Returns an error if the disk has less free space than that.
    pub(crate) fn require_disk(&self, wanted_bytes: u64) -> Result<()> {
        require_room(&self.disk.0, wanted_bytes)
    }

    /// Returns the type of file system that contains a word's file.
    pub(crate) fn file_system(&self, word: &str) -> Result<String> {
        let mut command = process::Command::new("findmnt");
        let types = output(command.args(["-no", "FSTYPE", "-T"]).arg(self.path(word)))?;
        // A folder with two mounts on it has two lines, of which the last counts.
        Ok(types.lines().last().unwrap_or("unknown").to_owned())
    }
}

/// A folder that is removed when this value is dropped.
struct Scratch(PathBuf);

impl Scratch {
    /// Removes the remains of killed runs, then creates a folder named by our process.
    fn new(parent: &Path, name: &str) -> Result<Self> {
        let prefix = format!("sealift-{name}-");
        for entry in fs::read_dir(parent).with_context(|| format!("cannot list {}", parent.display()))? {
            let path = entry?.path();
            let stem = path.file_name().and_then(|name| name.to_str());
            let Some(pid) = stem.and_then(|stem| stem.strip_prefix(&prefix)) else {
                continue;
            };
            if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
                remove(&path)?;
            }
        }
        let dir = parent.join(format!("{prefix}{}", process::id()));
        fs::create_dir(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(Self(dir))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.0) {
            eprintln!("left behind: {error:#}");
        }
    }
}

/// Returns the folder of shared memory if it has that much room, in the file system and in memory.
fn memory_with(wanted_bytes: u64) -> Option<PathBuf> {
    let dir = PathBuf::from("/dev/shm");
    let memory = fs::read_to_string("/proc/meminfo").ok()?;
    let line = memory.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let available: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    let has_room = free_bytes(&dir).ok()?.min(available * 1024) >= wanted_bytes;
    has_room.then_some(dir)
}

fn require_room(dir: &Path, wanted_bytes: u64) -> Result<()> {
    let free = free_bytes(dir)?;
    ensure!(free >= wanted_bytes, "{} has {free} bytes free, wanted {wanted_bytes}", dir.display());
    Ok(())
}

fn free_bytes(dir: &Path) -> Result<u64> {
    let space = rustix::fs::statvfs(dir).with_context(|| format!("cannot ask {} for its space", dir.display()))?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}
