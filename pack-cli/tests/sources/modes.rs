//! `pack --mode`: a checkout has the same permission bits whatever umask it was made under.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use rustix::fs::{XattrFlags, lsetxattr};
use sealift_desk::skipped;

/// Creates a checkout as git does under this umask.
fn checkout(at: &Path, umask: u32) {
    let set = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode & !umask)).expect("it is ours");
    };
    for (name, mode) in [("run", 0o777), ("notes", 0o666)] {
        fs::create_dir_all(at.join("d")).expect("it is ours");
        fs::write(at.join("d").join(name), name).expect("it is ours");
        set(&at.join("d").join(name), mode);
    }
    std::os::unix::fs::symlink("d/notes", at.join("link")).expect("it is ours");
    set(&at.join("d"), 0o777);
    set(at, 0o777);
}

/// Runs the command line, and returns its exit status.
fn run(folder: &Path, line: &str) -> Option<i32> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sealift"));
    command
        .args(line.split(' '))
        .current_dir(folder)
        .env("SOURCE_DATE_EPOCH", "1700000000")
        .status()
        .expect("it is ours")
        .code()
}

#[test]
fn a_checkout_is_the_same_under_any_umask() {
    let folder = tempfile::tempdir().expect("it is ours");
    let folder = folder.path();
    let pack = "--name os --bundle-version 1 -q --clamp-mtime --mode";
    for (name, umask) in [("a", 0o022), ("b", 0o002), ("c", 0o077)] {
        checkout(&folder.join(name), umask);
        assert_eq!(run(folder, &format!("pack {name} -o {name}.sealift {pack} u=rwX,go=rX")), Some(0));
        assert_eq!(run(folder, &format!("pack {name} -o {name}-go.sealift {pack} go-w")), Some(0));
    }
    let diff = |a: &str, b: &str| run(folder, &format!("diff {a}.sealift {b}.sealift --exit-code -q --ignore mtime"));
    assert_eq!((diff("a", "b"), diff("a", "c"), diff("a", "a-go")), (Some(0), Some(0), Some(0)));
    assert_eq!((diff("a-go", "b-go"), diff("a-go", "c-go")), (Some(0), Some(1)));
    assert_eq!(run(folder, &format!("pack a -o x.sealift {pack} 644")), Some(2));
}

/// The bits of a file with an access control list are the list's: to change them alone would make another list of it.
#[test]
fn an_access_control_list_keeps_its_bits() {
    let folder = tempfile::tempdir().expect("it is ours");
    let folder = folder.path();
    checkout(&folder.join("a"), 0o022);
    let entries: [(u16, u16, u32); 5] =
        [(1, 6, u32::MAX), (2, 6, 42), (4, 4, u32::MAX), (0x10, 6, u32::MAX), (0x20, 0, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, bits, id) in entries {
        list.extend([tag.to_le_bytes(), bits.to_le_bytes()].as_flattened());
        list.extend(id.to_le_bytes());
    }
    if lsetxattr(folder.join("a/d/notes"), "system.posix_acl_access", &list, XattrFlags::empty()).is_err() {
        return skipped("needs a file system with access control lists");
    }
    let pack = "pack a --name os --bundle-version 1 -q -o";
    assert_eq!(run(folder, &format!("{pack} 1.sealift --mode go-rw")), Some(0));
    assert_eq!(run(folder, "unpack 1.sealift b --allow-unsigned --state state -q"), Some(0));
    assert_eq!(run(folder, "audit b --allow-unsigned --ignore privileged --state state -q"), Some(0));
    assert_eq!(
        fs::metadata(folder.join("b/d/notes")).expect("it is ours").permissions().mode() & 0o777,
        0o660,
        "as the list says"
    );
}
