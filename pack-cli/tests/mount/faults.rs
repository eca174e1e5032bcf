//! Damaged chunks give an I/O error, and nothing else does.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};
use rustix::process::Signal;
use sealift_desk::{Desk, noise};

use crate::mounted::{Mounted, can_mount, desk, mount, mount_at, pack};

/// Packs a bundle of several chunks from the tree `tree` with files `0` to `19`.
fn several_chunks() -> Desk {
    let desk = desk();
    for number in 0..20 {
        desk.write(&format!("tree/{number}"), noise(number, 30_000));
    }
    desk.write("tree/large", noise(20, 900_000));
    pack(&desk, "os.sealift", 7, "tree --chunk-size 128KiB");
    desk
}

/// Cuts a bundle to this length. Returns it, open for writing.
fn cut(desk: &Desk, bundle: &str, len: usize) -> File {
    let file = File::options().write(true).open(desk.path(bundle)).unwrap();
    file.set_len(u64::try_from(len).unwrap()).unwrap();
    file
}

fn is_io_error(read: &io::Result<Vec<u8>>) -> bool {
    read.as_ref().is_err_and(|error| error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()))
}

#[test]
fn a_flipped_bit_is_an_error_for_what_lies_in_its_chunk() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    let bytes = desk.read("os.sealift");
    let place = bytes.len() - 200_000;
    let file = File::options().write(true).open(desk.path("os.sealift")).unwrap();
    file.write_all_at(&[bytes[place] ^ 1], u64::try_from(place).unwrap()).unwrap();
    let mounted = mount(&desk, "os.sealift");
    let mut damaged = 0;
    for _ in 0..2 {
        for name in (0..20).map(|number| number.to_string()).chain(["large".into()]) {
            let read = fs::read(desk.path(&format!("mnt/{name}")));
            if is_io_error(&read) {
                damaged += 1;
            } else {
                assert!(read.unwrap() == desk.read(&format!("tree/{name}")), "{name}");
            }
        }
    }
    assert!((2..40).contains(&damaged), "{damaged}");
    let faults = mounted.faults();
    let [fault] = &faults[..] else { panic!("{faults:?}") };
    assert!(fault.starts_with("sealift: os.sealift: chunk ") && fault.contains(", at byte "), "{fault}");
    let at = fault.split(", at byte ").nth(1).and_then(|rest| rest.split(':').next()).unwrap();
    let at: usize = at.parse().unwrap();
    assert!(at <= place && place < at + (256 << 10), "{fault}");
    assert!(fault.contains(&format!(", at byte {at}: the bytes do not match their digest")), "{fault}");
}

#[test]
fn a_medium_that_comes_back_is_read_again() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    let bytes = desk.read("os.sealift");
    let mounted = mount(&desk, "os.sealift");
    let file = cut(&desk, "os.sealift", bytes.len() - 300_000);
    let names: Vec<String> = (0..20).map(|number| number.to_string()).chain(["large".into()]).collect();
    let reads: Vec<_> = names.iter().map(|name| fs::read(desk.path(&format!("mnt/{name}")))).collect();
    let failed: Vec<&String> =
        names.iter().zip(&reads).filter(|(_, read)| is_io_error(read)).map(|(name, _)| name).collect();
    assert!((1..names.len()).contains(&failed.len()), "{failed:?}");
    assert!(fs::metadata(desk.path("mnt/large")).is_ok());
    file.write_all_at(&bytes, 0).unwrap();
    for name in &names {
        assert!(desk.read(&format!("mnt/{name}")) == desk.read(&format!("tree/{name}")), "{name}");
    }
    let faults = mounted.faults();
    let cut = format!("the bundle is truncated: {} of {} bytes", bytes.len() - 300_000, bytes.len());
    assert!(!faults.is_empty() && faults.iter().all(|fault| fault.contains("os.sealift: chunk ")), "{faults:?}");
    assert!(faults[0].contains(&cut), "{faults:?}");
}

/// A start reads the hot set and nothing after it: reading ahead there would take time on a slow device.
#[test]
fn nothing_is_read_ahead_behind_the_hot_set() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    let names: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    desk.write("order", names.join("\n"));
    pack(&desk, "ordered.sealift", 7, "tree --chunk-size 128KiB --order order");
    let len = desk.read("ordered.sealift").len();
    let mounted = mount(&desk, "ordered.sealift");
    cut(&desk, "ordered.sealift", len - 880_000);
    for name in &names {
        assert!(desk.read(&format!("mnt/{name}")) == desk.read(&format!("tree/{name}")), "{name}");
    }
    // Read-ahead would have happened by now.
    std::thread::sleep(Duration::from_millis(300));
    assert!(!mounted.said().contains("chunk"), "{}", mounted.said());
    assert!(is_io_error(&fs::read(desk.path("mnt/large"))));
    assert_eq!(mounted.faults().len(), 1);
}

/// One step may be accidental. After two, the following chunks are read ahead; here they are missing.
#[test]
fn what_follows_is_read_ahead_once_it_is_read_on() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    let mut names: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    names.sort_unstable();
    let len = desk.read("os.sealift").len();
    let mounted = mount(&desk, "os.sealift --jobs 2");
    cut(&desk, "os.sealift", len - 880_000);
    let read = |names: &[String]| {
        for name in names {
            assert!(desk.read(&format!("mnt/{name}")) == desk.read(&format!("tree/{name}")), "{name}");
        }
    };
    // The first 17 files are in three chunks, and the missing part begins with the fourth.
    read(&names[..10]);
    std::thread::sleep(Duration::from_millis(300));
    assert!(!mounted.said().contains("chunk"), "{}", mounted.said());
    read(&names[10..17]);
    let since = Instant::now();
    while !mounted.said().contains("chunk") {
        assert!(since.elapsed() < Duration::from_secs(20), "nothing was read ahead");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Contents that were read are still available. Reads from the stick fail until it is back, and the first failure is reported.
#[test]
fn a_stick_that_is_pulled_and_comes_back_is_read_again() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    let stick = on_a_stick(&desk);
    let mounted = mount(&desk, "stick/os.sealift");
    let is_read = |name: &str| desk.read(&format!("mnt/{name}")) == desk.read(&format!("tree/{name}"));
    assert!(is_read("0"));
    stick.assert_no_faults();
    for _ in 0..2 {
        assert!(is_io_error(&fs::read(desk.path("mnt/19"))) && is_io_error(&fs::read(desk.path("mnt/large"))));
        assert!(is_read("0") && fs::metadata(desk.path("mnt/19")).unwrap().len() == 30_000);
    }
    let stick = mount_at(&desk, "stick", "stick.sealift");
    desk.assert_same("tree", "mnt");
    assert!((0..20).all(|number| is_read(&number.to_string())) && is_read("large"));
    let faults = mounted.faults();
    assert!(faults.len() == 1 && faults[0].starts_with("sealift: stick/os.sealift: chunk "), "{faults:?}");
    stick.assert_no_faults();
}

/// Mounts a stick on which the bundle is.
fn on_a_stick(desk: &Desk) -> Mounted {
    desk.write("files/os.sealift", desk.read("os.sealift"));
    pack(desk, "stick.sealift", 1, "files");
    fs::create_dir(desk.path("stick")).unwrap();
    mount_at(desk, "stick", "stick.sealift")
}

/// Mounts a bundle on a stick that stops answering once it is mounted.
fn on_a_stick_that_hangs(desk: &Desk, options: &str) -> (Mounted, Mounted) {
    let stick = on_a_stick(desk);
    let bundle = File::open(desk.path("stick/os.sealift")).unwrap();
    let mounted = mount(desk, &format!("stick/os.sealift --jobs 1{options}"));
    stick.signal(Signal::STOP);
    // The kernel may have read all of it ahead.
    std::thread::sleep(Duration::from_millis(100));
    fadvise(&bundle, 0, None, Advice::DontNeed).unwrap();
    (stick, mounted)
}

/// However many reads wait for the medium, names and attributes come from the index.
#[test]
fn a_medium_that_hangs_keeps_only_reads_waiting() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    let (stick, mounted) = on_a_stick_that_hangs(&desk, "");
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..10)
            .map(|number| {
                let desk = &desk;
                scope.spawn(move || desk.read(&format!("mnt/{number}")) == noise(number, 30_000))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        let (sender, looked) = mpsc::channel();
        let path = desk.path("mnt/15");
        scope.spawn(move || sender.send(fs::metadata(path).unwrap().len()));
        let looked = looked.recv_timeout(Duration::from_secs(10));
        // Some of the first chunks were read together with the index.
        let waiting = readers.iter().filter(|reader| !reader.is_finished()).count();
        stick.signal(Signal::CONT);
        assert_eq!(looked, Ok(30_000));
        assert!(waiting > 3, "{waiting}");
        assert!(readers.into_iter().all(|reader| reader.join().unwrap()));
    });
    mounted.assert_no_faults();
}

#[test]
fn a_mount_ends_while_reads_wait_for_its_medium() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    let (_stick, mounted) = on_a_stick_that_hangs(&desk, "");
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..10)
            .map(|number| {
                let desk = &desk;
                scope.spawn(move || fs::read(desk.path(&format!("mnt/{number}"))))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(300));
        mounted.signal(Signal::TERM);
        mounted.ends_well();
        assert!(readers.into_iter().all(|reader| reader.join().unwrap().is_err()));
    });
}

/// Nobody uses the mount any more, but the kernel has asked it to read ahead.
#[test]
fn a_mount_ends_while_it_reads_ahead_from_a_medium_that_hangs() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    let (_stick, mounted) = on_a_stick_that_hangs(&desk, " --record start.order");
    let large = File::open(desk.path("mnt/large")).unwrap();
    fadvise(&large, 0, None, Advice::WillNeed).unwrap();
    drop(large);
    std::thread::sleep(Duration::from_millis(300));
    mounted.signal(Signal::TERM);
    mounted.ends_well();
    assert_eq!(desk.read("start.order"), b"# sealift order 1\n");
}

/// The stick itself is a mount: when it ends, files that are open on it cannot be read any more.
#[test]
fn a_base_whose_medium_comes_back_is_read_again() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    desk.write("tree/new", "new");
    pack(&desk, "next.sealift", 8, "tree --base os.sealift --trust signers");
    let stick = on_a_stick(&desk);
    let mounted = mount(&desk, "stick/os.sealift next.sealift");
    stick.assert_no_faults();
    let names: Vec<String> = (0..20).map(|number| number.to_string()).chain(["large".into()]).collect();
    let failed = names.iter().filter(|name| is_io_error(&fs::read(desk.path(&format!("mnt/{name}"))))).count();
    assert!(failed > 0);
    assert_eq!(desk.read("mnt/new"), b"new");
    let stick = mount_at(&desk, "stick", "stick.sealift");
    desk.assert_same("tree", "mnt");
    for name in &names {
        assert!(desk.read(&format!("mnt/{name}")) == desk.read(&format!("tree/{name}")), "{name}");
    }
    let faults = mounted.faults();
    assert!(!faults.is_empty() && faults.iter().all(|fault| fault.contains("stick/os.sealift")), "{faults:?}");
    stick.assert_no_faults();
}

/// A base that is a directory belongs to others, who go on using it.
#[test]
fn what_changes_in_a_base_is_an_error() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    desk.write("tree/huge", noise(21, 3_000_000));
    desk.write("tree/other", noise(22, 3_000_000));
    pack(&desk, "os.sealift", 7, "tree");
    desk.good("unpack os.sealift base --trust signers");
    desk.write("tree/new", "new");
    pack(&desk, "next.sealift", 8, "tree --base os.sealift --trust signers");
    let mounted = mount(&desk, "next.sealift --base base");
    let change = |name: &str| {
        let mut start = [0; 10];
        File::open(desk.path(&format!("mnt/{name}"))).unwrap().read_exact_at(&mut start, 0).unwrap();
        assert_eq!(start[..], desk.read(&format!("tree/{name}"))[..10]);
        let file = File::options().write(true).open(desk.path(&format!("base/{name}"))).unwrap();
        file.write_all_at(b"changed", 2_500_000).unwrap();
        let mut changed = [0; 7];
        let read = File::open(desk.path(&format!("mnt/{name}"))).unwrap().read_exact_at(&mut changed, 2_500_000);
        assert!(is_io_error(&read.map(|()| changed.to_vec())), "{name}: {changed:?}");
    };
    change("huge");
    change("other");
    assert!(desk.read("mnt/large") == desk.read("tree/large"));
    let faults = mounted.faults();
    let is_of = |fault: &String, name| fault.contains(&format!("base/{name}")) && fault.contains("it was changed");
    assert!(faults.len() == 2 && is_of(&faults[0], "huge") && is_of(&faults[1], "other"), "{faults:?}");
}

#[test]
fn damage_in_a_base_is_told_once_for_its_chunk() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    desk.write("tree/new", "new");
    pack(&desk, "next.sealift", 8, "tree --base os.sealift --trust signers");
    let bytes = desk.read("os.sealift");
    // In files of 30,000 bytes, of which a chunk has several.
    let place = bytes.len() - 1_000_000;
    let file = File::options().write(true).open(desk.path("os.sealift")).unwrap();
    file.write_all_at(&[bytes[place] ^ 1], u64::try_from(place).unwrap()).unwrap();
    let mounted = mount(&desk, "os.sealift next.sealift");
    let names = (0..20).map(|number| number.to_string()).chain(["large".into()]);
    let damaged = names.filter(|name| is_io_error(&fs::read(desk.path(&format!("mnt/{name}"))))).count();
    assert!((2..20).contains(&damaged), "{damaged}");
    assert_chunk_of_base(&mounted.faults(), place);
}

/// The prefix of a chunk is read from a base, by any thread.
#[test]
fn damage_in_a_prefix_is_told_once_for_the_chunk_of_the_base() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    for number in 0..5 {
        let mut changed = noise(number, 30_000);
        changed[15_000] ^= 1;
        desk.write(&format!("tree/{number}"), changed);
    }
    pack(&desk, "next.sealift", 8, "tree --base os.sealift --trust signers");
    assert!(desk.read("next.sealift").len() < 20_000);
    let bytes = desk.read("os.sealift");
    // Noise is stored as it is.
    let content = noise(2, 30_000);
    let place = bytes.windows(100).position(|at| at == &content[..100]).unwrap();
    for jobs in [1, 8] {
        let mounted = mount(&desk, &format!("os.sealift next.sealift --jobs {jobs}"));
        assert!((0..20).all(|number| desk.read(&format!("mnt/{number}")) == desk.read(&format!("tree/{number}"))));
        mounted.assert_no_faults();
    }
    let file = File::options().write(true).open(desk.path("os.sealift")).unwrap();
    file.write_all_at(&[bytes[place] ^ 1], u64::try_from(place).unwrap()).unwrap();
    for jobs in [1, 8] {
        let mounted = mount(&desk, &format!("os.sealift next.sealift --jobs {jobs}"));
        assert!((0..3).all(|_| is_io_error(&fs::read(desk.path("mnt/2")))));
        assert!(desk.read("mnt/large") == desk.read("tree/large"));
        assert_chunk_of_base(&mounted.faults(), place);
    }
}

/// Asserts that there is one fault: damage at this place of the base os.sealift.
#[track_caller]
fn assert_chunk_of_base(faults: &[String], place: usize) {
    let [fault] = faults else { panic!("{faults:?}") };
    assert!(fault.starts_with("sealift: next.sealift: os.sealift: chunk "), "{fault}");
    let (_, rest) = fault.split_once(", at byte ").unwrap();
    let (at, why) = rest.split_once(": ").unwrap();
    let at: usize = at.parse().unwrap();
    assert!(at <= place && place < at + (256 << 10), "{fault}");
    assert!(why.starts_with("the bytes do not match their digest"), "{fault}");
}

#[test]
fn a_bundle_that_is_replaced_is_still_the_one_that_was_opened() {
    let Some(desk) = can_mount().then(several_chunks) else { return };
    let mounted = mount(&desk, "os.sealift");
    desk.write("other/0", "another");
    pack(&desk, "new.sealift", 8, "other");
    fs::rename(desk.path("new.sealift"), desk.path("os.sealift")).unwrap();
    desk.assert_same("tree", "mnt");
    fs::remove_file(desk.path("os.sealift")).unwrap();
    desk.assert_same("mnt", "tree");
    mounted.assert_no_faults();
}
