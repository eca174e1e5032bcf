//! Volumes that are lost or damaged, and recovery volumes.

use std::fs;

use sealift_desk::{Desk, noise, told};
use serde_json::Value;

/// A bundle of 2 MB of noise in volumes of at most 400 KiB, with this recovery, in `parts`; and a copy of them in `good`.
fn split(recovery: &str) -> Desk {
    let desk = Desk::with_key();
    for number in 0..40 {
        desk.write(&format!("tree/{number}"), noise(number, 50_000));
    }
    desk.good("pack tree -o os.sealift --name os --bundle-version 7 --key release --chunk-size 64KiB");
    desk.good(&format!("split os.sealift --size 400KiB --recovery {recovery} -o parts"));
    fs::create_dir(desk.path("good")).unwrap();
    for name in desk.names("parts") {
        fs::copy(desk.path(&format!("parts/{name}")), desk.path(&format!("good/{name}"))).unwrap();
    }
    desk
}

fn volume(number: usize) -> String {
    format!("os-7.{number:03}-of-006.sealift-volume")
}

fn recovery(number: usize, count: usize) -> String {
    format!("os-7.recovery-{number:03}-of-{count:03}.sealift-recovery")
}

/// Puts the volumes as they were into `parts`.
fn restore(desk: &Desk) {
    for name in desk.names("good") {
        fs::copy(desk.path(&format!("good/{name}")), desk.path(&format!("parts/{name}"))).unwrap();
    }
}

/// Writes noise over the first byte of these sectors of a file in `parts`.
fn damage(desk: &Desk, name: &str, sectors: impl Iterator<Item = usize>) {
    let mut bytes = desk.read(&format!("parts/{name}"));
    for sector in sectors {
        let Some(byte) = bytes.get_mut(sector * 2048) else { break };
        *byte ^= 0x55;
    }
    desk.write(&format!("parts/{name}"), bytes);
}

/// Repairs `parts` in place, and compares the volumes with the good ones.
#[track_caller]
fn repaired(desk: &Desk) -> Value {
    let report = desk.json("repair parts -o parts --json");
    for name in desk.names("good").iter().filter(|name| name.ends_with("volume")) {
        let [now, good] = ["parts", "good"].map(|folder| desk.read(&format!("{folder}/{name}")));
        assert!(now == good, "{name}: {report}");
    }
    desk.good("verify parts --trust signers");
    report
}

#[test]
fn any_two_volumes_are_made_again() {
    let desk = split("2");
    let names = desk.names("good");
    assert_eq!(names.len(), 8, "{names:?}");
    assert!(names.iter().all(|name| desk.read(&format!("good/{name}")).len() <= 400 << 10), "{names:?}");
    for one in 0..8 {
        for other in one + 1..8 {
            fs::remove_file(desk.path(&format!("parts/{}", names[one]))).unwrap();
            fs::remove_file(desk.path(&format!("parts/{}", names[other]))).unwrap();
            if other < 6 {
                let report = repaired(&desk);
                let made: Vec<_> = report["volumes"].as_array().unwrap().iter().map(|row| &row["number"]).collect();
                assert_eq!(made, [one + 1, other + 1], "{report}");
            } else if one < 6 {
                let report = repaired(&desk);
                assert_eq!(report["missing_recovery"], serde_json::json!([other - 5]), "{report}");
            } else {
                desk.refused("repair parts -o parts", 2, "has no recovery volumes");
            }
            restore(&desk);
        }
    }
}

#[test]
fn more_lost_than_recovery_is_said_by_number() {
    let desk = split("1");
    fs::remove_file(desk.path(&format!("parts/{}", volume(2)))).unwrap();
    fs::remove_file(desk.path(&format!("parts/{}", volume(4)))).unwrap();
    let said = desk.refused("repair parts -o new", 1, "has too little recovery for volumes 2 and 4 of os version 7");
    assert!(said.contains("volume 2 lacks 3") && said.contains("nothing was written"), "{said}");
    assert!(!desk.path("new").exists());
    let json = desk.refused("repair parts -o new --json", 1, "");
    assert!(json.contains(r#""kind":"unrepairable""#), "{json}");
    // One is lost, and a part of another is damaged in the same codewords; a third one is made whole.
    restore(&desk);
    fs::remove_file(desk.path(&format!("parts/{}", volume(2)))).unwrap();
    damage(&desk, &volume(4), 20..30);
    let said = desk.refused("repair parts -o new", 1, "has too little recovery for volumes 2 and 4");
    assert!(desk.names("parts").iter().all(|name| !name.contains("partial")), "{said}");
}

#[test]
fn sectors_damaged_everywhere_are_made_again() {
    let desk = split("2");
    // Every twentieth sector of each file, headers, heads and geometries among them.
    for (place, name) in desk.names("good").iter().enumerate() {
        damage(&desk, name, (place * 3..).step_by(20));
    }
    let report = repaired(&desk);
    assert_eq!(report["volumes"].as_array().unwrap().len(), 6, "{report}");
    assert_eq!(report["missing_recovery"], serde_json::json!([]), "{report}");
    // A volume is cut, one is longer, and one has only its header damaged.
    restore(&desk);
    let bytes = desk.read(&format!("good/{}", volume(1)));
    desk.write(&format!("parts/{}", volume(1)), &bytes[..100_000]);
    let bytes = desk.read(&format!("good/{}", volume(3)));
    desk.write(&format!("parts/{}", volume(3)), [&bytes[..], b"more"].concat());
    damage(&desk, &volume(5), 0..1);
    let report = repaired(&desk);
    let made: Vec<_> = report["volumes"].as_array().unwrap().iter().map(|row| &row["number"]).collect();
    assert_eq!(made, [1, 3, 5], "{report}");
}

#[test]
fn recovery_volumes_may_be_cut_or_damaged() {
    let desk = split("2");
    fs::remove_file(desk.path(&format!("parts/{}", volume(6)))).unwrap();
    let bytes = desk.read(&format!("good/{}", recovery(1, 2)));
    desk.write(&format!("parts/{}", recovery(1, 2)), &bytes[..bytes.len() / 2]);
    repaired(&desk);
    desk.refused(&format!("verify parts/{} --trust signers", recovery(1, 2)), 1, "truncated");
    damage(&desk, &recovery(2, 2), 40..41);
    desk.refused(&format!("verify parts/{} --trust signers", recovery(2, 2)), 1, "damaged in record 1 of 1");
    // Nothing is lost, and nothing is written.
    let report = desk.json("repair parts -o new --json");
    assert!(report["volumes"] == serde_json::json!([]) && !desk.path("new").exists(), "{report}");
}

/// Where two of three recovery volumes are lost, no checksum tells which shards of some columns have changed.
#[test]
fn changes_without_checksums_are_found_by_chunks() {
    let desk = split("3");
    for number in 1..=6 {
        restore(&desk);
        fs::remove_file(desk.path(&format!("parts/{}", recovery(1, 3)))).unwrap();
        fs::remove_file(desk.path(&format!("parts/{}", recovery(2, 3)))).unwrap();
        damage(&desk, &volume(number), 100..102);
        let report = repaired(&desk);
        assert_eq!(report["volumes"][0]["number"], number, "{report}");
    }
}

/// Of scratched discs, some sectors of the checksums cannot be read in most records: here, each recovery volume ends within its checksums.
#[test]
fn checksums_that_can_be_read_count_where_others_cannot() {
    let desk = split("2");
    for number in 1..=2 {
        let bytes = desk.read(&format!("good/{}", recovery(number, 2)));
        desk.write(&format!("parts/{}", recovery(number, 2)), &bytes[..bytes.len() - 3000]);
    }
    fs::remove_file(desk.path(&format!("parts/{}", volume(1)))).unwrap();
    damage(&desk, &volume(2), 20..30);
    repaired(&desk);
}

#[test]
fn checksums_that_have_changed_still_tell_what_is_sound() {
    let desk = split("2");
    for number in 1..=2 {
        let mut bytes = desk.read(&format!("good/{}", recovery(number, 2)));
        let at = bytes.len() - 3000;
        bytes[at] ^= 1;
        desk.write(&format!("parts/{}", recovery(number, 2)), bytes);
    }
    fs::remove_file(desk.path(&format!("parts/{}", volume(1)))).unwrap();
    damage(&desk, &volume(2), 20..30);
    repaired(&desk);
}

#[test]
fn recovery_by_percent_is_for_that_share() {
    let desk = split("10%");
    let names = desk.names("good");
    let len = |name: &str| desk.read(&format!("good/{name}")).len();
    let recovery = recovery(1, 1);
    assert!(len(&recovery) < len(&names[0]) * 3 / 4, "{} {}", len(&recovery), len(&names[0]));
    for name in names.iter().filter(|name| name.ends_with("volume")) {
        damage(&desk, name, (7..).step_by(12));
    }
    repaired(&desk);
}

/// Its checksums agree with its parity, but it is of other bytes.
#[test]
fn parity_that_lies_is_found() {
    let desk = split("1");
    // Parity of another bundle of the same lengths, behind the front of this one.
    fs::create_dir(desk.path("other")).unwrap();
    for number in 0..40 {
        desk.write(&format!("other/{number}"), noise(number + 100, 50_000));
    }
    desk.good("pack other -o other.sealift --name os --bundle-version 7 --key release --chunk-size 64KiB");
    desk.good("split other.sealift --size 400KiB --recovery 1 -o lies");
    let (own, mut lie) =
        (desk.read(&format!("good/{}", recovery(1, 1))), desk.read(&format!("lies/{}", recovery(1, 1))));
    assert_eq!(own.len(), lie.len());
    let head = sealift::Input::open(&desk.path("os.sealift")).unwrap().read_head(sealift::Limits::default()).unwrap();
    let front = usize::try_from(head.head_len() + head.root().contents.layout_stored).unwrap();
    let records = (112 + front + 20 + 8 * 6 + 32).next_multiple_of(2048);
    lie[..records].copy_from_slice(&own[..records]);
    // The checksums of data are those of this bundle, so that only its parity lies.
    let rest = own.len() - records - lie_shards(&own, front) * 2048;
    let checksums = own.len() - rest;
    let shards = 4 * lie_shards(&own, front);
    let end = lie.len();
    lie[checksums + shards..end].copy_from_slice(&own[checksums + shards..]);
    let count = shards / 4 * 7;
    let crc = {
        let mut crc = libdeflater::Crc::new();
        crc.update(&lie[checksums..checksums + 4 * count]);
        crc.sum()
    };
    lie[checksums + 4 * count..checksums + 4 * count + 4].copy_from_slice(&crc.to_le_bytes());
    desk.write(&format!("parts/{}", recovery(1, 1)), lie);
    desk.good(&format!("verify parts/{} --trust signers", recovery(1, 1)));
    fs::remove_file(desk.path(&format!("parts/{}", volume(3)))).unwrap();
    let said = desk.refused("repair parts -o parts", 1, "does not make the bundle again");
    assert!(said.contains("nothing was written") && !desk.path(&format!("parts/{}", volume(3))).exists(), "{said}");
}

/// Returns how many recovery shards a record has, of a set with one recovery volume and one codeword.
fn lie_shards(file: &[u8], front: usize) -> usize {
    let at = 112 + front + 8;
    usize::try_from(u32::from_le_bytes(file[at..at + 4].try_into().unwrap())).unwrap()
}

#[test]
fn other_sets_are_refused() {
    let desk = split("2");
    desk.write("tree/0", "other");
    desk.good("pack tree -o new.sealift --name os --bundle-version 8 --key release --chunk-size 64KiB");
    desk.good("split new.sealift --size 400KiB --recovery 1 -o new");
    desk.refused("repair parts new -o out", 2, "is not of the same set as");
    desk.refused(
        &format!("repair parts new/{} -o out", recovery(1, 1).replace("os-7", "os-8")),
        2,
        "is not of the same set as",
    );
    // Recovery volumes of another size help no one, and are in the way.
    desk.refused("split os.sealift --size 400KiB --recovery 1 -o parts", 2, "is in the way");
    desk.refused("split os.sealift --size 400KiB -o parts", 2, "is in the way");
    desk.good("split os.sealift --size 400KiB --recovery 2 -o parts");
    desk.refused("split os.sealift --size 400KiB --recovery 0 -o out", 2, "number of volumes");
    desk.refused("split os.sealift --size 400KiB --recovery 65535 -o out", 2, "choose fewer recovery volumes");
    desk.refused("split os.sealift --size 10KiB --recovery 2 -o out", 2, "use ");
    desk.refused("pack tree -o out.sealift --name os --bundle-version 8 --key release --recovery 2", 2, "--split");
    assert!(!desk.path("out").exists());
}

#[test]
fn equal_bundles_have_equal_recovery_volumes() {
    let desk = split("2");
    for jobs in [1, 2] {
        desk.good(&format!("split parts --size 400KiB --recovery 2 -o again-{jobs} --jobs {jobs}"));
        for name in desk.names("good") {
            let [again, good] =
                [format!("again-{jobs}"), "good".into()].map(|folder| desk.read(&format!("{folder}/{name}")));
            assert!(again == good, "{name} {jobs}");
        }
    }
}

#[test]
fn a_recovery_volume_alone_says_what_it_is() {
    let desk = split("2");
    let name = recovery(2, 2);
    fs::create_dir(desk.path("medium")).unwrap();
    fs::copy(desk.path(&format!("parts/{name}")), desk.path(&format!("medium/{name}"))).unwrap();
    let said = desk.good(&format!("info medium/{name} --trust signers"));
    assert!(said.contains("2 of 2, together 33.3 % of the bundle"), "{said}");
    let said = desk.good(&format!("verify medium/{name} --trust signers"));
    assert!(said.contains("not damaged, os version 7, recovery 2 of 2"), "{said}");
    let info = desk.json(&format!("info medium/{name} --trust signers --json"));
    assert_eq!(info["recovery"]["number"], 2, "{info}");
    desk.make_ssh_key("other", &["-t", "ed25519"]);
    desk.good("trust add os other.pub --trust others");
    desk.refused(&format!("verify medium/{name} --trust others"), 3, "");
    // Other verbs take the volumes beside it, and not it.
    desk.good("unpack parts target --trust signers --state state");
    let all: Vec<String> = desk.names("parts").iter().map(|name| format!("parts/{name}")).collect();
    desk.good(&format!("verify {} --trust signers", all.join(" ")));
}

#[test]
fn unreadable_sectors_are_named_and_made_again() {
    let desk = split("2");
    let bad = desk.path(&format!("parts/{}", volume(3)));
    let fail = "inject=pread64:error=EIO:when=3..40";
    let options = ["-P", bad.to_str().unwrap(), "-e", "trace=pread64", "-e", fail];
    let Some(mut run) = desk.strace(&options, "repair parts -o new --jobs 1") else { return };
    let (status, said) = told(&mut run);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("cannot be read at bytes "), "{said}");
    let name = volume(3);
    assert!(desk.read(&format!("new/{name}")) == desk.read(&format!("good/{name}")), "{said}");
}
