//! The files of the guest: its first process, `sealift`, drivers, and files that only this machine can create.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use xtask::shell::{output, put, put_program, renew, run, target_dir};

use super::debian::Tools;
use crate::random::Random;

/// Drivers for disks, for file systems and for what composefs mounts, if the kernel has them as modules.
const DRIVERS: [&str; 4] = ["virtio_blk", "btrfs", "erofs", "overlay"];

/// Creates the archive that the kernel boots with, and returns its path.
pub(super) fn image(tools: &Tools, work: &Path) -> Result<PathBuf> {
    let root = &work.join("root");
    renew(root)?;
    let programs = programs(work)?.into_iter().chain([(tools.root.join("bin/keyctl"), "bin/keyctl")]);
    add_with_libraries(root, tools, &programs.collect::<Vec<_>>())?;
    add_drivers(root, tools, &DRIVERS)?;
    for (name, content) in signed(work)? {
        let to = root.join("data").join(name);
        put(&to, &content)?;
        if name.ends_with(".key") {
            fs::set_permissions(&to, Permissions::from_mode(0o600))?;
        }
    }
    archive(work)
}

/// Creates such an archive from these drivers, programs and other files, each with its name in the guest.
pub(super) fn image_of(
    (tools, work): (&Tools, &Path),
    drivers: &[&str],
    programs: &[(PathBuf, &str)],
    files: &[(&str, Vec<u8>)],
) -> Result<PathBuf> {
    let root = &work.join("root");
    renew(root)?;
    add_with_libraries(root, tools, programs)?;
    add_drivers(root, tools, drivers)?;
    for (name, content) in files {
        put_program(&root.join(name), content)?;
    }
    archive(work)
}

/// Packs the folder `root`.
fn archive(work: &Path) -> Result<PathBuf> {
    // The first process starts with this console open. Only root can create such a file, but anyone can in an archive.
    put(
        &work.join("console.mtree"),
        b"#mtree\n./dev type=dir mode=0755\n./dev/console type=char device=linux,5,1 mode=0600\n",
    )?;
    // Uncompressed: decompressing takes an emulated machine longer than reading.
    let mut archive = Command::new("bsdtar");
    archive.args(["--create", "--format=newc", "--uid=0", "--gid=0", "--file", "initramfs", "-C", "root", "."]);
    run(archive.arg("@../console.mtree").current_dir(work))?;
    Ok(work.join("initramfs"))
}

/// Copies a program or library of this machine.
fn copy(from: &Path, to: &Path) -> Result<()> {
    put_program(to, fs::read(from).with_context(|| format!("cannot read {}", from.display()))?)
}

/// Builds the programs that the guest runs: the tests have built them already.
fn programs(work: &Path) -> Result<[(PathBuf, &'static str); 2]> {
    run(Command::new("cargo").args(["tests", "--quiet", "--no-run", "--test", "cli", "--test", "vectors"]))?;
    let built = target_dir()?.join("debug");
    let strip = |name: &str| -> Result<PathBuf> {
        let stripped = work.join(name);
        run(Command::new("strip").arg("-o").arg(&stripped).arg(built.join(name)))?;
        Ok(stripped)
    };
    Ok([(strip("guest")?, "init"), (strip("sealift")?, "sealift")])
}

/// Adds drivers, each after its dependencies.
fn add_drivers(root: &Path, tools: &Tools, names: &[&str]) -> Result<()> {
    let version = tools.modules.file_name().context("drivers lie in a folder of their kernel")?;
    let system = |program: &str| Command::new(format!("/usr/sbin/{program}"));
    run(system("depmod").arg("--basedir").arg(&tools.root).arg(version))?;
    let mut list = system("modprobe");
    list.arg("--dirname").arg(&tools.root).arg("--set-version").arg(version).args(["--show-depends", "--all"]);
    let list = output(list.args(names))?;
    let mut added: Vec<&Path> = Vec::new();
    // A driver that is missing is built into the kernel.
    for path in list.lines().filter_map(|line| line.strip_prefix("insmod ")).map(|path| Path::new(path.trim())) {
        if added.contains(&path) {
            continue;
        }
        let to = root.join(format!("modules/{:02}-{}", added.len(), path.file_name().unwrap_or_default().display()));
        copy(path, &to)?;
        if path.extension().is_some_and(|end| end == "xz") {
            run(Command::new("xz").arg("--decompress").arg(&to))?;
        }
        added.push(path);
    }
    Ok(())
}

/// Adds programs with their shared libraries.
fn add_with_libraries(root: &Path, tools: &Tools, programs: &[(PathBuf, &str)]) -> Result<()> {
    let mut libraries = BTreeMap::new();
    for (program, to) in programs {
        copy(program, &root.join(to))?;
        let needs = output(Command::new("ldd").arg(program).env("LD_LIBRARY_PATH", tools.libraries()))?;
        for line in needs.lines() {
            // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`, or only the path.
            let Some(path) = line.split_whitespace().find(|word| word.starts_with('/')) else { continue };
            let name = Path::new(path).file_name().context("a library has a name")?.to_string_lossy().into_owned();
            let to = if name.starts_with("ld-linux") { "lib64" } else { "lib/x86_64-linux-gnu" };
            libraries.insert(format!("{to}/{name}"), PathBuf::from(path));
        }
    }
    libraries.iter().try_for_each(|(to, path)| copy(path, &root.join(to)))
}

/// Returns a file; signatures over it by keys that the guest will trust, and by one that it will not; and a file that is not a signature of it.
fn signed(work: &Path) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let at = |name: &str| work.join(name);
    for (name, kind) in [("good", "rsa:2048"), ("foreign", "rsa:2048"), ("ec", "ec")] {
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-nodes", "-days", "2", "-newkey", kind]);
        if kind == "ec" {
            command.args(["-pkeyopt", "ec_paramgen_curve:P-256"]);
        }
        command.args(["-subj", &format!("/CN={name}"), "-keyout"]).arg(at(name).with_extension("key"));
        // The program prints its progress on standard error.
        output(command.arg("-out").arg(at(name).with_extension("crt")))?;
        let certificate = at(name).with_extension("crt");
        run(Command::new("openssl")
            .args(["x509", "-outform", "DER", "-in"])
            .arg(certificate)
            .arg("-out")
            .arg(at(name).with_extension("der")))?;
    }
    fs::write(at("signed"), Random::fixed().bytes(300_000))?;
    fs::write(at("other"), "other")?;
    for (signature, key, file) in [
        ("good", "good", "signed"),
        ("ec", "ec", "signed"),
        ("foreign", "foreign", "signed"),
        ("other", "good", "other"),
    ] {
        let options = [("--key", "key"), ("--cert", "crt")];
        let options = options.map(|(option, end)| format!("{option}={}", at(key).with_extension(end).display()));
        let signature = at(signature).with_extension("sig");
        output(Command::new("fsverity").arg("sign").arg(at(file)).arg(signature).args(options))?;
    }
    fs::write(at("junk.sig"), Random::fixed().bytes(100))?;
    let signatures = ["signed", "good.sig", "ec.sig", "foreign.sig", "other.sig", "junk.sig", "good.der", "ec.der"];
    // The guest itself signs with these keys.
    let keys = ["good.key", "good.crt", "ec.key", "ec.crt", "foreign.key", "foreign.crt"];
    signatures.into_iter().chain(keys).map(|name| Ok((name, fs::read(at(name))?))).collect()
}
