//! Damaged chunks give an I/O error, and nothing else does.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use sealift_desk::{Desk, has, noise};

use crate::served::{Serving, desk, nbdsh, pack, serve};

const LEN: usize = 2 << 20;
/// The number of bytes of one read.
const PART: usize = 64 << 10;

fn image() -> Desk {
    let desk = desk();
    desk.write("disk.img", noise(1, LEN));
    pack(&desk, "disk.img", "os.sealift");
    desk
}

/// Reads all parts, in one connection, and returns those that failed. The others must have the right content.
#[track_caller]
fn failed_parts(desk: &Desk, serving: &Serving) -> Vec<usize> {
    let script = format!(
        "
import errno
image = open('disk.img', 'rb').read()
for at in range(0, {LEN}, {PART}):
    try:
        assert h.pread({PART}, at) == image[at:at + {PART}], at
    except nbd.Error as error:
        assert error.errnum == errno.EIO, error
        print(at)
"
    );
    nbdsh(desk, &serving.uri(), &script).lines().map(|line| line.parse().unwrap()).collect()
}

#[test]
fn a_flipped_bit_is_an_error_for_its_chunk_and_is_told_once() {
    let Some(desk) = has(&["nbdkit", "nbdsh"]).then(image) else { return };
    let bytes = desk.read("os.sealift");
    let place = bytes.len() - 600_000;
    let file = File::options().write(true).open(desk.path("os.sealift")).unwrap();
    file.write_all_at(&[bytes[place] ^ 1], u64::try_from(place).unwrap()).unwrap();
    let serving = serve(&desk, &[], &["os.sealift"]);
    let failed = failed_parts(&desk, &serving);
    // A chunk has two parts.
    let [first, second] = failed[..] else { panic!("{failed:?}") };
    assert!(first % (2 * PART) == 0 && second == first + PART, "{failed:?}");
    assert!((first..first + 2 * PART).contains(&(LEN - 600_000)), "{failed:?}");
    assert_eq!(failed_parts(&desk, &serving), failed);
    let said = serving.end();
    let [fault] = said.lines().collect::<Vec<_>>()[..] else { panic!("{said}") };
    assert!(fault.contains("os.sealift: chunk ") && fault.contains(", at byte "), "{fault}");
    let at: usize = fault.split(", at byte ").nth(1).and_then(|rest| rest.split(':').next()).unwrap().parse().unwrap();
    assert!((at..at + 2 * PART).contains(&place), "{fault}");
}

#[test]
fn a_medium_that_comes_back_is_read_again() {
    let Some(desk) = has(&["nbdkit", "nbdsh"]).then(image) else { return };
    let bytes = desk.read("os.sealift");
    let serving = serve(&desk, &[], &["os.sealift", "cache=0"]);
    assert_eq!(failed_parts(&desk, &serving), [0; 0]);
    let file = File::options().write(true).open(desk.path("os.sealift")).unwrap();
    file.set_len(u64::try_from(bytes.len() - LEN / 2).unwrap()).unwrap();
    let failed = failed_parts(&desk, &serving);
    assert_eq!(failed, (LEN / 2..LEN).step_by(PART).collect::<Vec<_>>());
    file.write_all_at(&bytes, 0).unwrap();
    assert_eq!(failed_parts(&desk, &serving), [0; 0]);
    let said = serving.end();
    assert!(!said.is_empty() && said.lines().all(|line| line.contains("os.sealift: chunk ")), "{said}");
}
