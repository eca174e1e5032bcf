//! What the guest finds: its first process, `sealift`, drivers, and files that only this machine makes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::archive::Archive;
use super::debian::Tools;
use crate::dist::machine::MACHINES;
use crate::random::Random;
use crate::shell::{output, run, target_dir};
use crate::tools;

/// Disks, and the file systems on them and of composefs that are not built into the kernel.
const DRIVERS: [&str; 4] = ["virtio_blk", "btrfs", "erofs", "overlay"];

/// Makes the archive with which the kernel starts, and returns where it lies.
pub(super) fn image(tools: &Tools, work: &Path) -> Result<PathBuf> {
    fs::create_dir_all(work).with_context(|| format!("cannot make {}", work.display()))?;
    let mut archive = Archive::default();
    archive.device("dev/console", (5, 1))?;
    for (program, to) in programs(work)? {
        archive.copy(&program, to)?;
    }
    let mut loaded = Vec::new();
    DRIVERS.iter().try_for_each(|driver| add_driver(&mut archive, tools, driver, &mut loaded))?;
    add_with_libraries(&mut archive, tools, "bin/keyctl")?;
    for (name, content) in signed(work)? {
        archive.file(&format!("data/{name}"), &content)?;
    }
    let path = work.join("initramfs");
    fs::write(&path, archive.finish()?).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Builds what the guest runs: static programs, and a little optimised, since the machine is emulated.
fn programs(work: &Path) -> Result<[(PathBuf, &'static str); 2]> {
    let machine = &MACHINES[0];
    tools::ensure_target(machine.target)?;
    run(machine
        .cargo_build()
        .args(["--package", "sealift", "--package", "sealift-tests"])
        .args(["--bin", "sealift", "--bin", "guest", "--features", "sealift/composefs-static"])
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "1"))?;
    let built = target_dir()?.join(machine.target).join("debug");
    let strip = |name: &str| -> Result<PathBuf> {
        let stripped = work.join(name);
        run(Command::new("strip").arg("-o").arg(&stripped).arg(built.join(name)))?;
        Ok(stripped)
    };
    Ok([(strip("guest")?, "init"), (strip("sealift")?, "sealift")])
}

/// Adds a driver behind those that it needs. What is not there is built into the kernel.
fn add_driver(archive: &mut Archive, tools: &Tools, name: &str, loaded: &mut Vec<String>) -> Result<()> {
    let name = name.replace('-', "_");
    if loaded.contains(&name) {
        return Ok(());
    }
    let Some(path) = find_driver(&tools.modules.join("kernel"), &name)? else { return Ok(()) };
    let driver = match path.extension() {
        Some(end) if end == "xz" => {
            let unpacked = Command::new("xz").args(["--decompress", "--stdout"]).arg(&path).output();
            unpacked.context("cannot start xz")?.stdout
        }
        _ => fs::read(&path)?,
    };
    // Facts about it stand in it as NAME=VALUE, each behind a NUL byte.
    let facts = driver.split(|byte| *byte == 0).filter_map(|fact| std::str::from_utf8(fact).ok());
    let needs = facts.filter_map(|fact| fact.strip_prefix("depends=").or_else(|| fact.strip_prefix("softdep=pre:")));
    for needed in needs.flat_map(|names| names.split([',', ' '])).filter(|name| !name.is_empty()) {
        add_driver(archive, tools, needed, loaded)?;
    }
    archive.file(&format!("modules/{:02}-{name}.ko", loaded.len()), &driver)?;
    loaded.push(name);
    Ok(())
}

fn find_driver(folder: &Path, name: &str) -> Result<Option<PathBuf>> {
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = find_driver(&path, name)? {
                return Ok(Some(found));
            }
        } else if path.file_name().is_some_and(|file| {
            let file = file.to_string_lossy().replace('-', "_");
            file == format!("{name}.ko") || file == format!("{name}.ko.xz")
        }) {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// Adds a program of Debian with the libraries that it is linked to.
fn add_with_libraries(archive: &mut Archive, tools: &Tools, program: &str) -> Result<()> {
    archive.copy(&tools.root.join(program), program)?;
    let needs = output(Command::new("ldd").arg(tools.root.join(program)).env("LD_LIBRARY_PATH", tools.libraries()))?;
    for line in needs.lines() {
        // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x...)`, or the path alone.
        let Some(path) = line.split_whitespace().find(|word| word.starts_with('/')) else { continue };
        let name = Path::new(path).file_name().context("a library has a name")?.to_string_lossy().into_owned();
        let to = if name.starts_with("ld-linux") { "lib64" } else { "lib/x86_64-linux-gnu" };
        archive.copy(Path::new(path), &format!("{to}/{name}"))?;
    }
    Ok(())
}

/// A file, signatures over it by keys that the guest is going to trust and by one that it is not, and what is no signature of it.
fn signed(work: &Path) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let at = |name: &str| work.join(name);
    for (name, kind) in [("good", "rsa:2048"), ("foreign", "rsa:2048"), ("ec", "ec")] {
        let mut command = Command::new("openssl");
        command.args(["req", "-x509", "-nodes", "-days", "2", "-newkey", kind]);
        if kind == "ec" {
            command.args(["-pkeyopt", "ec_paramgen_curve:P-256"]);
        }
        command.args(["-subj", &format!("/CN={name}"), "-keyout"]).arg(at(name).with_extension("key"));
        // It shows on standard error how hard it tries.
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
    // With these the guest signs itself.
    let keys = ["good.key", "good.crt", "ec.key", "ec.crt", "foreign.key", "foreign.crt"];
    signatures.into_iter().chain(keys).map(|name| Ok((name, fs::read(at(name))?))).collect()
}
