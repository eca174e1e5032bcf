//! The memory of a mount that is not read.

use std::fs;
use std::time::{Duration, Instant};

use sealift::{Input, Limits};
use sealift_desk::noise;

use crate::mounted::{Mounted, can_mount, desk, mount, pack};

const CACHE: u64 = 16 << 20;
const ROOM: u64 = 40 << 20;

#[test]
fn an_idle_mount_takes_little_besides_index_and_cache() {
    let Some(desk) = can_mount().then(desk) else { return };
    for number in 0..96 {
        desk.write(&format!("tree/{number}"), noise(number, 1_000_000));
    }
    pack(&desk, "os.sealift", 7, "tree");
    let bundle = Input::open(&desk.path("os.sealift")).unwrap().open_bundle(Limits::default()).unwrap();
    let index = bundle.head.chunks_at();
    let mounted = mount(&desk, &format!("os.sealift --cache {CACHE} --jobs 8"));
    std::thread::scope(|scope| {
        for reader in 0..8 {
            let desk = &desk;
            scope.spawn(move || {
                for number in (0..96).map(|step| (step * 5 + reader * 12) % 96) {
                    assert_eq!(desk.read(&format!("mnt/{number}")).len(), 1_000_000);
                }
            });
        }
    });
    becomes_small(&mounted, index);
    assert!(mounted.memory() > CACHE, "the cache is in use");
    // It continues, with new buffers.
    fs::read(desk.path("mnt/95")).unwrap();
    mounted.assert_no_faults();
}

/// Chunks of the base are in the cache as well, and each thread has the buffers for one.
#[test]
fn a_delta_takes_as_little() {
    let Some(desk) = can_mount().then(desk) else { return };
    for number in 0..1500 {
        let content = noise(number, 20_000).iter().map(|byte| byte & 15).collect::<Vec<_>>();
        desk.write(&format!("tree/{number}"), content);
    }
    pack(&desk, "os.sealift", 7, "tree --level 3");
    desk.write("tree/new", "new");
    pack(&desk, "next.sealift", 8, "tree --level 3 --base os.sealift --trust signers");
    let mounted = mount(&desk, &format!("os.sealift next.sealift --cache {CACHE} --jobs 8"));
    for number in 0..1500 {
        assert_eq!(desk.read(&format!("mnt/{number}")).len(), 20_000);
    }
    assert!(mounted.memory() < CACHE + 3 * ROOM, "{} bytes", mounted.memory());
    becomes_small(&mounted, 1 << 20);
    mounted.assert_no_faults();
}

/// Two of them are kept while somebody reads, since each holds what is read next.
#[test]
fn chunks_above_the_cache_are_dropped_when_nobody_reads() {
    let Some(desk) = can_mount().then(desk) else { return };
    for number in 0..3 {
        desk.write(&format!("tree/{number}"), noise(number, 32 << 20));
    }
    pack(&desk, "os.sealift", 7, "tree --level 1 --chunk-size 32MiB");
    let mounted = mount(&desk, "os.sealift --cache 8MiB --jobs 1");
    for number in 0..3 {
        assert_eq!(desk.read(&format!("mnt/{number}")).len(), 32 << 20);
    }
    becomes_small(&mounted, 1 << 20);
    assert_eq!(desk.read("mnt/0").len(), 32 << 20);
    mounted.assert_no_faults();
}

/// Waits until it has noticed that it is idle, after two seconds.
#[track_caller]
fn becomes_small(mounted: &Mounted, index: u64) {
    let start = Instant::now();
    while mounted.memory() > index + CACHE + ROOM {
        assert!(start.elapsed() < Duration::from_secs(30), "{} bytes", mounted.memory());
        std::thread::sleep(Duration::from_millis(50));
    }
}
