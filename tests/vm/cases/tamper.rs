//! Tampering with the disk below the file system.

use std::fs::{self, File};
use std::os::unix::fs::FileExt as _;

use crate::disk::{Disk, PAGE};

/// EIO
const IO_ERROR: i32 = 5;

pub(crate) fn flipped(desk: &Disk) {
    let content = desk.write_noise("tampered", 1004, 300_000);
    desk.good("seal tampered");
    let measured = desk.good("measure tampered");
    let page = &content[10 * PAGE..11 * PAGE];
    desk.flip(page);

    let file = File::open(desk.path("tampered")).expect("it can be opened");
    let mut read = vec![0; PAGE];
    for (number, expected) in content.chunks(PAGE).enumerate() {
        let at = u64::try_from(number * PAGE).expect("it is small");
        let read = file.read_exact_at(&mut read[..expected.len()], at);
        match number {
            10 => assert_eq!(read.expect_err("the page is changed").raw_os_error(), Some(IO_ERROR)),
            _ => read.expect("other pages are as they were"),
        }
    }
    drop(file);
    // The kernel still reports the expected digest; reading fails.
    assert_eq!(desk.good("measure tampered"), measured);
    desk.bad("digest tampered", 2, "os error 5");

    let mut changed = page.to_vec();
    changed[100] ^= 1;
    desk.flip(&changed);
    assert_eq!(fs::read(desk.path("tampered")).expect("it is whole again"), content);

    // The same in an unsealed file causes no error.
    let content = desk.write_noise("plain", 1005, 20_000);
    desk.flip(&content[PAGE..2 * PAGE]);
    assert!(fs::read(desk.path("plain")).expect("it is read") != content, "the flip did not come through");
}
