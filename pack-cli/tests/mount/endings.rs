//! What can be mounted, and how a mount ends.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::Signal;
use sealift_desk::{Desk, NOBODY, noise};

use crate::mounted::{can_mount, can_mount_as_user, desk, mount, mount_as_user, mount_ignoring_hangups, pack, refused};

fn small() -> Desk {
    let desk = desk();
    desk.write("tree/file", "content");
    pack(&desk, "os.sealift", 7, "tree");
    desk
}

#[test]
fn what_nobody_trusted_signed_is_not_mounted() {
    let desk = small();
    desk.good("key generate -o stranger");
    desk.good("pack tree -o other.sealift --name os --bundle-version 8 --key stranger");
    refused(&desk, "mount other.sealift mnt --trust signers", 3, "needs the signature of 1 trusted key");
}

#[test]
fn what_cannot_be_mounted_is_refused() {
    let desk = small();
    refused(&desk, "mount - mnt --trust signers", 2, "standard input");
    refused(&desk, "mount os.sealift none --trust signers", 2, "none");
    refused(&desk, "mount os.sealift os.sealift --trust signers", 2, "cannot mount on os.sealift: not a directory");
    refused(&desk, "mount ostree:repo mnt --trust signers", 2, "mount takes bundles");
    let bytes = desk.read("os.sealift");
    desk.write("cut.sealift", &bytes[..bytes.len() - 1]);
    refused(&desk, "mount cut.sealift mnt --trust signers", 1, "cut.sealift");
}

#[test]
fn volumes_are_mounted_as_the_bundle_that_they_are() {
    let Some(desk) = can_mount().then(desk) else { return };
    for number in 0..8 {
        desk.write(&format!("tree/file-{number}"), noise(number, 50_000));
    }
    pack(&desk, "os.sealift", 7, "tree --chunk-size 64KiB");
    desk.good("split os.sealift --size 160KiB -o parts");
    let first = format!("parts/{}", desk.names("parts")[0]);
    for volumes in ["parts", &first] {
        let _mounted = mount(&desk, volumes);
        desk.assert_same("tree", "mnt");
    }
    fs::remove_file(desk.path(&first)).unwrap();
    refused(&desk, "mount parts mnt --trust signers", 1, "has no volume 1 of");
}

/// As systemd does with Type=notify.
#[test]
fn a_service_manager_is_told_when_the_mount_is_there() {
    let Some(desk) = can_mount().then(small) else { return };
    let manager = UnixDatagram::bind(desk.path("notify")).unwrap();
    let mut command = desk.command("mount os.sealift mnt --trust signers --quiet");
    let mut mounted = command.env("NOTIFY_SOCKET", desk.path("notify")).spawn().unwrap();
    let mut told = [0; 64];
    manager.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let len = manager.recv(&mut told).unwrap();
    assert_eq!(&told[..len], b"READY=1\n");
    assert_eq!(desk.read("mnt/file"), b"content");
    assert!(Command::new("umount").arg(desk.path("mnt")).status().unwrap().success());
    assert!(mounted.wait().unwrap().success());
}

#[test]
fn over_a_dead_mount_it_is_said_what_is_there() {
    let Some(desk) = can_mount().then(small) else { return };
    let mut mounted = desk.command("mount os.sealift mnt --trust signers --quiet").spawn().unwrap();
    while fs::read(desk.path("mnt/file")).is_err() {
        assert!(mounted.try_wait().unwrap().is_none());
    }
    mounted.kill().unwrap();
    mounted.wait().unwrap();
    let why = "Transport endpoint is not connected (os error 107): the program behind this mount has ended; unmount it";
    for line in ["mount os.sealift mnt --trust signers", "pack mnt -o new.sealift", "unpack mnt new --trust signers"] {
        desk.refused(line, 2, why);
    }
    assert!(Command::new("umount").arg(desk.path("mnt")).status().unwrap().success());
}

#[test]
fn a_missing_device_is_named() {
    let Some(desk) = can_mount().then(small) else { return };
    let mut hidden = Command::new("unshare");
    hidden.args(["--mount", "sh", "-c", "mount -t tmpfs none /dev && exec \"$@\"", "sh"]);
    hidden.arg(env!("CARGO_BIN_EXE_sealift")).args(["mount", "os.sealift", "mnt", "--trust", "signers"]);
    let output = hidden.current_dir(desk.path("")).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("cannot open /dev/fuse"), "{said}");
}

#[test]
fn a_signal_unmounts() {
    let Some(desk) = can_mount().then(small) else { return };
    // A hangup: the terminal is closed.
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mounted = mount(&desk, "os.sealift");
        assert_eq!(desk.read("mnt/file"), b"content");
        mounted.signal(signal);
        mounted.ends_well();
        assert_eq!(fs::read_dir(desk.path("mnt")).unwrap().count(), 0);
    }
}

#[test]
fn what_ignores_hangups_stays() {
    let Some(desk) = can_mount().then(small) else { return };
    let mounted = mount_ignoring_hangups(&desk, "os.sealift");
    mounted.signal(Signal::HUP);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(desk.read("mnt/file"), b"content");
    mounted.assert_no_faults();
}

#[test]
fn a_signal_unmounts_what_is_in_use() {
    let Some(desk) = can_mount().then(small) else { return };
    let mounted = mount(&desk, "os.sealift");
    let mut file = File::open(desk.path("mnt/file")).unwrap();
    mounted.signal(Signal::TERM);
    mounted.ends_well();
    // The file was not read before, and no process is left to serve it.
    assert!(file.read(&mut [0; 10]).is_err());
}

#[test]
fn what_is_mounted_is_said_for_people_and_for_programs() {
    let Some(desk) = can_mount().then(small) else { return };
    let mounted = mount(&desk, "os.sealift");
    mounted.signal(Signal::TERM);
    let (out, said) = mounted.ends_well();
    assert!(
        out.is_empty() && said.starts_with("mnt: mounted os.sealift, version 7\n  signed by SHA256:"),
        "{out}{said}"
    );
    let mounted = mount(&desk, "os.sealift --json");
    mounted.signal(Signal::TERM);
    let (out, said) = mounted.ends_well();
    let line: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&line["name"], &line["version"], &line["mountpoint"]), (&"os".into(), &7.into(), &"mnt".into()));
    assert_eq!((&line["refs"][0], said.as_str()), (&"main".into(), ""));
}

#[test]
fn umount_ends_it() {
    let Some(desk) = can_mount().then(small) else { return };
    let mounted = mount(&desk, "os.sealift");
    assert!(Command::new("umount").arg(desk.path("mnt")).status().unwrap().success());
    mounted.ends_well();
}

/// A signal unmounts what it was meant for, or nothing. A second one ends the process, and what was recorded is kept.
#[test]
fn what_is_mounted_over_it_stays() {
    let Some(desk) = can_mount().then(small) else { return };
    let mut mounted = mount(&desk, "os.sealift --record start.order");
    assert_eq!(desk.read("mnt/file"), b"content");
    let mnt = desk.path("mnt");
    assert!(Command::new("mount").args(["-t", "tmpfs", "over"]).arg(&mnt).status().unwrap().success());
    desk.write("mnt/other", "other");
    mounted.signal(Signal::TERM);
    mounted.says("start.order: 1 file");
    assert!(mounted.said().contains("mnt: tmpfs (over) is mounted over it"), "{}", mounted.said());
    assert_eq!(desk.read("mnt/other"), b"other");
    assert!(Command::new("umount").arg(&mnt).status().unwrap().success());
    assert_eq!(desk.read("mnt/file"), b"content");
    assert_eq!(desk.read("start.order"), b"# sealift order 1\nfile\n");
    mounted.signal(Signal::TERM);
    assert_eq!(mounted.ends(), Some(128 + Signal::TERM.as_raw()));
}

#[test]
fn a_signal_ends_what_others_have_unmounted() {
    let Some(desk) = can_mount().then(small) else { return };
    let mounted = mount(&desk, "os.sealift --record start.order");
    let mut file = File::open(desk.path("mnt/file")).unwrap();
    assert!(Command::new("umount").arg("-l").arg(desk.path("mnt")).status().unwrap().success());
    mounted.signal(Signal::TERM);
    mounted.ends_well();
    assert!(file.read(&mut [0; 10]).is_err());
}

#[test]
fn nobody_writes_and_others_are_kept_out_as_modes_say() {
    let Some(desk) = can_mount().then(small) else { return };
    let _mounted = mount(&desk, "os.sealift");
    let refused = fs::write(desk.path("mnt/file"), "x").unwrap_err();
    assert_eq!(refused.raw_os_error(), Some(rustix::io::Errno::ROFS.raw_os_error()));
    assert!(fs::write(desk.path("mnt/new"), "x").is_err());
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let at = desk.path("mnt").display().to_string();
    let line = mounts.lines().find(|line| line.contains(&at)).unwrap();
    let wanted = ["os.sealift ", "ro,", "nosuid,", "nodev,", "default_permissions", "allow_other"];
    assert!(wanted.iter().all(|option| line.contains(option)), "{line}");
}

#[test]
fn a_user_mounts_for_themselves_alone() {
    let Some(desk) = can_mount_as_user().then(small) else { return };
    let mounted = mount_as_user(&desk, "os.sealift");
    let read = Command::new("cat").arg(desk.path("mnt/file")).uid(NOBODY).gid(NOBODY).output().unwrap();
    assert_eq!(read.stdout, b"content", "{}", mounted.said());
    // Not even root may read it.
    let refused = fs::read(desk.path("mnt/file")).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);
    mounted.signal(Signal::TERM);
    mounted.ends_well();
}

#[test]
fn a_signal_unmounts_what_a_user_has_in_use() {
    let Some(desk) = can_mount_as_user().then(desk) else { return };
    desk.write("tree/read", "read");
    desk.write("tree/open", "open");
    pack(&desk, "os.sealift", 7, "tree");
    fs::create_dir(desk.path("kept")).unwrap();
    std::os::unix::fs::chown(desk.path("kept"), Some(NOBODY), Some(NOBODY)).unwrap();
    let mounted = mount_as_user(&desk, "os.sealift --record kept/start.order");
    let mut user = Command::new("sh");
    user.args(["-c", "exec 3< mnt/open; cat mnt/read; read line; cat <&3"]).current_dir(desk.path("."));
    user.stdin(Stdio::piped()).stdout(Stdio::piped()).uid(NOBODY).gid(NOBODY);
    let mut user = user.spawn().unwrap();
    user.stdout.as_mut().unwrap().read_exact(&mut [0; 4]).unwrap();
    mounted.signal(Signal::TERM);
    mounted.ends_well();
    assert_eq!(desk.read("kept/start.order"), b"# sealift order 1\nread\n");
    // The file was not read before, and no process is left to serve it.
    let done = user.wait_with_output().unwrap();
    assert!(!done.status.success() && done.stdout.is_empty(), "{done:?}");
}
