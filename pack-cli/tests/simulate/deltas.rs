//! Deltas over their bases.

use sealift_desk::{Desk, noise};

use crate::scattered::{FILES, Order, name, orders, pack, refused, report, scattered};

/// Creates a desk with a delta to `ordered.sealift`, in which one file is new and another differs a little.
fn with_a_delta() -> Desk {
    let desk = scattered();
    desk.write("tree/dir00/file0000", noise(7777, 20_000));
    let mut changed = desk.read("tree/dir04/file0004");
    changed[10] ^= 1;
    desk.write("tree/dir04/file0004", changed);
    pack(&desk, "delta.sealift", "--base ordered.sealift --allow-unsigned");
    desk
}

const LINE: &str = "delta.sealift --profile profile --device hdd";

#[test]
fn what_a_base_bundle_has_is_read_behind_the_delta() {
    let desk = with_a_delta();
    let line = format!("{LINE} --base ordered.sealift");
    let report = report(&desk, &line);
    for (field, number) in [("paths", 150), ("matched", 150), ("objects", 2), ("of_base", 148), ("not_read", 0)] {
        assert_eq!(report[field], number, "{field}");
    }
    let [full, _, _, _] = orders(&desk, "ordered.sealift --profile profile --device hdd");
    let [own, path, hash, sweep] = orders(&desk, &line);
    let len = std::fs::metadata(desk.path("delta.sealift")).unwrap().len();
    // The prefixes of the new contents are the old contents of both files, and possibly other files.
    let more = own.bytes - full.bytes;
    assert!((8192..len + 200_000).contains(&more), "{} {}", own.bytes, full.bytes);
    // One seek from the delta to its base, and more whenever a file of the delta is read.
    assert!((1..=8).contains(&own.seeks), "{}", own.seeks);
    for order in [own, path, hash] {
        assert!(order.seconds >= sweep.seconds && order.bytes >= sweep.bytes, "{}", order.name);
    }
    let said = desk.good(&format!("simulate {line}"));
    assert!(said.contains("2 contents from hdd") && said.contains("and 148 contents from the base"), "{said}");
    let small = format!("simulate {line} --set capacity_bytes=");
    let all = len + std::fs::metadata(desk.path("ordered.sealift")).unwrap().len();
    desk.good(&format!("{small}{all}"));
    let why = format!("the bundle with its bases, {all} bytes, does not fit on a device");
    refused(&desk, &format!("{small}{}", all - 1), 2, &why);
}

#[test]
fn a_prefix_is_read_with_its_chunk() {
    let desk = with_a_delta();
    desk.good("unpack ordered.sealift target --allow-unsigned --state state");
    desk.write("changed", "dir04/file0004");
    desk.write("none", "nowhere");
    let [of_bundle, of_target] = ["ordered.sealift", "target"].map(|base| {
        let [changed, none] = ["changed", "none"].map(|profile| {
            let [own, ..] = orders(&desk, &format!("delta.sealift --profile {profile} --device hdd --base {base}"));
            own.bytes
        });
        changed - none
    });
    assert!(of_target < 30_000 && of_bundle > of_target + 32_000, "{of_bundle} {of_target}");
}

#[test]
fn what_another_base_has_is_not_on_the_device() {
    let desk = with_a_delta();
    desk.good("unpack ordered.sealift target --allow-unsigned --state state");
    let line = format!("{LINE} --base target");
    let report = report(&desk, &line);
    assert_eq!((&report["objects"], &report["of_base"], &report["not_read"]), (&2.into(), &0.into(), &148.into()));
    let [own, ..] = orders(&desk, &line);
    let len = std::fs::metadata(desk.path("delta.sealift")).unwrap().len();
    assert!(own.bytes <= len + 8192, "{} {len}", own.bytes);
    desk.says(&format!("simulate {line}"), "not read from hdd: 148 contents of the base");
}

/// What decides the order is what differs: the chunks that were made with a prefix hold in every order what they hold in the delta.
#[test]
fn an_ordered_delta_is_no_slower_than_by_path() {
    let desk = scattered();
    for file in (0..FILES).step_by(4) {
        let path = name(file, "tree/");
        let mut content = desk.read(&path);
        for at in (0..content.len()).step_by(50) {
            content[at] ^= 0x55;
        }
        desk.write(&path, content);
    }
    pack(&desk, "delta.sealift", "--base ordered.sealift --allow-unsigned --chunk-size 64KiB --order profile");
    for device in ["dvd", "hdd", "usb2"] {
        let [own, path, hash, _] =
            orders(&desk, &format!("delta.sealift --profile profile --device {device} --base ordered.sealift"));
        let said = |order: &Order| format!("{} s, {} seeks", order.seconds, order.seeks);
        let all = [&own, &path, &hash].map(said).join("; ");
        assert!(
            own.seconds <= path.seconds && own.seconds <= hash.seconds && own.seeks <= path.seeks,
            "{device}: {all}"
        );
    }
}
