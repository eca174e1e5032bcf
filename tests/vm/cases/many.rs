//! A hundred thousand sealed files, none of which an audit reads.

use std::fs::{self, File};
use std::path::Path;
use std::time::{Duration, Instant};

use sealift_desk::noise;
use sealift_verify::fsverity;

use super::unpack::ANYBODY;
use crate::disk::Disk;

const FOLDERS: u64 = 200;
/// Files in each folder.
const FILES: u64 = 500;

pub(crate) fn audited(desk: &Disk) {
    for folder in 0..FOLDERS {
        let path = desk.path("tree").join(folder.to_string());
        fs::create_dir_all(&path).expect("a folder");
        for file in 0..FILES {
            fs::write(path.join(file.to_string()), noise(folder * FILES + file, 100)).expect("a file");
        }
    }
    desk.good("pack tree -o tree.sealift --name tree --bundle-version 1 --level 1 --quiet");
    fs::remove_dir_all(desk.path("tree")).expect("removed");
    let sealing = timed(|| desk.good(&format!("unpack tree.sealift sealed --seal require {ANYBODY}"))).0;
    println!("vm: unpacked and sealed in {:.1} s", sealing.as_secs_f64());
    for state in ["nothing", "everything"] {
        let forget = || {
            if state == "nothing" {
                desk.drop_caches();
            }
        };
        forget();
        let (audit, said) = timed(|| desk.good(&format!("audit sealed {ANYBODY}")));
        assert!(said.contains("asking the kernel") && !said.contains("hashed"), "{said}");
        forget();
        let (bare, count) = timed(|| measured(&desk.path("sealed")));
        assert_eq!(count, FOLDERS * FILES);
        let (audit, bare) = (audit.as_secs_f64(), bare.as_secs_f64());
        println!(
            "vm: {state} in memory: {count} files audited in {audit:.1} s; only opened and the kernel asked, in {bare:.1} s"
        );
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let done = work();
    (start.elapsed(), done)
}

/// Reads the kernel's digest of each file below a folder, and returns the number of files.
fn measured(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
    let of = |entry: fs::DirEntry| match entry.file_type().expect("it has one").is_dir() {
        true => measured(&entry.path()),
        false => {
            fsverity::measure(File::open(entry.path()).expect("it can be opened")).expect("it is sealed");
            1
        }
    };
    entries.map(of).sum()
}
