//! The Debian packages that chores need beyond cargo: detected by their programs, and installed if permitted.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::shell::{has_program, run, succeeds};

/// A chore that needs packages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chore {
    Big,
    Ci,
    Compare,
    Dist,
    DistCheck,
    Quick,
    Vm,
    Web,
}

use Chore::{Big, Ci, Compare, Dist, DistCheck, Quick, Vm, Web};

enum Probe {
    Program(&'static str),
    PythonModule(&'static str),
    File(&'static str),
}

use Probe::{File, Program, PythonModule};

struct Package {
    name: &'static str,
    probe: Probe,
    chores: &'static [Chore],
}

const fn package(name: &'static str, probe: Probe, chores: &'static [Chore]) -> Package {
    Package { name, probe, chores }
}

#[rustfmt::skip] // a table
const PACKAGES: &[Package] = &[
    // Tests sign and verify with OpenSSH itself.
    package("openssh-client", Program("ssh-keygen"),    &[Ci]),
    // Independently compares a tree with the unpacked one, including ACLs and xattrs.
    package("rsync",          Program("rsync"),         &[Big, Ci, Compare]),
    package("attr",           Program("setfattr"),      &[Big, Ci]),
    package("acl",            Program("setfacl"),       &[Big, Ci]),
    // A documentation page uses it to read our output.
    package("jq",             Program("jq"),            &[Ci]),
    // OSTree's own program reads what we write for it.
    package("ostree",         Program("ostree"),        &[Big, Ci, Compare]),
    // Commits are signed, and gpgv, which sealift runs, verifies them.
    package("gnupg",          Program("gpg"),           &[Ci]),
    package("gpgv",           Program("gpgv"),          &[Ci]),
    // Flatpak itself installs apps.
    package("flatpak",        Program("flatpak"),       &[Ci]),
    // A second program that writes archives.
    package("libarchive-tools", Program("bsdtar"),      &[Ci, Vm]),
    package("cpio",           Program("cpio"),          &[Ci]),
    // They check the files released for systemd and udev.
    package("systemd",        Program("systemd-analyze"), &[Ci]),
    package("udev",           Program("udevadm"),       &[Ci]),
    // A user who is not root mounts a bundle with it.
    package("fuse3",          Program("fusermount3"),   &[Ci, Compare]),
    // It reads single ranges of what the plugin serves.
    package("python3-libnbd", Program("nbdsh"),         &[Ci]),
    // man itself renders the man pages.
    package("man-db",         Program("man"),           &[Ci]),
    // The second reader.
    package("python3",        Program("python3"),       &[Big, Ci]),
    package("python3-venv",   PythonModule("ensurepip"), &[Big, Ci]),
    // The reference for every fs-verity digest, and a file system that supports it.
    package("fsverity",       Program("fsverity"),      &[Ci, Compare, Vm]),
    package("e2fsprogs",      Program("mkfs.ext4"),     &[Big, Ci, Compare, Vm]),
    package("busybox-static", Program("busybox"),       &[Compare]),
    package("kmod",           Program("depmod"),        &[Vm]),
    package("btrfs-progs",    Program("mkfs.btrfs"),    &[Big, Ci, Vm]),
    package("xfsprogs",       Program("mkfs.xfs"),      &[Big]),
    package("ntfs-3g",        Program("lowntfs-3g"),    &[Big]),
    // Creates a whole system as a tree.
    package("debootstrap",    Program("debootstrap"),   &[Big, Compare, DistCheck]),
    // The core in WebAssembly, and the tools that build its package.
    package("nodejs",         Program("node"),          &[Ci, Compare, Web]),
    package("npm",            Program("npm"),           &[Ci, Compare, Web]),
    // Browsers run the administrator's page.
    package("chromium",       Program("chromium"),      &[Ci, Compare]),
    package("firefox-esr",    Program("firefox-esr"),   &[Ci]),
    // Counts reads, and divides time by system call.
    package("strace",         Program("strace"),        &[Big, Ci, Compare]),
    package("linux-perf",     Program("perf"),          &[Compare]),
    // The peers.
    package("zstd",           Program("zstd"),          &[Ci, Compare, Vm]),
    package("xdelta3",        Program("xdelta3"),       &[Compare]),
    package("bsdiff",         Program("bsdiff"),        &[Compare]),
    package("squashfs-tools", Program("mksquashfs"),    &[Ci, Compare]),
    package("squashfuse",     Program("squashfuse_ll"), &[Compare]),
    package("erofs-utils",    Program("mkfs.erofs"),    &[Ci, Compare]),
    // nbdkit loads our plugin, and serves disks that log reads or delay them; libnbd's programs read from it.
    package("nbdkit",         Program("nbdkit"),        &[Ci, Compare]),
    package("libnbd-bin",     Program("nbdcopy"),       &[Ci, Compare]),
    package("nbdkit-plugin-dev", File("/usr/include/nbdkit-plugin.h"), &[Compare]),
    package("xz-utils",       Program("xz"),            &[Big, Compare, Vm]),
    // What the composefs crate links.
    package("libssl-dev",     File("/usr/include/openssl/ssl.h"), &[Ci, Compare, Quick, Vm]),
    package("pkg-config",     Program("pkg-config"),    &[Ci, Compare, Quick, Vm]),
    // Keys and certificates for built-in signatures.
    package("openssl",        Program("openssl"),       &[Ci, Vm]),
    // These configure OpenSSL's sources.
    package("perl",           Program("perl"),          &[Dist, DistCheck]),
    package("make",           Program("make"),          &[Dist, DistCheck]),
    // These compile the C code in static programs.
    package("musl-tools",     Program("musl-gcc"),      &[Dist, DistCheck]),
    package("binutils",       Program("strip"),         &[Vm]),
    package("gcc-aarch64-linux-gnu", Program("aarch64-linux-gnu-gcc"), &[Dist, DistCheck]),
    package("libc6-dev-arm64-cross", File("/usr/aarch64-linux-gnu/include/limits.h"), &[Dist, DistCheck]),
    // These run the programs, provide a Debian system to install them in, and the shells that read our completions.
    package("qemu-user-static", Program("qemu-aarch64-static"), &[DistCheck]),
    package("fish",           Program("fish"),          &[DistCheck]),
    package("zsh",            Program("zsh"),           &[DistCheck]),
];

/// Installs what a chore needs and this machine lacks; prints the command to run if not permitted to.
///
/// # Errors
///
/// Returns an error if something is missing and cannot be installed from here.
pub(crate) fn ensure(chore: Chore) -> Result<()> {
    let missing: Vec<_> = PACKAGES
        .iter()
        .filter(|package| package.chores.contains(&chore) && !package.probe.found())
        .map(|package| package.name)
        .collect();
    install(&missing)
}

/// Installs packages by name.
pub(crate) fn install(names: &[&str]) -> Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let list = names.join(" ");
    if !rustix::process::geteuid().is_root() {
        bail!("missing Debian packages; run: sudo apt-get install {list}");
    }
    if !has_program("apt-get") {
        bail!("this is no Debian; install what holds its packages {list}");
    }
    println!("installing {list}");
    run(Command::new("apt-get").args(["-qq", "update"]))?;
    run(Command::new("apt-get")
        .args(["-qq", "install", "--yes", "--no-install-recommends"])
        .args(names)
        .env("DEBIAN_FRONTEND", "noninteractive"))
}

impl Probe {
    fn found(&self) -> bool {
        match self {
            Self::Program(name) => has_program(name),
            Self::File(path) => Path::new(path).is_file(),
            Self::PythonModule(name) => succeeds(Command::new("python3").args(["-c", &format!("import {name}")])),
        }
    }
}
