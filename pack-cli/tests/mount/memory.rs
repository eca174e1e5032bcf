//! The memory of a mount that is not read.

use std::fs;
use std::time::{Duration, Instant};

use sealift::{Input, Limits};

use crate::desk::{Desk, can_mount, noise};

const CACHE: u64 = 16 << 20;
const ROOM: u64 = 40 << 20;

#[test]
fn an_idle_mount_takes_little_besides_index_and_cache() {
    if !can_mount() {
        return;
    }
    let desk = Desk::new();
    for number in 0..96 {
        desk.write(&format!("tree/{number}"), noise(number, 1_000_000));
    }
    desk.pack("os.sealift", 7, "tree");
    let bundle = Input::open(&desk.path("os.sealift")).unwrap().open_bundle(Limits::default()).unwrap();
    let index = bundle.head.chunks_at();
    let mounted = desk.mount(&format!("os.sealift --cache {CACHE} --jobs 8"));
    std::thread::scope(|scope| {
        for reader in 0..8 {
            let desk = &desk;
            scope.spawn(move || {
                for number in (0..96).map(|step| (step * 5 + reader * 12) % 96) {
                    assert_eq!(desk.read(&format!("mnt/{number}")).unwrap().len(), 1_000_000);
                }
            });
        }
    });
    let start = Instant::now();
    // After two seconds, it notices that it is idle.
    while mounted.memory() > index + CACHE + ROOM {
        assert!(start.elapsed() < Duration::from_secs(30), "{} bytes", mounted.memory());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(mounted.memory() > CACHE, "the cache is in use");
    // It continues, with new buffers.
    fs::read(desk.path("mnt/95")).unwrap();
    mounted.assert_no_faults();
}
