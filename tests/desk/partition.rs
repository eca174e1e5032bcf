//! Partitions of block devices, without a partition table.

use std::process::Command;

use crate::told;

/// `BLKPG` of linux/blkpg.h: addpart(8) does this too, but Debian 13 has it no longer, and partx(8) reads a table.
const BLKPG: &str = "
import ctypes, fcntl, os, struct, sys
operation, device, number, start, sectors = sys.argv[1:]
part = ctypes.create_string_buffer(struct.pack('=qqi132x', int(start) * 512, int(sectors) * 512, int(number)), 152)
argument = struct.pack('@iiiP', int(operation), 0, 152, ctypes.addressof(part))
fcntl.ioctl(os.open(device, os.O_RDONLY), 0x1269, argument)
";

/// Adds a partition to a device. Returns the exit status and what was said: a kernel may lack partitions of loop devices.
pub fn add_partition(device: &str, number: u32, start: u64, sectors: u64) -> (Option<i32>, String) {
    blkpg(1, device, number, start, sectors)
}

/// Removes a partition from a device.
pub fn remove_partition(device: &str, number: u32) -> (Option<i32>, String) {
    blkpg(2, device, number, 0, 0)
}

fn blkpg(operation: u32, device: &str, number: u32, start: u64, sectors: u64) -> (Option<i32>, String) {
    let numbers = [u64::from(number), start, sectors].map(|number| number.to_string());
    told(Command::new("python3").args(["-c", BLKPG, &operation.to_string(), device]).args(numbers))
}
