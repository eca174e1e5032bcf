//! Trees that are written as archives, read by other programs and by this one.

use std::fs;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;

use sealift_desk::{is_root, noise, out};

use crate::deltas::versions;
use crate::installed::Installed;

/// Creates a tree of every kind, which `cpio` can hold except for attributes and nanoseconds.
fn special(desk: &Installed) {
    let tree = |name: &str| desk.path("tree").join(name);
    fs::hard_link(tree("lib/lib.so"), tree("etc/hard")).unwrap();
    fs::hard_link(tree("lib/lib.so"), tree("lib/a-third")).unwrap();
    symlink("../lib/lib.so", tree("etc/soft")).unwrap();
    symlink("x".repeat(300), tree("etc/dangling")).unwrap();
    desk.write("tree/etc/empty", "");
    desk.write("tree/lib/same", fs::read(tree("lib/lib.so")).unwrap());
    desk.write("tree/lib/large", noise(9, 20_000_000));
    let long = format!("tree/{}/{}", "d".repeat(200), "f".repeat(120));
    fs::create_dir(tree(&"d".repeat(200))).unwrap();
    desk.write(&long, "long\n");
    fs::write(tree("lib").join(std::ffi::OsStr::from_bytes(b"odd \xff\n=name")), "odd\n").unwrap();
    let mut sparse = fs::File::create(tree("lib/sparse")).unwrap();
    sparse.seek(SeekFrom::Start(3 << 20)).unwrap();
    sparse.write_all(b"end").unwrap();
    sparse.set_len(5 << 20).unwrap();
    desk.set_mode("tree/etc/motd", 0o4751);
    let sh = |line: &str| {
        out(Command::new("sh").args(["-c", line]).current_dir(desk.path("tree")));
    };
    sh("mkfifo etc/fifo; touch -d '2001-02-03 04:05:06.789' etc/issue; touch -d '2020-01-02 03:04:05.5' etc");
    if is_root() {
        sh("mknod etc/null c 1 3; mknod etc/disk b 259 70000; chown 12:3000000 etc/issue lib");
    }
}

/// Which times are compared.
#[derive(Clone, Copy)]
enum Times {
    All,
    /// Only those of files, in seconds: GNU cpio sets the time of a directory before it extracts its files, and not that of symbolic links.
    OfFiles,
}

/// Returns what find prints about a tree: types, modes, owners, sizes, links and times.
fn listed(tree: &Path, times: Times) -> Vec<String> {
    let (of_files, of_others) = match times {
        Times::All => ("%T@", "%T@"),
        Times::OfFiles => ("%Ts", ""),
    };
    let line = format!(
        "find . -mindepth 1 \\( -type d -printf '%P\\t%y %m %U %G {of_others}\\0' \
         -o -type l -printf '%P\\t%y %U %G %l {of_others}\\0' \
         -o -printf '%P\\t%y %m %U %G %s %n {of_files}\\0' \\)"
    );
    let done = Command::new("sh").args(["-c", &line]).current_dir(tree).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut lines: Vec<_> = String::from_utf8_lossy(&done.stdout).split('\0').map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

/// Extracts with a program into a directory, and compares that with the unpacked tree.
fn extracts(desk: &Installed, program: &str, times: Times) {
    let out = program.split(' ').next().unwrap();
    fs::create_dir(desk.path(out)).unwrap();
    sealift_desk::out(Command::new("sh").args(["-c", program]).current_dir(desk.path(out)));
    let [found, expected] = [out, "unpacked"].map(|name| listed(&desk.path(name), times));
    let wrong: Vec<_> = found.iter().filter(|line| !expected.contains(line)).collect();
    assert!(wrong.is_empty() && found.len() == expected.len(), "{program}: {wrong:#?}");
    let mut diff = Command::new("diff");
    diff.args(["-r", "--no-dereference", "-x", "fifo", "-x", "null", "-x", "disk"]);
    sealift_desk::out(diff.arg(desk.path(out)).arg(desk.path("unpacked")));
    fs::remove_dir_all(desk.path(out)).unwrap();
}

#[test]
fn programs_extract_a_cpio_archive_as_it_is_unpacked() {
    let desk = Installed::new();
    special(&desk);
    desk.install(1, "unpacked");
    let said = desk.good("unpack 1.sealift cpio:os.cpio --allow-unsigned");
    assert!(said.contains("cpio:os.cpio: written from 1.sealift"));
    extracts(&desk, "cpio --quiet -idm --no-absolute-filenames < ../os.cpio", Times::OfFiles);
    extracts(&desk, "bsdtar -xpf ../os.cpio", Times::OfFiles);
    // As a source, the archive gives the same tree.
    desk.good("diff cpio:os.cpio 1.sealift --exit-code -q --ignore mtime");
}

#[test]
fn programs_extract_a_tar_archive_as_it_is_unpacked() {
    let desk = Installed::new();
    special(&desk);
    let note = |name: &str, value: &[u8]| {
        rustix::fs::setxattr(desk.path(name), "user.note", value, rustix::fs::XattrFlags::empty()).unwrap();
    };
    note("tree/etc/motd", b"bytes \n = \xff");
    note("tree/lib", &noise(3, 2000));
    let line = "touch -d '1960-01-02 03:04:05' tree/lib/same; touch -d '2300-01-02 03:04:05' tree/etc/empty";
    assert!(Command::new("sh").args(["-c", line]).current_dir(desk.path("")).status().unwrap().success());
    desk.install(1, "unpacked");
    desk.good("unpack 1.sealift tar:os.tar --allow-unsigned");
    extracts(&desk, "tar -xpf ../os.tar", Times::All);
    extracts(&desk, "bsdtar -xpf ../os.tar", Times::All);
    // As a source, the archive gives the same tree, attributes included: both bundles are equal.
    desk.good("diff tar:os.tar 1.sealift --exit-code");
    desk.good("pack tar:os.tar -o again.sealift --name os --bundle-version 1");
    assert!(fs::read(desk.path("again.sealift")).unwrap() == fs::read(desk.path("1.sealift")).unwrap());
}

/// As `tar --acls` and bsdtar read them, and others as attributes.
#[test]
fn access_lists_are_kept_by_programs_that_extract_a_tar_archive() {
    let desk = Installed::new();
    let line = "setfacl -m u:1:r,g:2000:rw tree/etc/motd && setfacl -d -m u:12:rwx tree/lib";
    assert!(Command::new("sh").args(["-c", line]).current_dir(desk.path("")).status().unwrap().success());
    desk.pack(1);
    desk.good("unpack 1.sealift tar:os.tar --allow-unsigned");
    let access = |folder: &str| {
        let line = "getfacl -n -p etc/motd lib | grep -v '^# owner\\|^# group'";
        let done = Command::new("sh").args(["-c", line]).current_dir(desk.path(folder)).output().unwrap();
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    let expected = access("tree");
    assert!(expected.contains("user:1:r--") && expected.contains("default:user:12:rwx"), "{expected}");
    for program in ["tar --acls -xpf", "tar --acls --xattrs --xattrs-include=* -xpf", "bsdtar -xpf"] {
        fs::create_dir(desk.path("out")).unwrap();
        let line = format!("{program} ../os.tar");
        out(Command::new("sh").args(["-c", &line]).current_dir(desk.path("out")));
        assert_eq!(access("out"), expected, "{program}");
        fs::remove_dir_all(desk.path("out")).unwrap();
    }
}

#[test]
fn an_archive_goes_to_standard_output() {
    let desk = Installed::new();
    special(&desk);
    desk.pack(1);
    for format in ["tar", "cpio"] {
        desk.good(&format!("unpack 1.sealift {format}:file --allow-unsigned"));
        let done = desk.command(&format!("unpack 1.sealift {format}:- --allow-unsigned")).output().unwrap();
        assert!(done.status.success() && done.stdout == fs::read(desk.path("file")).unwrap(), "{format}");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(said.contains(&format!("{format}:-: written from 1.sealift")), "{said}");
        fs::remove_file(desk.path("file")).unwrap();
    }
    assert!(!desk.path("-").exists());
    let done = desk.command("unpack 1.sealift tar:- --allow-unsigned --json").output().unwrap();
    assert!(
        done.status.success()
            && String::from_utf8_lossy(&done.stderr).lines().last().unwrap().starts_with("{\"dry_run\":false,")
    );
    // Nothing is written of what turns out to be damaged.
    let mut bytes = fs::read(desk.path("1.sealift")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    desk.write("flipped.sealift", bytes);
    let done = desk.command("unpack flipped.sealift tar:- --allow-unsigned").output().unwrap();
    assert_eq!((done.status.code(), done.stdout.len()), (Some(1), 0));
}

/// sbuild creates a root in this way, as a user who cannot create the devices.
#[test]
fn what_is_left_out_of_a_root_by_name_is_left_out_of_a_tar_archive() {
    let desk = Installed::new();
    fs::create_dir(desk.path("tree/dev")).unwrap();
    desk.write("tree/dev/null", "");
    desk.write("tree/dev/other", "");
    fs::hard_link(desk.path("tree/etc/motd"), desk.path("tree/etc/second")).unwrap();
    desk.pack(1);
    desk.good("unpack 1.sealift tar:os.tar --allow-unsigned");
    fs::create_dir(desk.path("root")).unwrap();
    let mut tar = Command::new("tar");
    tar.args(["--exclude=./dev/null", "--directory", "root", "--extract", "--file", "os.tar"]);
    assert!(tar.current_dir(desk.path("")).status().unwrap().success());
    assert!(desk.path("root/dev/other").exists() && !desk.path("root/dev/null").exists());
    let inode = |name: &str| fs::metadata(desk.path("root").join(name)).unwrap().ino();
    assert_eq!(inode("etc/motd"), inode("etc/second"));
}

#[test]
fn a_tar_archive_leaves_out_sockets() {
    let desk = Installed::new();
    let _bound = UnixListener::bind(desk.path("tree/etc/socket")).unwrap();
    desk.pack(1);
    let said = desk.good("unpack 1.sealift tar:os.tar --allow-unsigned");
    assert!(said.contains("1 socket left out: tar archives cannot hold them"));
    let done = Command::new("tar").args(["-tf", "os.tar"]).current_dir(desk.path("")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&done.stdout), "./\n./etc/\n./etc/issue\n./etc/motd\n./lib/\n./lib/lib.so\n");
}

#[test]
fn what_a_cpio_archive_cannot_hold_is_said() {
    let desk = Installed::new();
    rustix::fs::setxattr(desk.path("tree/etc/motd"), "user.note", b"x", rustix::fs::XattrFlags::empty()).unwrap();
    desk.pack(1);
    let said = desk.good("unpack 1.sealift cpio:os.cpio --allow-unsigned");
    assert!(said.contains("1 extended attribute left out: cpio archives cannot hold them"));
    let line = "touch -d 1969-01-01 tree/etc/motd";
    assert!(Command::new("sh").args(["-c", line]).current_dir(desk.path("")).status().unwrap().success());
    desk.pack(2);
    desk.refused(
        "unpack 2.sealift cpio:two.cpio --allow-unsigned",
        2,
        "etc/motd: cpio archives cannot hold times before 1970 or after 2106",
    );
    assert!(!desk.path("two.cpio").exists());
    assert!(!desk.names("").iter().any(|name| name.ends_with("partial")));
}

#[test]
fn sockets_are_members_of_a_cpio_archive() {
    let desk = Installed::new();
    let _bound = UnixListener::bind(desk.path("tree/etc/socket")).unwrap();
    desk.pack(1);
    desk.good("unpack 1.sealift cpio:os.cpio --allow-unsigned");
    let done =
        Command::new("cpio").args(["--quiet", "-tv", "-F", "os.cpio"]).current_dir(desk.path("")).output().unwrap();
    let list = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(list.lines().any(|line| line.starts_with('s') && line.ends_with("etc/socket")), "{list}");
}

#[test]
fn a_delta_is_written_as_the_full_bundle() {
    let desk = versions();
    desk.good("unpack 2.sealift cpio:full.cpio --allow-unsigned");
    for base in ["1.sealift", "one"] {
        desk.good(&format!("unpack delta.sealift cpio:delta.cpio --base {base} --allow-unsigned"));
        assert!(fs::read(desk.path("full.cpio")).unwrap() == fs::read(desk.path("delta.cpio")).unwrap(), "{base}");
        fs::remove_file(desk.path("delta.cpio")).unwrap();
    }
    desk.refused("unpack delta.sealift cpio:delta.cpio --allow-unsigned", 4, "");
    assert!(!desk.path("delta.cpio").exists());
}

#[test]
fn a_file_is_not_replaced_and_nothing_half_written() {
    let desk = Installed::new();
    desk.pack(1);
    desk.write("os.cpio", "mine");
    desk.refused(
        "unpack 1.sealift cpio:os.cpio --allow-unsigned",
        2,
        "os.cpio already exists: remove it, or give another name",
    );
    assert_eq!(fs::read(desk.path("os.cpio")).unwrap(), b"mine");
    desk.says("unpack 1.sealift cpio:new.cpio --allow-unsigned --dry-run", "would be written");
    assert!(!desk.path("new.cpio").exists());
    // The policy is the same as for all content: without trust, nothing is written.
    let (status, said) = desk.run("unpack 1.sealift cpio:new.cpio");
    assert!(status == Some(3) && !desk.path("new.cpio").exists(), "{said}");
    let mut bytes = fs::read(desk.path("1.sealift")).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    desk.write("flipped.sealift", bytes);
    let (status, said) = desk.run("unpack flipped.sealift cpio:new.cpio --allow-unsigned");
    assert!(status == Some(1) && !desk.path("new.cpio").exists(), "{said}");
    // The next run removes what a killed run left, and so does `clean`.
    desk.write(".new.cpio.1.sealift-partial", "left");
    desk.good("unpack 1.sealift cpio:new.cpio --allow-unsigned --quiet");
    assert!(!desk.path(".new.cpio.1.sealift-partial").exists());
    assert_eq!(fs::metadata(desk.path("new.cpio")).unwrap().mode() & 0o777, 0o644);
    for option in ["--update", "--delete", "--path=etc", "--rehash", "--seal=try", "--mirror"] {
        desk.refused(&format!("unpack 1.sealift cpio:more.cpio --allow-unsigned {option}"), 2, "");
    }
}
