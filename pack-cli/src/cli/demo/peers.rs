//! `tar | zstd` over the same tree, as most people do it today.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use sealift::Error;
use zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer};

use super::super::interrupt;

/// What this machine has of the two programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peers {
    tar: bool,
    zstd: bool,
    level: i32,
    jobs: usize,
}

impl Peers {
    /// Looks which programs are there.
    pub(super) fn find(level: i32, jobs: usize) -> Self {
        let there = |name| {
            let mut command = Command::new(name);
            command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.status().is_ok_and(|status| status.success())
        };
        Self { tar: there("tar"), zstd: there("zstd"), level, jobs }
    }

    /// What stands in for a program that is not there.
    pub(super) fn notes(&self) -> Vec<&'static str> {
        let mut notes = Vec::new();
        if !self.tar {
            notes.push("The command tar is not here: the files' contents, one after the other, stand in for it.");
        }
        if !self.zstd {
            notes.push(
                "The command zstd is not here: the libzstd inside this program, on one thread, stands in for it.",
            );
        }
        notes
    }

    /// The line that a person would type to pack.
    pub(super) fn pack_name(&self) -> String {
        let tar = if self.tar { "tar" } else { "files" };
        if self.zstd {
            format!("{tar} | zstd -{} -T{}", self.level, self.jobs)
        } else {
            format!("{tar} | libzstd -{}", self.level)
        }
    }

    /// The line that a person would type to unpack.
    pub(super) fn unpack_name(&self) -> &'static str {
        if self.zstd { "zstd -d | tar -x" } else { "libzstd -d | tar -x" }
    }

    /// The line that a person would type to check.
    pub(super) fn test_name(&self) -> &'static str {
        if self.zstd { "zstd -t" } else { "libzstd -t" }
    }

    /// Packs `tree` into `out`, and waits until the medium has it.
    ///
    /// # Errors
    /// A program failed, or a signal came.
    pub(super) fn pack(&self, tree: &Path, out: &Path) -> Result<(), Error> {
        let file = File::create(out).map_err(failed(out))?;
        let sync = file.try_clone().map_err(failed(out))?;
        let mut children = Children::default();
        let mut tar = if self.tar { Some(children.spawn(self.tar_create(tree).stdout(Stdio::piped()))?) } else { None };
        let from = tar.as_mut().and_then(|at| children.stdout(*at));
        if self.zstd {
            let mut zstd = Command::new("zstd");
            zstd.arg(format!("-{}", self.level))
                .args(["--ultra", "-q", "-c"])
                .arg(format!("-T{}", self.jobs))
                .stdout(file);
            match from {
                Some(stdout) => drop(children.spawn(zstd.stdin(stdout))?),
                None => {
                    let at = children.spawn(zstd.stdin(Stdio::piped()))?;
                    if let Some(mut stdin) = children.0[at].1.stdin.take() {
                        concatenate(tree, &mut stdin)?;
                    }
                }
            }
        } else {
            let mut encoder = Encoder::new(file, self.level, out)?;
            match from {
                Some(mut stdout) => io::copy(&mut stdout, &mut encoder).map(|_| ()).map_err(failed(out))?,
                None => concatenate(tree, &mut encoder)?,
            }
            encoder.finish().map_err(failed(out))?;
        }
        children.wait()?;
        sync.sync_all().map_err(failed(out))
    }

    /// Unpacks `archive` into the new folder `target`; `None` where tar is not there to do it.
    ///
    /// # Errors
    /// A program failed, or a signal came.
    pub(super) fn unpack(&self, archive: &Path, target: &Path) -> Result<Option<()>, Error> {
        if !self.tar {
            return Ok(None);
        }
        std::fs::create_dir(target).map_err(failed(target))?;
        let mut children = Children::default();
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(target).args(["--numeric-owner", "-xpf", "-"]);
        if self.zstd {
            let zstd =
                children.spawn(Command::new("zstd").args(["-d", "-q", "-c"]).arg(archive).stdout(Stdio::piped()))?;
            if let Some(stdout) = children.stdout(zstd) {
                children.spawn(tar.stdin(stdout))?;
            }
        } else {
            let at = children.spawn(tar.stdin(Stdio::piped()))?;
            if let Some(mut stdin) = children.0[at].1.stdin.take() {
                decode(archive, &mut stdin)?;
            }
        }
        children.wait().map(Some)
    }

    /// Checks `archive`.
    ///
    /// # Errors
    /// A program failed, or a signal came.
    pub(super) fn test(&self, archive: &Path) -> Result<(), Error> {
        if !self.zstd {
            return decode(archive, &mut io::sink());
        }
        let mut children = Children::default();
        children.spawn(Command::new("zstd").args(["-t", "-q"]).arg(archive))?;
        children.wait()
    }

    fn tar_create(&self, tree: &Path) -> Command {
        let mut tar = Command::new("tar");
        tar.arg("-C").arg(tree).args(["--warning=no-file-ignored", "-cf", "-", "."]);
        tar
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error + '_ {
    move |source| Error::Io { doing: "write", path: path.to_owned(), source }
}

/// Programs that work together; none outlives this.
#[derive(Default)]
struct Children(Vec<(String, Child)>);

impl Drop for Children {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            // One that has ended needs neither.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Children {
    fn spawn(&mut self, command: &mut Command) -> Result<usize, Error> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child =
            command.spawn().map_err(|source| Error::Io { doing: "start", path: name.clone().into(), source })?;
        self.0.push((name, child));
        Ok(self.0.len() - 1)
    }

    fn stdout(&mut self, at: usize) -> Option<std::process::ChildStdout> {
        self.0[at].1.stdout.take()
    }

    /// Waits for all, and looks for signals meanwhile.
    fn wait(mut self) -> Result<(), Error> {
        for (name, child) in &mut self.0 {
            let status = loop {
                if interrupt::pending() {
                    return Err(Error::Cancelled);
                }
                match child.try_wait() {
                    Ok(Some(status)) => break status,
                    Ok(None) => std::thread::sleep(Duration::from_millis(2)),
                    Err(source) => return Err(Error::Io { doing: "wait for", path: name.clone().into(), source }),
                }
            };
            if interrupt::pending() {
                return Err(Error::Cancelled);
            }
            if !status.success() {
                return Err(Error::Usage(format!("{name} ended with {status}")));
            }
        }
        Ok(())
    }
}

/// Writes the contents of all files below `tree`.
fn concatenate(tree: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let mut pending = vec![tree.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(&directory).map_err(failed(&directory))? {
            if interrupt::pending() {
                return Err(Error::Cancelled);
            }
            let entry = entry.map_err(failed(&directory))?;
            let (path, kind) = (entry.path(), entry.file_type().map_err(failed(&directory))?);
            if kind.is_dir() {
                pending.push(path);
            } else if kind.is_file() {
                let mut file = File::open(&path).map_err(failed(&path))?;
                io::copy(&mut file, out).map_err(failed(&path))?;
            }
        }
    }
    Ok(())
}

fn zstd_error(code: usize) -> io::Error {
    io::Error::other(zstd_safe::get_error_name(code))
}

/// A stream through the linked libzstd.
struct Encoder {
    context: CCtx<'static>,
    out: File,
    buffer: Vec<u8>,
}

impl Encoder {
    fn new(out: File, level: i32, path: &Path) -> Result<Self, Error> {
        let mut context = CCtx::create();
        let set = context.set_parameter(CParameter::CompressionLevel(level));
        set.map_err(|code| failed(path)(zstd_error(code)))?;
        Ok(Self { context, out, buffer: vec![0; CCtx::out_size()] })
    }

    fn finish(mut self) -> io::Result<()> {
        loop {
            let mut out = OutBuffer::around(&mut self.buffer[..]);
            let left = self.context.end_stream(&mut out).map_err(zstd_error)?;
            self.out.write_all(out.as_slice())?;
            if left == 0 {
                return Ok(());
            }
        }
    }
}

impl Write for Encoder {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut input = InBuffer::around(bytes);
        while input.pos() < bytes.len() {
            let mut out = OutBuffer::around(&mut self.buffer[..]);
            self.context.compress_stream(&mut out, &mut input).map_err(zstd_error)?;
            self.out.write_all(out.as_slice())?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Decodes `archive` with the linked libzstd.
fn decode(archive: &Path, out: &mut dyn Write) -> Result<(), Error> {
    let mut file = File::open(archive).map_err(failed(archive))?;
    let mut context = DCtx::create();
    let (mut stored, mut decoded) = (vec![0; DCtx::in_size()], vec![0; DCtx::out_size()]);
    loop {
        if interrupt::pending() {
            return Err(Error::Cancelled);
        }
        let len = file.read(&mut stored).map_err(failed(archive))?;
        if len == 0 {
            return Ok(());
        }
        let mut input = InBuffer::around(&stored[..len]);
        while input.pos() < len {
            let mut buffer = OutBuffer::around(&mut decoded[..]);
            let step = context.decompress_stream(&mut buffer, &mut input);
            step.map_err(|code| failed(archive)(zstd_error(code)))?;
            out.write_all(buffer.as_slice()).map_err(failed(archive))?;
        }
    }
}
