//! `cargo xtask dist --check`: builds the release files twice, runs, installs and purges them.

mod install;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use xtask::dist::Release;
use xtask::dist::machine::{MACHINES, Machine};
use xtask::packages::Chore;
use xtask::shell::{output, renew, run as run_command};

pub(crate) fn run() -> Result<()> {
    ensure!(rustix::process::geteuid().is_root(), "packages are installed in a folder as root: run this as root");
    let release = &xtask::dist::make(Chore::DistCheck)?;
    let start = Instant::now();
    same_again(release)?;
    for machine in &MACHINES {
        let root = release.work(&format!("{}-unpacked", machine.name))?;
        run_command(Command::new("dpkg-deb").arg("--extract").arg(release.out.join(release.deb(machine))).arg(&root))?;
        is_static(&root.join("usr/bin/sealift"))?;
        let folder = round_trip(release, machine, &root.join("usr/bin/sealift"))?;
        if machine.name == MACHINES[0].name {
            install::run_alone(release, &folder)?;
        }
        serves_the_page(machine, &root.join("usr/bin/sealift"))?;
        println!("dist: {}: static, and what was packed comes back", machine.name);
    }
    install::install_and_purge(release)?;
    println!("dist: all checks hold, {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Builds everything a second time with a fresh build folder, and compares the bytes.
fn same_again(release: &Release) -> Result<()> {
    let target = release.target.join("dist-again");
    let again = Release { epoch: release.epoch.clone(), out: target.join("dist"), target, ..*release };
    again.make()?;
    let sums = |release: &Release| fs::read_to_string(release.out.join("SHA256SUMS")).context("SHA256SUMS is missing");
    let (first, second) = (sums(release)?, sums(&again)?);
    ensure!(first == second, "the second time other bytes came out:\n{first}\n{second}");
    println!("dist: the same bytes twice");
    Ok(())
}

fn is_static(program: &Path) -> Result<()> {
    let said = Command::new("ldd").arg(program).output().context("ldd is a part of Debian's C library")?;
    let said = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    ensure!(
        said.contains("statically linked") || said.contains("not a dynamic executable"),
        "{} is not static: {said}",
        program.display()
    );
    Ok(())
}

/// Creates a key, packs, verifies and unpacks, and compares the result. Returns the folder with the bundle and the list of signers.
fn round_trip(release: &Release, machine: &Machine, program: &Path) -> Result<PathBuf> {
    let folder = release.work(&format!("{}-run", machine.name))?;
    let sealift = |arguments: &[&str]| {
        let done = output(machine.command(program).args(arguments).current_dir(&folder));
        done.with_context(|| format!("sealift {}", arguments.join(" ")))
    };
    // Trees of some size, with various names, links and modes.
    renew(&folder.join("tree"))?;
    run_command(Command::new("cp").args(["-a", "spec", "bench"]).arg(folder.join("tree")))?;
    std::os::unix::fs::symlink("spec/core.md", folder.join("tree/link"))?;
    sealift(&["key", "generate", "-q", "-o", "key"])?;
    let public = fs::read_to_string(folder.join("key.pub"))?;
    fs::write(folder.join("allowed_signers"), format!("os namespaces=\"sealift\" {public}"))?;
    sealift(&["pack", "tree", "-o", "os.sealift", "--name", "os", "--bundle-version", "7", "--key", "key"])?;
    let trust = ["--trust", "allowed_signers", "--state", "state"];
    sealift(&[&["verify", "--deep", "os.sealift"], &trust[..]].concat())?;
    sealift(&[&["unpack", "os.sealift", "back"], &trust[..]].concat())?;
    run_command(Command::new("diff").args(["--recursive", "--no-dereference", "tree", "back"]).current_dir(&folder))?;
    // Changes a byte of content, which only the digests of chunks protect.
    let mut bytes = fs::read(folder.join("os.sealift"))?;
    let last = bytes.last_mut().context("a bundle has bytes")?;
    *last ^= 1;
    fs::write(folder.join("bad.sealift"), bytes)?;
    let refused = sealift(&[&["verify", "bad.sealift"], &trust[..]].concat());
    ensure!(refused.is_err(), "{}: a changed byte was not seen", machine.name);
    Ok(folder)
}

/// Checks that the served page is the one that was built.
fn serves_the_page(machine: &Machine, program: &Path) -> Result<()> {
    let arguments = ["portal", "--listen", "127.0.0.1:0"];
    let mut portal = machine.command(program).args(arguments).stdout(Stdio::piped()).spawn()?;
    let page = (|| -> Result<Vec<u8>> {
        let mut line = String::new();
        BufReader::new(portal.stdout.take().context("it is a pipe")?).read_line(&mut line)?;
        let address = line.trim().trim_start_matches("http://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address).with_context(|| format!("the portal said {line:?}"))?;
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    })();
    portal.kill()?;
    portal.wait()?;
    let expected = fs::read("wasm/www/index.html")?;
    ensure!(page?.ends_with(&expected), "{}: the portal serves another page", machine.name);
    Ok(())
}
