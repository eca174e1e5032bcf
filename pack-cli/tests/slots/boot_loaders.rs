//! What docs/slots.md has a device do for its boot loader, on files in place of partitions and of /efi.

use sealift_desk::{Desk, has, out};

use crate::desk::{Slots, assert_has, image};
use crate::page::{commands, file, replaced_in};

const SLOT: (&str, &str) = ("/dev/disk/by-partlabel/root-b", "image:root-b");
const BUNDLE: (&str, &str) = ("os-8.sealift", "2.sealift");

/// Runs shell lines, of which each must succeed.
#[track_caller]
fn sh(desk: &Desk, lines: &str) -> String {
    out(&mut desk.shell(lines))
}

#[test]
fn systemd_boot_gets_an_entry_with_three_tries() {
    let slots = Slots::new();
    slots.write("both/root.img", image(2));
    slots.write("both/vmlinuz", "a kernel");
    slots.write("both/initrd", "its file system");
    slots.good("pack both -o both.sealift --name os --bundle-version 8 --key release");
    for (name, content) in [("os-a", "version  7\n"), ("os-b+0-3", "version  6\n"), ("os-b+2-1", "version  5\n")] {
        slots.write(&format!("efi/loader/entries/{name}.conf"), content);
    }
    slots.write("efi/os-b/vmlinuz", "");
    slots.write("try-slot-b", replaced_in(&file("systemd-boot", 0), &[("/efi/", "efi/")]));
    slots.set_mode("try-slot-b", 0o755);
    let script = ("/usr/local/sbin/try-slot-b", "./try-slot-b");
    sh(&slots, &commands("systemd-boot", &[("os-8.sealift", "both.sealift"), SLOT, ("/efi/", "efi/"), script]));
    assert_has(slots.path("root-b"), 2);
    assert_eq!(slots.text("efi/os-b/vmlinuz"), "a kernel");
    assert_eq!(slots.names("efi/loader/entries"), ["os-a.conf", "os-b+3.conf"]);
    let entry = slots.text("efi/loader/entries/os-b+3.conf");
    for line in ["version  8", "linux    /os-b/vmlinuz", "initrd   /os-b/initrd"] {
        assert!(entry.lines().any(|found| found == line), "{line}: {entry}");
    }
}

#[test]
fn u_boot_tries_the_slot_and_returns_from_it() {
    let slots = Slots::new();
    if !has(&["fw_setenv", "fw_printenv"]) {
        return;
    }
    let environment = file("U-Boot", 0);
    slots.write("defaults", &environment);
    slots.write("environment", vec![0; 2 * 0x4000]);
    let place = slots.path("environment");
    slots.write("fw_env.config", format!("{0} 0x0 0x4000\n{0} 0x4000 0x4000\n", place.display()));
    slots.write("try-b.env", file("U-Boot", 1));
    let here = "fw_setenv -c fw_env.config -f defaults";
    sh(&slots, &commands("U-Boot", &[BUNDLE, SLOT, ("fw_setenv", here), ("/etc/try-b.env", "try-b.env")]));
    assert_has(slots.path("root-b"), 2);
    let variable = |name: &str| sh(&slots, &format!("fw_printenv -c fw_env.config -n {name}")).trim().to_owned();
    let found = ["slot", "upgrade_available", "bootcount", "bootlimit"].map(variable);
    assert_eq!(found, ["b", "1", "0", "3"]);
    sh(&slots, &format!("{here} upgrade_available 0"));
    assert_eq!(variable("upgrade_available"), "0");

    // U-Boot's commands of the same names, in a shell whose `if` and `test` are the same.
    let names = "setenv() { eval \"$1=$2\"; }; saveenv() { echo slot $slot $upgrade_available $bootcount; }; run() { echo run $1; }";
    let (_, command) = environment.lines().find_map(|line| line.split_once("altbootcmd=")).unwrap();
    for (slot, other) in [("a", "b"), ("b", "a")] {
        let said = sh(&slots, &format!("{names}; slot={slot} upgrade_available=1 bootcount=4; {command}"));
        assert_eq!(said, format!("slot {other} 0 0\nrun bootcmd\n"));
    }
}

#[test]
fn grub_tries_the_slot_and_returns_from_it() {
    let slots = Slots::new();
    if !has(&["grub-editenv", "grub-script-check"]) {
        return;
    }
    let script = file("GRUB", 0);
    slots.write("grub.cfg", &script);
    sh(&slots, "grub-script-check grub.cfg; grub-editenv grubenv create; grub-editenv grubenv set saved_entry=a");
    // GRUB's script in a shell, where an assignment has no `set`.
    let script = script.split("menuentry").next().unwrap().replace("set ", "");
    let names =
        "load_env() { eval \"$(grub-editenv grubenv list)\"; }; save_env() { grub-editenv grubenv set tries=$tries; }";
    slots.write("boot", format!("{names}\n{script}\necho $default\n"));
    let boot = || sh(&slots, "sh ./boot").trim().to_owned();
    assert_eq!(boot(), "a");
    let install = commands("GRUB", &[BUNDLE, SLOT, ("/boot/grub/grubenv", "grubenv")]);
    sh(&slots, &install);
    assert_has(slots.path("root-b"), 2);
    assert_eq!([0; 5].map(|_| boot()), ["b", "b", "b", "a", "a"]);
    // The slot has the bundle already, and is tried again.
    sh(&slots, &install);
    assert_eq!(boot(), "b");
    sh(&slots, "grub-editenv grubenv set saved_entry=b tries=0");
    assert_eq!(boot(), "b");
}
