//! A Debian system booted in QEMU from its bundle, which is on a disc with a moving head and is mounted in place. The bundle is packed in the order
//! that was recorded during a boot, by path, and by the hashes of the contents.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use xtask::shell::{remove, renew, run};

use super::job::Job;
use super::mounted::Mounted;
use super::order::{PLUGIN, Simulated, by_hash, time_of_disc};
use super::places::Places;
use super::report::Report;
use crate::debian::{apt, kept};
use crate::vm::{Guest, TIMED};

/// A kiosk with its services, and a browser that the boot does not start.
const PACKAGES: [&str; 10] = [
    "systemd-sysv",
    "udev",
    "dbus",
    "openssh-server",
    "rsyslog",
    "cron",
    "network-manager",
    "nginx-light",
    "postgresql",
    "chromium",
];
const DRIVERS: [&str; 4] = ["virtio_blk", "erofs", "overlay", "autofs4"];
const PACK: &str = "sealift pack --force ROOT -o SCRATCH/boot-files/boot.sealift --exclude /proc --name boot --level 3 --bundle-version 1 --key SCRATCH/key --progress none";
const SIMULATE: &str =
    "sealift simulate SCRATCH/boot-files/boot.sealift --profile SCRATCH/boot.order --device dvd --json";
/// The file system of the disc, which stores a file in one piece.
const DISC: &str = "mkfs.erofs SCRATCH/boot.disc SCRATCH/boot-files";
/// The layouts, each with the option that orders it.
const LAYOUTS: [(&str, &str); 3] =
    [("profile", " --order SCRATCH/boot.order"), ("path", ""), ("hash", " --order SCRATCH/boot-hash.order")];
const REACHED: &str = "multi-user";

/// What a boot needed.
struct Boot {
    /// Seconds since the kernel started until the bundle was requested, until it was mounted, and until multi-user.target was reached.
    at: [f64; 3],
    /// The disc's time in seconds, and its numbers of requests and seeks.
    disc: (f64, usize, usize),
}

impl Boot {
    /// Seconds since the bundle was requested: the kernel does not come from the disc.
    fn seconds(&self) -> f64 {
        self.at[2] - self.at[0]
    }
}

pub(crate) fn add(report: &mut Report, places: &Places) -> Result<()> {
    let root = root()?;
    let job = |line: &str| Job::new(&line.replace("ROOT", &root.display().to_string()), places);
    run(Command::new("cc").args(["-O2", "-shared", "-fPIC", PLUGIN, "-lm", "-o"]).arg(places.path("SCRATCH/disc.so")))?;
    let guest = guest(places, "sealift", concat!(include_str!("boot_guest.sh"), include_str!("boot.sh")), &DRIVERS)?;
    let pack = |more: &str| -> Result<()> {
        renew(&places.path("SCRATCH/boot-files"))?;
        job(&format!("{PACK}{more}")).run()?;
        places.remove(&["SCRATCH/boot.disc"])?;
        job(DISC).run()?;
        Ok(())
    };
    pack("")?;
    let plain = format!("file={},readonly=on", places.resolve("SCRATCH/boot.disc"));
    let said = guest.boot(TIMED, "record", &[plain], "boot: over")?;
    let profile: Vec<_> =
        said.iter().filter(|line| !line.starts_with("boot: ")).map(|line| format!("{line}\n")).collect();
    ensure!(profile.len() > 1, "no profile was recorded");
    println!("   recorded: {} files", profile.len() - 1);
    fs::write(places.path("SCRATCH/boot.order"), profile.concat())?;
    fs::write(places.path("SCRATCH/boot-hash.order"), by_hash(&root)?)?;
    let mut found = Vec::new();
    for (name, more) in LAYOUTS {
        pack(more)?;
        let simulated: Simulated = job(SIMULATE).json()?;
        let boot = boot(&guest, &simulated, places)?;
        println!("   {name}: {:.1} s", boot.seconds());
        found.push((name, boot));
    }
    places.remove(&["SCRATCH/boot-files", "SCRATCH/boot.disc", "SCRATCH/boot-guest"])?;
    judge(report, &found, profile.len() - 1);
    Ok(())
}

/// Returns the system.
pub(super) fn root() -> Result<PathBuf> {
    kept("boot", &PACKAGES, |root| {
        apt(root, &["clean"])?;
        // Without this file, a first boot asks questions.
        Ok(fs::write(root.join("etc/machine-id"), "0123456789abcdef0123456789abcdef\n")?)
    })
}

/// Returns a guest whose `sealift` is one of our programs, and which runs a script first.
pub(super) fn guest(places: &Places, program: &str, script: &str, drivers: &[&str]) -> Result<Guest> {
    let read = |path: &Path| fs::read(path).with_context(|| format!("cannot read {}", path.display()));
    let files = [
        ("init", script.into()),
        ("bin/busybox", read(Path::new("/bin/busybox"))?),
        ("data/allowed_signers", read(&places.path("SCRATCH/allowed_signers"))?),
    ];
    let program = (places.path(program), "bin/sealift");
    Guest::new(places.path("SCRATCH/boot-guest"), drivers, &[program], &files)
}

fn boot(guest: &Guest, simulated: &Simulated, places: &Places) -> Result<Boot> {
    let [socket, log] = ["SCRATCH/boot.socket", "SCRATCH/boot.log"].map(|word| places.path(word));
    remove(&socket)?;
    let mut disc = Command::new("nbdkit");
    disc.args(["--foreground", "--readonly", "--exit-with-parent", "--unix"]).arg(&socket);
    disc.arg(places.path("SCRATCH/disc.so")).arg(format!("file={}", places.resolve("SCRATCH/boot.disc")));
    disc.arg(format!("log={}", log.display())).args(simulated.of_device());
    let disc = Mounted::start(&mut disc, socket.clone(), || socket.exists())?;
    let disk = format!("file=nbd:unix:{},readonly=on", socket.display());
    let said = guest.boot(TIMED, "start", &[disk], REACHED)?;
    disc.end()?;
    let at = |what| numbers(&said, what).map(|[at]| at);
    Ok(Boot { at: [at("init")?, at("mounted")?, at(REACHED)?], disc: time_of_disc(&log)? })
}

/// Returns the numbers that a guest printed after a word: the time, in seconds since the kernel started, and others.
pub(super) fn numbers<const N: usize>(said: &[String], word: &str) -> Result<[f64; N]> {
    let of = |line: &String| {
        let numbers = line.strip_prefix("boot: ")?.strip_suffix(word)?.trim_end().split(' ');
        numbers.map(|number| number.parse().ok()).collect::<Option<Vec<_>>>()?.try_into().ok()
    };
    said.iter().find_map(of).with_context(|| format!("the guest says {}", said.join("; ")))
}

fn judge(report: &mut Report, found: &[(&str, Boot)], files: usize) {
    let [(_, profile), (_, path), (_, hash)] = found else { return };
    let ordered = profile.seconds();
    let mut text = format!(
        "The boot reads {files} files. Seconds to multi-user.target, of systemd, from when the initramfs asks for the bundle; it lies on a disc of nbdkit with the parameters of `simulate --device dvd`, and `sealift mount` serves it, with an overlay for what is written. Debian's kernel, emulated by QEMU without KVM, so that what is computed takes several times as long as on a device.\n\n\
         | layout | seconds | to the recorded order | of them, mounting | the disc alone | requests | seeks |\n| --- | --: | --: | --: | --: | --: | --: |\n"
    );
    for (name, boot) in found {
        let (busy, requests, seeks) = boot.disc;
        text.push_str(&format!(
            "| by {name} | {:.1} | {:.2} | {:.1} | {busy:.1} | {requests} | {seeks} |\n",
            boot.seconds(),
            boot.seconds() / ordered,
            boot.at[1] - boot.at[0],
        ));
    }
    text.push_str(&format!(
        "\n- `{PACK}`, with {}\n- `{DISC}`",
        LAYOUTS.map(|(name, more)| format!("{name}: `{}`", more.trim())).join(", ")
    ));
    report.at_least("boot from a DVD: times as fast as by hash", hash.seconds() / ordered, 1.5, 2, "");
    report.at_least("boot from a DVD: times as fast as by path", path.seconds() / ordered, 1.0, 2, "");
    report.section("A system booted from a disc", &text);
}
