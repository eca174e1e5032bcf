//! An A/B device, as docs/slots.md describes it: Debian's RAUC knows the slots and decides which one boots, and Sealift writes the other one.
//!
//! RAUC runs with a system bus of its own, and keeps what a boot loader reads in files: so nothing of the machine takes part, whether systemd runs
//! there or not.

use std::fs;
use std::process::{Child, Stdio};

use sealift_desk::{has, out, told, wait};

use crate::desk::{Loop, MIB, Slots, assert_has, image};
use crate::page::{commands, file};

/// How often a boot loader tries a slot that has not been marked as good.
const TRIES: u32 = 3;

const BUS: &str = r#"<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=BUS</listen>
  <policy context="default">
    <allow user="*"/> <allow own="*"/> <allow send_destination="*"/> <allow receive_sender="*"/>
  </policy>
</busconfig>
"#;

const SYSTEM: &str = "[system]\ncompatible=desk\nbootloader=custom\nstatusfile=FOLDER/central.raucs\n\n\
    [handlers]\nbootloader-custom-backend=FOLDER/handler\n\n[keyring]\npath=FOLDER/keyring.pem\n\n";

/// What RAUC asks of a boot loader: its variables are the files `primary`, and `A` and `B` with the tries that each slot has left.
const HANDLER: &str = r#"#!/bin/sh
set -e
cd "${0%/*}"/boot
case "$1 $3" in
"get-primary ") cat primary ;;
"set-primary ") echo 3 > "$2"; echo "$2" > primary ;;
"get-state ") if [ "$(cat "$2")" -gt 0 ]; then echo good; else echo bad; fi ;;
"set-state good") echo 3 > "$2" ;;
"set-state bad") echo 0 > "$2" ;;
*) exit 1 ;;
esac
"#;

/// A device with two slots, the first of which was flashed, has booted, and is recorded.
struct Device {
    slots: Slots,
    bus: Child,
    rauc: Option<Child>,
    /// The slots `A` and `B`.
    loops: [Loop; 2],
}

impl Drop for Device {
    fn drop(&mut self) {
        for child in self.rauc.iter_mut().chain([&mut self.bus]) {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Device {
    fn new() -> Option<Self> {
        let slots = Slots::new();
        let loops = [slots.device("a", 8 * MIB)?, slots.device("b", 8 * MIB)?];
        if !has(&["rauc", "dbus-daemon", "jq", "openssl"]) {
            return None;
        }
        let folder = slots.path("");
        let folder = folder.to_str().unwrap();
        slots.write("bus.conf", BUS.replace("BUS", &format!("{folder}bus")));
        slots.write("boot/primary", "A\n");
        slots.write("boot/A", "3\n");
        slots.write("boot/B", "0\n");
        slots.write("handler", HANDLER);
        slots.set_mode("handler", 0o755);
        let system = SYSTEM.replace("FOLDER", folder.trim_end_matches('/'));
        let devices = ["a", "b"].map(|slot| format!("/dev/disk/by-partlabel/root-{slot}"));
        let of_slots = file("RAUC", 0).replace(&devices[0], &loops[0].0).replace(&devices[1], &loops[1].0);
        slots.write("system.conf", format!("{system}{of_slots}"));
        // No bundle of RAUC is installed, but its service wants a keyring.
        let new_key = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out keyring.pem -subj /CN=desk -days 2";
        out(slots.command_of("openssl").args(new_key.split(' ')));
        let mut bus = slots.command_of("dbus-daemon");
        bus.args(["--config-file=bus.conf", "--nofork", "--nopidfile"]).stdout(Stdio::null()).stderr(Stdio::null());
        let bus = bus.spawn().unwrap();
        wait("the bus listens", || slots.path("bus").exists());
        slots.does(&format!("unpack 1.sealift {}", loops[0].0));
        let mut device = Self { slots, bus, rauc: None, loops };
        assert_eq!(device.boot(), "A");
        device.sh("rauc status mark-good");
        Some(device)
    }

    /// Boots as a boot loader does: the primary slot, or else the other one, unless it has no tries left.
    fn boot(&mut self) -> String {
        if let Some(mut rauc) = self.rauc.take() {
            rauc.kill().unwrap();
            rauc.wait().unwrap();
        }
        let primary = self.slots.text("boot/primary").trim().to_owned();
        let order = [primary.as_str(), if primary == "A" { "B" } else { "A" }];
        let left = |slot: &str| self.tries_left(slot);
        let slot = order.into_iter().find(|slot| left(slot) > 0).expect("a slot boots").to_owned();
        self.slots.write(&format!("boot/{slot}"), format!("{}\n", left(&slot) - 1));
        let mut rauc = self.command("rauc");
        rauc.args(["--conf=system.conf", "service", &format!("--override-boot-slot={slot}")]);
        self.rauc = Some(rauc.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        wait("RAUC answers", || told(self.command("rauc").arg("status")).0 == Some(0));
        assert_eq!(self.status()["booted"], slot);
        slot
    }

    fn tries_left(&self, slot: &str) -> u32 {
        self.slots.text(&format!("boot/{slot}")).trim().parse().unwrap()
    }

    fn command(&self, program: &str) -> std::process::Command {
        self.on_bus(self.slots.command_of(program))
    }

    fn on_bus(&self, mut command: std::process::Command) -> std::process::Command {
        let bus = format!("unix:path={}", self.slots.path("bus").display());
        command.env("DBUS_SYSTEM_BUS_ADDRESS", bus);
        command
    }

    fn status(&self) -> serde_json::Value {
        serde_json::from_str(&out(self.command("rauc").args(["status", "--output-format=json"]))).unwrap()
    }

    /// Returns what RAUC says of the slot `A` or `B`: `good` or `bad`.
    fn state_of(&self, slot: &str) -> String {
        let status = self.status();
        let slots = status["slots"].as_array().unwrap().iter().flat_map(|slots| slots.as_object().unwrap().values());
        let state = slots.into_iter().find(|of| of["bootname"] == slot).unwrap()["boot_status"].as_str().unwrap();
        state.to_owned()
    }

    #[track_caller]
    fn sh(&self, line: &str) -> String {
        out(&mut self.on_bus(self.slots.shell(line)))
    }

    /// Installs a bundle as docs/slots.md says: to the other slot, which then boots next. Returns the exit status, and what was printed.
    #[track_caller]
    fn try_install(&self, bundle: &str) -> (Option<i32>, String) {
        let stick = self.slots.path("stick");
        let _ = fs::remove_dir_all(&stick);
        fs::create_dir(&stick).unwrap();
        fs::copy(self.slots.path(bundle), stick.join("it.sealift")).unwrap();
        told(&mut self.on_bus(self.slots.shell(&commands("RAUC", &[("/media/stick", "stick")]))))
    }

    #[track_caller]
    fn install(&self, bundle: &str) {
        let (status, said) = self.try_install(bundle);
        assert_eq!(status, Some(0), "{said}");
    }

    /// Packs a version as a whole and as a delta over another one.
    fn pack(&self, version: u8, base: u8) {
        self.slots.write(&format!("{version}/root.img"), image(version));
        let pack = format!("pack {version} --name os --bundle-version {version} --key release");
        self.slots.good(&format!("{pack} -o {version}.sealift"));
        self.slots.good(&format!("{pack} -o {base}-to-{version}.sealift --base {base}.sealift --trust signers"));
    }
}

#[test]
fn rauc_boots_the_slot_that_sealift_wrote_and_falls_back_from_it() {
    let Some(mut device) = Device::new() else { return };
    let [a, b] = [0, 1].map(|number| device.loops[number].0.clone());

    // A delta over the slot that runs, which is found by itself.
    device.install("delta.sealift");
    assert_has(&b, 2);
    assert_has(&a, 1);
    assert_eq!(device.status()["boot_primary"], "rootfs.1");
    assert_eq!(device.boot(), "B");
    device.sh("rauc status mark-good");
    assert_eq!(device.tries_left("B"), TRIES);
    device.slots.does(&format!("audit {b}"));

    // What is not installed is not booted: not even tried.
    fs::write(device.slots.path("cut.sealift"), &device.slots.read("2.sealift")[..5000]).unwrap();
    let (status, said) = device.try_install("cut.sealift");
    assert_eq!(status, Some(1), "{said}");
    assert_eq!((device.state_of("A"), device.state_of("B")), ("bad".to_owned(), "good".to_owned()));
    assert_eq!(device.boot(), "B");
    device.sh("rauc status mark-good");

    // A version that never says that it is good is tried three times.
    device.pack(3, 2);
    device.install("2-to-3.sealift");
    assert_has(&a, 3);
    let booted = [0; 4].map(|_| device.boot());
    assert_eq!(booted, ["A", "A", "A", "B"]);
    assert_eq!(device.state_of("A"), "bad");
    device.sh("rauc status mark-good");

    // The device remembers it nevertheless: what follows must be as new, and the old slot is as sound as before.
    device.slots.does(&format!("audit {b}"));
    let status = device.slots.does("status");
    assert!(status.contains(&format!("{b}: os version 2")) && !status.contains("gone back"), "{status}");
    assert!(status.contains("os: accepts version 3 or newer"), "{status}");
    device.slots.is_refused(&format!("unpack 2.sealift {a}"), 3, "is older than version 3");
    device.slots.good("trust reset os");
    device.slots.is_refused(&format!("unpack 2.sealift {a}"), 3, "is older than version 3");
    device.pack(4, 2);
    device.install("2-to-4.sealift");
    assert_has(&a, 4);
    assert_eq!(device.boot(), "A");

    // A version that finds out by itself that it is bad.
    device.sh("rauc status mark-bad");
    assert_eq!(device.boot(), "B");
    assert_has(&b, 2);
}
