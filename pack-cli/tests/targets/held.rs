//! What a target keeps, on each file system and for each user: an audit right after unpacking finds no difference, and later ones find any change
//! that the target can show.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown, lchown, symlink};
use std::path::PathBuf;
use std::process::{Command, Output};

use rustix::fs::{CWD, FileType, Mode, XattrFlags, lsetxattr, makedev, mknodat};
use sealift::trust::Utc;
use sealift::{Error, Input, InstallOptions, Progress, Times};
use sealift_desk::{as_root, noise, program, said, set_mtime, skipped};
use sealift_store::Record;

use crate::installed::{Installed, anyones};

/// The page that says what targets keep.
const PAGE: &str = include_str!("../../../docs/device.md");

/// A file system in a file, or one that a program serves, until dropped.
struct Disk {
    point: PathBuf,
    device: Option<String>,
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.point).status();
        if let Some(device) = &self.device {
            // The program that serves it has to end first.
            let _ = Command::new("losetup").args(["-d", device]).status();
        }
    }
}

/// Runs a shell line in the desk's folder; `None` if it fails.
fn shell(desk: &Installed, line: &str) -> Option<String> {
    let done = Command::new("sh").args(["-c", line]).current_dir(desk.path("")).output().unwrap();
    done.status.success().then(|| String::from_utf8(done.stdout).unwrap().trim().to_owned())
}

impl Disk {
    /// Mounts at `disk` what the line makes in `image`; `$image` stands for a block device with it where the line of `mount` needs one.
    fn new(desk: &Installed, make: &str, mount: &str) -> Option<Self> {
        fs::create_dir(desk.path("disk")).unwrap();
        if shell(desk, make).is_none() {
            skipped(&format!("needs {make}"));
            return None;
        }
        let device = mount.contains("$image").then(|| shell(desk, "losetup -f --show image")).flatten();
        let mount = mount.replace("$image", device.as_deref().unwrap_or_default());
        let disk = Self { point: desk.path("disk"), device };
        if shell(desk, &mount).is_none() {
            skipped(&format!("needs {mount}"));
            return None;
        }
        Some(disk)
    }
}

fn capability() -> Vec<u8> {
    [[0, 0, 0, 2], [0, 32, 0, 0], [0; 4], [0; 4], [0; 4]].concat()
}

/// A list that grants user 42 to read: user::rw-, user:42:r--, group::r--, mask::r--, other::---.
fn list() -> Vec<u8> {
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 4, 42), (4, 4, u32::MAX), (0x10, 4, u32::MAX), (0x20, 0, u32::MAX)];
    let mut value = 2_u32.to_le_bytes().to_vec();
    for (tag, bits, id) in entries {
        value.extend([tag.to_le_bytes(), bits.to_le_bytes()].as_flattened());
        value.extend(id.to_le_bytes());
    }
    value
}

/// Packs versions 1 and 2 of a tree of files and directories with owners, modes, and times to the nanosecond.
fn plain(desk: &Installed) {
    chown(desk.path("tree/etc/motd"), Some(1234), Some(2345)).unwrap();
    desk.set_mode("tree/etc/motd", 0o640);
    chown(desk.path("tree/etc/issue"), Some(1234), Some(1234)).unwrap();
    desk.set_mode("tree/etc/issue", 0o4751);
    set_mtime(&desk.path("tree/lib"), 1_234_567_891, 123_456_789);
    set_mtime(&desk.path("tree/etc/motd"), 1_234_567_891, 999_999_999);
    desk.pack(1);
    desk.write("tree/etc/new", "new\n");
    desk.write("tree/etc/motd", "changed\n");
    set_mtime(&desk.path("tree/etc/motd"), 1_234_567_893, 1);
    desk.pack(2);
}

/// As [`plain`], with times that few file systems can store, attributes, and every kind of file.
fn rich(desk: &Installed) -> bool {
    for (name, seconds) in [("early", -4_000_000_000), ("late", 99_999_999_999)] {
        let path = desk.path("tree").join(name);
        fs::write(&path, name).unwrap();
        set_mtime(&path, seconds, 5);
    }
    let has_all = fs::metadata(desk.path("tree/late")).unwrap().mtime() == 99_999_999_999;
    symlink("etc/motd", desk.path("tree/link")).unwrap();
    fs::hard_link(desk.path("tree/etc/issue"), desk.path("tree/etc/second")).unwrap();
    lchown(desk.path("tree/link"), Some(7), Some(8)).unwrap();
    mknodat(CWD, desk.path("tree/null"), FileType::CharacterDevice, Mode::from_raw_mode(0o666), makedev(1, 3)).unwrap();
    mknodat(CWD, desk.path("tree/pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let set = |name, value: &[u8]| lsetxattr(desk.path("tree/lib/lib.so"), name, value, XattrFlags::empty());
    let attributes: [(_, &[u8]); 3] =
        [("user.note", b"x"), ("system.posix_acl_access", &list()), ("security.capability", &capability())];
    let are_set = attributes.map(|(name, value)| set(name, value).is_ok());
    plain(desk);
    has_all && are_set == [true; 3]
}

/// Packs in memory, whose file system stores every time and attribute.
fn in_memory(desk: &Installed) -> Option<Disk> {
    fs::remove_dir_all(desk.path("tree")).unwrap();
    fs::create_dir(desk.path("tree")).unwrap();
    shell(desk, "mount -t tmpfs tmpfs tree")?;
    for folder in ["lib", "etc"] {
        fs::create_dir(desk.path("tree").join(folder)).unwrap();
    }
    desk.write("tree/lib/lib.so", noise(1, 40_000));
    desk.write("tree/etc/motd", "hello\n");
    desk.write("tree/etc/issue", "first\n");
    Some(Disk { point: desk.path("tree"), device: None })
}

fn audit(desk: &Installed, target: &str) -> Output {
    desk.command(&format!("audit {target} --allow-unsigned")).output().unwrap()
}

fn assert_sound(desk: &Installed, target: &str) {
    let done = audit(desk, target);
    assert_eq!(done.status.code(), Some(0), "{}", said(&done));
}

fn assert_differs(desk: &Installed, target: &str) {
    let done = audit(desk, target);
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
}

fn record(desk: &Installed, target: &str) -> Record {
    let (folder, name) = target.rsplit_once('/').unwrap_or(("", target));
    let path = desk.path(folder).join(format!(".{name}.sealift-state")).join(Record::FILE);
    Record::parse(&fs::read(path).unwrap()).unwrap()
}

fn lacks(desk: &Installed, target: &str) -> Vec<&'static str> {
    record(desk, target).keeps.lacks().map(sealift::Aspect::word).collect()
}

/// Returns the row of the page's table about what a target keeps.
fn row(name: &str, record: &Record) -> String {
    let lacks: Vec<&str> = record.keeps.lacks().map(sealift::Aspect::word).collect();
    let lacks = if lacks.is_empty() { "everything".to_owned() } else { format!("no {}", lacks.join(", no ")) };
    let Times { step, first, last } = record.keeps.times;
    let step = match step {
        1 => "the nanosecond".to_owned(),
        1_000_000_000 => "the second".to_owned(),
        step => format!("{step} nanoseconds"),
    };
    let year = |seconds| Utc(seconds).rfc3339()[..4].to_owned();
    let range = match (first, last) {
        (i64::MIN, i64::MAX) => "all".to_owned(),
        (i64::MIN, last) => format!("until {}", year(last)),
        (first, i64::MAX) => format!("since {}", year(first)),
        (first, last) => format!("{} to {}", year(first), year(last)),
    };
    format!("| {name} | {lacks} | {range}, to {step} |")
}

/// Unpacks and updates on a file system, audits after each, and compares what is kept with the page.
fn check(name: &str, make: &str, mount: &str) {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    let Some(_tree) = in_memory(&desk) else { return skipped("needs tmpfs") };
    if !rich(&desk) {
        return skipped("needs a tmpfs with every time and attribute");
    }
    let Some(disk) = Disk::new(&desk, make, mount) else { return };
    check_on(&desk, name);
    drop(disk);
}

fn check_on(desk: &Installed, name: &str) {
    desk.unpack(1, "disk/target");
    assert_sound(desk, "disk/target");
    assert!(desk.update(1, "disk/target").unwrap().was_complete, "{name}: there is nothing to repair");
    desk.replace(2, "disk/target").unwrap();
    assert_sound(desk, "disk/target");
    assert_kept(desk, name, None);
}

/// Checks that the page says what the target keeps, and that a change shows. `range` are the times if trying does not tell.
fn assert_kept(desk: &Installed, name: &str, range: Option<&str>) {
    let row = row(name, &record(desk, "disk/target")).replace("| all", &format!("| {}", range.unwrap_or("all")));
    assert!(PAGE.contains(&row), "docs/device.md needs the row\n{row}");
    let motd = desk.path("disk/target/etc/motd");
    let was = fs::metadata(&motd).unwrap();
    set_mtime(&motd, was.mtime() + 1, was.mtime_nsec());
    assert_differs(desk, "disk/target");
    set_mtime(&motd, was.mtime(), was.mtime_nsec());
    assert_sound(desk, "disk/target");
    fs::write(&motd, "CHANGED\n").unwrap();
    set_mtime(&motd, was.mtime(), was.mtime_nsec());
    assert_differs(desk, "disk/target");
}

#[test]
fn on_ext4() {
    check("ext4", "truncate -s 60M image && mkfs.ext4 -q image", "mount -o loop image disk");
}

#[test]
fn on_ext4_with_small_inodes() {
    let make = "truncate -s 60M image && mkfs.ext4 -q -I 128 image";
    check("ext4 with 128-byte inodes", make, "mount -o loop image disk");
}

#[test]
fn times_that_are_not_stored_exactly_are_said() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    plain(&desk);
    let make = "truncate -s 60M image && mkfs.ext4 -q -I 128 image";
    let Some(_disk) = Disk::new(&desk, make, "mount -o loop image disk") else { return };
    for (more, words) in [("--dry-run", "times would not be stored exactly"), ("", "times not stored exactly")] {
        let said = desk.good(&format!("unpack 1.sealift disk/target --allow-unsigned {more}"));
        assert_eq!(said.matches(words).count(), 1, "{said}");
    }
}

#[test]
fn on_xfs() {
    check("xfs", "truncate -s 320M image && mkfs.xfs -q -m bigtime=1 image", "mount -o loop image disk");
}

#[test]
fn on_xfs_without_bigtime() {
    let make = "truncate -s 320M image && mkfs.xfs -q -m bigtime=0 image";
    check("xfs without bigtime", make, "mount -o loop image disk");
}

#[test]
fn on_btrfs() {
    check("btrfs", "truncate -s 256M image && mkfs.btrfs -q image", "mount -o loop image disk");
}

#[test]
fn on_tmpfs() {
    check("tmpfs", "true", "mount -t tmpfs tmpfs disk");
}

#[test]
fn on_overlayfs() {
    let make = "mkdir lower upper && mount -t tmpfs tmpfs upper && mkdir upper/u upper/w";
    check(
        "overlayfs over tmpfs",
        make,
        "mount -t overlay overlay -o lowerdir=lower,upperdir=upper/u,workdir=upper/w disk && umount -l upper",
    );
}

#[test]
fn on_fuse() {
    let make = "mkdir below && mount -t tmpfs tmpfs below && command -v bindfs";
    check("FUSE (bindfs over tmpfs)", make, "bindfs below disk && umount -l below");
}

#[test]
fn on_ntfs() {
    let make = "truncate -s 60M image && mkntfs -q -F -Q image";
    check("NTFS (ntfs-3g, umask=022)", make, "ntfs-3g -o umask=022 image disk");
}

/// Names that differ only in case are one there, so that an update is refused; and what exfat-fuse returns for a time beyond 2107 is not what it
/// writes.
#[test]
fn on_exfat() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    plain(&desk);
    let make = "truncate -s 60M image && mkfs.exfat image";
    let Some(_disk) = Disk::new(&desk, make, "mount.exfat-fuse -o umask=022 $image disk") else { return };
    desk.unpack(1, "disk/target");
    assert_sound(&desk, "disk/target");
    assert_kept(&desk, "exFAT (exfat-fuse, umask=022)", Some("1980 to 2107"));
    symlink("etc/motd", desk.path("tree/link")).unwrap();
    desk.pack(3);
    let error = desk.take(3, "disk/other", &InstallOptions::default(), &Progress::default()).unwrap_err();
    assert!(matches!(error, Error::Unstorable { .. }), "{error}");
    assert!(error.to_string().ends_with("disk/other/link: FUSE cannot hold symbolic links"), "{error}");
    assert!(!desk.path("disk/.other.sealift-partial").exists(), "nothing is left");
}

#[test]
fn an_attribute_that_is_too_large_is_named_before_anything_is_unpacked() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    let Some(_tree) = in_memory(&desk) else { return skipped("needs tmpfs") };
    if lsetxattr(desk.path("tree/etc/motd"), "user.large", &[7; 9000], XattrFlags::empty()).is_err() {
        return skipped("needs a tmpfs with large attributes");
    }
    desk.pack(1);
    let make = "truncate -s 60M image && mkfs.ext4 -q image";
    let Some(_disk) = Disk::new(&desk, make, "mount -o loop image disk") else { return };
    for more in ["--dry-run", ""] {
        let fault = "disk/target/etc/motd: ext4 cannot hold the extended attribute user.large of 9000 bytes";
        desk.refused(&format!("unpack 1.sealift disk/target --allow-unsigned {more}"), 2, fault);
    }
    assert_eq!(desk.names("disk"), ["lost+found"]);
}

/// ext4 gives a file at most 65,000 names.
#[test]
fn a_file_with_more_names_than_the_file_system_allows_is_named() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    let Some(_tree) = in_memory(&desk) else { return skipped("needs tmpfs") };
    for number in 1..=65_000 {
        fs::hard_link(desk.path("tree/etc/motd"), desk.path(&format!("tree/lib/{number:05}"))).unwrap();
    }
    desk.pack(1);
    let make = "truncate -s 60M image && mkfs.ext4 -q image";
    let Some(_disk) = Disk::new(&desk, make, "mount -o loop image disk") else { return };
    let done = desk.command("unpack 1.sealift disk/target --allow-unsigned").output().unwrap();
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    let fault = "/lib/65000: ext4 cannot hold so many names of one file";
    assert!(said(&done).contains(fault), "{}", said(&done));
    assert_eq!(desk.names("disk"), ["lost+found"]);
}

/// Creates a desk with the rich tree, on a file system with everything.
fn complete() -> Option<Installed> {
    let desk = as_root("gives files away", Installed::new)?;
    rich(&desk);
    Some(desk)
}

#[test]
fn root_of_a_user_namespace_unpacks_what_it_can() {
    let Some(desk) = complete() else { return };
    let line = |line: &str| desk.command_of("unshare").arg("-r").arg(program()).args(line.split(' ')).output().unwrap();
    let done = line("unpack 1.sealift target --allow-unsigned");
    if said(&done).contains("unshare failed") {
        return skipped("needs user namespaces");
    }
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains("does not exist in this user namespace"), "{}", said(&done));
    assert!(said(&done).contains("1 device: not created"), "{}", said(&done));
    for run in ["audit target --allow-unsigned", "unpack 2.sealift target --update --delete --allow-unsigned"] {
        let done = line(run);
        assert!(done.status.success(), "{run}: {}", said(&done));
    }
    assert_sound(&desk, "target");
    assert!(lacks(&desk, "target").starts_with(&["owners", "devices"]), "{:?}", lacks(&desk, "target"));
    // A set-id bit that nobody signed for this owner is a difference, whatever the target lacks.
    desk.set_mode("target/etc/issue", 0o4751);
    assert_differs(&desk, "target");
    // So are rights of other kinds, and an update takes them back.
    for (name, value) in [("security.capability", capability()), ("system.posix_acl_access", list())] {
        let done = line("unpack 2.sealift target --update --allow-unsigned");
        assert!(done.status.success(), "{}", said(&done));
        assert_sound(&desk, "target");
        lsetxattr(desk.path("target/etc/issue"), name, &value, XattrFlags::empty()).unwrap();
        assert_differs(&desk, "target");
    }
    assert!(line("unpack 2.sealift target --update --allow-unsigned").status.success());
    assert_sound(&desk, "target");
}

#[test]
fn without_a_capability_what_it_takes_is_left_out() {
    let Some(desk) = complete() else { return };
    for (capability, aspect) in [
        ("chown", "owners"),
        ("fowner", "owners"),
        ("fsetid", "owners"),
        ("dac_override", "owners"),
        ("mknod", "devices"),
        ("setfcap", "capabilities"),
    ] {
        let run = |line: &str| {
            let mut limited = desk.command_of("setpriv");
            limited.arg(format!("--bounding-set=-{capability}")).arg(program()).args(line.split(' ')).output().unwrap()
        };
        let target = format!("target-{capability}");
        let done = run(&format!("unpack 1.sealift {target} --allow-unsigned"));
        assert!(done.status.success(), "{capability}: {}", said(&done));
        let name = format!("without the capability CAP_{}", capability.to_uppercase());
        assert!(said(&done).contains(&name), "{capability}: {}", said(&done));
        assert_eq!(lacks(&desk, &target), [aspect], "{capability}");
        assert_sound(&desk, &target);
        let done = run(&format!("unpack 2.sealift {target} --update --delete --allow-unsigned"));
        assert!(done.status.success(), "{capability}: {}", said(&done));
        assert_sound(&desk, &target);
    }
}

#[test]
fn a_users_own_tree_is_sound() {
    let Some(desk) = complete() else { return };
    desk.make_home();
    let run = |line: &str| {
        let done = desk.run_as_user(line);
        assert!(done.status.success(), "{line}: {}", said(&done));
        said(&done)
    };
    let told = run("unpack 1.sealift home/target --allow-unsigned");
    assert!(told.contains("1 device: not created (not running as root)"), "{told}");
    let told = run("audit home/target --allow-unsigned");
    assert!(told.contains("not compared, since it was unpacked without them: owners, devices, capabilities"), "{told}");
    run("unpack 2.sealift home/target --update --delete --allow-unsigned");
    run("audit home/target --allow-unsigned");
    let done = desk.run_as_user("unpack 1.sealift home/other --same-owner --allow-unsigned");
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    assert!(said(&done).contains("home/other cannot keep owners: not running as root"), "{}", said(&done));
    assert!(!desk.path("home/other").exists());
    assert!(!desk.path("home/.other.sealift-partial").exists());
}

#[test]
fn owners_and_devices_are_left_out_until_they_are_asked_for() {
    let Some(desk) = complete() else { return };
    let run = |line: &str| desk.good(line);
    let owner = || fs::metadata(desk.path("target/etc/motd")).map(|stat| (stat.uid(), stat.mode() & 0o7777)).unwrap();
    run("unpack 1.sealift target --no-same-owner --no-devices --allow-unsigned");
    assert_eq!((owner(), desk.path("target/null").exists()), ((0, 0o640), false));
    assert_eq!(fs::metadata(desk.path("target/etc/issue")).unwrap().mode() & 0o7777, 0o751);
    assert_sound(&desk, "target");
    run("unpack 2.sealift target --update --delete --allow-unsigned");
    assert_eq!((owner(), desk.path("target/null").exists()), ((0, 0o640), false), "as before");
    assert_sound(&desk, "target");
    let told = run("status target --allow-unsigned");
    assert!(told.contains("unpacked without owners, devices"), "{told}");
    run("unpack 2.sealift target --update --delete --same-owner --devices --allow-unsigned");
    assert_eq!((owner(), desk.path("target/null").exists()), ((1234, 0o640), true));
    assert_eq!(fs::metadata(desk.path("target/etc/issue")).unwrap().mode() & 0o7777, 0o4751);
    assert_sound(&desk, "target");
    chown(desk.path("target/etc/motd"), Some(1), None).unwrap();
    assert_differs(&desk, "target");
}

#[test]
fn a_disk_that_fills_up_keeps_what_was_built() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    for file in 0..40 {
        desk.write(&format!("tree/{file}"), noise(file, 500_000));
    }
    desk.pack(1);
    let Some(_disk) = Disk::new(&desk, "true", "mount -t tmpfs -o size=40m tmpfs disk") else { return };
    let fill = desk.path("disk/fill");
    let input = desk.trapped(1, 8_000_000, move || {
        let mut file = fs::File::create(&fill).unwrap();
        // Until there is no space left.
        let _ = std::io::copy(&mut std::io::repeat(7), &mut file);
    });
    let (target, options) = (desk.path("disk/target"), InstallOptions { jobs: 1, ..InstallOptions::default() });
    let error = sealift::unpack::unpack(anyones(input).unwrap(), &target, &options, &Progress::default()).unwrap_err();
    assert_eq!(error.word(), "space", "{error}");
    let Error::Io { path, .. } = &error else { panic!("{error}") };
    assert!(path.exists(), "{error}");
    fs::remove_file(desk.path("disk/fill")).unwrap();
    let input = Input::open(&desk.path("1.sealift")).unwrap();
    let stats = sealift::unpack::unpack(anyones(input).unwrap(), &target, &options, &Progress::default()).unwrap();
    assert!(stats.resumed_files > 10, "{} files", stats.resumed_files);
}

#[test]
fn without_proc_attributes_of_links_are_read_and_set() {
    let Some(desk) = complete() else { return };
    let set = |name: &str| lsetxattr(desk.path(name), "trusted.note", b"x", XattrFlags::empty());
    if set("tree/link").and_then(|()| set("tree/pipe")).is_err() {
        return skipped("needs a file system with trusted.* attributes");
    }
    let line = "mount -t tmpfs tmpfs /proc || exit 77
        \"$S\" pack tree -o 3.sealift --name os --bundle-version 3 --xattrs 'trusted.*' -q &&
        \"$S\" unpack 3.sealift target --allow-unsigned -q && \"$S\" audit target --allow-unsigned -q &&
        \"$S\" diff 3.sealift tree --exit-code -q";
    let done = desk.command_of("unshare").args(["--mount", "sh", "-c", line]).env("S", program()).output().unwrap();
    if done.status.code() == Some(77) {
        return skipped("needs a mount namespace");
    }
    assert!(done.status.success(), "{}", said(&done));
    for name in ["target/link", "target/pipe"] {
        let mut value = [0; 8];
        assert_eq!(rustix::fs::lgetxattr(desk.path(name), "trusted.note", &mut value[..]), Ok(1), "{name}");
    }
    assert_sound(&desk, "target");
}

#[test]
fn a_dead_mount_is_said_to_be_dead() {
    let Some(desk) = as_root("mounts", Installed::new) else { return };
    desk.pack(1);
    fs::create_dir(desk.path("below")).unwrap();
    fs::create_dir(desk.path("disk")).unwrap();
    let Ok(mut served) = Command::new("bindfs").arg("-f").arg(desk.path("below")).arg(desk.path("disk")).spawn() else {
        return skipped("needs bindfs");
    };
    let _disk = Disk { point: desk.path("disk"), device: None };
    let is_mounted = || fs::read_to_string("/proc/self/mounts").unwrap().contains(desk.path("disk").to_str().unwrap());
    while !is_mounted() {
        assert!(served.try_wait().unwrap().is_none(), "bindfs ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    desk.unpack(1, "disk/target");
    served.kill().unwrap();
    served.wait().unwrap();
    for line in [
        "unpack 1.sealift disk/target --update --allow-unsigned",
        "unpack 1.sealift disk --allow-unsigned",
        "audit disk/target --allow-unsigned",
        "status disk/target",
        "clean disk/target",
        "clean ostree:disk/repo",
        "pack disk -o x.sealift --name os",
        "mount 1.sealift disk --allow-unsigned",
    ] {
        let said = desk.refused(line, 2, "Transport endpoint is not connected");
        assert!(said.contains("umount"), "{line}: {said}");
    }
}
