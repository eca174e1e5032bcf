//! Debian's packages for the virtual machine: its kernel, and a QEMU that emulates it correctly. An apt of our own downloads them, checks them with
//! Debian's keys, and unpacks them in the cache folder; what is installed on this machine is not changed.
//!
//! On bookworm, QEMU comes from its backports: bookworm's 7.2 computes wrong flags after cmpxchg16b, which crashes every third boot of a 6.12 kernel.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use xtask::debian::{self, Installed};
use xtask::shell::{cache_dir, once, renew};

/// The kernel, the emulator, and the program that adds a certificate to the kernel's keyring.
const PACKAGES: [&str; 3] = ["linux-image-cloud-amd64", "qemu-system-x86", "keyutils"];

/// Unpacked packages.
pub(super) struct Tools {
    /// Their root folder, in place of `/`.
    pub(super) root: PathBuf,
    /// The kernel as an ELF file, which starts without a BIOS and without decompressing itself: this saves half a second.
    pub(super) kernel: PathBuf,
    /// Its drivers.
    pub(super) modules: PathBuf,
}

/// Downloads the packages once. Remove the folder to get newer ones.
pub(super) fn ensure() -> Result<Tools> {
    let dir = cache_dir()?.join("vm");
    let (root, kernel) = (dir.join("root"), dir.join("vmlinux"));
    let this = this_suite()?;
    let suites = if this == "bookworm" { vec!["bookworm", "bookworm-backports"] } else { vec![&*this] };
    let suite = suites[suites.len() - 1];
    let wanted = format!("{suite} {}", PACKAGES.join(" "));
    once(&dir.join("packages"), &wanted, || {
        println!("fetching {} of {suite}, once", PACKAGES.join(", "));
        renew(&dir)?;
        debian::unpack(&dir, &root, &suites, &PACKAGES, Installed::Counts)?;
        let compressed = only(&root.join("boot"), "vmlinuz-")?;
        write_elf(&fs::read(&compressed)?, &kernel).with_context(|| compressed.display().to_string())?;
        // Since trixie, packages have all files in /usr, and links lead there, which a package of the system brings.
        for name in ["bin", "sbin", "lib"].map(Path::new) {
            if !root.join(name).exists() {
                symlink(Path::new("usr").join(name), root.join(name))?;
            }
        }
        Ok(())
    })?;
    let config = fs::read_to_string(only(&root.join("boot"), "config-")?)?;
    for option in ["CONFIG_FS_VERITY=y", "CONFIG_FS_VERITY_BUILTIN_SIGNATURES=y", "CONFIG_PVH=y"] {
        ensure!(config.lines().any(|line| line == option), "Debian's kernel has no {option}");
    }
    let modules = only(&root.join("lib/modules"), "")?;
    Ok(Tools { root, kernel, modules })
}

impl Tools {
    /// Returns a command for an unpacked program, with the unpacked libraries.
    pub(super) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.root.join(program));
        command.env("LD_LIBRARY_PATH", self.libraries());
        command
    }

    /// Returns the library path.
    pub(super) fn libraries(&self) -> String {
        let folders = ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"].map(|folder| self.root.join(folder));
        folders.map(|folder| folder.display().to_string()).join(":")
    }
}

/// Returns the only entry of a folder with this prefix.
fn only(folder: &Path, prefix: &str) -> Result<PathBuf> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let names = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    let begins = |path: &&PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    match &names.iter().filter(begins).collect::<Vec<_>>()[..] {
        [only] => Ok((*only).clone()),
        found => bail!("{} holds {} of {prefix}*", folder.display(), found.len()),
    }
}

/// Extracts the ELF file from a kernel for x86 (kernel documentation, "The Linux/x86 Boot Protocol"): the payload is a zstd frame, followed by its
/// decompressed length.
fn write_elf(kernel: &[u8], to: &Path) -> Result<()> {
    let field = |at: usize| -> Result<usize> {
        let bytes = kernel.get(at..).and_then(<[u8]>::first_chunk).context("the kernel is too short")?;
        Ok(usize::try_from(u32::from_le_bytes(*bytes))?)
    };
    ensure!(kernel.get(0x202..0x206) == Some(b"HdrS".as_slice()), "it is no kernel for x86");
    let sectors = usize::from(kernel[0x1f1]).max(1);
    let (start, len) = ((sectors + 1) * 512 + field(0x248)?, field(0x24c)?);
    let payload = kernel.get(start..start + len).context("the kernel's payload is cut")?;
    let (frame, _) = payload.split_last_chunk::<4>().context("the kernel's payload is too short")?;
    fs::write(to, frame)?;
    let elf = Command::new("zstd").args(["--decompress", "--stdout", "--quiet"]).arg(to).output()?.stdout;
    ensure!(elf.starts_with(b"\x7fELF"), "the kernel is no ELF file that zstd compressed");
    fs::write(to, elf).with_context(|| format!("cannot write {}", to.display()))
}

/// Returns the suite of this machine's Debian, such as `bookworm`.
fn this_suite() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("cannot read /etc/os-release")?;
    let suite = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(suite.context("/etc/os-release names no suite of Debian")?.to_owned())
}
