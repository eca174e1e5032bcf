//! The orders, compared with each other.

use sealift_desk::{Desk, noise};

use crate::scattered::{FILES, orders, pack, report, scattered};

const DEVICES: [&str; 5] = ["dvd", "cd", "hdd", "usb2", "sdcard"];

#[test]
fn an_ordered_bundle_is_never_slower() {
    let desk = scattered();
    for device in DEVICES {
        let line = format!("ordered.sealift --profile profile --device {device}");
        let [own, path, hash, sweep] = orders(&desk, &line);
        assert!(own.seconds <= path.seconds && own.seconds <= hash.seconds, "{device}: {}", own.seconds);
        assert!(own.bytes < path.bytes && own.bytes < hash.bytes, "{device}");
        assert!(own.seconds <= sweep.seconds * 1.1, "{device}: {} {}", own.seconds, sweep.seconds);
        assert_eq!(own.seeks, 0, "{device}: {}", own.name);
        if ["dvd", "cd", "hdd"].contains(&device) {
            assert!(path.seconds > own.seconds * 2.0, "{device}: {} {}", path.seconds, own.seconds);
            assert!(path.seeks > 50 && hash.seeks > 50, "{device}: {} {}", path.seeks, hash.seeks);
        }
    }
}

#[test]
fn nothing_surpasses_one_sweep() {
    let desk = scattered();
    for bundle in ["plain", "ordered"] {
        for device in DEVICES {
            for setting in ["", " --set place_bytes=300000001", " --set block_bytes=1 --set read_ahead_bytes=4096"] {
                let line = format!("{bundle}.sealift --profile profile --device {device}{setting}");
                let [own, path, hash, sweep] = orders(&desk, &line);
                for order in [own, path, hash] {
                    assert!(order.seconds >= sweep.seconds, "{line}: {}", order.name);
                    assert!(order.bytes >= sweep.bytes, "{line}: {}", order.name);
                }
                assert_eq!(sweep.seeks, 0, "{line}");
            }
        }
    }
}

/// Packing without a profile lays out by path: the computed layout matches a real one.
#[test]
fn the_order_by_path_is_as_packing_makes_it() {
    let desk = scattered();
    let [plain, same, _, _] = orders(&desk, "plain.sealift --profile profile --device hdd");
    let [_, path, _, _] = orders(&desk, "ordered.sealift --profile profile --device hdd");
    for computed in [same, path] {
        let seconds = plain.seconds / computed.seconds;
        assert!((0.99..1.01).contains(&seconds), "{} {}", plain.seconds, computed.seconds);
        assert_eq!(plain.seeks, computed.seeks);
        // Each read may have one block more or less.
        assert!(plain.bytes.abs_diff(computed.bytes) <= plain.seeks * 4096, "{} {}", plain.bytes, computed.bytes);
    }
}

/// The order by hash has chunks as large as those of the other orders.
#[test]
fn the_order_by_hash_reads_as_much_with_each_seek() {
    let desk = scattered();
    let [own, _, hash, _] = orders(&desk, "plain.sealift --profile profile --device hdd");
    let [own, hash] = [own, hash].map(|order| f64::from(u32::try_from(order.bytes / order.seeks).unwrap()));
    assert!((0.75..1.33).contains(&(hash / own)), "{own} {hash}");
}

#[test]
fn equal_input_gives_equal_output() {
    let desk = scattered();
    let line = "simulate plain.sealift ordered.sealift --profile profile --device cd --json --svg -";
    assert_eq!(desk.good(line), desk.good(line));
}

#[test]
fn a_large_file_is_read_piece_by_piece_and_once() {
    let desk = Desk::new();
    desk.write("tree/large", noise(1, 1 << 20));
    desk.write("tree/other", noise(2, 1 << 20));
    desk.write("profile", "large\nlarge\n./large\n");
    pack(&desk, "b.sealift", "--chunk-size 64KiB");
    let [own, _, _, sweep] = orders(&desk, "b.sealift --profile profile --device hdd");
    assert!((1 << 20..3 << 19).contains(&own.bytes), "{}", own.bytes);
    assert!(own.bytes - sweep.bytes <= 8192 && own.seeks == 0, "{} {}", own.bytes, sweep.bytes);
    let report = report(&desk, "b.sealift --profile profile --device hdd");
    assert_eq!((&report["paths"], &report["matched"], &report["objects"]), (&1.into(), &1.into(), &1.into()));
}

#[test]
fn of_a_large_file_only_the_pieces_of_its_ranges_are_read() {
    let desk = Desk::new();
    desk.write("tree/large", noise(1, 1 << 20));
    desk.write("some", "# sealift order 1\nlarge\t0-10,600000-600001\n");
    desk.write("whole", "large\n");
    pack(&desk, "b.sealift", "--chunk-size 64KiB");
    let [some, _, _, sweep] = orders(&desk, "b.sealift --profile some --device hdd");
    let [whole, _, _, _] = orders(&desk, "b.sealift --profile whole --device hdd");
    // Each end may share a block.
    let less = whole.bytes - some.bytes;
    assert!((14u64 << 16).abs_diff(less) <= 8192, "{less}");
    assert!(some.seeks == 1 && some.bytes >= sweep.bytes, "{} {}", some.bytes, sweep.bytes);
}

#[test]
fn unknown_paths_are_counted() {
    let desk = scattered();
    let mut profile = desk.read("profile");
    profile.extend(b"\nnowhere\ndir00\ndir00/file0000/below\n/\n\xff\xfe\n");
    desk.write("more", profile);
    let report = report(&desk, "ordered.sealift --profile more --device dvd");
    assert_eq!((&report["paths"], &report["matched"]), (&(FILES / 4 + 4).into(), &(FILES / 4).into()));
    desk.says("simulate ordered.sealift --profile more --device dvd", "found 150 of 154 paths in the order profile");
    desk.write("none", "nowhere");
    let [own, path, hash, _] = orders(&desk, "ordered.sealift --profile none --device dvd");
    assert_eq!((own.seeks, path.seconds, hash.seconds), (0, own.seconds, own.seconds), "only the index is read");
}

#[test]
fn settings_are_used_and_reported() {
    let desk = scattered();
    let [_, usual, _, _] = orders(&desk, "plain.sealift --profile profile --device hdd");
    let slower = "plain.sealift --profile profile --device hdd --set short_seek_ms=101.0";
    let [_, slow, _, _] = orders(&desk, slower);
    let (rise, seeks) = (slow.seconds - usual.seconds, slow.seeks);
    assert!(seeks > 50 && rise > 0.09 * f64::from(u32::try_from(seeks).unwrap()), "{rise} {seeks}");
    let report = report(&desk, slower);
    let parameters = report["parameters"].as_array().unwrap();
    let found = parameters.iter().find(|parameter| parameter["name"] == "short_seek_ms").unwrap();
    assert_eq!((&found["value"], &found["source"]), (&101.0.into(), &"given".into()));
}

#[test]
fn several_bundles_are_reported_one_after_the_other() {
    let desk = scattered();
    let out = desk.good("simulate plain.sealift ordered.sealift --profile profile --device dvd --json");
    let bundles: Vec<String> = out
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["bundle"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(bundles, ["plain.sealift", "ordered.sealift"]);
}
