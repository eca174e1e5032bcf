//! Operations that the kernel refuses, and the messages.

use std::fs;

use crate::disk::Disk;

pub(crate) fn refusals(desk: &Disk) {
    desk.write_noise("refused", 1, 5000);
    desk.bad("seal --block-size 128 refused", 2, "does not support blocks of 128 bytes");
    desk.bad("measure .", 2, "not a regular file");
    // A file system without fs-verity is detected before anything is sealed.
    fs::write("/tmp/file", "content").expect("a file");
    let line = format!("seal {} /tmp", desk.path("refused").display());
    desk.bad(&line, 2, "/tmp: its file system does not support fs-verity");
    desk.bad("measure refused", 1, "not sealed");
    desk.bad("measure /tmp/file", 2, "does not support fs-verity");
}
