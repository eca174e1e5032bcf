//! The Debian packages that chores need beyond cargo: detected by their programs, and installed if permitted. This list is the only one: steps and
//! tests find no other program than what it brings (`programs.rs`).

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};

use crate::shell::{has_program, run, succeeds};

/// A chore that needs packages.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Chore {
    Big,
    Ci,
    Compare,
    Dist,
    DistCheck,
    Quick,
    Vm,
    Web,
}

impl Chore {
    /// Returns the name, as on the command line of `cargo xtask`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Big => "big",
            Self::Ci => "ci",
            Self::Compare => "compare",
            Self::Dist | Self::DistCheck => "dist",
            Self::Quick => "quick",
            Self::Vm => "vm",
            Self::Web => "web",
        }
    }
}

use Chore::{Big, Ci, Compare, Dist, DistCheck, Quick, Vm, Web};

enum Probe {
    /// Every program of the package that we call.
    Programs(&'static [&'static str]),
    PythonModule(&'static str),
    File(&'static str),
}

use Probe::{File, Programs, PythonModule};

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
    package("openssh-client",      Programs(&["ssh-keygen", "ssh-agent", "ssh-add"]), &[Ci]),
    // A test takes a capability from a file, and gives it one.
    package("libcap2-bin",         Programs(&["setcap", "getcap"]),       &[Ci]),
    // Tests end programs from a shell, and look at what runs.
    package("procps",              Programs(&["kill"]),                   &[Ci]),
    // Independently compares a tree with the unpacked one, including ACLs and xattrs.
    package("rsync",               Programs(&["rsync"]),                  &[Big, Ci, Compare]),
    package("attr",                Programs(&["setfattr", "getfattr"]),   &[Big, Ci]),
    package("acl",                 Programs(&["setfacl", "getfacl"]),     &[Big, Ci]),
    // Tests read bundles and channels from it by ranges.
    package("nginx",               Programs(&["nginx"]),                  &[Ci, Compare]),
    // A documentation page fills a bucket and a registry with them.
    package("rclone",              Programs(&["rclone"]),                 &[Ci]),
    package("docker-registry",     Programs(&["docker-registry"]),        &[Ci]),
    // A documentation page uses it to read our output.
    package("jq",                  Programs(&["jq"]),                     &[Ci]),
    // OSTree's own program reads what we write for it.
    package("ostree",              Programs(&["ostree"]),                 &[Big, Ci, Compare]),
    // Commits are signed, and gpgv, which sealift runs, verifies them.
    package("gnupg",               Programs(&["gpg", "gpgconf"]),         &[Ci]),
    package("gpgv",                Programs(&["gpgv"]),                   &[Ci]),
    // Flatpak itself installs apps. As a user, it asks D-Bus about parental controls.
    package("flatpak",             Programs(&["flatpak"]),                &[Ci]),
    package("dbus-daemon",         Programs(&["dbus-daemon"]),            &[Ci]),
    // A second program that writes archives.
    package("libarchive-tools",    Programs(&["bsdtar"]),                 &[Ci, Vm]),
    package("cpio",                Programs(&["cpio"]),                   &[Ci]),
    // They check the files released for systemd and udev.
    package("systemd",             Programs(&["systemd-analyze", "systemctl"]),        &[Ci]),
    package("udev",                Programs(&["udevadm"]),                &[Ci]),
    // A user who is not root mounts a bundle with it.
    package("fuse3",               Programs(&["fusermount3"]),            &[Ci, Compare]),
    // A file system without the flags of renameat2(2), and one with one mode for everything.
    package("bindfs",              Programs(&["bindfs"]),                 &[Ci]),
    // Tests make disks with partitions.
    package("fdisk",               Programs(&["sfdisk"]),                 &[Ci, Compare]),
    // And FAT file systems.
    package("dosfstools",          Programs(&["mkfs.vfat"]),              &[Ci]),
    package("mtools",              Programs(&["mcopy", "mdel"]),          &[Ci]),
    // Archives and compressed files, which tests take apart.
    package("dpkg",                Programs(&["dpkg-deb"]),               &[Ci]),
    package("bzip2",               Programs(&["bzip2"]),                  &[Ci]),
    package("lz4",                 Programs(&["lz4"]),                    &[Ci]),
    // skopeo and podman read and write container images, and run them with runc.
    package("skopeo",              Programs(&["skopeo"]),                 &[Ci]),
    package("podman",              Programs(&["podman"]),                 &[Ci]),
    package("runc",                Programs(&["runc"]),                   &[Ci]),
    // RAUC says which slot boots, and these edit the environments of boot loaders. grub-script-check parses the script of a page.
    package("rauc",                Programs(&["rauc"]),                   &[Ci]),
    package("grub-common",         Programs(&["grub-editenv", "grub-script-check"]), &[Ci]),
    package("libubootenv-tool",    Programs(&["fw_setenv", "fw_printenv"]), &[Ci]),
    // It reads single ranges of what the plugin serves.
    package("python3-libnbd",      Programs(&["nbdsh"]),                  &[Ci]),
    // man itself renders the man pages.
    package("man-db",              Programs(&["man"]),                    &[Ci]),
    // The second reader, and pip, which brings Node to a machine whose own is older.
    package("python3",             Programs(&["python3"]),                &[Big, Ci, Compare, Web]),
    package("python3-venv",        PythonModule("ensurepip"),             &[Big, Ci, Compare, Web]),
    // The reference for every fs-verity digest, and a file system that supports it.
    package("fsverity",            Programs(&["fsverity"]),               &[Ci, Compare, Vm]),
    // The reference for every dm-verity root hash.
    package("cryptsetup-bin",      Programs(&["veritysetup"]),            &[Ci]),
    package("e2fsprogs",           Programs(&["mkfs.ext4", "mke2fs", "e2fsck", "chattr", "lsattr", "filefrag", "debugfs"]), &[Big, Ci, Compare, Vm]),
    package("busybox-static",      Programs(&["busybox"]),                &[Ci, Compare]),
    package("kmod",                Programs(&["depmod"]),                 &[Vm]),
    package("btrfs-progs",         Programs(&["mkfs.btrfs", "btrfs"]),    &[Big, Ci, Vm]),
    package("xfsprogs",            Programs(&["mkfs.xfs"]),               &[Big, Ci]),
    package("ntfs-3g",             Programs(&["lowntfs-3g", "ntfs-3g", "mkntfs"]), &[Big, Ci]),
    package("exfat-fuse",          Programs(&["mount.exfat-fuse"]),       &[Ci]),
    package("exfatprogs",          Programs(&["mkfs.exfat"]),             &[Ci]),
    // Creates a whole system as a tree.
    package("debootstrap",         Programs(&["debootstrap"]),            &[Big, Compare, DistCheck]),
    // Browsers run the administrator's page.
    package("chromium",            Programs(&["chromium"]),               &[Ci, Compare]),
    package("chromium-headless-shell", Programs(&["chromium-headless-shell"]), &[Ci, Compare]),
    package("firefox-esr",         Programs(&["firefox-esr"]),            &[Ci]),
    // Counts reads, and divides time by system call.
    package("strace",              Programs(&["strace"]),                 &[Big, Ci, Compare]),
    package("linux-perf",          Programs(&["perf"]),                   &[Compare]),
    // The peers.
    package("zstd",                Programs(&["zstd"]),                   &[Ci, Compare, Vm]),
    package("xdelta3",             Programs(&["xdelta3"]),                &[Compare]),
    package("bsdiff",              Programs(&["bsdiff"]),                 &[Compare]),
    package("par2",                Programs(&["par2"]),                   &[Compare]),
    package("casync",              Programs(&["casync"]),                 &[Compare]),
    package("squashfs-tools",      Programs(&["mksquashfs"]),             &[Ci, Compare]),
    package("xorriso",             Programs(&["xorrisofs", "xorriso"]),   &[Ci, Compare]),
    package("squashfuse",          Programs(&["squashfuse_ll"]),          &[Compare]),
    package("erofs-utils",         Programs(&["mkfs.erofs"]),             &[Ci, Compare]),
    // nbdkit loads our plugin, and serves disks that log reads or delay them; libnbd's programs read from it.
    package("nbdkit",              Programs(&["nbdkit"]),                 &[Ci, Compare]),
    package("libnbd-bin",          Programs(&["nbdcopy", "nbdfuse"]),     &[Ci, Compare]),
    package("nbdkit-plugin-dev",   File("/usr/include/nbdkit-plugin.h"),  &[Compare]),
    package("xz-utils",            Programs(&["xz"]),                     &[Big, Ci, Compare, Vm]),
    // What the composefs crate links.
    package("libssl-dev",          File("/usr/include/openssl/ssl.h"),    &[Ci, Compare, Quick, Vm]),
    package("pkg-config",          Programs(&["pkg-config"]),             &[Ci, Compare, Quick, Vm]),
    // Keys and certificates for built-in signatures.
    package("openssl",             Programs(&["openssl"]),                &[Ci, Vm]),
    // These configure OpenSSL's sources.
    package("perl",                Programs(&["perl"]),                   &[Dist, DistCheck]),
    package("make",                Programs(&["make"]),                   &[Dist, DistCheck]),
    // These compile the C code in static programs.
    package("musl-tools",          Programs(&["musl-gcc"]),               &[Dist, DistCheck]),
    package("binutils",            Programs(&["ar", "strip", "readelf"]), &[Ci, Vm]),
    package("gcc-aarch64-linux-gnu", Programs(&["aarch64-linux-gnu-gcc"]),  &[Dist, DistCheck]),
    package("libc6-dev-arm64-cross", File("/usr/aarch64-linux-gnu/include/limits.h"), &[Dist, DistCheck]),
    // These run the programs, provide a Debian system to install them in, and the shells that read our completions.
    package("qemu-user-static",    Programs(&["qemu-aarch64-static"]),    &[DistCheck]),
    package("fish",                Programs(&["fish"]),                   &[DistCheck]),
    package("zsh",                 Programs(&["zsh"]),                    &[DistCheck]),
];

/// Returns the names of the packages that a chore needs.
pub fn of(chore: Chore) -> impl Iterator<Item = &'static str> {
    PACKAGES.iter().filter(move |package| package.chores.contains(&chore)).map(|package| package.name)
}

/// Returns the programs that the packages of any chore bring.
pub fn programs() -> impl Iterator<Item = &'static str> {
    PACKAGES
        .iter()
        .flat_map(|package| match package.probe {
            Programs(names) => names,
            PythonModule(_) | File(_) => &[],
        })
        .copied()
}

/// Installs what a chore needs and this machine lacks; prints the command to run if not permitted to.
///
/// # Errors
///
/// Returns an error if something is missing and cannot be installed from here.
pub fn ensure(chore: Chore) -> Result<()> {
    let missing: Vec<_> = PACKAGES
        .iter()
        .filter(|package| package.chores.contains(&chore) && !package.probe.found())
        .map(|package| package.name)
        .collect();
    install(&missing)
}

/// Installs packages by name.
pub fn install(names: &[&str]) -> Result<()> {
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
            Self::Programs(names) => names.iter().all(|name| has_program(name)),
            Self::File(path) => Path::new(path).is_file(),
            Self::PythonModule(name) => succeeds(Command::new("python3").args(["-c", &format!("import {name}")])),
        }
    }
}
