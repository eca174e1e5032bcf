//! The target machines of the release, and how to build for them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::Release;
use crate::shell::{output, remap_flags, run};

pub(super) struct Machine {
    pub(super) name: &'static str,
    /// The target's name in rustc. With musl a program needs nothing of the system that it runs on.
    pub(super) target: &'static str,
    pub(super) debian: &'static str,
    /// The compiler of zstd and BLAKE3.
    compiler: &'static str,
    linker: &'static str,
    /// The emulator for its programs, if this machine cannot run them.
    emulator: Option<&'static str>,
}

/// Features of the release that a plain build leaves out.
pub(super) const FEATURES: &str = "portal,composefs-static";

/// The first is the machine that this runs on.
pub(super) const MACHINES: [Machine; 2] = [
    Machine {
        name: "x86_64",
        target: "x86_64-unknown-linux-musl",
        debian: "amd64",
        compiler: "musl-gcc",
        // rustc provides musl's start files; musl-gcc would add its own.
        linker: "cc",
        emulator: None,
    },
    Machine {
        name: "aarch64",
        target: "aarch64-unknown-linux-musl",
        debian: "arm64",
        // Debian has no musl compiler for this target. The headers of the GNU library suffice: the C code needs little.
        compiler: "aarch64-linux-gnu-gcc",
        linker: "aarch64-linux-gnu-gcc",
        emulator: Some("qemu-aarch64-static"),
    },
];

impl Machine {
    /// Returns a command that runs a program of this machine.
    pub(super) fn command(&self, program: &Path) -> Command {
        let Some(emulator) = self.emulator else { return Command::new(program) };
        let mut command = Command::new(emulator);
        command.arg(program);
        command
    }

    /// Returns `cargo build` for this machine, with its compilers.
    fn cargo_build(&self) -> Command {
        let mut command = Command::new("cargo");
        command
            .args(["build", "--quiet", "--locked", "--target", self.target])
            .env(format!("CC_{}", self.target), self.compiler)
            // The C library that is linked lacks these checks.
            .env(format!("CFLAGS_{}", self.target), "-U_FORTIFY_SOURCE")
            .env(format!("CARGO_TARGET_{}_LINKER", self.target.to_uppercase().replace('-', "_")), self.linker);
        command
    }

    /// Builds the program, and returns its path.
    pub(super) fn build(&self, release: &Release) -> Result<PathBuf> {
        println!("dist: building for {}", self.name);
        run(self
            .cargo_build()
            .args(["--profile", "shipped", "--package", "sealift", "--features", FEATURES, "--target-dir"])
            .arg(&release.target)
            .env("SOURCE_DATE_EPOCH", &release.epoch)
            .env("CARGO_ENCODED_RUSTFLAGS", remap_flags()?.join("\x1f")))?;
        let program = release.target.join(self.target).join("shipped/sealift");
        let headers = output(Command::new("readelf").arg("--wide").arg("--program-headers").arg(&program))?;
        ensure!(!headers.contains("INTERP"), "{} asks for a dynamic linker", program.display());
        Ok(program)
    }
}
