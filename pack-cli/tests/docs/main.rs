//! Runs the commands in README.md and docs/*.md as they are written.
//!
//! Each page is a session of its own on a fresh machine, once as a user and once as root: the page creates everything that it needs. Blocks marked
//! `console` show the output of their commands, where `[..]` stands for anything within a line and `...` for any lines; a line `? N` gives the exit
//! status if it is not 0. The table below says whose output a page shows; for the other user, only exit statuses are compared. Blocks marked `sh`
//! have only commands. A block that cannot run here says so in its first line, and is in a list below. `DOCS=overwrite` writes the actual output into
//! the pages, for `git diff` to show.
#![allow(clippy::unwrap_used, reason = "tests")]

mod fields;
mod machine;
mod page;
mod places;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use machine::{Machine, Who, repository};
use page::{Part, matches, parts};
use sealift_desk::{is_root, skipped};

/// The pages, and whose output they show.
#[rustfmt::skip] // a table
const PAGES: &[(&str, Who)] = &[
    ("README.md",           Who::User),
    ("docs/json.md",        Who::User),
    ("docs/progress.md",    Who::User),
    ("docs/publish.md",     Who::User),
    ("docs/administer.md",  Who::Root),
    ("docs/device.md",      Who::Root),
    ("docs/coming-from.md", Who::User),
    ("docs/repositories.md", Who::User),
    ("docs/slots.md",       Who::Root),
    ("docs/parts.md",       Who::User),
    ("docs/channels.md",    Who::User),
    ("docs/hosting.md",     Who::User),
];

/// Pages that show no commands.
const WITHOUT_COMMANDS: &[&str] = &["docs/architecture.md"];

/// The blocks that no test runs, by page.
#[rustfmt::skip] // a table
const NOT_RUN: &[(&str, &str)] = &[
    ("README.md",          "the next section is, step by step."),
    ("README.md",          "the last line runs the tests."),
    ("README.md",          "`cargo xtask dist --check` installs the results in a fresh Debian system."),
    ("docs/publish.md",    "it records what a real machine reads, as root."),
    ("docs/publish.md",    "it takes an image and podman. pack-cli/tests/oci tests it."),
    ("docs/administer.md", "it serves until it is stopped. Programs made by `cargo xtask dist` or `cargo xtask portal` include the page."),
    ("docs/device.md",     "it reboots."),
    ("docs/device.md",     "it takes a file system with fs-verity, which `cargo xtask vm` has."),
    ("docs/device.md",     "it takes a kernel with built-in signatures, which `cargo xtask vm` has."),
    ("docs/device.md",     "it takes a build with composefs, which `cargo xtask ci test` tests."),
    ("docs/device.md",     "it serves until it is unmounted. pack-cli/tests/mount tests it."),
    ("docs/device.md",     "it takes systemd."),
    ("docs/device.md",     "it takes root, overlayfs and a whole system as a bundle."),
    ("docs/device.md",     "it takes root, FUSE and loop devices. nbdkit/tests tests it."),
    ("docs/device.md",     "it takes Debian's sbuild (0.85 was used), and debootstrap as root."),
    ("docs/device.md",     "it takes root, and a disk. pack-cli/tests/targets tests it."),
    ("docs/slots.md",      "it takes RAUC and root. pack-cli/tests/slots tests it."),
    ("docs/slots.md",      "it takes systemd-boot. pack-cli/tests/slots tests it on files."),
    ("docs/slots.md",      "it takes U-Boot. pack-cli/tests/slots tests it on files."),
    ("docs/slots.md",      "it takes GRUB. pack-cli/tests/slots tests it on files."),
];

#[test]
fn readme() {
    page("README.md");
}

#[test]
fn json() {
    page("docs/json.md");
}

#[test]
fn progress() {
    page("docs/progress.md");
}

#[test]
fn publish() {
    page("docs/publish.md");
}

#[test]
fn administer() {
    page("docs/administer.md");
}

#[test]
fn device() {
    page("docs/device.md");
}

#[test]
fn coming_from() {
    page("docs/coming-from.md");
}

#[test]
fn repositories() {
    page("docs/repositories.md");
}

#[test]
fn channels() {
    page("docs/channels.md");
}

#[test]
fn hosting() {
    match machine::moto() {
        Some(_) => page("docs/hosting.md"),
        None => skipped("needs moto, which `cargo xtask ci readers` fetches"),
    }
}

#[test]
fn slots() {
    page("docs/slots.md");
}

#[test]
fn in_parts() {
    page("docs/parts.md");
}

/// A page that is not in the table, or a block that is not run and not in the list, would be untested without notice.
#[test]
fn what_is_not_run_is_known() {
    let mut pages: Vec<String> = fs::read_dir(repository().join("docs"))
        .unwrap()
        .map(|entry| format!("docs/{}", entry.unwrap().file_name().display()))
        .filter(|name| name.ends_with(".md"))
        .collect();
    pages.push("README.md".to_owned());
    pages.sort();
    let mut known: Vec<_> = PAGES.iter().map(|(name, _)| *name).chain(WITHOUT_COMMANDS.iter().copied()).collect();
    known.sort_unstable();
    assert_eq!(pages, known);

    for name in WITHOUT_COMMANDS {
        assert!(!parts(&read(name)).iter().any(|part| matches!(part, Part::Command { .. })), "{name}");
    }

    let mut not_run = Vec::new();
    for (name, _) in PAGES {
        let text = read(name);
        let reasons = parts(&text).into_iter().filter_map(|part| match part {
            Part::NotRun { why, .. } => Some((*name, why.to_owned())),
            _ => None,
        });
        not_run.extend(reasons);
    }
    let expected: Vec<_> = NOT_RUN.iter().map(|(name, why)| (*name, (*why).to_owned())).collect();
    assert_eq!(not_run, expected);
}

/// Runs a page, as a user and as root.
fn page(name: &str) {
    let (_, shown) = PAGES.iter().find(|(page, _)| *page == name).unwrap();
    for who in [Who::User, Who::Root] {
        match Machine::start(who) {
            Err(said) => skipped(&format!("needs a user namespace, for {name}: {said}")),
            Ok(machine) => run_page(name, machine, who, who == *shown),
        }
    }
}

fn run_page(name: &str, mut machine: Machine, who: Who, is_shown: bool) {
    let text = read(name);
    let (mut new, mut wrong) = (String::new(), Vec::new());
    for part in parts(&text) {
        let Part::Command { shown, command, status, output } = part else {
            new.push_str(part.shown());
            continue;
        };
        let (got_status, got) = machine.run(&command);
        let wanted = output.as_deref().unwrap_or_default();
        let is_right = got_status == status && (output.is_none() || !is_shown || matches(wanted, &got));
        if is_right || output.is_none() {
            new.push_str(&[shown, wanted].concat());
        } else {
            let first = shown.split_inclusive('\n').filter(|line| !line.starts_with("? "));
            let status_line = if got_status == 0 { String::new() } else { format!("? {got_status}\n") };
            new.push_str(&[first.collect::<String>(), status_line, as_before(wanted, &got)].concat());
        }
        if !is_right {
            wrong.push(format!("$ {command}? {got_status}, expected {status}\n{got}--- expected:\n{wanted}"));
        }
    }
    if is_shown && std::env::var_os("DOCS").is_some_and(|wish| wish == "overwrite") {
        return fs::write(repository().join(name), new).unwrap();
    }
    assert!(wrong.is_empty(), "{name}, {who:?}:\n{}", wrong.join("\n"));
}

/// Returns the actual output, with the old pattern for each line that still matches one.
fn as_before(pattern: &str, got: &str) -> String {
    got.split_inclusive('\n')
        .map(|line| pattern.split_inclusive('\n').find(|old| *old != "...\n" && matches(old, line)).unwrap_or(line))
        .collect()
}

fn read(name: &str) -> String {
    fs::read_to_string(repository().join(name)).unwrap()
}

/// Each command in the tables of the page is understood, and each complete one runs as it is written, with inputs named KEY, DIR, REPO and so on.
#[test]
fn the_tables_of_coming_from() {
    let mut machine = match Machine::start(Who::User) {
        Err(said) => return skipped(&format!("needs a user namespace: {said}")),
        Ok(machine) => machine,
    };
    machine.good(
        "mkdir -p os/etc os/usr/bin; echo ID=example > os/etc/os-release; echo hello > os/usr/bin/hello; \
        ln -s hello os/usr/bin/hallo",
    );
    machine.good(
        "ostree --repo=REPO init --mode=bare-user --collection-id=org.example.Os; \
        ostree --repo=REPO commit --branch=FROM --tree=dir=os >/dev/null; \
        echo a > os/FILE; echo a > disk.img; tar -cf os.tar os; mkdir -p stick; \
        ssh-keygen -q -t ed25519 -N '' -f KEY; \
        ostree --repo=REPO commit --branch=REF --tree=dir=os >/dev/null; mkdir -p ~/.config/sealift; \
        printf '* namespaces=\"sealift\" %s\\n' \"$(cat KEY.pub)\" > ~/.config/sealift/allowed_signers",
    );
    let page = read("docs/coming-from.md");
    let (mut understood, mut done) = (0, 0);
    for line in page.lines().filter(|line| line.starts_with('|')) {
        let spans = line.split('`').skip(1).step_by(2).filter_map(|span| span.rsplit("| ").next());
        for command in spans.filter(|span| span.starts_with("sealift ")) {
            let ends_in_option = command.ends_with("--key");
            // With `--help`, all words before it are parsed, and nothing is done.
            machine.good(&format!("{command}{} --help", if ends_in_option { " KEY" } else { "" }));
            understood += 1;
            if ends_in_option || command.split(' ').count() < 3 {
                continue;
            }
            machine.good(&prepare(command));
            let input = if command.contains(" - ") { "cat os.sealift | " } else { "" };
            machine.good(&format!("{input}{}", command.replace("/media/stick", "stick")));
            done += 1;
        }
    }
    assert!(understood > 20 && done > 16, "{understood}, {done}");
}

/// Creates the inputs of a command in the tables.
fn prepare(command: &str) -> String {
    let is_commit = ["ostree:", "--usb"].iter().any(|word| command.contains(word));
    let source = if is_commit { "ostree:REPO --ref REF" } else { "os" };
    // The output of the command must not exist yet.
    let made = if command.contains("sealift pack") { "rm -f *.sealift stick/*.sealift" } else { "true" };
    let dir = if command.contains("unpack") { "" } else { "; sealift unpack os.sealift DIR -q" };
    format!(
        "set -e; rm -rf DIR .DIR.sealift-state ~/.local; \
        sealift pack --force {source} -o os.sealift --name os --bundle-version 1 --key KEY -q; \
        sealift pack --force app=os b=os -o app.sealift --name app --bundle-version 1 --key KEY -q; \
        for copy in FILE stick/os.sealift a.sealift b.sealift; do cp os.sealift $copy; done{dir}; {made}"
    )
}

const DEVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/device");

/// systemd and udev accept the files for a device.
#[test]
fn the_units_and_the_rule_are_well_formed() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["sealift-stick@.service", "sealift-mount@.service"] {
        // systemd looks for the programs, too.
        let unit = fs::read_to_string(Path::new(DEVICE).join(name)).unwrap();
        let unit = unit.replace("/usr/local/bin/sealift ", concat!(env!("CARGO_BIN_EXE_sealift"), " "));
        fs::write(folder.path().join(name), unit).unwrap();
        match Command::new("systemd-analyze").arg("verify").arg(folder.path().join(name)).output() {
            Err(error) => skipped(&format!("needs systemd-analyze ({error})")),
            Ok(done) => assert_well_formed("systemd-analyze verify", &done),
        }
    }
    let rule = Path::new(DEVICE).join("99-sealift-stick.rules");
    let udevadm = std::env::var_os("SEALIFT_UDEVADM").unwrap_or("udevadm".into());
    match Command::new(&udevadm).arg("--help").output() {
        Err(error) => skipped(&format!("needs udevadm ({error})")),
        // For an unknown verb, udevadm fails as for an invalid rule, with words that change from release to release; hence the help.
        Ok(help) if !lists_verb(&String::from_utf8_lossy(&help.stdout), "verify") => {
            skipped("udevadm before 254 has no verify; cargo xtask ci readers fetches one");
        }
        Ok(_) => {
            let done = Command::new(&udevadm).arg("verify").arg(&rule).output().unwrap();
            assert_well_formed("udevadm verify", &done);
        }
    }
}

/// A machine whose only device is a file system on a USB device: udev itself reads the rule, and prints what the device gets.
const USB: &str = r#"
set -e
mount -t tmpfs none /sys && mount -t tmpfs none /run && mount -t tmpfs none /etc/udev
usb=/sys/devices/pci0000:00/usb2/2-1 disk=$usb/2-1:1.0/host4/target4:0:0/4:0:0:0/block/sdb
mkdir -p $disk/sdb1 /sys/class/block /sys/bus/usb /etc/udev/rules.d
echo DEVTYPE=usb_device > $usb/uevent; ln -s /sys/bus/usb $usb/subsystem
[ -z "$NO_USB" ] || rm $usb/subsystem
for device in $disk $disk/sdb1; do echo DEVNAME=${device##*/} > $device/uevent; ln -s /sys/class/block $device/subsystem; done
echo "ENV{ID_FS_USAGE}=\"$USAGE\", ENV{ID_BUS}=\"$BUS\"" > /etc/udev/rules.d/10-given.rules
cp "$RULE" /etc/udev/rules.d
udevadm test --action="$ACTION" $disk/sdb1 2>&1
"#;

/// Sticks say that their bus is usb, disks in enclosures ata; what is in a card reader appears by a change of the reader.
#[test]
fn the_rule_starts_the_unit_for_what_is_on_usb() {
    if !is_root() {
        return skipped("needs root: a mount namespace");
    }
    let wants = |action: &str, bus: &str, usage: &str, no_usb: &str| {
        let mut udev = Command::new("unshare");
        udev.args(["--mount", "sh", "-c", USB]).env("RULE", Path::new(DEVICE).join("99-sealift-stick.rules"));
        udev.env("SYSTEMD_DEVICE_VERIFY_SYSFS", "0").env("ACTION", action).env("BUS", bus);
        let done = udev.env("USAGE", usage).env("NO_USB", no_usb).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(done.status.success() && said.contains("DEVNAME=/dev/sdb1"), "{said}");
        // Some releases of udev indent properties.
        said.lines().any(|line| line.trim() == "SYSTEMD_WANTS=sealift-stick@sdb1.service")
    };
    for (action, bus, usage, no_usb, expected) in [
        ("add", "usb", "filesystem", "", true),
        ("add", "ata", "filesystem", "", true),
        ("change", "usb", "filesystem", "", true),
        ("remove", "usb", "filesystem", "", false),
        ("add", "usb", "raid", "", false),
        ("add", "ata", "filesystem", "1", false),
    ] {
        assert_eq!(wants(action, bus, usage, no_usb), expected, "{action} {bus} {usage} {no_usb}");
    }
}

/// What a service writes to is mounted when it starts.
#[test]
fn the_unit_waits_for_the_mounts_that_it_writes_to() {
    let unit = fs::read_to_string(Path::new(DEVICE).join("sealift-stick@.service")).unwrap();
    let value = |key: &str| unit.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).unwrap();
    let mounts: Vec<&Path> = value("RequiresMountsFor").split(' ').map(Path::new).collect();
    let state = Path::new("/var/lib").join(value("StateDirectory"));
    assert!(mounts.contains(&&*state));
    let writable = value("ReadWritePaths");
    assert!(mounts.iter().any(|mount| mount.starts_with(writable)));
    assert!(value("ExecStart").contains(" /etc/sealift/targets'"));
    let targets = fs::read_to_string(Path::new(DEVICE).join("targets")).unwrap();
    let lines = targets.lines().filter(|line| !line.starts_with('#'));
    let targets: Vec<&str> = lines.map(|line| line.split_whitespace().nth(1).unwrap()).collect();
    assert_eq!(targets.len(), 2);
    for target in targets.into_iter().map(Path::new) {
        assert!(mounts.contains(&target) && target.starts_with(writable), "{}", target.display());
    }
}

fn assert_well_formed(program: &str, done: &Output) {
    let said = [&done.stdout[..], &done.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(done.status.success() && !said.contains("sealift-"), "{program}: {said}");
}

/// Returns whether a program's help has a line that begins with the verb.
fn lists_verb(help: &str, verb: &str) -> bool {
    help.lines().any(|line| line.starts_with(' ') && line.split_whitespace().next() == Some(verb))
}

#[test]
fn a_verb_is_found_in_help() {
    let old = "Commands:\n  info          Query sysfs or the udev database\n  test          Simulate a udev event; verify nothing\n";
    let new = "Commands:\n  info          Query sysfs or the udev database\n  verify        Verify udev rules files\n";
    assert!(lists_verb(new, "verify") && !lists_verb(old, "verify"));
}
