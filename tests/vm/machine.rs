//! The setup and shutdown of an operating system.

use std::ffi::CStr;
use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, mount};
use rustix::system::{RebootCommand, finit_module, reboot};

/// Mounts the kernel's virtual file systems, loads drivers, and redirects standard output to the second serial port; the first has the kernel's
/// messages.
pub(crate) fn start() {
    for (kind, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/tmp")] {
        fs::create_dir_all(at).expect("a new directory");
        mount(kind, at, kind, MountFlags::empty(), None::<&CStr>).unwrap_or_else(|error| panic!("{at}: {error}"));
    }
    let out = File::options().write(true).open("/dev/ttyS1").expect("a second serial port");
    rustix::stdio::dup2_stdout(&out).expect("standard output");
    rustix::stdio::dup2_stderr(&out).expect("standard error");
    // Their names begin with numbers that give the load order.
    let mut modules: Vec<_> =
        fs::read_dir("/modules").expect("drivers").map(|entry| entry.expect("one").path()).collect();
    modules.sort();
    for module in modules {
        let file = File::open(&module).expect("a driver");
        finit_module(&file, c"", 0).unwrap_or_else(|error| panic!("{}: {error}", module.display()));
    }
}

/// Waits until the driver has detected a disk.
pub(crate) fn wait_for(device: &Path) {
    let start = Instant::now();
    while !device.exists() {
        assert!(start.elapsed() < Duration::from_secs(10), "{} does not appear", device.display());
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(crate) fn turn_off() -> ! {
    rustix::fs::sync();
    let error = reboot(RebootCommand::PowerOff);
    panic!("the machine is still on: {error:?}");
}
