//! The target machines of the release, and how to build for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::Release;
use crate::shell::{output, remap_flags, run};

pub struct Machine {
    pub name: &'static str,
    /// The target's name in rustc. With musl, a program needs nothing from the system that it runs on.
    pub(super) target: &'static str,
    pub(super) debian: &'static str,
    /// The target, and the linker, for the plugin, which a program of the system loads and which therefore uses the system's C library.
    of_system: (&'static str, &'static str),
    /// Debian's name for both.
    pub(super) multiarch: &'static str,
    /// The compiler of zstd and BLAKE3.
    compiler: &'static str,
    linker: &'static str,
    /// The emulator for its programs, if this machine cannot run them.
    emulator: Option<&'static str>,
}

/// The plugin for nbdkit.
pub(super) const PLUGIN: &str = "nbdkit-sealift-plugin";

/// The libraries that every Debian system has.
const OF_C: [&str; 3] = ["[libc.so.6]", "[libgcc_s.so.1]", "[ld-linux-"];

/// What is built for one machine.
pub(super) struct Built {
    pub(super) program: PathBuf,
    pub(super) plugin: PathBuf,
}

/// Features of the release that a plain build leaves out.
pub(super) const FEATURES: &str = "portal,composefs-static";

/// The first machine is the one that this runs on.
pub const MACHINES: [Machine; 2] = [
    Machine {
        name: "x86_64",
        target: "x86_64-unknown-linux-musl",
        debian: "amd64",
        of_system: ("x86_64-unknown-linux-gnu", "cc"),
        multiarch: "x86_64-linux-gnu",
        compiler: "musl-gcc",
        // rustc provides musl's start files; musl-gcc would add its own.
        linker: "cc",
        emulator: None,
    },
    Machine {
        name: "aarch64",
        target: "aarch64-unknown-linux-musl",
        debian: "arm64",
        of_system: ("aarch64-unknown-linux-gnu", "aarch64-linux-gnu-gcc"),
        multiarch: "aarch64-linux-gnu",
        // Debian has no musl compiler for this target. The headers of the GNU library suffice, since the C code needs little.
        compiler: "aarch64-linux-gnu-gcc",
        linker: "aarch64-linux-gnu-gcc",
        emulator: Some("qemu-aarch64-static"),
    },
];

impl Machine {
    /// Returns a command that runs a program of this machine.
    pub fn command(&self, program: &Path) -> Command {
        let Some(emulator) = self.emulator else { return Command::new(program) };
        let mut command = Command::new(emulator);
        command.arg(program);
        command
    }

    /// The rustc targets that it needs.
    pub(super) fn targets(&self) -> [&'static str; 2] {
        [self.target, self.of_system.0]
    }

    /// Builds the program and the plugin.
    pub(super) fn build(&self, release: &Release) -> Result<Built> {
        println!("dist: building for {}", self.name);
        Ok(Built { program: self.build_program(release)?, plugin: self.build_plugin(release)? })
    }

    fn build_program(&self, release: &Release) -> Result<PathBuf> {
        let mut command = cargo_build(release, (self.target, self.compiler, self.linker))?;
        // The musl that rustc links lacks these checks.
        command.env(format!("CFLAGS_{}", self.target), "-U_FORTIFY_SOURCE");
        run(command.args(["--package", "sealift", "--features", FEATURES]))?;
        let program = release.target.join(self.target).join("shipped/sealift");
        let headers = output(Command::new("readelf").arg("--wide").arg("--program-headers").arg(&program))?;
        ensure!(!headers.contains("INTERP"), "{} asks for a dynamic linker", program.display());
        Ok(program)
    }

    fn build_plugin(&self, release: &Release) -> Result<PathBuf> {
        let (target, linker) = self.of_system;
        run(cargo_build(release, (target, linker, linker))?.args(["--package", PLUGIN]))?;
        let plugin = release.target.join(target).join("shipped/libnbdkit_sealift_plugin.so");
        let needed = output(Command::new("readelf").arg("--wide").arg("--dynamic").arg(&plugin))?;
        let names = needed.lines().filter(|line| line.contains("(NEEDED)"));
        let others = names.filter(|line| !OF_C.iter().any(|name| line.contains(name))).collect::<Vec<_>>();
        ensure!(others.is_empty(), "{} needs more than the C library: {others:?}", plugin.display());
        Ok(plugin)
    }
}

/// Returns `cargo build` for a target, with its compiler and its linker.
fn cargo_build(release: &Release, (target, compiler, linker): (&str, &str, &str)) -> Result<Command> {
    let mut command = Command::new("cargo");
    command
        .args(["build", "--quiet", "--locked", "--profile", "shipped", "--target", target, "--target-dir"])
        .arg(&release.target)
        .env("SOURCE_DATE_EPOCH", &release.epoch)
        .env(format!("CC_{target}"), compiler)
        .env(format!("CARGO_TARGET_{}_LINKER", target.to_uppercase().replace('-', "_")), linker)
        .env("CARGO_ENCODED_RUSTFLAGS", remap_flags()?.join("\x1f"));
    Ok(command)
}
