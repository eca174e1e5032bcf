//! The machines for which a program is built, and how.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use super::Release;
use crate::shell::{output, remap_flags, run};

pub(super) struct Machine {
    pub(super) name: &'static str,
    /// As rustc names it. With musl a program needs nothing of the system that it runs on.
    pub(super) target: &'static str,
    pub(super) debian: &'static str,
    /// What compiles zstd and BLAKE3.
    compiler: &'static str,
    linker: &'static str,
    /// What runs its programs, where this machine does not.
    emulator: Option<&'static str>,
}

/// What is handed out has what a plain build leaves out.
pub(super) const FEATURES: &str = "portal,composefs-static";

/// The first is the one on which this runs.
pub(super) const MACHINES: [Machine; 2] = [
    Machine {
        name: "x86_64",
        target: "x86_64-unknown-linux-musl",
        debian: "amd64",
        compiler: "musl-gcc",
        // rustc brings musl's own start files; musl-gcc would add its.
        linker: "cc",
        emulator: None,
    },
    Machine {
        name: "aarch64",
        target: "aarch64-unknown-linux-musl",
        debian: "arm64",
        // Debian has no compiler for musl here. The headers of the GNU library do: the C code asks for little.
        compiler: "aarch64-linux-gnu-gcc",
        linker: "aarch64-linux-gnu-gcc",
        emulator: Some("qemu-aarch64-static"),
    },
];

impl Machine {
    /// A command that runs a program of this machine.
    pub(super) fn command(&self, program: &Path) -> Command {
        let Some(emulator) = self.emulator else { return Command::new(program) };
        let mut command = Command::new(emulator);
        command.arg(program);
        command
    }

    /// `cargo build` for this machine, with the compilers that it takes.
    fn cargo_build(&self) -> Command {
        let mut command = Command::new("cargo");
        command
            .args(["build", "--quiet", "--locked", "--target", self.target])
            .env(format!("CC_{}", self.target), self.compiler)
            // A C library with these checks is not what is linked.
            .env(format!("CFLAGS_{}", self.target), "-U_FORTIFY_SOURCE")
            .env(format!("CARGO_TARGET_{}_LINKER", self.target.to_uppercase().replace('-', "_")), self.linker);
        command
    }

    /// Builds the program, and returns where it lies.
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
